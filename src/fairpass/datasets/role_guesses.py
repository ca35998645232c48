"""Which role a column may have, guessed from its name and its values, with the reason."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fairpass.datasets.column_encoding import as_text, text_of
from fairpass.datasets.splits import PARTS
from fairpass.datasets.table_files import Table

# Words in the names of columns, the most likely first.
_LABEL_WORDS = (
    *("label", "target", "y", "class", "outcome", "decision", "result", "default", "approved", "granted", "hired"),
    *("accepted", "admitted", "paid", "repaid", "churn", "churned", "fraud", "recidivism", "recid", "status"),
)
_SENSITIVE_WORDS = (
    *("sex", "gender", "race", "ethnicity", "ethnic", "religion", "nationality", "citizenship", "foreign"),
    *("minority", "disability", "disabled", "orientation", "marital", "married", "age"),
)
_ID_WORDS = ("id", "ids", "node", "key", "uid", "uuid", "name", "number", "nr")
_END_WORDS = ("source", "target", "from", "to", "src", "dst", "one", "other", "a", "b", "u", "v")

# Ids are almost always distinct; a few repeated ones are a mistake to be reported.
_ALMOST_ALL = 0.9
# A label has few values, unless its name says that it is one.
_FEW = 10
_CANDIDATES = 5


@dataclass(frozen=True)
class Guess:
    """A column that may have a role, and why."""

    column: str
    reason: str


def guess_roles(nodes: Table, texts: Table, edges: Table | None, few: Collection[str]) -> dict[str, tuple[Guess, ...]]:
    """Return the candidates for each role, the most likely first.

    `texts` and `edges` have all values as text, so that "007" is not 7; `few` are the columns that may be a label.
    """
    ids, split = _guess_id(texts, edges), _guess_split(nodes)
    source, target = _guess_ends(edges, texts, ids[0].column if ids else None) if edges else ((), ())
    taken = {guess.column for guess in (*ids[:1], *split[:1])}
    sensitive = _guess_sensitive(nodes, [name for name in nodes.columns if name not in taken])
    taken |= {guess.column for guess in sensitive}
    label = _guess_label(nodes, [name for name in nodes.columns if name in few and name not in taken])
    return {"id": ids, "label": label, "sensitive": sensitive, "split": split, "source": source, "target": target}


def words_of(name: str) -> list[str]:
    """Return the words in a column's name, in lower case: "GoodCustomer_id" has good, customer and id."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _guess_id(nodes: Table, edges: Table | None) -> tuple[Guess, ...]:
    """Return the columns that may be ids: all values distinct, named like ids, or referred to by the edges."""
    columns = [] if edges is None else [as_text(edges[name]).dropna() for name in edges.columns]
    found: list[tuple[float, Guess]] = []
    for name in nodes.columns:
        values = as_text(nodes[name])
        if values.nunique() < _ALMOST_ALL * len(values):
            continue
        different = "all values are different" if values.is_unique else "almost all values are different"
        named = any(word in _ID_WORDS for word in words_of(name))
        known = set(values.dropna())
        # The two columns of the edges that contain the most ids.
        share = sum(sorted((_share(column, known) for column in columns), reverse=True)[:2]) / 2
        if share > 0.5:
            reason = f"{different}, and {100 * share:.0f} % of the edges' ends are among them"
            found.append((1 + share + named, Guess(name, reason)))
        elif named and edges is None:
            found.append((1, Guess(name, f"{different}, and its name says so")))
    return _best(found)


def _guess_ends(edges: Table, nodes: Table, id: str | None) -> tuple[tuple[Guess, ...], tuple[Guess, ...]]:
    known = set(as_text(nodes[id])) if id is not None else {str(row) for row in range(len(nodes.frame))}
    what = f"values of {id!r}" if id is not None else "row numbers"
    found: list[tuple[float, Guess]] = []
    for name in edges.columns:
        share = _share(as_text(edges[name]).dropna(), known)
        named = any(word in _END_WORDS for word in words_of(name))
        found.append((2 * share + named, Guess(name, f"{100 * share:.0f} % of its values are {what}")))
    two = sorted(_best(found)[:2], key=lambda guess: edges.columns.index(guess.column))
    return tuple(two[:1]), tuple(two[1:])


def _guess_split(nodes: Table) -> tuple[Guess, ...]:
    found = []
    for name in nodes.columns:
        values = nodes[name].dropna()
        if values.nunique() <= len(PARTS):
            parts = {PARTS.get(text_of(value).strip().lower()) for value in values.unique()}
            if parts >= set(PARTS.values()):
                found.append(Guess(name, "it says train, val or test"))
    return tuple(found)


def _guess_label(nodes: Table, columns: Sequence[str]) -> tuple[Guess, ...]:
    """Return the columns that may be the label: named like one, or with few values, best in the last or first place."""
    found: list[tuple[float, Guess]] = []
    for place, name in enumerate(columns):
        count = int(nodes[name].nunique())
        if rank := _named(name, _LABEL_WORDS):
            found.append((2 + rank, Guess(name, f"its name says so; it has {count} values")))
        elif count <= _FEW and not _has_fractions(nodes[name]):
            outer = {len(columns) - 1: 0.5, 0: 0.25}.get(place, 0.0)
            found.append(((count == 2) + outer, Guess(name, f"a guess: it has {count} values")))
    return _best(found)


def _guess_sensitive(nodes: Table, columns: Collection[str]) -> tuple[Guess, ...]:
    found: list[tuple[float, Guess]] = []
    for name in columns:
        count = int(nodes[name].nunique())
        if count > 1 and (rank := _named(name, _SENSITIVE_WORDS)):
            found.append((rank, Guess(name, f"its name is that of a sensitive attribute; it has {count} values")))
    return _best(found)


def _share(values: "pd.Series[Any]", known: Collection[str]) -> float:
    return float(values.isin(known).mean()) if len(values) else 0.0


def _named(name: str, words: Sequence[str]) -> float:
    """Return how likely a name is, between 0 and 1, by which of the words it begins or ends with."""
    parts = words_of(name)
    places = [words.index(word) for word in {*parts[:1], *parts[-1:]} if word in words]
    return 1 - min(places) / len(words) if places else 0.0


def _has_fractions(column: "pd.Series[Any]") -> bool:
    return bool(pd.api.types.is_float_dtype(column) and (column.dropna() % 1 != 0).any())


def _best(found: list[tuple[float, Guess]]) -> tuple[Guess, ...]:
    ordered = sorted(found, key=lambda pair: -pair[0])
    return tuple(guess for _, guess in ordered[:_CANDIDATES])
