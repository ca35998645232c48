"""What happened at every epoch."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class EpochRecord:
    """One epoch: its losses, the five validation metrics (fractions), and how far apart the groups are."""

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
        """Return all numbers in one mapping."""
        return {
            "epoch": self.epoch,
            **self.losses,
            **self.metrics,
            "selection": self.selection,
            "threshold": self.threshold,
            **self.discrepancy,
        }


class History(list[EpochRecord]):
    """The records of a fit, epoch by epoch."""

    def column(self, name: str) -> list[float | None]:
        """Return one number of every epoch, e.g. `"loss"`, `"AUC"` or `"mmd2"`."""
        return [record.flat()[name] for record in self]

    def to_list(self) -> list[dict[str, Any]]:
        """Return the records as plain data."""
        return [vars(record) for record in self]

    @classmethod
    def from_list(cls, records: list[dict[str, Any]]) -> "History":
        """Return the history that `to_list` gave."""
        return cls(EpochRecord(**record) for record in records)
