"""How to train: settings that do not belong to a method."""

from dataclasses import asdict, dataclass, fields, replace
from math import inf
from numbers import Integral
from typing import Any, Literal, Self, get_args

import torch

from fairpass.metrics.group_thresholds import Constraint
from fairpass.metrics.threshold import Objective
from fairpass.nn.validation import check_choice

Postprocess = Literal["none", "thresholds"]
Select = Literal["validation", "last"]

_LEAST = {"epochs": 1, "seed": 0, "window": 1, "patience": 1}


@dataclass(frozen=True, repr=False)
class Training:
    """Settings of the training loop, the same for every method.

    Attributes:
        epochs: at most this many.
        learning_rate: of Adam.
        weight_decay: of Adam.
        patience: stop when validation has not improved for this many epochs; None: never.
        seed: of all random numbers of a fit.
        device: where to train, e.g. `"cpu"` or `"cuda"`.
        threshold: a positive prediction's score is above this; or the name of an objective (`"accuracy"`,
            `"f1"`, `"balanced_accuracy"`, `"selection"`) for which validation chooses the threshold.
        postprocess: `"thresholds"` decides by a separate threshold for each group, found on the validation nodes'
            scores at the selected epoch. It treats people of different groups by different standards, which is
            unlawful in places, and the group must be known at prediction: see `fairpass.metrics.GroupThresholds`.
            The epoch is selected with `threshold`, as without it.
        constraint: what `postprocess="thresholds"` makes equal between groups: `"demographic_parity"`,
            `"true_positive_rate_parity"` or `"equalized_odds"`.
        select: `"validation"` keeps the epoch with the largest selection criterion on validation, performance minus
            unfairness (the first of equals); `"last"` keeps the last.
        window: epochs over which the criterion is averaged before epochs are compared, so that a momentary dip of the
            differences is not selected. Epochs with fewer before them are selected only if there are no others.
        track_discrepancy: also record MMD^2, inter-group similarity and the theorem's bound at every epoch.
        deterministic: use only deterministic algorithms (on CUDA, PyTorch then also needs the environment
            variable `CUBLAS_WORKSPACE_CONFIG`).
    """

    epochs: int = 500
    learning_rate: float = 0.01
    weight_decay: float = 1e-5
    patience: int | None = None
    seed: int = 0
    device: str = "cpu"
    threshold: float | Objective = 0.5
    postprocess: Postprocess = "none"
    constraint: Constraint = "demographic_parity"
    select: Select = "validation"
    window: int = 1
    track_discrepancy: bool = True
    deterministic: bool = True

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if name == "patience" and value is None:
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"'{name}' must be a whole number of at least {least} (got {value!r})")
        if not 0 < self.learning_rate < inf:
            raise ValueError(f"'learning_rate' must be positive and finite (got {self.learning_rate})")
        if not 0 <= self.weight_decay < inf:
            raise ValueError(f"'weight_decay' must be at least 0 and finite (got {self.weight_decay})")
        if isinstance(self.threshold, str):
            if self.threshold not in get_args(Objective):
                names = get_args(Objective)
                raise ValueError(f"'threshold' must be a number or one of {names} (got {self.threshold!r})")
        elif not 0 <= self.threshold <= 1:
            raise ValueError(f"'threshold' must be between 0 and 1 (got {self.threshold})")
        check_choice("postprocess", self.postprocess, Postprocess)
        check_choice("constraint", self.constraint, Constraint)
        check_choice("select", self.select, Select)
        try:
            is_device = isinstance(self.device, str) and bool(torch.device(self.device))
        except RuntimeError:
            is_device = False
        if not is_device:
            raise ValueError(f"'device' must name a device of PyTorch, such as 'cpu' or 'cuda' (got {self.device!r})")

    def replace(self, **changes: Any) -> Self:
        """Return the settings with some of them changed."""
        return replace(self, **changes)

    but = replace  # the name in versions 0.1 and 0.2

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain numbers and strings."""
        return asdict(self)

    def __repr__(self) -> str:
        changed = (f for f in fields(self) if getattr(self, f.name) != f.default)
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"


def is_available(device: str) -> bool:
    """Return whether tensors can be put on a device here."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):  # depends on the backend
        return False
    return True
