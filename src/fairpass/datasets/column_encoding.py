"""One column as codes or as columns of numbers, in a way that is stored and applied to the next table."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from fairpass.datasets.graph import MISSING, Column, Floats, Ints, first_missing, listed
from fairpass.datasets.options import FeatureScale, Frozen, Missing
from fairpass.errors import DataError

UNKNOWN = -2

Kind = Literal["number", "flag", "category"]

# pandas' name for the content of a column -> how it is encoded.
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(["integer", "floating", "mixed-integer-float", "decimal"], "number"),
    "boolean": "flag",
    **dict.fromkeys(["string", "categorical"], "category"),
}
_DATES = {"datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period"}


def text_of(value: Any) -> str:
    """Return a value as text; a whole number is written the same whether it is stored as int or float."""
    if isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer():
        return str(int(value))
    return str(value)


def as_text(column: Column) -> Column:
    """Return a column as the text a CSV file would contain; missing values stay missing."""
    if isinstance(column.dtype, pd.StringDtype):
        return column
    return column.astype(object).map({value: text_of(value) for value in column.dropna().unique().tolist()})


def distinct_names(column: Column, max_levels: int) -> list[str]:
    """Return the distinct values of a column as text: sorted by value, or by text where types are mixed."""
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
        raise DataError(f"column {column.name!r} contains {twice!r} both as a number and as text")
    return names


def codes_among(column: Column, known: Sequence[str], *, allow_unknown: bool = False) -> Ints:
    """Return each row's index in `known`, -1 if its value is missing, -2 if it is unknown and that is allowed."""
    codes, values = _factorized(column)
    index = {name: i for i, name in enumerate(known)}
    translation = [index.get(text_of(value), UNKNOWN) for value in values]
    if UNKNOWN in translation and not allow_unknown:
        unknown = [value for value, code in zip(values, translation, strict=True) if code == UNKNOWN]
        message = f"has values that the encoding does not know: {listed(unknown)} (it knows {listed(known)})"
        raise DataError(f"column {column.name!r} {message}")
    return np.array([*translation, MISSING], dtype=np.int64)[codes]


def _factorized(column: Column) -> tuple[Ints, list[Any]]:
    try:
        codes, values = pd.factorize(column)
    except TypeError as error:
        raise DataError(f"column {column.name!r} must have single values such as numbers or text ({error})") from error
    found = pd.Index(values).tolist()
    if any(isinstance(value, float) and math.isinf(value) for value in found):
        raise DataError(f"column {column.name!r} must be finite (got inf)")
    return codes, found


def kind_of(column: Column) -> Kind:
    """Return how a column can be encoded; a column of dates, of mixed types or without any value cannot."""
    found = _pandas_type(column)
    if column.isna().all():
        raise DataError(f"column {column.name!r} has no value in any row: leave it out ('drop')")
    if found not in _KINDS:
        raise DataError(f"column {column.name!r} must contain only numbers, true/false or text (got {found} values)")
    return _KINDS[found]


def _pandas_type(column: Column) -> str:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "categorical"
    found: str = pd.api.types.infer_dtype(column, skipna=True)
    if found in _DATES:
        raise DataError(
            f"column {column.name!r} contains dates or times, which cannot be used as features: "
            f"convert it to numbers (such as an age in days) or leave it out ('drop')"
        )
    return found


def finite_numbers(column: Column) -> Floats:
    """Return a column as numbers, NaN where a value is missing."""
    found = _pandas_type(column)
    try:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(f"column {column.name!r} must contain numbers (got {found} values)") from error
    infinite = np.isinf(values)
    if infinite.any():
        where = f"{infinite.sum()} infinite values, first in row {np.argmax(infinite)}"
        raise DataError(f"column {column.name!r} must be finite (got {where})")
    return values


class EncodedColumn(Frozen):
    """A number x becomes `(x - shift) / scale`, true and false 1 and 0, a category one column of 0 and 1 per level.

    A missing value becomes `fill`, on the new scale (one number per level; None: an error). With `indicator`, a column
    "x is missing" says where.
    """

    kind: Literal["number", "category"]
    column: str
    fill: float | list[float] | None
    indicator: bool
    shift: float = 0.0
    scale: float = 1.0
    levels: list[str] | None = None

    @classmethod
    def fit(cls, column: Column, scale: FeatureScale, missing: Missing, max_levels: int) -> "EncodedColumn":
        """Take levels, or shift and scale, from the values that are not missing; only numbers are scaled."""
        kind = kind_of(column)
        name, filled = str(column.name), missing in {"mean", "indicator"}
        if not filled:
            _check_complete(column)
        indicator = missing == "indicator" and bool(column.isna().any())
        if kind == "category":
            levels = distinct_names(column, max_levels)
            codes = codes_among(column, levels)
            frequencies = np.bincount(codes[codes != MISSING]) / np.count_nonzero(codes != MISSING)
            fill = frequencies.tolist() if filled else None
            return cls(kind="category", column=name, fill=fill, indicator=indicator, levels=levels)
        values = finite_numbers(column)
        present = values[~np.isnan(values)]
        shift, divisor = 0.0, 1.0
        low, high = float(present.min()), float(present.max())
        if kind == "number" and scale == "minmax" and low < high:
            shift, divisor = low / 2 + high / 2, high / 2 - low / 2
        elif kind == "number" and scale == "standard" and low < high:
            shift, divisor = float(present.mean()), float(present.std())
        mean = (float(present.mean()) - shift) / divisor if filled else None
        return cls(kind="number", column=name, fill=mean, indicator=indicator, shift=shift, scale=divisor)

    @property
    def names(self) -> list[str]:
        """The names of the encoded columns."""
        own = [self.column] if self.levels is None else [f"{self.column}={level}" for level in self.levels]
        return [*own, f"{self.column} is missing"] if self.indicator else own

    def encode(self, column: Column, *, allow_unknown: bool = False) -> Floats:
        """Return the encoded columns, shape [N, len(names)]; an unknown level that is allowed is all zeros."""
        if self.fill is None:
            _check_complete(column)
        if self.levels is None:
            encoded = (finite_numbers(column)[:, None] - self.shift) / self.scale
        else:
            codes = codes_among(column, self.levels, allow_unknown=allow_unknown)
            encoded = (codes[:, None] == np.arange(len(self.levels))).astype(np.float64)
        missing = column.isna().to_numpy()
        if self.fill is not None:
            encoded[missing] = self.fill
        return np.column_stack([encoded, missing]) if self.indicator else encoded


def _check_complete(column: Column) -> None:
    if column.isna().any():
        raise DataError(
            f"column {column.name!r} has missing values ({first_missing(column)}): fix the table, "
            f"or choose missing='drop', 'mean' or 'indicator'"
        )
