"""How to train, independent of the method."""

from dataclasses import asdict, replace
from math import inf
from typing import Any, Literal, Self

import torch

from fairpass.metrics.group_thresholds import Constraint
from fairpass.metrics.threshold import Objective
from fairpass.parameters import Choice, Declared, LogUniform, parameter

Postprocess = Literal["none", "thresholds"]
Select = Literal["validation", "last"]


class Training(Declared, frozen=True, kw_only=False):
    """Settings of the training loop, the same for every method."""

    epochs: int = parameter(500, at_least=1, help="maximum number of epochs")
    learning_rate: float = parameter(
        0.01, above=0, below=inf, search=LogUniform(1e-3, 3e-2), grid=Choice(0.001, 0.01), help="learning rate of Adam"
    )
    weight_decay: float = parameter(
        1e-5, at_least=0, below=inf, search=LogUniform(1e-5, 1e-1), grid=Choice(1e-5, 1e-3), help="weight decay of Adam"
    )
    patience: int | None = parameter(
        None, at_least=1, help="stop if validation has not improved for this many epochs; None: never"
    )
    seed: int = parameter(0, at_least=0, help="seed of all random numbers of a fit")
    device: str = parameter("cpu", help='where to train, e.g. `"cpu"` or `"cuda"`')
    threshold: float | Objective = parameter(
        0.5,
        at_least=0,
        at_most=1,
        help="a prediction is positive if its score is above this number; or the objective for which validation chooses"
        " the threshold",
    )
    postprocess: Postprocess = parameter(
        "none",
        before="none",
        help='`"thresholds"` decides with one threshold per group, found on the scores of the validation nodes at the '
        "selected epoch. It treats people of different groups by different standards, which is unlawful in places, and "
        "the group must be known at prediction: see `fairpass.metrics.GroupThresholds`. The epoch is still selected "
        "with `threshold`",
    )
    constraint: Constraint = parameter(
        "demographic_parity",
        before="demographic_parity",
        help='what `postprocess="thresholds"` makes equal between groups',
    )
    select: Select = parameter(
        "validation",
        help='`"validation"` keeps the epoch with the largest selection criterion on validation, performance minus '
        'unfairness (the first of equals); `"last"` keeps the last',
    )
    window: int = parameter(
        1,
        at_least=1,
        before=1,
        help="number of epochs over which the criterion is averaged before epochs are compared, so that a momentary "
        "dip of the differences is not selected. Epochs with fewer predecessors are selected only if there are no others",
    )
    track_discrepancy: bool = parameter(
        True, help="also record MMD^2, the similarity between groups and the theorem's bound at every epoch"
    )
    deterministic: bool = parameter(
        True,
        help="use only deterministic algorithms (on CUDA, PyTorch then needs the environment variable "
        "`CUBLAS_WORKSPACE_CONFIG`)",
    )

    def check_parameters(self) -> None:
        """Raise `ValueError` if PyTorch has no such device."""
        try:
            torch.device(self.device)
        except RuntimeError:
            raise ValueError(
                f"'device' must name a device of PyTorch, such as 'cpu' or 'cuda' (got {self.device!r})"
            ) from None

    def but(self, **changes: Any) -> Self:
        """Return the settings with some of them changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain numbers and strings."""
        return asdict(self)


def is_available(device: str) -> bool:
    """Return whether tensors can be put on a device here."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):  # depends on the backend
        return False
    return True
