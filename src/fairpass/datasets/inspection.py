"""What is in a user's tables: each column's content, which part it may play, and what looks wrong."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pandas as pd

from fairpass.datasets.columns import kind_of
from fairpass.datasets.guesses import Guess, guess_edge_columns, guess_id, guess_label, guess_sensitive, guess_split
from fairpass.datasets.problems import Problem, column_problems, edge_problems, id_problems, label_problems, leaks
from fairpass.datasets.reading import Table, TableSource, read_table
from fairpass.datasets.values import text_of
from fairpass.errors import DataError

ContentKind = Literal["number", "flag", "category", "text", "date", "constant", "empty", "mixed"]

# More values than this are a text, not a category: `from_tables` would refuse them.
MAX_LEVELS = 50
_EXAMPLES = 3


@dataclass(frozen=True)
class ColumnContent:
    """What one column holds."""

    name: str
    kind: ContentKind
    distinct: int
    missing: int
    examples: tuple[str, ...]
    """Its most frequent values."""


@dataclass(frozen=True)
class Inspection:
    """What was found in a table of nodes and, if there is one, a table of edges."""

    nodes: str
    edges: str | None
    rows: int
    edge_rows: int | None
    columns: tuple[ColumnContent, ...]
    roles: Mapping[str, tuple[Guess, ...]]
    """For "id", "label", "sensitive", "split", "source" and "target" the candidates, the likeliest first."""
    problems: tuple[Problem, ...]

    def best(self, role: str) -> str | None:
        """Return the likeliest column for a role, if there is one."""
        return next((guess.column for guess in self.roles.get(role, ())), None)

    def column(self, name: str) -> ColumnContent:
        """Return what a column holds."""
        return next(column for column in self.columns if column.name == name)

    @property
    def unusable(self) -> list[str]:
        """The columns that cannot be features as they are: texts, dates, constants, nothing at all."""
        taken = {self.best(role) for role in ("id", "label", "sensitive", "split")}
        usable = {"number", "flag", "category"}
        return [column.name for column in self.columns if column.kind not in usable and column.name not in taken]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return asdict(self)


def inspect_tables(nodes: TableSource, edges: TableSource | None = None, *, text_encoding: str = "utf-8") -> Inspection:
    """Look at a table of nodes, and one of edges if there is one, and say what is in them.

    What it says of roles is guessed from names and values: a start for the user to correct, not an answer.
    """
    node_table = read_table(nodes, "nodes", text_encoding=text_encoding)
    if node_table.frame.empty:
        raise DataError("'nodes' must have at least one row (got an empty table)")
    # As text, because ids are: "007" is not 7.
    as_text = read_table(nodes, "nodes", text_encoding=text_encoding, text_columns=str)
    edge_table = None if edges is None else read_table(edges, "edges", text_encoding=text_encoding, text_columns=str)
    columns = tuple(_content(node_table[name]) for name in node_table.columns)
    ids = guess_id(as_text, edge_table)
    id = next((guess.column for guess in ids), None)
    ends = guess_edge_columns(edge_table, as_text, id) if edge_table else ((), ())
    split = guess_split(node_table)
    taken = {guess.column for guess in (*ids[:1], *split[:1])}
    few = [column.name for column in columns if 2 <= column.distinct <= MAX_LEVELS and column.name not in taken]
    sensitive = guess_sensitive(node_table, [column.name for column in columns if column.name not in taken])
    label = guess_label(node_table, [name for name in few if name not in [guess.column for guess in sensitive]])
    roles = {
        "id": ids,
        "label": label,
        "sensitive": tuple(guess for guess in sensitive if guess.column not in [best.column for best in label[:1]]),
        "split": split,
        "source": ends[0],
        "target": ends[1],
    }
    chosen = {role: next((guess.column for guess in guesses), None) for role, guesses in roles.items()}
    return Inspection(
        nodes=str(node_table.origin["source"]),
        edges=None if edge_table is None else str(edge_table.origin["source"]),
        rows=len(node_table.frame),
        edge_rows=None if edge_table is None else len(edge_table.frame),
        columns=columns,
        roles=roles,
        problems=_problems(node_table, as_text, edge_table, columns, chosen),
    )


def _content(column: "pd.Series[Any]") -> ColumnContent:
    counts = column.map(text_of, na_action="ignore").value_counts()
    return ColumnContent(
        name=str(column.name),
        kind=_kind(column, len(counts)),
        distinct=len(counts),
        missing=int(column.isna().sum()),
        examples=tuple(str(value) for value in counts.index[:_EXAMPLES]),
    )


def _kind(column: "pd.Series[Any]", distinct: int) -> ContentKind:
    if distinct == 0:
        return "empty"
    if distinct == 1:
        return "constant"
    try:
        kind = kind_of(column)
    except DataError as error:
        return "date" if "dates" in str(error) else "mixed"
    return "text" if kind == "category" and distinct > MAX_LEVELS else kind


def _problems(
    nodes: Table,
    as_text: Table,
    edges: Table | None,
    columns: tuple[ColumnContent, ...],
    chosen: Mapping[str, str | None],
) -> tuple[Problem, ...]:
    """Return what looks wrong, what stops a run first."""
    id, label, sensitive = chosen["id"], chosen["label"], chosen["sensitive"]
    found: list[Problem] = []
    if id is not None:
        found += id_problems(as_text[id])
    if edges is not None:
        found += edge_problems(as_text, edges, id, chosen["source"], chosen["target"])
    if label is not None:
        found += label_problems(nodes[label])
    features = {column.name: column.kind for column in columns if column.name not in {id, chosen["split"]}}
    gaps = {column.name: column.missing / len(nodes.frame) for column in columns if column.missing}
    found += column_problems(features, gaps, sensitive, label)
    usable = [name for name, kind in features.items() if kind in {"number", "flag", "category"}]
    found += leaks(nodes, usable, label=label, sensitive=sensitive)
    return tuple(sorted(found, key=lambda problem: not problem.stops))
