"""What validation chooses among the records of a cell; the records themselves are in `fairpass.runs`."""

from statistics import fmean

from fairpass.experiments.spec import Cell, Configuration
from fairpass.runs import RunStore
from fairpass.runs import StoredRecord as Record
from fairpass.runs.summary import METRICS

__all__ = ["METRICS", "Chosen", "Record", "Records"]


class Records(RunStore):
    """A store that knows cells."""

    def chosen(self, cell: Cell) -> "Chosen | None":
        """Return the runs of the candidate that validation prefers, among those whose runs were all made."""
        best: Chosen | None = None
        for candidate in cell.candidates:
            records = [self.get(spec) for spec in cell.runs(candidate)]
            made = [record for record in records if record is not None and record["error"] is None]
            if not made or len(made) < len(records):
                continue
            found = Chosen(candidate, tuple(made))
            if best is None or found.selection > best.selection:
                best = found
        return best


class Chosen:
    """The runs of one configuration, one for each seed.

    Args:
        configuration: the chosen one.
        records: of its runs.
    """

    def __init__(self, configuration: Configuration, records: tuple[Record, ...]) -> None:
        self.configuration, self.records = configuration, records

    @property
    def selection(self) -> float:
        """Return the mean of `AUC + F1 + ACC - DP - EO` on validation."""
        return fmean(record["validation"]["selection"] for record in self.records)

    def values(self, metric: str) -> list[float]:
        """Return a test metric of every run, in percent."""
        return [record["test"][metric] for record in self.records]

    @property
    def is_near_constant(self) -> bool:
        """Return whether most runs predict nearly the same for all nodes."""
        flagged = sum(bool(record["test"]["near_constant"]) for record in self.records)
        return 2 * flagged > len(self.records)
