"""An item (a table or figure of the paper, or of ours): what to run, and what to show of the results."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from statistics import StatisticsError, fmean
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from fairpass.experiments.cells import Cell, CellResult, Means, quick_cells
from fairpass.experiments.figures import house_style
from fairpass.experiments.settings import DATASETS
from fairpass.experiments.tables import Table
from fairpass.experiments.texts import TEXTS, TITLES
from fairpass.runs import RunStore

CLOSE = 1.0  # Averages that differ by at most this many percentage points are comparable.
Rows = Mapping[Any, Means]  # metrics by label or position
Verdict = tuple[bool, str]  # of a check: whether the claim holds, and the numbers that show it


class Check(NamedTuple):
    """Whether a claim holds somewhere, and the numbers that show it."""

    where: str
    holds: bool
    numbers: str


@dataclass(frozen=True)
class Claim:
    """What the paper says, in our words, and where we checked it."""

    text: str
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> str:
        if not self.checks:
            return "not measured"
        held = [check.holds for check in self.checks]
        return "seen" if all(held) else "partly seen" if any(held) else "not seen"

    @property
    def sentence(self) -> str:
        """The verdict and the numbers behind it."""
        yes, no = ("; ".join(f"{c.where} ({c.numbers})" for c in self.checks if c.holds == h) for h in (True, False))
        if yes and no:
            count = sum(check.holds for check in self.checks)
            return f"Partly seen, in {count} of {len(self.checks)}. Yes: {yes}. No: {no}."
        return ": ".join(filter(None, (self.verdict.capitalize(), yes or no))) + "."


def claim(key: str, subjects: Mapping[str, Any], check: Callable[..., Verdict], *given: Any, **words: str) -> Claim:
    """Check the claim with this key in `texts.toml` for each subject whose results are there.

    `check(subject, *given)` says whether it holds, and the numbers that show it; `words` are filled into its text.
    """
    checks = []
    for where, subject in subjects.items():
        # A missing row or an empty mean: not measured here.
        with suppress(LookupError, StatisticsError):
            checks.append(Check(where, *check(subject, *given)))
    return Claim(TEXTS["claims"][key].format(**words), tuple(checks))


def require(*parts: Sized, points: int = 1) -> None:
    """Raise the error that means "not measured" if any of the parts has too few points."""
    if min(map(len, parts)) < points:
        raise LookupError("not measured")


def compare(
    first: Iterable[float], second: Iterable[float], words: str = "{:.1f} against {:.1f}", *, lower: bool = False
) -> Verdict:
    """Check that one mean is greater, or lower, than another."""
    one, other = fmean(first), fmean(second)
    return one < other if lower else one > other, words.format(one, other)


@dataclass(frozen=True)
class Item:
    """What to run, and the tables, claims and figures to make of it (called only if there are results)."""

    name: str
    cells_on: Callable[[str], list[Cell]]  # by data set
    make_tables: "Callable[[ItemResults], list[Table]]"
    make_claims: "Callable[[ItemResults], Iterable[Claim]]" = lambda _: ()
    make_figures: "Callable[[ItemResults], dict[str, Figure]]" = lambda _: {}
    figure_only: bool = False  # The results page leaves out the tables, because the figure says it better.
    drawn_from: int = 1  # How many results a data set needs to be drawn; a single point is no curve.

    @property
    def title(self) -> str:
        return str(TEXTS["items"][self.name])

    def cells(self, *, quick: bool = False) -> list[Cell]:
        """Return the cells; `quick` with two seeds, few epochs, one candidate and at most three points per axis."""
        cells = [cell for dataset in DATASETS for cell in self.cells_on(dataset)]
        return quick_cells(cells) if quick else cells


class ItemResults:
    """What the records say about the cells of an item: its tables, claims and figures."""

    def __init__(self, item: Item, store: RunStore, *, quick: bool = False, datasets: Sequence[str] = DATASETS) -> None:
        self.item, self._titles = item, {TITLES[dataset]: dataset for dataset in datasets}
        self.cells = [cell for cell in item.cells(quick=quick) if cell.dataset in datasets]
        self.results = [CellResult.of(cell, store) for cell in self.cells]

    @cached_property
    def tables(self) -> list[Table]:
        return self.item.make_tables(self) if self.of() else []

    @cached_property
    def claims(self) -> list[Claim]:
        return list(self.item.make_claims(self))

    @cached_property
    def figures(self) -> dict[str, Figure]:
        with house_style():
            return self.item.make_figures(self) if self.datasets(self.item.drawn_from) else {}

    def datasets(self, at_least: int = 1) -> dict[str, str]:
        """Return the data sets with at least this many results, by their titles."""
        return {title: d for title, d in self._titles.items() if len(self.of(d)) >= at_least}

    def labels(self) -> list[str]:
        """Return the labels of the cells, each once, whether or not they were run."""
        return list(dict.fromkeys(cell.label for cell in self.cells))

    def positions(self, axis: str) -> list[Any]:
        return list(dict.fromkeys(cell.at[axis] for cell in self.cells))

    def of(self, dataset: str | None = None, label: str | None = None, **at: Any) -> list[CellResult]:
        """Return the results of the cells that match."""
        results = [result for result in self.results if result is not None and at.items() <= result.cell.at.items()]
        return [r for r in results if dataset in (None, r.cell.dataset) and label in (None, r.cell.label)]

    def rows(self, dataset: str, keep: Callable[[CellResult], bool] = lambda _: True, **at: Any) -> Rows:
        """Return the mean metrics of a data set's cells by label, without those that have an undefined metric."""
        return {r.cell.label: r.means for r in self.of(dataset, **at) if r.is_defined and keep(r)}
