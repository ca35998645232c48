"""How the values of a column become numbers, whatever type they have."""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from fairpass.datasets.column_rules import ColumnRule, DecimalMark, Frozen
from fairpass.datasets.graph import Bools, Column, Floats
from fairpass.datasets.text_values import (
    FLAG_WORDS,
    ISO,
    MISSING_SPELLINGS,
    days_since_1970,
    read_amounts,
    read_dates,
    without_far_dates,
)
from fairpass.errors import DataError

NumberKind = Literal["number", "money", "percent", "date", "flag"]
ContentType = Literal["number", "flag", "date", "text", "category", "empty", "mixed"]

# pandas' name for the content of a column -> what it is to us.
_CONTENT: dict[str, ContentType] = {
    **dict.fromkeys(["integer", "floating", "mixed-integer-float", "decimal", "timedelta64", "timedelta"], "number"),
    "boolean": "flag",
    **dict.fromkeys(["datetime64", "datetime", "date", "period"], "date"),
    "string": "text",
    "empty": "empty",
}


class Numbers(NamedTuple):
    """A number for each row, and why some are missing (NaN)."""

    values: Floats
    unread: Bools  # the value could not be read


class Reading(Frozen):
    """How the values of a column become numbers; it is stored and applied to the next table.

    Dates become days since 1970, durations days, true and false 1 and 0, percentages fractions. Dates far in the future
    cannot be read.
    """

    kind: NumberKind = "number"
    decimal: DecimalMark = "."
    format: str | None = None

    @classmethod
    def of_rule(cls, rule: ColumnRule, column: Column, usual_decimal: DecimalMark | None = None) -> "Reading":
        """Return how a column is read by a user's rule; what the rule leaves open follows from the values.

        A value that the rule does not fit is an error.
        """
        kind: Any = rule.kind
        decimal, format = rule.decimal, rule.format
        if content_type(column) in ("text", "category"):
            _, texts = distinct_texts(column)
            present = texts[~is_missing_word(texts)]
            if kind == "date" and format is None and (dates := read_dates(present)) is not None:
                format = dates.format
            elif kind in ("number", "money", "percent") and decimal is None:
                decimal = read_amounts(present, usual=usual_decimal).decimal
        reading = cls(kind=kind, decimal=decimal or ".", format=format)
        unread = reading.read(column).unread
        if unread.any():
            raise DataError(
                f"column {column.name!r} does not fit its rule {kind!r}: the value {first_of(column, unread)} "
                f"cannot be read ({unread.sum():,} such values)"
            )
        return reading

    def read(self, column: Column) -> Numbers:
        """Return a number for each row."""
        content = content_type(column)
        if content == "mixed":
            found = pd.api.types.infer_dtype(column, skipna=True)
            message = f"must contain only numbers, true/false, dates or text (got {found} values)"
            raise DataError(f"column {column.name!r} {message}")
        if content in ("text", "category"):
            codes, texts = distinct_texts(column)
            values, missing = self._usable(self._read_texts(texts)), is_missing_word(texts)
            unread = np.isnan(values) & ~missing
            return Numbers(_by_row(codes, values, np.nan), _by_row(codes, unread, False))
        if content == "date" and self.kind != "date":
            raise DataError(f"column {column.name!r} must be read as {self.kind}, but contains dates")
        values = self._usable(self._read_typed(column, content))
        return Numbers(values, np.isnan(values) & column.notna().to_numpy())

    def _usable(self, values: Floats) -> Floats:
        return without_far_dates(values) if self.kind == "date" else values

    def _read_texts(self, texts: Column) -> Floats:
        if self.kind == "flag":
            words = {word: float(truth) for word, truth in FLAG_WORDS.items()}
            return np.asarray(texts.str.lower().map(words), dtype=np.float64)
        if self.kind == "date":
            values = np.full(len(texts), np.nan)
            for format in (self.format or ISO, ISO):  # a new table may have ISO dates, which nobody can misread
                if np.isnan(values).any() and (dates := read_dates(texts, format)) is not None:
                    values = np.where(np.isnan(values), dates.values, values)
            return values
        values = read_amounts(texts, self.decimal).values
        return values / 100 if self.kind == "percent" else values

    def _read_typed(self, column: Column, content: ContentType) -> Floats:
        if content == "date":
            return _days(column)
        values = typed_numbers(column)
        if self.kind == "date":  # such as 20240131
            whole = pd.Series(np.char.mod("%.0f", np.nan_to_num(values)))
            dates = read_dates(whole, self.format or "%Y%m%d")
            return np.full(len(values), np.nan) if dates is None else dates.values
        if self.kind == "flag":
            return np.where((values == 0) | (values == 1), values, np.nan)
        return values / 100 if self.kind == "percent" else values


def content_type(column: Column) -> ContentType:
    """Return what a column contains by the types of its values."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "category"
    if isinstance(column.dtype, pd.StringDtype):
        return "text"
    if pd.api.types.is_bool_dtype(column.dtype):
        return "flag"
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype):
        return "number"
    return _CONTENT.get(pd.api.types.infer_dtype(column, skipna=True), "mixed")


def distinct_texts(column: Column) -> tuple[Any, Column]:
    """Return for each row the index of its text (-1: missing), and the distinct texts without surrounding space."""
    codes, values = pd.factorize(column)
    return codes, pd.Series(pd.Index(values).astype(str)).astype("str").str.strip()


def is_missing_word(texts: Column) -> Bools:
    """Return which texts stand for a missing value in a column of numbers, amounts, dates or flags."""
    return texts.str.lower().isin(list(MISSING_SPELLINGS)).to_numpy(dtype=bool)


def typed_numbers(column: Column) -> Floats:
    """Return numbers, booleans or durations (in days) as numbers, NaN where a value is missing."""
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "timedelta":
        column = pd.to_timedelta(column)
    if pd.api.types.is_timedelta64_dtype(column):
        return column.dt.total_seconds().to_numpy(dtype=np.float64) / 86_400
    return bounded(column).to_numpy(dtype=np.float64, na_value=np.nan)


def bounded(column: Column) -> Column:
    """Return a column with infinity for whole numbers that no float can hold, as they are read from a text file."""
    return column.map(_bounded) if column.dtype == object else column


def _bounded(value: Any) -> Any:
    if isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            return math.copysign(math.inf, value > 0 or -1)
    return value


def first_of(column: Column, rows: Bools) -> str:
    """Return the first value among some rows, and where it is, for a message."""
    row = int(np.argmax(rows))
    value = column.iloc[[row]].tolist()[0]
    return f"{value if isinstance(value, str | int | float) else str(value)!r} in row {row}"


def _days(column: Column) -> Floats:
    moments: Any = column.dt.to_timestamp() if isinstance(column.dtype, pd.PeriodDtype) else column
    return days_since_1970(pd.to_datetime(moments, utc=True, errors="coerce"))


def _by_row(codes: Any, values: Any, otherwise: Any) -> Any:
    """Return the value of each row; `otherwise` where the code is -1."""
    return np.append(values, otherwise)[codes]
