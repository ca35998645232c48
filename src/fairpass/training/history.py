"""The record of every epoch of a fit."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class EpochRecord:
    """One epoch.

    Attributes:
        epoch: counted from 0.
        losses: by name, the main one first.
        metrics: on the validation nodes, by name, as fractions.
        selection: the validation criterion by which epochs are selected; nan if the outputs were not finite.
        threshold: above which a score is a positive prediction; None with more than two classes.
        discrepancy: of the logits of all nodes: `mmd2` and `similarity` between groups, and, for two groups, the
            `bound` of Theorem 4.2 with the features as `X`; empty if it is not tracked.
    """

    epoch: int
    losses: dict[str, float]
    metrics: dict[str, float]
    selection: float
    threshold: float | None
    discrepancy: dict[str, float] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """Return the main loss."""
        return next(iter(self.losses.values()))

    def flat(self) -> dict[str, float | None]:
        """Return all numbers in one mapping: the main loss is `loss`, any other named `x` is `loss_x`."""
        return {
            "epoch": self.epoch,
            "loss": self.loss,
            **{f"loss_{name}": value for name, value in list(self.losses.items())[1:]},
            **self.metrics,
            "selection": self.selection,
            "threshold": self.threshold,
            **self.discrepancy,
        }

    def __str__(self) -> str:
        """Return one line for a reader, the metrics in percent."""
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
        """Return the records as plain data."""
        return [asdict(record) for record in self]

    @classmethod
    def from_list(cls, records: list[dict[str, Any]]) -> "History":
        """Return the history that `to_list` gave."""
        return cls(EpochRecord(**record) for record in records)
