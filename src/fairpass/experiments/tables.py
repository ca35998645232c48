"""A table as a value, the three forms in which it is written, and the kind that most items have."""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from fairpass.datasets.registry import PUBLISHED_SEED, is_available, load_arrays
from fairpass.experiments.cells import METRICS, Cell, CellResult, average_ranks
from fairpass.experiments.paper import PrintedRow
from fairpass.experiments.texts import TEXTS, TITLES, span
from fairpass.metrics.catalog import BY_LABEL
from fairpass.metrics.detectable import Detectable, detectable
from fairpass.plain_text import to_csv

if TYPE_CHECKING:
    from fairpass.experiments.item import ItemResults

MISSING = "–"
PAPER = ", paper"  # ends the name of a column with the paper's values of the column before it

_NOTES: Mapping[str, str] = TEXTS["notes"]
_EMPHASIS: Mapping[float, Literal["best", "second"]] = {1.0: "best", 2.0: "second"}
_EMPHASIS_MARKDOWN = {"": "{}", "best": "**{}**", "second": "*{}*"}
_EMPHASIS_LATEX = {"": "{}", "best": r"\textbf{{{}}}", "second": r"\underline{{{}}}"}
_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"},
        **{"<": r"$<$", ">": r"$>$", "|": r"$|$", "±": r"$\pm$", "≤": r"$\leq$", "≥": r"$\geq$", "×": r"$\times$"},
        **{"Δ": r"$\Delta$", "λ": r"$\lambda$", "α": r"$\alpha$", "↑": r"$\uparrow$", "↓": r"$\downarrow$"},
        **{"†": r"$^\dagger$", "²": r"$^2$"},
    }
)


@dataclass(frozen=True)
class Entry:
    """One entry of a table: what readers see, and for programs the number that it shows (None for words)."""

    text: str
    emphasis: Literal["", "best", "second"] = ""
    value: float | None = None
    std: float | None = None
    spread: str = "std"  # what `std` is, in the name of its column


Row = dict[str, str | Entry]
Columns = dict[str, Sequence[str | Entry]]
Content = Sequence[Row] | Columns


@dataclass(frozen=True)
class Table:
    """Entries in rows and columns, with notes below."""

    name: str  # of its files, such as "main-german"
    title: str
    frame: pd.DataFrame  # of entries
    notes: tuple[str, ...] = ()
    words: int = 1  # How many of the first columns are words, aligned to the left.

    def __post_init__(self) -> None:
        if not self.frame.columns.is_unique:
            raise ValueError(f"'frame' must have different names of columns (got {', '.join(self.columns)})")
        if not self.frame.map(lambda entry: isinstance(entry, Entry)).all(axis=None):
            raise ValueError(f"'frame' must have an entry in every row and column (table {self.name!r} has not)")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(map(str, self.frame.columns))

    @property
    def rows(self) -> list[tuple[Entry, ...]]:
        return list(self.frame.itertuples(index=False, name=None))

    def folded(self) -> "Table":
        """Return a narrower table, where the paper's values are second lines of the entries before them."""
        frame = self.frame.copy()
        for before, name in pairwise(self.columns):
            if name == f"{before.split(' ')[0]}{PAPER}":
                pairs = zip(frame[before], frame.pop(name), strict=True)
                frame[before] = [replace(entry, text=f"{entry.text}\n{printed.text}") for entry, printed in pairs]
        if frame.shape == self.frame.shape:
            return self
        return replace(self, frame=frame, notes=(*self.notes, "Second lines: the paper's values."))

    def to_markdown(self) -> str:
        alignment = [":--"] * self.words + ["--:"] * (len(self.columns) - self.words)
        rows = [map(_markdown, self.columns), alignment, *(map(_markdown_entry, row) for row in self.rows)]
        lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        notes = [" \\\n".join(map(_markdown, self.notes))] if self.notes else []
        return "\n\n".join([f"**{_markdown(self.title)}**", lines, *notes]) + "\n"

    def to_latex(self) -> str:
        """Return the table in LaTeX, for the package booktabs."""
        frame = self.frame.map(lambda entry: _EMPHASIS_LATEX[entry.emphasis].format(entry.text.translate(_LATEX)))
        style = frame.rename(columns=lambda name: name.translate(_LATEX)).style.hide(axis="index")
        text = style.to_latex(
            column_format="l" * self.words + "r" * (len(self.columns) - self.words),
            hrules=True,
            position_float="centering",
            caption=self.title.translate(_LATEX),
            label=f"tab:{self.name}",
        )
        notes = "".join(f"\n\n\\smallskip\\footnotesize {note.translate(_LATEX)}" for note in self.notes)
        return text.replace(r"\end{tabular}", rf"\end{{tabular}}{notes}")

    def to_csv(self) -> str:
        """Return the table as CSV, with standard deviations in columns of their own."""
        columns = {}
        for name in self.columns:
            entries = list(self.frame[name])
            columns[name] = [_csv(entry.value, entry.text) for entry in entries]
            if any(entry.std is not None for entry in entries):
                (spread,) = {entry.spread for entry in entries if entry.std is not None}
                columns[f"{name} {spread}"] = [_csv(entry.std, MISSING) for entry in entries]
        return to_csv(pd.DataFrame(columns))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold: numbers with all digits, words as they are."""
        rows = [[entry.text if entry.value is None else entry.value for entry in row] for row in self.rows]
        return {"name": self.name, "title": self.title, "columns": self.columns, "rows": rows, "notes": self.notes}


def table(
    name: str, content: Content, *, dataset: str = "", legend: Sequence[str] = (), words: int = 1, **values: object
) -> Table:
    """Return a table of rows, or of columns by name, with the title and the notes that `texts.toml` has for it.

    `legend` comes before these notes, and `values` are filled into them; `dataset` is that of a table about one.
    """
    texts = TEXTS["tables"][name]
    title = texts["title"].format(**values)
    title = f"{TITLES.get(dataset, dataset)}: {title}" if dataset else title
    notes = [note.format(**values) for note in (*texts.get("notes", ()), *texts.get(dataset, ()))]
    frame = pd.DataFrame(content).map(lambda entry: Entry(entry) if isinstance(entry, str) else entry)
    return Table(f"{name}-{dataset}" if dataset else name, title, frame, (*legend, *notes), words)


def number(value: float | None, digits: int = 2, std: float | None = None) -> Entry:
    """Return an entry for a number, with its standard deviation if there is one; a dash for None and nan."""
    if value is None or math.isnan(value):
        return Entry(MISSING)
    if std is None or math.isnan(std):
        return Entry(f"{value:,.{digits}f}", value=value)
    return Entry(f"{value:,.{digits}f} ± {std:.{digits}f}", value=value, std=std)


def emphasised(entries: Sequence[Entry], *, lowest: bool, groups: Sequence[Hashable] | None = None) -> list[Entry]:
    """Mark the best and the second best entries of each group; None stands for no group."""
    values = pd.Series([math.nan if entry.value is None else round(entry.value, 2) for entry in entries], dtype=float)
    of_group = pd.Series([0] * len(values) if groups is None else list(groups), dtype=object)
    places = values.groupby(of_group).rank("dense", ascending=lowest)
    return [replace(entry, emphasis=_EMPHASIS.get(place, "")) for entry, place in zip(entries, places, strict=True)]


def metric_tables(
    found: "ItemResults",
    label: str = "method",
    *,
    printed: Callable[[Cell], PrintedRow | None] = lambda _: None,
    group: Callable[[Cell], Hashable] = lambda _: 0,
) -> list[Table]:
    """Return a table for each data set: the five metrics of every cell, the balanced accuracy and the average rank.

    The `printed` values of the paper stand beside ours. Cells are compared within their `group`; None stands for no
    comparison. `label` says what the labels are.
    """
    tables, axes = [], tuple(found.cells[0].at)
    for dataset in found.datasets().values():
        pairs = [pair for pair in zip(found.cells, found.results, strict=True) if pair[0].dataset == dataset]
        results, groups = [result for _, result in pairs], [group(cell) for cell, _ in pairs]
        ranked = {i: result for i, result in enumerate(results) if result and groups[i] is not None}
        near_constant = {i for i, result in ranked.items() if result.is_near_constant}
        content: Columns = {
            axis: [at if isinstance(at := cell.at[axis], str) else f"{at:g}" for cell, _ in pairs] for axis in axes
        }
        content[label] = [f"{cell.label}†" if i in near_constant else cell.label for i, (cell, _) in enumerate(pairs)]
        papers = [printed(cell) for cell, _ in pairs]
        for metric in METRICS:
            symbol, upwards = BY_LABEL[metric].symbol, BY_LABEL[metric].higher_is_better
            entries = _column(results, metric)
            content[f"{symbol} {'↑' if upwards else '↓'}"] = emphasised(entries, lowest=not upwards, groups=groups)
            if any(papers):
                content[f"{symbol}{PAPER}"] = [number(row[metric][0] if row else None) for row in papers]
        content["BACC ↑"] = emphasised(_column(results, "balanced_accuracy"), lowest=False, groups=groups)
        means = {i: result.means for i, result in ranked.items() if result.is_defined}
        ranks = average_ranks({i: row for i, row in means.items() if groups[i] == each} for each in set(groups))
        content["rank"] = emphasised([number(ranks.get(i)) for i in range(len(pairs))], lowest=True, groups=groups)
        notes = [_NOTES["metrics"].format(seeds=seeds_in_words(ranked.values())) if ranked else _NOTES["missing"]]
        if near_constant:
            notes.append(_NOTES["near_constant"])
        notes += [limit.sentence] if (limit := detectable_on(dataset)) else []
        tables.append(table(found.item.name, content, dataset=dataset, legend=notes, words=len(axes) + 1))
    return tables


@cache
def detectable_on(graph: str, split_seed: int = PUBLISHED_SEED) -> Detectable | None:
    """Return what the test nodes of a graph can show; None if the graph would have to be downloaded."""
    if not is_available(graph):
        return None
    data = load_arrays(graph, split_seed=split_seed)
    return detectable(data.y[data.test_mask], data.sens[data.test_mask])


def _column(results: Iterable[CellResult | None], metric: str) -> list[Entry]:
    return [number(result.mean(metric), std=result.std(metric)) if result else number(None) for result in results]


def seeds_in_words(results: Iterable[CellResult]) -> str:
    count = span(len(result.records) for result in results)
    return "one seed" if count == "1" else f"{count} seeds"


def _csv(value: float | None, text: str) -> str:
    if value is not None:
        return f"{value:.6g}"
    return "" if text == MISSING else text


def _markdown(text: str) -> str:
    return re.sub(r"([|*_`<\\])", r"\\\1", text)


def _markdown_entry(entry: Entry) -> str:
    first, *others = map(_markdown, entry.text.split("\n"))
    return "<br>".join([_EMPHASIS_MARKDOWN[entry.emphasis].format(first), *others])
