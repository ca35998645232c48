"""What is in a user's tables: the content of each column, the role it may have, and what looks wrong."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import pandas as pd

from fairpass.datasets import problems as hints
from fairpass.datasets.column_encoding import as_text, note_on_spellings, spellings_of, text_of
from fairpass.datasets.column_kinds import MAX_LEVELS, ColumnKind, Recognised, recognise
from fairpass.datasets.column_names import names_people
from fairpass.datasets.column_reading import NumberKind
from fairpass.datasets.column_rules import DecimalMark
from fairpass.datasets.edge_inspection import EdgeInspection, inspect_edges
from fairpass.datasets.edges import header_names
from fairpass.datasets.encoded_columns import finite_numbers
from fairpass.datasets.graph import Column, checked_ids, listed
from fairpass.datasets.node_arrays import NO_HEADER, has_no_header
from fairpass.datasets.predictability import Predictability
from fairpass.datasets.problems import Problem
from fairpass.datasets.role_guesses import Guess, guess_id, guess_label, guess_sensitive, guess_split
from fairpass.datasets.single_values import odd_value
from fairpass.datasets.table_files import Table, TableSource, read_table
from fairpass.datasets.text_tables import with_types
from fairpass.datasets.text_values import ISO
from fairpass.errors import DataError

ContentKind = Literal[ColumnKind, "constant", "other"]

_EXAMPLES = 3
_GIVEN = "you said so"
_NAMES = "it has people's names, which can tell their sex and origin"

# Why a column cannot be a feature.
_UNUSABLE = {
    "text": "has {:,} different texts, too many for a category",
    "mixed": "contains values of several types",
    "constant": "has one value only",
    "other": "contains lists, records or bytes",
    "empty": "has no value in any row",
}
# Kinds that need no rule in the settings file if values have the type already.
_PLAIN = {"number", "flag", "category"}


@dataclass(frozen=True)
class ColumnContent:
    """What one column contains; `examples` are its most frequent values, `rule` is how the settings file has it.

    Spellings of one value count as one.
    """

    name: str
    kind: ContentKind
    distinct: int
    missing: int
    examples: tuple[str, ...]
    spellings: Mapping[str, str] = field(default_factory=dict)  # of values, merged into the one that is kept
    note: str = ""
    rule: Any = None
    recognised: Recognised | None = field(default=None, repr=False)

    @classmethod
    def of(cls, column: Column, decimal: DecimalMark | None = None) -> "ColumnContent":
        name, missing = str(column.name), int(column.isna().sum())
        if odd_value(column):
            counts = column.map(str, na_action="ignore").value_counts()
            return cls(name, "other", len(counts), missing, tuple(counts.index[:_EXAMPLES]))
        counts, spellings = column.value_counts(), spellings_of(column)
        if spellings:
            counts = as_text(column).replace(spellings).value_counts()
        examples = tuple(_shown(value) for value in counts.index[:_EXAMPLES].tolist())
        distinct = len(counts)
        if distinct == 1:
            return cls(name, "constant", distinct, missing, examples, spellings)
        found = recognise(column, usual_decimal=decimal)
        rule = _rule(found, column)
        return cls(name, found.kind, distinct, missing, examples, spellings, found.note, rule, found)


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) and not value.is_integer() else text_of(value)


def _rule(found: Recognised, column: Column) -> Any:
    """Return how the settings file says what a column contains, None if that needs no saying."""
    if found.kind in _UNUSABLE or found.kind == "category" or found.unread:  # a rule would refuse what cannot be read
        return None
    reading = found.reading
    if found.kind in _PLAIN and not isinstance(column.dtype, pd.StringDtype):
        return None
    more: dict[str, Any] = {}
    if reading is not None and reading.decimal != ".":
        more["decimal"] = reading.decimal
    if reading is not None and reading.format not in (None, ISO):
        more["format"] = reading.format
    return {"kind": found.kind, **more} if more else found.kind


@dataclass(frozen=True)
class Inspection:
    """What was found in a table of nodes and, if there is one, a table of edges."""

    nodes: str
    edges: str | None
    rows: int
    edge_rows: int | None
    columns: tuple[ColumnContent, ...]
    roles: Mapping[str, tuple[Guess, ...]]  # candidates for "id", "label" and so on, the most likely first
    sensitive: tuple[str, ...]  # the sensitive columns: those given, or the most likely one
    undecided: tuple[Guess, ...]  # columns that may be sensitive, too, and are features only if the user says so
    left_out: Mapping[str, str]  # columns that cannot be features, and why
    settings: Mapping[str, Any]  # options of `from_tables` for the edges that are not the default
    reasons: Mapping[str, str]  # why, by option
    problems: tuple[Problem, ...]

    def best(self, role: str) -> str | None:
        """Return the most likely column for a role, if there is one."""
        if role == "sensitive":
            return next(iter(self.sensitive), None)
        return next((guess.column for guess in self.roles.get(role, ())), None)

    def column(self, name: str) -> ColumnContent:
        return next(column for column in self.columns if column.name == name)

    @property
    def rules(self) -> dict[str, Any]:
        """How to read the features that are not plain numbers or categories."""
        others = {*self.left_out, *self.sensitive, *(self.best(role) for role in ("id", "label", "split"))}
        return {each.name: each.rule for each in self.columns if each.rule is not None and each.name not in others}

    def to_dict(self) -> dict[str, Any]:
        found = asdict(self)
        for column in found["columns"]:
            del column["recognised"]
        return found


def inspect_tables(
    nodes: TableSource,
    edges: TableSource | None = None,
    *,
    label: str | None = None,
    sensitive: Sequence[str] = (),
    id: str | None = None,
    separator: str | None = None,
    decimal: DecimalMark | None = None,
    text_encoding: str | None = None,
) -> Inspection:
    """Look at a table of nodes, and one of edges if there is one.

    Roles are guesses for the user to correct, except those that are given: the `label`, the `sensitive` columns and the
    `id`.
    """
    reading: dict[str, Any] = {"separator": separator, "decimal": decimal, "text_encoding": text_encoding}
    texts = read_table(nodes, "nodes", **reading, text_columns=str)
    if texts.frame.empty:
        raise DataError("'nodes' must have at least one row (got an empty table)")
    frame = texts.frame if texts.typed else with_types(texts.frame, None, comma=texts.decimal == ",")
    table = replace(texts, frame=frame)
    for name in filter(None, [label, id, *sensitive]):
        table[name]  # raises if it does not exist
    if has_no_header(table) and label is None:
        raise DataError(f"'nodes' has no header: {NO_HEADER.format(listed(table.columns))}")
    usable = texts.usable.frame
    names = header_names(lambda cell: bool((usable == cell).any(axis=None)))
    pairs = None if edges is None else read_table(edges, "edges", **reading, text_columns=str, names=names)
    found = _Inspector(table, texts, pairs, {"label": label, "id": id}, list(sensitive)).result()
    recognised = {name: why for name, why in _recognised(table, pairs).items() if reading[name] is None}
    reasons = {**found.reasons, **{name: why for name, (_, why) in recognised.items()}}
    given = {name: value for name, value in reading.items() if value is not None}
    settings = {**found.settings, **{name: value for name, (value, _) in recognised.items()}, **given}
    return replace(found, settings=settings, reasons=reasons)


def _recognised(nodes: Table, edges: Table | None) -> dict[str, tuple[str, str]]:
    """Return how text files are read where that is unusual and the same for both tables, each with the reason."""
    usual = {"separator": (",", "\t"), "decimal": (".",), "text_encoding": ("utf-8",)}
    found = {}
    for name, values in usual.items():
        value, other = getattr(nodes, name), None if edges is None else getattr(edges, name)
        if value not in (None, *values) and other in (None, value):
            found[name] = value, "Recognised from the table of nodes"
    return found


class _Inspector:
    """Looks at the tables step by step: contents, roles, edges, features, problems."""

    def __init__(
        self, nodes: Table, texts: Table, edges: Table | None, given: dict[str, str | None], sensitive: list[str]
    ) -> None:
        self.nodes, self.texts = nodes.usable, texts.usable
        self.edges, self.given, self.sensitive = edges, given, sensitive
        self.contents = {name: ColumnContent.of(nodes.frame[name], nodes.decimal) for name in nodes.columns}
        self.roles = self._roles()
        self.id, self.label, self.split = (self._best(role) for role in ("id", "label", "split"))
        taken = {self.id, self.label, self.split, *self.sensitive}
        others = [name for name in self.contents if name not in taken]
        self.unusable = {
            name: _UNUSABLE[content.kind].format(content.distinct)
            for name, content in self.contents.items()
            if name in others and content.kind in _UNUSABLE
        }
        usable = [name for name in others if name not in self.unusable]
        people = {guess.column for guess in self.roles["sensitive"]}
        self.counting = hints.counting_columns(self.nodes, [name for name in usable if name not in people])
        usable = [name for name in usable if name not in self.counting]
        self.tree = Predictability({name: (self.nodes[name], self.contents[name].recognised) for name in usable})
        self.undecided = self._undecided(usable)
        asked = {guess.column for guess in self.undecided}
        self.features = [name for name in usable if name not in asked]

    def _roles(self) -> dict[str, tuple[Guess, ...]]:
        """Return the candidates for each role, and choose the sensitive attribute."""
        roles = {"id": guess_id(self.texts, self.edges), "split": guess_split(self.nodes)}
        for role, name in self.given.items():
            if name is not None:
                roles[role] = (Guess(name, _GIVEN),)
        taken = {self.given["label"], *(guess.column for role in ("id", "split") for guess in roles[role][:1])}
        free = [name for name in self.nodes.columns if name not in taken]
        found = guess_sensitive(self.nodes, free)
        if self.sensitive:
            chosen = tuple(Guess(name, _GIVEN) for name in self.sensitive)
            found = (*chosen, *(guess for guess in found if guess.column not in self.sensitive))
        else:
            groups = [
                guess.column for guess in found if self.contents[guess.column].kind not in ("text", "date", "target")
            ]
            self.sensitive = groups[:1]
        roles["sensitive"] = found
        if "label" not in roles:
            free = [name for name in free if name not in {guess.column for guess in found}]
            few = [name for name in free if 2 <= self.contents[name].distinct <= MAX_LEVELS]
            roles["label"] = guess_label(self.nodes, few)
        return roles

    def _best(self, role: str) -> str | None:
        return next((guess.column for guess in self.roles[role]), None)

    def _undecided(self, usable: Sequence[str]) -> tuple[Guess, ...]:
        """Return what may be sensitive, too: by name or values, or because it tells the sensitive attribute."""
        found = {guess.column: guess for guess in self.roles["sensitive"] if guess.column in usable}
        found |= {name: Guess(name, _NAMES) for name in usable if name not in found and names_people(name)}
        for name in self.sensitive:
            if hints.can_be_told(self.nodes[name]):
                group = self._merged(name)
                told = hints.proxies(self.tree, [each for each in usable if each not in found], group)
                found |= {column: Guess(column, reason) for column, reason in told.items()}
        return tuple(found.values())

    def _merged(self, name: str) -> Column:
        """Return a label or sensitive column with spellings such as M and male merged, as `from_tables` does."""
        column, spellings = self.nodes[name], self.contents[name].spellings
        return as_text(column).replace(spellings) if spellings else column

    def result(self) -> Inspection:
        column = None if self.id is None else as_text(self.texts[self.id])
        ids = pd.Series([str(row) for row in range(len(self.nodes.frame))]) if column is None else column
        of_edges = None if self.edges is None else inspect_edges(self.edges, ids, self.id)
        problems = [*self._problems(column), *(of_edges.problems if of_edges else ())]
        ends = of_edges.ends if of_edges else ()
        roles = {**self.roles, "source": ends[:1], "target": ends[1:]}
        empty = EdgeInspection((), None, {}, {}, ())
        return Inspection(
            nodes=str(self.nodes.origin["source"]),
            edges=None if self.edges is None else str(self.edges.origin["source"]),
            rows=len(self.nodes.frame),
            edge_rows=None if self.edges is None else len(self.edges.frame),
            columns=tuple(self.contents.values()),
            roles=roles,
            sensitive=tuple(self.sensitive),
            undecided=self.undecided,
            left_out={**self.unusable, **self.counting},
            settings=(of_edges or empty).settings,
            reasons=(of_edges or empty).reasons,
            problems=tuple(sorted(problems, key=lambda problem: not problem.stops)),
        )

    def _problems(self, ids: "Column | None") -> Iterator[Problem]:
        if ids is not None:
            yield from _id_errors(ids)
        label = None if self.label is None else self.nodes[self.label]
        if label is not None:
            if (distinct := self.contents[str(label.name)].distinct) > MAX_LEVELS:
                yield Problem(
                    f"label {label.name!r} must have at most {MAX_LEVELS} values (got {distinct:,})", stops=True
                )
            else:
                yield from hints.label_problems(self._merged(str(label.name)))
        for name, reason in {**self.unusable, **self.counting}.items():
            yield Problem(f"column {name!r} {reason}: it is left out")
        if not self.features:
            yield Problem("no column is left as a feature: decide which may be one", stops=True)
        for name in filter(None, (self.label, *self.sensitive, *self.features)):
            yield from self._notes(name)
        for name in self.features:
            yield from _number_errors(self.nodes[name], self.contents[name].recognised)
        missing = {name: content.missing for name, content in self.contents.items()}
        yield from hints.gaps(missing, len(self.nodes.frame), self.sensitive, self.features)
        if label is not None:
            yield from hints.leaks(self.tree, self.features, label)
        for group in [self._merged(name) for name in self.sensitive if hints.can_be_told(self.nodes[name])]:
            yield from hints.told_together(self.tree, self.features, group)
            yield from () if label is None else hints.small_groups(group, label.notna())
        yield from hints.repeated_columns(self.tree, self.nodes, self.features)
        yield from hints.repeated_rows(self.nodes, self.features)

    def _notes(self, name: str) -> Iterator[Problem]:
        """Yield how a column is read, where that may surprise; a flag reads every spelling."""
        content, is_feature = self.contents[name], name in self.features
        if content.spellings and not (is_feature and content.kind == "flag"):
            yield Problem(f"column {name!r}: {note_on_spellings(content.spellings)}")
        if content.note and is_feature:
            yield Problem(f"column {name!r}: {content.note}")


def _number_errors(column: Column, recognised: Recognised | None) -> Iterator[Problem]:
    """Yield what is wrong with the numbers of a feature."""
    if recognised is not None and recognised.kind in get_args(NumberKind):
        try:
            finite_numbers(column, recognised.reading)
        except DataError as error:
            yield Problem(f"{error}: fix the table, or leave the column out", stops=True)


def _id_errors(ids: Column) -> Iterator[Problem]:
    """Yield what is wrong with the ids, with the missing ones and without them."""
    for values in [ids, ids.dropna()] if ids.isna().any() else [ids]:
        try:
            checked_ids(values)
        except DataError as error:
            yield Problem(str(error), stops=True)
