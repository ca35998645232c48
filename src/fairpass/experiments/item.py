"""An item (a table or figure of the paper, or of ours): what to run, and what to show of the results."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from matplotlib.figure import Figure

from fairpass.experiments.cells import Cell, CellResult, quick_cells
from fairpass.experiments.figures import house_style
from fairpass.experiments.settings import DATASETS
from fairpass.experiments.tables import Table
from fairpass.experiments.texts import TEXTS, TITLES
from fairpass.runs import RunStore

CLOSE = 1.0
"""Averages that differ by at most this many percentage points are comparable."""

Subject = TypeVar("Subject")


class NotMeasured(Exception):  # noqa: N818
    """A claim cannot be checked here, because a result is missing."""


class Rows(dict[Any, Mapping[str, float]]):
    """Metrics by label or position; asking for one that is missing raises `NotMeasured`."""

    def __missing__(self, key: object) -> Mapping[str, float]:
        raise NotMeasured(key)


@dataclass(frozen=True)
class Check:
    """Whether a claim holds somewhere, and the numbers that show it."""

    where: str
    holds: bool
    numbers: str

    def __str__(self) -> str:
        return f"{self.where} ({self.numbers})"


@dataclass(frozen=True)
class Claim:
    """What the paper says, in our words, and where we checked it."""

    text: str
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> str:
        """Whether the claim is "seen", "partly seen", "not seen" or "not measured"."""
        if not self.checks:
            return "not measured"
        held = sum(check.holds for check in self.checks)
        return "seen" if held == len(self.checks) else "partly seen" if held else "not seen"

    @property
    def sentence(self) -> str:
        """The verdict and the numbers behind it."""
        held, failed = ("; ".join(str(c) for c in self.checks if c.holds is holds) for holds in (True, False))
        if held and failed:
            count = sum(check.holds for check in self.checks)
            return f"Partly seen, in {count} of {len(self.checks)}. Yes: {held}. No: {failed}."
        return f"{self.verdict.capitalize()}{': ' if self.checks else ''}{held or failed}."


def claim(text: str, check: Callable[[Subject], tuple[bool, str]], subjects: Mapping[str, Subject]) -> Claim:
    """Check a claim for each of some subjects, without those whose results are missing.

    Args:
        text: the claim.
        check: whether it holds for a subject, and the numbers that show it.
        subjects: by what readers call them.
    """
    checks = []
    for where, subject in subjects.items():
        with suppress(NotMeasured):
            checks.append(Check(where, *check(subject)))
    return Claim(text, tuple(checks))


@dataclass(frozen=True)
class Item:
    """What to run, and the tables, claims and figures to make of it.

    The functions that make tables and figures are called only if there are results.
    """

    name: str
    all_cells: Callable[[], list[Cell]]
    make_tables: "Callable[[ItemResults], list[Table]]"
    make_claims: "Callable[[ItemResults], Iterable[Claim]]" = lambda _: ()
    make_figures: "Callable[[ItemResults], dict[str, Figure]]" = lambda _: {}
    figure_only: bool = False
    """Whether the results page leaves out the tables, because the figure says it better."""

    @property
    def title(self) -> str:
        """What readers see."""
        return str(TEXTS["items"][self.name])

    def cells(self, *, quick: bool = False) -> list[Cell]:
        """Return the cells; `quick` with two seeds, few epochs, one candidate and at most three points per axis."""
        return quick_cells(self.all_cells()) if quick else self.all_cells()


class ItemResults:
    """What the records say about the cells of an item.

    Args:
        item: the item.
        store: with the records.
        quick: whether they are of the quick variant.
        datasets: the data sets to show.
    """

    def __init__(self, item: Item, store: RunStore, *, quick: bool = False, datasets: Sequence[str] = DATASETS) -> None:
        self.item, self._datasets = item, datasets
        self.cells = [cell for cell in item.cells(quick=quick) if cell.dataset in datasets]
        self.results = [CellResult.of(cell, store) for cell in self.cells]

    @cached_property
    def tables(self) -> list[Table]:
        """All tables; none if nothing was run."""
        return self.item.make_tables(self) if self.datasets() else []

    @cached_property
    def claims(self) -> list[Claim]:
        """The paper's claims."""
        return list(self.item.make_claims(self))

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """All figures by name; none if nothing was run."""
        with house_style():
            return self.item.make_figures(self) if self.datasets() else {}

    @property
    def missing(self) -> int:
        """How many cells were not run."""
        return self.results.count(None)

    def datasets(self, at_least: int = 1) -> list[str]:
        """Return the data sets with at least this many results."""
        found = [result.cell.dataset for result in self.of()]
        return [dataset for dataset in self._datasets if found.count(dataset) >= at_least]

    def titled(self) -> dict[str, str]:
        """Return the data sets that have results by their titles."""
        return {TITLES[dataset]: dataset for dataset in self.datasets()}

    def labels(self) -> list[str]:
        """Return the labels of the cells, each once, whether or not they were run."""
        return list(dict.fromkeys(cell.label for cell in self.cells))

    def positions(self, axis: str) -> list[Any]:
        """Return the positions of the cells along an axis, each once."""
        return list(dict.fromkeys(cell.at[axis] for cell in self.cells))

    def of(self, dataset: str | None = None, label: str | None = None, **at: Any) -> list[CellResult]:
        """Return the results of the cells that match."""
        return [
            result
            for cell, result in zip(self.cells, self.results, strict=True)
            if result is not None
            and dataset in (None, cell.dataset)
            and label in (None, cell.label)
            and all(cell.at.get(name) == value for name, value in at.items())
        ]

    def one(self, dataset: str, label: str) -> CellResult | None:
        """Return the result of a cell; None if it was not run."""
        return next(iter(self.of(dataset, label)), None)

    def rows(self, dataset: str, **at: Any) -> Rows:
        """Return the mean metrics of a data set's cells by label, without those that have an undefined metric."""
        found = {result.cell.label: result.means for result in self.of(dataset, **at)}
        return Rows({label: row for label, row in found.items() if not any(map(math.isnan, row.values()))})


def balance(row: Mapping[str, float]) -> str:
    """Return utility and bias in words."""
    return f"utility {row['utility']:.1f}, bias {row['bias']:.1f}"


def versus(ours: Mapping[str, float], theirs: Mapping[str, float]) -> str:
    """Return the utility and bias of two rows in words."""
    return f"{balance(ours)} against {balance(theirs)}"
