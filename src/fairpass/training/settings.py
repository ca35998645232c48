"""How to train, independent of the method."""

from dataclasses import asdict, replace
from math import inf
from typing import Any, Literal, Self

import torch

from fairpass.metrics.group_thresholds import Constraint
from fairpass.metrics.split_metrics import Objective
from fairpass.parameters import LARGEST_RATE, LARGEST_SEED, MOST_EPOCHS, Choice, Declared, LogUniform, parameter

Postprocess = Literal["none", "thresholds"]
Select = Literal["validation", "last"]


class Training(Declared, frozen=True, kw_only=False):
    """Settings of the training loop, the same for every method."""

    epochs: int = parameter(500, "maximum number of epochs", at_least=1, limit=MOST_EPOCHS)
    learning_rate: float = parameter(
        0.01,
        "learning rate of Adam",
        LogUniform(1e-3, 3e-2),
        Choice(0.001, 0.01),
        above=0,
        below=inf,
        limit=LARGEST_RATE,
    )
    weight_decay: float = parameter(
        1e-5, "weight decay of Adam", LogUniform(1e-5, 1e-1), Choice(1e-5, 1e-3), at_least=0, below=inf
    )
    patience: int | None = parameter(
        None, "stop if validation has not improved for this many epochs; None: never", at_least=1, limit=MOST_EPOCHS
    )
    seed: int = parameter(0, "seed of all random numbers of a fit", at_least=0, limit=LARGEST_SEED)
    device: str = parameter("cpu", 'where to train, e.g. `"cpu"` or `"cuda"`')
    threshold: float | Objective = parameter(
        0.5,
        "a prediction is positive if its score is above this number; or the objective for which validation chooses"
        " the threshold",
        at_least=0,
        at_most=1,
    )
    postprocess: Postprocess = parameter(
        "none",
        '`"thresholds"` decides with one threshold per group, found on the scores of the validation nodes at the '
        "selected epoch. It treats people of different groups by different standards, which is unlawful in places, and "
        "the group must be known at prediction: see `fairpass.metrics.GroupThresholds`. The epoch is still selected "
        "with `threshold`",
        before="none",
    )
    constraint: Constraint = parameter(
        "demographic_parity", 'what `postprocess="thresholds"` makes equal between groups', before="demographic_parity"
    )
    select: Select = parameter(
        "validation",
        '`"validation"` keeps the epoch with the largest selection criterion on validation, performance minus '
        'unfairness (the first of equals); `"last"` keeps the last',
    )
    window: int = parameter(
        1,
        "number of epochs over which the criterion is averaged before epochs are compared, so that a momentary dip of "
        "the differences is not selected. Epochs with fewer predecessors are selected only if there are no others",
        at_least=1,
        before=1,
    )
    track_discrepancy: bool = parameter(
        True, "also record MMD^2, the similarity between groups and the theorem's bound at every epoch"
    )
    deterministic: bool = parameter(
        True,
        "use only deterministic algorithms (on CUDA, PyTorch then needs the environment variable "
        "`CUBLAS_WORKSPACE_CONFIG`)",
    )

    def check_parameters(self) -> None:
        """Raise `ValueError` if PyTorch has no such device."""
        try:
            torch.device(self.device)
        except RuntimeError:
            got = f"got {self.device!r}"
            raise ValueError(f"'device' must name a device of PyTorch, such as 'cpu' or 'cuda' ({got})") from None

    def but(self, **changes: Any) -> Self:
        """Return the settings with some of them changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return asdict(self)


def is_available(device: str) -> bool:
    """Return whether tensors can be put on a device here."""
    try:
        if torch.empty(0, device=device).is_meta:
            return False
    except (RuntimeError, AssertionError, NotImplementedError):  # depends on the backend
        return False
    return True
