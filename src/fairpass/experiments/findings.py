"""What the records say of the cells of each item: all that tables, figures and claims look at."""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from fairpass.experiments.items import cells_of
from fairpass.experiments.ranks import METRICS
from fairpass.experiments.records import Chosen, Records
from fairpass.experiments.settings import DATASETS
from fairpass.experiments.spec import Cell

TITLES = {"german": "German", "credit": "Credit", "bail": "Bail"}


class Finding:
    """A cell and the runs that it shows.

    Args:
        cell: what was to be run.
        chosen: the runs.
    """

    def __init__(self, cell: Cell, chosen: Chosen) -> None:
        self.cell, self.chosen = cell, chosen

    def mean(self, metric: str) -> float:
        """Return the mean of a test metric over the seeds, in percent; nan if it is not defined."""
        values = self._values(metric)
        return fmean(values) if values else math.nan

    def std(self, metric: str) -> float:
        """Return the standard deviation (of a sample: n - 1); nan for a single run."""
        values = self._values(metric)
        return stdev(values) if len(values) > 1 else math.nan

    def _values(self, metric: str) -> list[float]:
        values = self.chosen.values(metric)
        return [] if None in values else values

    @cached_property
    def means(self) -> dict[str, float]:
        """Return the five metrics."""
        return {metric: self.mean(metric) for metric in METRICS}

    @property
    def measured(self) -> dict[str, Any]:
        """Return what else was measured, with the first seed."""
        found: dict[str, Any] = self.chosen.records[0]["measured"]
        return found


class Findings:
    """The findings of all items.

    Args:
        records: of the runs that were made.
        quick: whether they are of the quick variant.
        datasets: those to look at.
    """

    def __init__(self, records: Records, *, quick: bool = False, datasets: Sequence[str] = DATASETS) -> None:
        self.records, self.quick, self._datasets = records, quick, datasets
        self._items: dict[str, list[tuple[Cell, Finding | None]]] = {}

    def _item(self, item: str) -> list[tuple[Cell, Finding | None]]:
        if item not in self._items:
            cells = [cell for cell in cells_of(item, quick=self.quick) if cell.dataset in self._datasets]
            chosen = ((cell, self.records.chosen(cell)) for cell in cells)
            self._items[item] = [(cell, None if c is None else Finding(cell, c)) for cell, c in chosen]
        return self._items[item]

    def datasets(self, item: str, at_least: int = 1) -> list[str]:
        """Return the data sets of which there is anything: so many cells (a single point is no curve)."""
        found = [cell.dataset for cell, finding in self._item(item) if finding is not None]
        return [dataset for dataset in self._datasets if found.count(dataset) >= at_least]

    def labels(self, item: str, dataset: str) -> list[str]:
        """Return the labels of a data set's cells, each once, whether or not they were run."""
        return list(dict.fromkeys(cell.label for cell, _ in self._item(item) if cell.dataset == dataset))

    def positions(self, item: str, name: str) -> list[Any]:
        """Return where the cells lie along an axis, each position once."""
        return list(dict.fromkeys(cell.at[name] for cell, _ in self._item(item) if name in cell.at))

    def of(self, item: str, dataset: str | None = None, label: str | None = None, **at: Any) -> Iterator[Finding]:
        """Return what was found in the cells that match."""
        for cell, finding in self._item(item):
            if (
                finding is not None
                and dataset in (None, cell.dataset)
                and label in (None, cell.label)
                and all(cell.at.get(name) == value for name, value in at.items())
            ):
                yield finding

    def one(self, item: str, dataset: str, label: str, **at: Any) -> Finding | None:
        """Return what was found in the first cell that matches; None if it was not run."""
        return next(self.of(item, dataset, label, **at), None)

    def missing(self, item: str) -> int:
        """Return how many cells were not run."""
        return sum(finding is None for _, finding in self._item(item))

    def means(self, item: str, dataset: str, labels: Iterable[str] | None = None, **at: Any) -> dict[str, Any]:
        """Return the five metrics by label, of those that were run and whose metrics are all defined."""
        wanted = self.labels(item, dataset) if labels is None else labels
        found = ((label, self.one(item, dataset, label, **at)) for label in wanted)
        rows = {label: finding.means for label, finding in found if finding is not None}
        return {label: row for label, row in rows.items() if not any(map(math.isnan, row.values()))}
