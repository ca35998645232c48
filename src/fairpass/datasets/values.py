"""Values of any type (labels, groups, categories) as integer codes with names."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.errors import DataError

MISSING = -1
UNKNOWN = -2

# How many values an error message names.
_NAMED = 5


def listed(values: Iterable[Any]) -> str:
    """Return the first few values for an error message."""
    shown = [repr(value) for value in values]
    return ", ".join(shown[:_NAMED]) + (", ..." if len(shown) > _NAMED else "")


def first_missing(column: "pd.Series[Any]") -> str:
    """Return how many values of a column are missing and where the first is (rows count from 0)."""
    missing = column.isna().to_numpy()
    return f"{missing.sum()} missing, first in row {np.argmax(missing)}"


def text_of(value: Any) -> str:
    """Return a value as text; a whole number is written the same whether it was stored as int or float."""
    if isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer():
        return str(int(value))
    return str(value)


def as_text(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return a column as the text a CSV file would hold; what is missing stays missing."""
    if isinstance(column.dtype, pd.StringDtype):
        return column
    return column.astype(object).map({value: text_of(value) for value in column.dropna().unique().tolist()})


def whole_numbers(column: "pd.Series[Any]") -> list[Any]:
    """Return a column of text as a list, of whole numbers if every text is one (and not "007")."""
    texts = column.tolist()
    try:
        numbers = [int(text) for text in texts]
    except (TypeError, ValueError):
        return texts
    return numbers if all(str(number) == text for number, text in zip(numbers, texts, strict=True)) else texts


def distinct_names(column: "pd.Series[Any]", max_levels: int) -> list[str]:
    """Return the distinct values of a column, sorted, as text.

    Values are sorted as what they are (numbers as numbers), or by their text where types are mixed.
    More than `max_levels` of them are an error.
    """
    _, values = _factorized(column)
    if len(values) > max_levels:
        raise DataError(
            f"column {column.name!r} has {len(values)} distinct values ({listed(values)}), more than "
            f"'max_levels' = {max_levels}: an identifier, a date, free text, or numbers mixed with text? "
            f"Group its values first, or leave the column out ('drop')"
        )
    try:
        names = [text_of(value) for value in sorted(values)]
    except TypeError:
        names = sorted(map(text_of, values))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"column {column.name!r} holds {twice!r} both as a number and as text")
    return names


def codes_among(column: "pd.Series[Any]", known: Sequence[str], *, allow_unknown: bool = False) -> NDArray[np.int64]:
    """Return each row's index in `known`, the names of its values or of an earlier table's (-1 if missing).

    A value not in `known` is an error, or gets -2 with `allow_unknown`.
    """
    codes, values = _factorized(column)
    index = {name: i for i, name in enumerate(known)}
    unknown = [value for value in values if text_of(value) not in index]
    if unknown and not allow_unknown:
        raise DataError(
            f"column {column.name!r} has values that the encoding does not know: {listed(unknown)} "
            f"(it knows {listed(known)})"
        )
    translation = [index.get(text_of(value), UNKNOWN) for value in values]
    return np.array([*translation, MISSING], dtype=np.int64)[codes]


def _factorized(column: "pd.Series[Any]") -> tuple[NDArray[np.int64], list[Any]]:
    try:
        codes, values = pd.factorize(column)
    except TypeError as error:
        raise DataError(f"column {column.name!r} must hold single values such as numbers or text ({error})") from error
    found = pd.Index(values).tolist()
    if any(isinstance(value, float) and math.isinf(value) for value in found):
        raise DataError(f"column {column.name!r} must be finite (got inf)")
    return codes, found
