"""The record of every epoch of a fit."""

from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import ConfigDict


@dataclass(frozen=True)
class EpochRecord:
    """One epoch, counted from 0: its losses, and what was measured on the validation nodes."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")

    epoch: int
    losses: dict[str, float]  # the main one first
    metrics: dict[str, float]  # as fractions
    selection: float  # the criterion by which epochs are selected; nan if the outputs were not finite
    threshold: float | None  # above which a score is a positive prediction; None with more than two classes
    # Of the logits of all nodes, if it is tracked: `mmd2` and `similarity` between groups, and, for two groups, the
    # `bound` of Theorem 4.2 with the features as `X`.
    discrepancy: dict[str, float] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """The main loss."""
        return next(iter(self.losses.values()))

    def flat(self) -> dict[str, float | None]:
        """Return all numbers in one mapping: the main loss is `loss`, any other named `x` is `loss_x`."""
        losses = {"loss": self.loss, **{f"loss_{name}": value for name, value in list(self.losses.items())[1:]}}
        chosen = {"selection": self.selection, "threshold": self.threshold}
        return {"epoch": self.epoch, **losses, **self.metrics, **chosen, **self.discrepancy}

    def __str__(self) -> str:
        losses = "  ".join(f"{name} {value:.4f}" for name, value in self.losses.items())
        metrics = "  ".join(f"{name} {100 * value:.2f}" for name, value in self.metrics.items())
        return f"epoch {self.epoch}  {losses}  {metrics}  selection {self.selection:.4f}"


class History(list[EpochRecord]):
    """The records of a fit, epoch by epoch."""

    def column(self, name: str) -> list[float | None]:
        """Return one number of every epoch, e.g. `"loss"`, `"AUC"` or `"mmd2"`."""
        rows = [record.flat() for record in self]
        if rows and name not in rows[0]:
            raise ValueError(f"'name' must be one of {', '.join(rows[0])} (got {name!r})")
        return [row[name] for row in rows]

    def smoothed(self, epoch: int, window: int) -> float:
        """Return the mean `selection` of the last `window` epochs up to `epoch`; nan if one of them is nan."""
        recent = self[max(0, epoch - window + 1) : epoch + 1]
        return sum(record.selection for record in recent) / len(recent)

    def to_list(self) -> list[dict[str, Any]]:
        return [asdict(record) for record in self]

    @classmethod
    def from_list(cls, records: list[dict[str, Any]]) -> "History":
        return cls(EpochRecord(**record) for record in records)
