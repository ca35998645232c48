"""A table as a value, and the three forms in which it is written."""

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

MISSING = "–"
PAPER = ", paper"
"""Ends the name of a column with the paper's values of the column before it."""

_EMPHASIS_MARKDOWN = {"": "{}", "best": "**{}**", "second": "*{}*"}
_EMPHASIS_LATEX = {"": "{}", "best": r"\textbf{{{}}}", "second": r"\underline{{{}}}"}
_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "×": r"$\times$",
    "Δ": r"$\Delta$",
    "λ": r"$\lambda$",
    "α": r"$\alpha$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "†": r"$^\dagger$",
    "²": r"$^2$",
    "–": "--",
}


@dataclass(frozen=True)
class Entry:
    """One entry of a table.

    Attributes:
        text: what readers see.
        emphasis: whether it is the best or the second best of its kind.
        value: the number that the text shows, for programs; None if it is a word.
        std: its standard deviation; None if there is none.
    """

    text: str
    emphasis: Literal["", "best", "second"] = ""
    value: float | None = None
    std: float | None = None


@dataclass(frozen=True)
class Table:
    """Rows of entries under names, with notes below.

    Attributes:
        name: for files, such as "main-german".
        title: what it shows, in a line.
        columns: their names, all different.
        rows: as many entries each as there are columns.
        notes: sentences below it.
        words: how many of the first columns are words, aligned to the left.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()
    words: int = 1

    def __post_init__(self) -> None:
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"'columns' must all be different (got {', '.join(self.columns)})")
        wrong = [len(row) for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(f"'rows' must have {len(self.columns)} entries each (got one of {wrong[0]})")

    def folded(self) -> "Table":
        """Return a narrower table: the paper's values are second lines of the entries before them."""
        keep = [i for i, name in enumerate(self.columns) if not name.endswith(PAPER)]
        if len(keep) == len(self.columns):
            return self
        has_paper = [self.columns[i + 1 : i + 2] == (f"{self.columns[i].split(' ')[0]}{PAPER}",) for i in keep]
        pairs = list(zip(keep, has_paper, strict=True))
        rows = (
            tuple(replace(row[i], text=f"{row[i].text}\n{row[i + 1].text}") if below else row[i] for i, below in pairs)
            for row in self.rows
        )
        names = tuple(self.columns[i] for i in keep)
        return replace(self, columns=names, rows=tuple(rows), notes=(*self.notes, "Second lines: the paper's values."))

    def to_markdown(self) -> str:
        """Return the table in Markdown, its title above and its notes below."""
        alignment = [":--" if i < self.words else "--:" for i in range(len(self.columns))]
        lines = [_markdown_row(map(_markdown, self.columns)), _markdown_row(alignment)]
        lines += [_markdown_row(map(_markdown_entry, row)) for row in self.rows]
        parts = [f"**{_markdown(self.title)}**", "\n".join(lines)]
        if self.notes:
            parts.append(" \\\n".join(map(_markdown, self.notes)))
        return "\n\n".join(parts) + "\n"

    def to_latex(self) -> str:
        """Return the table in LaTeX, for the package booktabs."""
        alignment = "l" * self.words + "r" * (len(self.columns) - self.words)
        below = "".join(f"\n\n\\smallskip\\footnotesize {_latex(note)}" for note in self.notes)
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex(self.title)}}}",
            rf"\label{{tab:{self.name}}}",
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            _latex_row(map(_latex, self.columns)),
            r"\midrule",
            *(_latex_row(map(_latex_entry, row)) for row in self.rows),
            r"\bottomrule",
            rf"\end{{tabular}}{below}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """Return the table as CSV: numbers with all digits, and their standard deviations in columns of their own."""
        with_std = [any(row[i].std is not None for row in self.rows) for i in range(len(self.columns))]
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            name
            for column, std in zip(self.columns, with_std, strict=True)
            for name in [column, f"{column} std"][: 1 + std]
        )
        for row in self.rows:
            pairs = zip(row, with_std, strict=True)
            writer.writerow(
                text for entry, std in pairs for text in [_csv(entry.value, entry.text), _csv(entry.std, "")][: 1 + std]
            )
        return file.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold: numbers with all digits, words as they are."""
        rows = [[entry.text if entry.value is None else entry.value for entry in row] for row in self.rows]
        return {"name": self.name, "title": self.title, "columns": self.columns, "rows": rows, "notes": self.notes}


def word(text: object) -> Entry:
    """Return an entry that is no number."""
    return Entry(str(text))


def number(value: float | None, digits: int = 2, std: float | None = None, mark: str = "") -> Entry:
    """Return an entry for a number, with its standard deviation if there is one; a dash for None and nan."""
    if value is None or math.isnan(value):
        return Entry(MISSING)
    deviation = None if std is None or math.isnan(std) else std
    text = f"{value:,.{digits}f}" if deviation is None else f"{value:,.{digits}f} ± {deviation:.{digits}f}"
    return Entry(text + mark, value=value, std=deviation)


def emphasised(entries: Sequence[Entry], *, lowest: bool, ranked: Sequence[bool]) -> list[Entry]:
    """Return a column with its best and second best entries marked, among those that are ranked."""
    values = [
        None if entry.value is None or not takes_part else round(-entry.value if lowest else entry.value, 2)
        for entry, takes_part in zip(entries, ranked, strict=True)
    ]
    distinct = sorted({value for value in values if value is not None}, reverse=True)
    kinds: dict[float | None, Literal["best", "second"]] = dict(zip(distinct, ("best", "second"), strict=False))
    return [
        replace(entry, emphasis=kinds.get(value, "")) if value is not None else entry
        for entry, value in zip(entries, values, strict=True)
    ]


def _csv(value: float | None, otherwise: str) -> str:
    if value is None:
        return "" if otherwise == MISSING else otherwise
    return f"{value:.6g}"


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_entry(entry: Entry) -> str:
    first, *others = map(_markdown, entry.text.split("\n"))
    return "<br>".join([_EMPHASIS_MARKDOWN[entry.emphasis].format(first), *others])


def _markdown(text: str) -> str:
    return re.sub(r"([|*_`<\\])", r"\\\1", text)


def _latex_row(cells: Iterable[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _latex_entry(entry: Entry) -> str:
    return _EMPHASIS_LATEX[entry.emphasis].format(_latex(entry.text))


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
