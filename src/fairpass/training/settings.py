"""How to train, apart from what: nothing here belongs to a method."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self, get_args

Objective = Literal["accuracy", "f1", "balanced_accuracy", "selection"]


@dataclass(frozen=True)
class Training:
    """Settings of the training loop, the same for every method.

    Attributes:
        epochs: at most this many.
        learning_rate: of Adam.
        weight_decay: of Adam.
        patience: stop when validation has not improved for this many epochs; None: never.
        seed: of all random numbers of a fit.
        device: where to train, e.g. `"cpu"` or `"cuda"`.
        threshold: a positive prediction's score is above this; or the name of an objective (`"accuracy"`, `"f1"`,
            `"balanced_accuracy"`, `"selection"`) for which validation chooses the threshold.
        select: `"validation"` keeps the epoch with the largest `AUC + F1 + ACC - DP - EO` on validation, `"last"` the last.
        track_discrepancy: also record MMD^2, inter-group similarity and the theorem's bound at every epoch.
        deterministic: use only deterministic algorithms.
    """

    epochs: int = 500
    learning_rate: float = 0.01
    weight_decay: float = 1e-5
    patience: int | None = None
    seed: int = 0
    device: str = "cpu"
    threshold: float | Objective = 0.5
    select: Literal["validation", "last"] = "validation"
    track_discrepancy: bool = True
    deterministic: bool = True

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("learning_rate", 0), ("weight_decay", 0), ("patience", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"'{name}' must be at least {least} (got {value})")
        if isinstance(self.threshold, str) and self.threshold not in get_args(Objective):
            raise ValueError(f"'threshold' must be a number or one of {get_args(Objective)} (got {self.threshold!r})")
        if self.select not in ("validation", "last"):
            raise ValueError(f"'select' must be 'validation' or 'last' (got {self.select!r})")

    def but(self, **changes: Any) -> Self:
        """Return the settings with some of them changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain numbers and strings."""
        return asdict(self)
