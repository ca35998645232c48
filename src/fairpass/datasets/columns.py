"""One column of a table as columns of numbers, in a way that is remembered for the next table."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.scaling import FeatureScale
from fairpass.datasets.values import MISSING, codes_among, distinct_names, first_missing
from fairpass.errors import DataError

Missing = Literal["error", "drop", "mean", "indicator"]
Kind = Literal["number", "flag", "category"]

# What pandas calls the type of a column -> what becomes of it.
_KINDS: dict[str, Kind] = {
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "boolean": "flag",
    "string": "category",
    "categorical": "category",
}
_DATES = {"datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period"}


def kind_of(column: "pd.Series[Any]") -> Kind:
    """Return how a column can be encoded; a column of dates, of mixed types or without any value cannot."""
    found = _pandas_type(column)
    if column.isna().all():
        raise DataError(f"column {column.name!r} has no value in any row: leave it out ('drop')")
    if found not in _KINDS:
        raise DataError(f"column {column.name!r} must hold numbers, true/false or text only (got {found} values)")
    return _KINDS[found]


@dataclass(frozen=True)
class NumberColumn:
    """A number x becomes `(x - shift) / scale`; true and false become 1 and 0.

    A missing one becomes `fill`, on the new scale (None: it is an error), and has 1 in the column
    "x is missing" if there is an `indicator`.
    """

    column: str
    shift: float
    scale: float
    fill: float | None
    indicator: bool

    @classmethod
    def fit(cls, column: "pd.Series[Any]", scale: FeatureScale, missing: Missing) -> "NumberColumn":
        """Take shift and scale from the values that are there."""
        values = finite_numbers(column)
        present = values[~np.isnan(values)]
        shift, divisor = 0.0, 1.0
        low, high = float(present.min()), float(present.max())
        if scale == "minmax" and low < high:
            shift, divisor = low / 2 + high / 2, high / 2 - low / 2
        elif scale == "standard" and low < high:
            shift, divisor = float(present.mean()), float(present.std())
        fill = None if missing in {"error", "drop"} else (float(present.mean()) - shift) / divisor
        return cls(str(column.name), shift, divisor, fill, missing == "indicator" and len(present) < len(values))

    @property
    def names(self) -> list[str]:
        """The names of the encoded columns."""
        return [self.column, *_indicator_name(self)]

    def encode(self, column: "pd.Series[Any]", *, allow_unknown: bool = False) -> NDArray[np.float64]:
        """Return the encoded columns, shape [N, 1] or [N, 2]; no number is unknown."""
        values = finite_numbers(column)
        missing = np.isnan(values)
        _check_missing(column, self.fill)
        encoded = np.where(missing, self.fill or 0.0, (values - self.shift) / self.scale)
        return np.column_stack([encoded, missing] if self.indicator else [encoded])


@dataclass(frozen=True)
class CategoryColumn:
    """A category becomes one column of 0 and 1 per level.

    A missing one becomes `fill`, one number per level (None: it is an error), and has 1 in the column
    "x is missing" if there is an `indicator`.
    """

    column: str
    levels: list[str]
    fill: list[float] | None
    indicator: bool

    @classmethod
    def fit(cls, column: "pd.Series[Any]", max_levels: int, missing: Missing) -> "CategoryColumn":
        """Take the levels, and for filling in their frequencies, from the values that are there."""
        levels = distinct_names(column, max_levels)
        codes = codes_among(column, levels)
        present = codes[codes != MISSING]
        frequencies: list[float] = (np.bincount(present) / len(present)).tolist()
        fill = None if missing in {"error", "drop"} else frequencies
        return cls(str(column.name), levels, fill, missing == "indicator" and len(present) < len(codes))

    @property
    def names(self) -> list[str]:
        """The names of the encoded columns."""
        return [*(f"{self.column}={level}" for level in self.levels), *_indicator_name(self)]

    def encode(self, column: "pd.Series[Any]", *, allow_unknown: bool = False) -> NDArray[np.float64]:
        """Return the encoded columns, shape [N, levels] or [N, levels + 1].

        A level the encoding does not know is an error, or all zeros with `allow_unknown`.
        """
        _check_missing(column, self.fill)
        codes = codes_among(column, self.levels, allow_unknown=allow_unknown)
        encoded = (codes[:, None] == np.arange(len(self.levels))).astype(np.float64)
        missing = codes == MISSING
        encoded[missing] = self.fill or 0.0
        return np.column_stack([encoded, missing]) if self.indicator else encoded


EncodedColumn = NumberColumn | CategoryColumn


def fit_column(column: "pd.Series[Any]", *, scale: FeatureScale, missing: Missing, max_levels: int) -> EncodedColumn:
    """Choose by its type how a column is encoded: numbers are scaled, true/false and categories are not."""
    kind = kind_of(column)
    if missing in {"error", "drop"}:
        _check_missing(column, None)
    if kind == "category":
        return CategoryColumn.fit(column, max_levels, missing)
    return NumberColumn.fit(column, scale if kind == "number" else "none", missing)


def column_to_dict(encoded: EncodedColumn) -> dict[str, Any]:
    """Return what `column_from_dict` needs, in JSON's types."""
    return {"kind": "number" if isinstance(encoded, NumberColumn) else "category"} | asdict(encoded)


def column_from_dict(stored: dict[str, Any]) -> EncodedColumn:
    """Return the column that `column_to_dict` stored."""
    settings = {key: value for key, value in stored.items() if key != "kind"}
    return NumberColumn(**settings) if stored["kind"] == "number" else CategoryColumn(**settings)


def _pandas_type(column: "pd.Series[Any]") -> str:
    """Return pandas' name for what a column holds; dates and times are refused."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "categorical"
    found: str = pd.api.types.infer_dtype(column, skipna=True)
    if found in _DATES:
        raise DataError(
            f"column {column.name!r} holds dates or times, which are no features by themselves: "
            f"turn it into numbers (such as an age in days) or leave it out ('drop')"
        )
    return found


def _indicator_name(encoded: EncodedColumn) -> list[str]:
    return [f"{encoded.column} is missing"] if encoded.indicator else []


def _check_missing(column: "pd.Series[Any]", fill: float | list[float] | None) -> None:
    if fill is None and column.isna().any():
        raise DataError(
            f"column {column.name!r} has missing values ({first_missing(column)}): fix the table, "
            f"or choose missing='drop', 'mean' or 'indicator'"
        )


def finite_numbers(column: "pd.Series[Any]") -> NDArray[np.float64]:
    """Return a column as numbers, NaN where a value is missing."""
    found = _pandas_type(column)
    try:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(f"column {column.name!r} must hold numbers (got {found} values)") from error
    if np.isinf(values).any():
        raise DataError(
            f"column {column.name!r} must be finite (got {np.isinf(values).sum()} infinite values, "
            f"first in row {np.argmax(np.isinf(values))})"
        )
    return values
