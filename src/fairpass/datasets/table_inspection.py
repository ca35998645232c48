"""What is in a user's tables: the content of each column, the role it may have, and what looks wrong."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.column_encoding import as_text, kind_of, text_of
from fairpass.datasets.edges import checked_ids, positions
from fairpass.datasets.options import TableOptions
from fairpass.datasets.role_guesses import Guess, guess_roles
from fairpass.datasets.table_files import Table, TableSource, read_table
from fairpass.errors import DataError

ContentKind = Literal["number", "flag", "category", "text", "date", "constant", "empty", "mixed"]

# More values than this are a text, not a category: `from_tables` would refuse them.
MAX_LEVELS: int = TableOptions.model_fields["max_levels"].default
_EXAMPLES = 3

# With fewer nodes, a label may be absent from a split or a group.
_RARE = 20
# The AUC from which on a single column is said to reveal the label, or the group.
_LEAKS_LABEL, _LEAKS_GROUP = 0.98, 0.95
# Rows and folds of these measurements: enough for an AUC to two digits.
_SAMPLE, _FOLDS = 5_000, 3

# Why a column cannot be a feature.
_UNUSABLE = {
    "text": "has too many different texts to be a category",
    "date": "contains dates or times",
    "mixed": "contains values of several types",
    "constant": "has one value only",
    "empty": "has no value in any row",
}


@dataclass(frozen=True)
class ColumnContent:
    """What one column contains; `examples` are its most frequent values."""

    name: str
    kind: ContentKind
    distinct: int
    missing: int
    examples: tuple[str, ...]

    @classmethod
    def of(cls, column: "pd.Series[Any]") -> "ColumnContent":
        """Look at a column."""
        counts = column.map(text_of, na_action="ignore").value_counts()
        examples = tuple(str(value) for value in counts.index[:_EXAMPLES])
        return cls(str(column.name), _kind(column, len(counts)), len(counts), int(column.isna().sum()), examples)


def _kind(column: "pd.Series[Any]", distinct: int) -> ContentKind:
    if distinct < 2:
        return "constant" if distinct else "empty"
    try:
        kind = kind_of(column)
    except DataError as error:
        return "date" if "dates" in str(error) else "mixed"
    return "text" if kind == "category" and distinct > MAX_LEVELS else kind


@dataclass(frozen=True)
class Problem:
    """Something to fix or to know before a model is trained; `stops` if no graph can be made before it is fixed."""

    sentence: str
    stops: bool = False


@dataclass(frozen=True)
class Inspection:
    """What was found in a table of nodes and, if there is one, a table of edges."""

    nodes: str
    edges: str | None
    rows: int
    edge_rows: int | None
    columns: tuple[ColumnContent, ...]
    roles: Mapping[str, tuple[Guess, ...]]
    """The candidates for "id", "label", "sensitive", "split", "source" and "target", the most likely first."""
    problems: tuple[Problem, ...]

    def best(self, role: str) -> str | None:
        """Return the most likely column for a role, if there is one."""
        return next((guess.column for guess in self.roles.get(role, ())), None)

    def column(self, name: str) -> ColumnContent:
        """Return the content of a column."""
        return next(column for column in self.columns if column.name == name)

    @property
    def unusable(self) -> list[str]:
        """The columns that cannot be features: texts, dates, constants, nothing at all."""
        taken = {self.best(role) for role in ("id", "label", "sensitive", "split")}
        return [column.name for column in self.columns if column.kind in _UNUSABLE and column.name not in taken]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)


def inspect_tables(nodes: TableSource, edges: TableSource | None = None, *, text_encoding: str = "utf-8") -> Inspection:
    """Look at a table of nodes, and one of edges if there is one.

    Roles are guessed from names and values: a start for the user to correct, not an answer.
    """
    node_table = read_table(nodes, "nodes", text_encoding=text_encoding)
    if node_table.frame.empty:
        raise DataError("'nodes' must have at least one row (got an empty table)")
    # Ids are text: "007" is not 7.
    texts = read_table(nodes, "nodes", text_encoding=text_encoding, text_columns=str)
    edge_table = None if edges is None else read_table(edges, "edges", text_encoding=text_encoding, text_columns=str)
    columns = tuple(ColumnContent.of(node_table[name]) for name in node_table.columns)
    few = [column.name for column in columns if 2 <= column.distinct <= MAX_LEVELS]
    roles = guess_roles(node_table, texts, edge_table, few)
    chosen = {role: next((guess.column for guess in guesses), None) for role, guesses in roles.items()}
    problems = _problems(node_table, texts, edge_table, columns, chosen)
    return Inspection(
        nodes=str(node_table.origin["source"]),
        edges=None if edge_table is None else str(edge_table.origin["source"]),
        rows=len(node_table.frame),
        edge_rows=None if edge_table is None else len(edge_table.frame),
        columns=columns,
        roles=roles,
        problems=tuple(sorted(problems, key=lambda problem: not problem.stops)),
    )


def _problems(
    nodes: Table,
    texts: Table,
    edges: Table | None,
    columns: tuple[ColumnContent, ...],
    chosen: Mapping[str, str | None],
) -> Iterator[Problem]:
    ids: pd.Index[Any] = pd.Index([str(row) for row in range(len(nodes.frame))])
    if chosen["id"] is not None:
        column = as_text(texts[chosen["id"]])
        yield from _errors(checked_ids, column)
        ids = pd.Index(column.dropna().unique())
    if edges is not None:
        yield from _edge_problems(edges, ids, chosen["source"], chosen["target"])
    if chosen["label"] is not None:
        yield from _label_problems(nodes[chosen["label"]])
    candidates = [column for column in columns if column.name not in {chosen["id"], chosen["split"]}]
    yield from _column_problems(candidates, len(nodes.frame), chosen)
    yield from _leaks(nodes, [column.name for column in candidates if column.kind not in _UNUSABLE], chosen)


def _errors(check: Callable[..., object], column: "pd.Series[Any]", *arguments: Any) -> Iterator[Problem]:
    """Yield the errors of a check, with the missing values and without them."""
    for values in [column, column.dropna()] if column.isna().any() else [column]:
        try:
            check(values, *arguments)
        except DataError as error:
            yield Problem(str(error), stops=True)


def _edge_problems(edges: Table, ids: "pd.Index[Any]", source: str | None, target: str | None) -> Iterator[Problem]:
    if source is None or target is None:
        yield Problem("the table of edges must have two columns, one for each end", stops=True)
        return
    ends = [as_text(edges[source]), as_text(edges[target])]
    for end in ends:
        yield from _errors(positions, end, ids)
    if loops := int((ends[0] == ends[1]).sum()):
        yield Problem(f"edges that join a node with itself: {loops}; they are left out")
    if isolated := int((~ids.isin(pd.concat(ends))).sum()):
        yield Problem(f"nodes without any edge: {isolated}; they are classified by their features alone")


def _label_problems(label: "pd.Series[Any]") -> Iterator[Problem]:
    if missing := int(label.isna().sum()):
        yield Problem(f"nodes without a label ({label.name!r}): {missing}; they stay in the graph, unlabelled")
    for value, count in label.value_counts().items():
        if count < _RARE:
            yield Problem(f"label {value!r} is rare ({count} nodes): measurements for it are uncertain")


def _column_problems(columns: list[ColumnContent], rows: int, chosen: Mapping[str, str | None]) -> Iterator[Problem]:
    """Yield which columns cannot be features, and which have missing values."""
    for column in columns:
        if column.kind in _UNUSABLE:
            yield Problem(f"column {column.name!r} {_UNUSABLE[column.kind]}: it is left out")
    for column in columns:
        missing = f"{100 * column.missing / rows:.1f} % of the nodes have no value in {column.name!r}"
        if column.missing and column.name == chosen["sensitive"]:
            yield Problem(f"{missing}: their group is unknown")
        elif column.missing and column.name != chosen["label"] and column.kind not in _UNUSABLE:
            yield Problem(f"{missing}: it is filled in, and marked")


def _leaks(nodes: Table, columns: list[str], chosen: Mapping[str, str | None]) -> Iterator[Problem]:
    """Yield which single columns reveal the label almost surely, or the sensitive attribute."""
    label, sensitive = chosen["label"], chosen["sensitive"]
    features = [name for name in columns if name not in {label, sensitive}]
    for name in features if label is not None else ():
        if (auc := auc_of_column(nodes[name], nodes[str(label)])) >= _LEAKS_LABEL:
            yield Problem(
                f"column {name!r} alone reveals the label {label!r} (AUC {auc:.2f}): is it known before the "
                f"decision? If not, leave it out ('drop')"
            )
    for name in features if sensitive is not None and nodes[sensitive].nunique() <= _RARE else ():
        if (auc := auc_of_column(nodes[name], nodes[str(sensitive)])) >= _LEAKS_GROUP:
            yield Problem(f"column {name!r} is almost the same as {sensitive!r} (AUC {auc:.2f}): a proxy")


def auc_of_column(feature: "pd.Series[Any]", target: "pd.Series[Any]", seed: int = 0) -> float:
    """Return how well a shallow tree predicts one column from another: its cross-validated AUC.

    It is 0.5 if it cannot be estimated.
    """
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.tree import DecisionTreeClassifier

    both = pd.DataFrame({"x": _numbers(feature), "y": pd.factorize(target)[0]})[target.notna().to_numpy()]
    counts = both["y"].value_counts()
    both = both[both["y"].isin(counts.index[counts >= 2 * _FOLDS])]
    both = both.sample(min(len(both), _SAMPLE), random_state=seed)
    both = both[both["y"].map(both["y"].value_counts()) >= _FOLDS]
    if both["y"].nunique() < 2:
        return 0.5
    tree = DecisionTreeClassifier(max_depth=5, min_samples_leaf=3, random_state=seed)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    return float(cross_val_score(tree, both[["x"]], both["y"], cv=folds, scoring="roc_auc_ovr").mean())


def _numbers(column: "pd.Series[Any]") -> NDArray[np.float64]:
    """Return a column as numbers a tree can split: categories by their index, missing values as an extra value."""
    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.where(np.isfinite(values), values, np.nanmin(values, initial=0.0, where=np.isfinite(values)) - 1)
    return pd.factorize(column)[0].astype(np.float64)
