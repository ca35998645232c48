"""Which column may be the id, the label, the sensitive attribute or the split: guesses from names and values."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairpass.datasets.column_encoding import as_text, spellings_of, text_of
from fairpass.datasets.column_names import END_WORDS, ID_WORDS, LABEL_WORDS, SENSITIVE_WORDS, named, words_of
from fairpass.datasets.graph import Column
from fairpass.datasets.splits import PARTS
from fairpass.datasets.table_files import Table

# Ids are almost always distinct; a few repeated ones are a mistake to be reported.
_ALMOST_ALL = 0.9
# A label that is not named like one has few values, and some nodes without it.
_FEW = 10
_CANDIDATES = 5
_EDGES_LOOKED_AT = 10_000
_MOST_GROUPS = 20  # a column with more values says little about groups of people

# Values that say what a column is about, whatever its name; the last words are other languages'.
_PEOPLE = {
    "sexes": (
        *("male", "female", "man", "woman", "men", "women", "m", "f", "nonbinary", "non-binary", "diverse", "other"),
        *("männlich", "weiblich", "mann", "frau", "divers", "homme", "femme", "masculin", "féminin", "h", "w"),
        *("hombre", "mujer", "masculino", "femenino", "feminino", "uomo", "donna", "maschio", "femmina", "v"),
    ),
    "ethnic groups": (
        *(
            "white",
            "black",
            "asian",
            "hispanic",
            "latino",
            "latina",
            "caucasian",
            "african-american",
            "african american",
        ),
        *("native american", "pacific islander", "asian-pac-islander", "amer-indian-eskimo", "middle eastern", "mixed"),
        *("arab", "roma", "black or african american", "other"),
    ),
    "religions": (
        *("christian", "catholic", "protestant", "muslim", "jewish", "hindu", "buddhist", "sikh", "atheist", "none"),
        *(
            "katholisch",
            "evangelisch",
            "muslimisch",
            "jüdisch",
            "islam",
            "christianity",
            "hinduism",
            "buddhism",
            "judaism",
        ),
    ),
    "marital states": (
        *("married", "single", "divorced", "widowed", "separated", "never married", "never-married", "unmarried"),
        *("verheiratet", "ledig", "geschieden", "verwitwet", "marié", "célibataire", "divorcé", "veuf"),
    ),
}
_UNTELLING = {"other", "none", "mixed", "h", "v", "w", "single"}

# How likely a column has a role, its name, and the reason.
_Scored = tuple[float, str, str]


@dataclass(frozen=True)
class Guess:
    """A column that may have a role, and why."""

    column: str
    reason: str


def best(found: Iterable[_Scored]) -> tuple[Guess, ...]:
    ordered = sorted(found, key=lambda each: -each[0])
    return tuple(Guess(column, reason) for _, column, reason in ordered[:_CANDIDATES])


def guess_id(nodes: Table, edges: Table | None) -> tuple[Guess, ...]:
    return best(_ids(nodes, edges))


def _ids(nodes: Table, edges: Table | None) -> Iterator[_Scored]:
    usable = None if edges is None else edges.usable
    columns = [] if usable is None else [_some(usable[name]) for name in usable.columns]
    for name in nodes.columns:
        column = nodes[name]
        if pd.api.types.is_float_dtype(column) or column.nunique() < _ALMOST_ALL * len(column):
            continue
        values = as_text(column)
        different = "all values are different" if values.is_unique else "almost all values are different"
        is_named = not set(ID_WORDS).isdisjoint(words_of(name))
        # The two columns of the edges that contain the most ids.
        known = distinct(values)
        shares = sorted((share_among(ends, known) for ends in columns), reverse=True)[:2]
        share = sum(shares) / 2
        if share > 0.5:
            told = f"{different}, and {int(100 * share)} % of the edges' ends are among them"
            yield 1 + share + is_named, name, told
        elif is_named and edges is None:
            yield 1, name, f"{different}, and its name says so"


def guess_ends(edges: Table, ids: Column, id: str | None) -> tuple[Guess, ...]:
    """Return the two columns of the edges that are most likely the ends, in the order of the table."""
    what = f"values of {id!r}" if id is not None else "row numbers"
    scored, known = [], distinct(ids)
    for name in edges.columns:
        share = share_among(_some(edges[name]), known)
        is_named = not set(END_WORDS).isdisjoint(words_of(name))
        scored.append((2 * share + is_named, name, f"{int(100 * share)} % of its values are {what}"))
    return tuple(sorted(best(scored)[:2], key=lambda guess: edges.columns.index(guess.column)))


def guess_split(nodes: Table) -> tuple[Guess, ...]:
    return best(_splits(nodes))


def _splits(nodes: Table) -> Iterator[_Scored]:
    for name in nodes.columns:
        values = nodes[name].dropna().unique()
        if len(values) <= len(PARTS):
            parts = {PARTS.get(text_of(value).strip().lower()) for value in values}
            if parts >= {"train", "val", "test"}:
                yield 1, name, "it says train, val or test"


def guess_label(nodes: Table, columns: Sequence[str]) -> tuple[Guess, ...]:
    """Return columns named like a label, or with few values of which some are missing; no part of a one-hot code."""
    parts = one_hot_parts(nodes, columns)
    return best(_labels(nodes, [name for name in columns if name not in parts]))


def _labels(nodes: Table, columns: Sequence[str]) -> Iterator[_Scored]:
    for name in columns:
        column = nodes[name]
        count, missing = int(column.nunique()) - len(spellings_of(column)), int(column.isna().sum())
        if rank := named(name, LABEL_WORDS):
            yield 2 + rank, name, f"its name says so; it has {_values(column)}"
        elif count <= _FEW and missing and not _has_fractions(column):
            reason = f"it has {_values(column)}, and {missing:,} nodes have none, perhaps those to be predicted"
            yield 1 + (count == 2), name, reason


def _values(column: Column) -> str:
    count, merged = int(column.nunique()), len(spellings_of(column))
    return f"{count - merged:,} values" + (f" in {count:,} spellings" if merged else "")


def _has_fractions(column: Column) -> bool:
    return pd.api.types.is_float_dtype(column) and bool((column.dropna() % 1 != 0).any())


def one_hot_parts(nodes: Table, columns: Collection[str]) -> set[str]:
    """Return the columns of 0 and 1, named like `job_nurse` and `job_clerk`, of which exactly one is 1 in each row."""
    families: dict[str, list[str]] = defaultdict(list)
    for name in columns:
        prefix, mark, _ = re.match(r"(.*?)([_=.: -]?)([^_=.: -]*)$", name).groups()  # type: ignore[union-attr] # matches
        if mark and pd.api.types.is_numeric_dtype(nodes[name]) and set(nodes[name].dropna().unique()) <= {0, 1}:
            families[prefix].append(name)
    return {
        name
        for family in families.values()
        if len(family) > 1 and bool((nodes.frame[family].sum(axis=1) == 1).all())
        for name in family
    }


def guess_sensitive(nodes: Table, columns: Collection[str]) -> tuple[Guess, ...]:
    """Return all columns that are named like a sensitive attribute, or have values of one."""
    scored = list(_sensitive(nodes, columns))
    ordered = sorted(scored, key=lambda each: -each[0])
    return tuple(Guess(column, reason) for _, column, reason in ordered)


def _sensitive(nodes: Table, columns: Collection[str]) -> Iterator[_Scored]:
    for name in columns:
        count = int(nodes[name].nunique())
        if count < 2:
            continue
        if rank := named(name, SENSITIVE_WORDS):
            yield 1 + rank, name, f"its name is that of a sensitive attribute; it has {_values(nodes[name])}"
        elif what := people_in(nodes[name]):
            yield 1, name, f"its values are those of {what}"


def people_in(column: Column) -> str:
    """Return what kind of people the values of a column are about, "" if none is known."""
    if pd.api.types.is_numeric_dtype(column) or column.nunique() > _MOST_GROUPS:
        return ""
    values = {text_of(value).strip().lower() for value in column.dropna().unique()}
    for what, words in _PEOPLE.items():
        known = values.intersection(words)
        if len(known) >= 2 and 2 * len(known) > len(values) and not known <= _UNTELLING:
            return what
    return ""


def distinct(values: Column) -> "pd.Index[Any]":
    """Return the distinct values, to be looked up; pandas' `isin` takes many times as long on texts of Arrow."""
    found: pd.Index[Any] = pd.Index(values.dropna().unique().astype(object))
    return found


def share_among(values: Column, known: "pd.Index[Any]") -> float:
    return float((known.get_indexer(pd.Index(values.astype(object))) >= 0).mean()) if len(values) else 0.0


def _some(column: Column) -> Column:
    """Return some values of a long column as text, spread over all rows."""
    step = max(1, len(column) // _EDGES_LOOKED_AT)
    return as_text(column.iloc[np.arange(0, len(column), step)].dropna())
