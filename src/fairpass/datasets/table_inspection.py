"""What is in a user's tables: the content of each column, the role it may have, and what looks wrong."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from fairpass.datasets.column_encoding import as_text, kind_of, text_of
from fairpass.datasets.graph import Column, Floats, checked_ids, positions
from fairpass.datasets.options import TableOptions
from fairpass.datasets.splits import PARTS
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

# Words in the names of columns, the most likely first.
_LABEL_WORDS = (
    *("label", "target", "y", "class", "outcome", "decision", "result", "default", "approved", "granted", "hired"),
    *("accepted", "admitted", "paid", "repaid", "churn", "churned", "fraud", "recidivism", "recid", "status"),
)
_SENSITIVE_WORDS = (
    *("sex", "gender", "race", "ethnicity", "ethnic", "religion", "nationality", "citizenship", "foreign"),
    *("minority", "disability", "disabled", "orientation", "marital", "married", "age"),
)
_ID_WORDS = {"id", "ids", "node", "key", "uid", "uuid", "name", "number", "nr"}
_END_WORDS = {"source", "target", "from", "to", "src", "dst", "one", "other", "a", "b", "u", "v"}

# Ids are almost always distinct; a few repeated ones are a mistake to be reported.
_ALMOST_ALL = 0.9
# A label has few values, unless its name says that it is one.
_FEW = 10
_CANDIDATES = 5

# How likely a column has a role, its name, and the reason.
_Scored = tuple[float, str, str]
# The most likely column for each role.
_Chosen = Mapping[str, str | None]


@dataclass(frozen=True)
class ColumnContent:
    """What one column contains; `examples` are its most frequent values."""

    name: str
    kind: ContentKind
    distinct: int
    missing: int
    examples: tuple[str, ...]

    @classmethod
    def of(cls, column: Column) -> "ColumnContent":
        counts = column.map(text_of, na_action="ignore").value_counts()
        examples = tuple(str(value) for value in counts.index[:_EXAMPLES])
        return cls(str(column.name), _kind(column, len(counts)), len(counts), int(column.isna().sum()), examples)


def _kind(column: Column, distinct: int) -> ContentKind:
    if distinct < 2:
        return "constant" if distinct else "empty"
    try:
        kind = kind_of(column)
    except DataError as error:
        return "date" if "dates" in str(error) else "mixed"
    return "text" if kind == "category" and distinct > MAX_LEVELS else kind


@dataclass(frozen=True)
class Guess:
    """A column that may have a role, and why."""

    column: str
    reason: str


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
    roles: Mapping[str, tuple[Guess, ...]]  # candidates for "id", "label" and so on, the most likely first
    problems: tuple[Problem, ...]

    def best(self, role: str) -> str | None:
        """Return the most likely column for a role, if there is one."""
        return next((guess.column for guess in self.roles.get(role, ())), None)

    def column(self, name: str) -> ColumnContent:
        return next(column for column in self.columns if column.name == name)

    @property
    def unusable(self) -> list[str]:
        """The columns that cannot be features: texts, dates, constants, nothing at all."""
        taken = {self.best(role) for role in ("id", "label", "sensitive", "split")}
        return [column.name for column in self.columns if column.kind in _UNUSABLE and column.name not in taken]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def inspect_tables(nodes: TableSource, edges: TableSource | None = None, *, text_encoding: str = "utf-8") -> Inspection:
    """Look at a table of nodes, and one of edges if there is one; roles are guesses for the user to correct."""
    node_table = read_table(nodes, "nodes", text_encoding=text_encoding)
    if node_table.frame.empty:
        raise DataError("'nodes' must have at least one row (got an empty table)")
    # Ids are text: "007" is not 7.
    texts = read_table(nodes, "nodes", text_encoding=text_encoding, text_columns=str)
    edge_table = None if edges is None else read_table(edges, "edges", text_encoding=text_encoding, text_columns=str)
    columns = tuple(ColumnContent.of(node_table[name]) for name in node_table.columns)
    few = [column.name for column in columns if 2 <= column.distinct <= MAX_LEVELS]
    roles = _guess_roles(node_table, texts, edge_table, few)
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


def _guess_roles(nodes: Table, texts: Table, edges: Table | None, few: Collection[str]) -> dict[str, tuple[Guess, ...]]:
    """Return the candidates for each role; `texts` and `edges` have all values as text, `few` may be a label."""
    ids, split = _best(_guess_id(texts, edges)), _best(_guess_split(nodes))
    ends = _best(_guess_ends(edges, texts, ids[0].column if ids else None))[:2] if edges else ()
    ends = tuple(sorted(ends, key=lambda guess: edges.columns.index(guess.column) if edges else 0))
    taken = {guess.column for guess in (*ids[:1], *split[:1])}
    sensitive = _best(_guess_sensitive(nodes, [name for name in nodes.columns if name not in taken]))
    taken |= {guess.column for guess in sensitive}
    label = _best(_guess_label(nodes, [name for name in nodes.columns if name in few and name not in taken]))
    chosen = {"id": ids, "label": label, "sensitive": sensitive, "split": split}
    return chosen | {"source": ends[:1], "target": ends[1:]}


def _best(found: Iterable[_Scored]) -> tuple[Guess, ...]:
    ordered = sorted(found, key=lambda each: -each[0])
    return tuple(Guess(column, reason) for _, column, reason in ordered[:_CANDIDATES])


def words_of(name: str) -> list[str]:
    """Return the words in a column's name, in lower case: "GoodCustomer_id" has good, customer and id."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _guess_id(nodes: Table, edges: Table | None) -> Iterator[_Scored]:
    columns = [] if edges is None else [as_text(edges[name]).dropna() for name in edges.columns]
    for name in nodes.columns:
        values = as_text(nodes[name])
        if values.nunique() < _ALMOST_ALL * len(values):
            continue
        different = "all values are different" if values.is_unique else "almost all values are different"
        named = not _ID_WORDS.isdisjoint(words_of(name))
        known = set(values.dropna())
        # The two columns of the edges that contain the most ids.
        share = sum(sorted((_share(column, known) for column in columns), reverse=True)[:2]) / 2
        if share > 0.5:
            yield 1 + share + named, name, f"{different}, and {100 * share:.0f} % of the edges' ends are among them"
        elif named and edges is None:
            yield 1, name, f"{different}, and its name says so"


def _guess_ends(edges: Table, nodes: Table, id: str | None) -> Iterator[_Scored]:
    known = set(as_text(nodes[id])) if id is not None else {str(row) for row in range(len(nodes.frame))}
    what = f"values of {id!r}" if id is not None else "row numbers"
    for name in edges.columns:
        share = _share(as_text(edges[name]).dropna(), known)
        named = not _END_WORDS.isdisjoint(words_of(name))
        yield 2 * share + named, name, f"{100 * share:.0f} % of its values are {what}"


def _guess_split(nodes: Table) -> Iterator[_Scored]:
    for name in nodes.columns:
        values = nodes[name].dropna().unique()
        if len(values) <= len(PARTS):
            parts = {PARTS.get(text_of(value).strip().lower()) for value in values}
            if parts >= {"train", "val", "test"}:
                yield 1, name, "it says train, val or test"


def _guess_label(nodes: Table, columns: Sequence[str]) -> Iterator[_Scored]:
    """Yield the columns named like a label, or with few values, best in the last or first place."""
    for place, name in enumerate(columns):
        column = nodes[name]
        count = int(column.nunique())
        if rank := _named(name, _LABEL_WORDS):
            yield 2 + rank, name, f"its name says so; it has {count} values"
        elif count <= _FEW and not (pd.api.types.is_float_dtype(column) and (column.dropna() % 1 != 0).any()):
            outer = {len(columns) - 1: 0.5, 0: 0.25}.get(place, 0.0)
            yield (count == 2) + outer, name, f"a guess: it has {count} values"


def _guess_sensitive(nodes: Table, columns: Collection[str]) -> Iterator[_Scored]:
    for name in columns:
        count = int(nodes[name].nunique())
        if count > 1 and (rank := _named(name, _SENSITIVE_WORDS)):
            yield rank, name, f"its name is that of a sensitive attribute; it has {count} values"


def _share(values: Column, known: Collection[str]) -> float:
    return float(values.isin(known).mean()) if len(values) else 0.0


def _named(name: str, words: Sequence[str]) -> float:
    """Return how likely a name is, between 0 and 1, by which of the words it begins or ends with."""
    parts = words_of(name)
    places = [words.index(word) for word in {*parts[:1], *parts[-1:]} if word in words]
    return 1 - min(places) / len(words) if places else 0.0


def _problems(
    nodes: Table, texts: Table, edges: Table | None, columns: tuple[ColumnContent, ...], chosen: _Chosen
) -> Iterator[Problem]:
    ids: pd.Index[Any] = pd.Index([str(row) for row in range(len(nodes.frame))])
    if chosen["id"] is not None:
        column = as_text(texts[chosen["id"]])
        yield from _errors(checked_ids, column)
        ids = pd.Index(column.dropna().unique())
    if edges is not None:
        yield from _edge_problems(edges, ids, chosen["source"], chosen["target"])
    if chosen["label"] is not None:
        label = nodes[chosen["label"]]
        if missing := int(label.isna().sum()):
            yield Problem(f"nodes without a label ({label.name!r}): {missing}; they stay in the graph, unlabelled")
        for value, count in label.value_counts().items():
            if count < _RARE:
                yield Problem(f"label {value!r} is rare ({count} nodes): measurements for it are uncertain")
    candidates = [column for column in columns if column.name not in {chosen["id"], chosen["split"]}]
    usable = [column for column in candidates if column.kind not in _UNUSABLE]
    for content in candidates:
        if content.kind in _UNUSABLE:
            yield Problem(f"column {content.name!r} {_UNUSABLE[content.kind]}: it is left out")
    for content in candidates:
        share = f"{100 * content.missing / len(nodes.frame):.1f} % of the nodes have no value in {content.name!r}"
        if content.missing and content.name == chosen["sensitive"]:
            yield Problem(f"{share}: their group is unknown")
        elif content.missing and content.name != chosen["label"] and content in usable:
            yield Problem(f"{share}: it is filled in, and marked")
    yield from _leaks(nodes, [column.name for column in usable], chosen)


def _errors(check: Callable[..., object], column: Column, *arguments: Any) -> Iterator[Problem]:
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


def _leaks(nodes: Table, columns: list[str], chosen: _Chosen) -> Iterator[Problem]:
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


def auc_of_column(feature: Column, target: Column, seed: int = 0) -> float:
    """Return the cross-validated AUC of a shallow tree that predicts `target`; 0.5 if it cannot be estimated."""
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


def _numbers(column: Column) -> Floats:
    """Return a column as numbers a tree can split: categories by their index, missing values as an extra value."""
    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.where(np.isfinite(values), values, np.nanmin(values, initial=0.0, where=np.isfinite(values)) - 1)
    return pd.factorize(column)[0].astype(np.float64)
