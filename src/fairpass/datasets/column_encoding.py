"""The values of a column as text and as codes."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairpass.datasets.column_reading import bounded
from fairpass.datasets.graph import MISSING, Column, Ints, listed
from fairpass.datasets.spellings import level_finder, merged_spellings
from fairpass.errors import DataError

UNKNOWN = -2
_SHOWN = 3  # spellings in a warning
_FEW = 50  # with more values, a column is no group, label or category

logger = logging.getLogger(__name__)


def text_of(value: Any) -> str:
    """Return a value as text; a whole number is written the same whether it is stored as int or float."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def as_text(column: Column) -> Column:
    """Return a column as the text a CSV file would contain; missing values stay missing."""
    if isinstance(column.dtype, pd.StringDtype):
        return column
    return column.astype(object).map({value: text_of(value) for value in column.dropna().unique().tolist()})


def distinct_names(column: Column) -> list[str]:
    """Return the distinct values of a column as text: sorted by value, or by text where types are mixed."""
    _, values = _factorized(column)
    try:
        names = [text_of(value) for value in sorted(values)]
    except TypeError:
        names = sorted(map(text_of, values))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"column {column.name!r} contains {twice!r} both as a number and as text")
    return names


def levels_of(column: Column, *, merge: bool, max_levels: int | None) -> tuple[list[str], dict[str, str] | None]:
    """Return the distinct values of a column, and the spellings that are merged into one of them.

    Without `merge`, the spellings are None: "yes" and "Yes" are different values, also in other tables.
    """
    names, spellings = distinct_names(column), None
    if merge:
        codes = codes_among(column, names)
        counts = np.bincount(codes[codes != MISSING], minlength=len(names))
        spellings = merged_spellings(dict(zip(names, counts.tolist(), strict=True)))
        if spellings:
            names = sorted({spellings.get(name, name) for name in names})
            logger.warning("column %r: %s", column.name, note_on_spellings(spellings))
    if max_levels is not None and len(names) > max_levels:
        raise DataError(
            f"column {column.name!r} has {len(names)} distinct values ({listed(names)}), more than "
            f"'max_levels' = {max_levels}: group its values first; a feature can have the kind 'target' or 'rare' "
            f"('columns'), or be left out ('drop')"
        )
    return names, spellings


def spellings_of(column: Column) -> dict[str, str]:
    """Return the spellings of a column with few values that are merged into another, as `levels_of` does."""
    if column.nunique() > _FEW:
        return {}
    return merged_spellings({text_of(value): int(count) for value, count in column.value_counts().items()})


def note_on_spellings(merged: Mapping[str, str]) -> str:
    shown = [f"{name!r} is {kept!r}" for name, kept in merged.items()]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"spellings are merged: {', '.join(shown[:_SHOWN])}{more}"


def codes_among(
    column: Column, known: Sequence[str], *, spellings: Mapping[str, str] | None = None, allow_unknown: bool = False
) -> Ints:
    """Return each row's index in `known`, -1 if its value is missing, -2 if it is unknown and that is allowed."""
    codes, values = _factorized(column)
    find = level_finder(known, spellings)
    found = [find(text_of(value)) for value in values]
    unknown = [value for value, code in zip(values, found, strict=True) if code is None]
    if unknown and not allow_unknown:
        message = f"has values that the fitted table does not have: {listed(unknown)} (it has {listed(known)})"
        raise DataError(f"column {column.name!r} {message}; leave a cell empty if its value is not known")
    translation = [UNKNOWN if code is None else code for code in found]
    return np.array([*translation, MISSING], dtype=np.int64)[codes]


def _factorized(column: Column) -> tuple[Ints, list[Any]]:
    codes, values = pd.factorize(column)
    found = pd.Index(values).tolist()
    if any(isinstance(value, float) and math.isinf(value) for value in bounded(pd.Series(found, dtype=object))):
        raise DataError(f"column {column.name!r} must be finite (got inf)")
    return codes, found
