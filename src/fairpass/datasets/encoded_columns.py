"""One column as columns of numbers, in a way that is stored and applied to the next table."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fairpass.datasets.column_encoding import UNKNOWN, codes_among
from fairpass.datasets.column_reading import NumberKind, Reading, first_of
from fairpass.datasets.column_rules import Frozen
from fairpass.datasets.graph import MISSING, Bools, Column, Floats, Ints, first_missing
from fairpass.datasets.options import FeatureScale
from fairpass.errors import DataError

OTHER_LEVELS = "other levels"
_DAYS_PER_YEAR = 365.25
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# A mean is said to have shifted if it did by this many standard deviations, and by this many standard errors.
_SHIFTED, _CERTAIN = 0.5, 5.0

_LARGEST = 1e100  # the squares of larger numbers overflow, and with them mean and variance


@dataclass(frozen=True)
class Difference:
    """How a column of a new table differs from the fitted one; `note` is the same in words."""

    column: str
    kind: Literal["outside", "shifted", "unseen", "unreadable", "absent"]
    rows: int
    example: str
    note: str


class Encoded(NamedTuple):
    """The features of a column, shape [N, number of names], and how it differs from the fitted one."""

    features: Floats
    differences: list[Difference]


class Seen(Frozen):
    """Range, mean and standard deviation of the fitted numbers."""

    low: float
    high: float
    mean: float
    std: float

    @classmethod
    def of(cls, values: Floats) -> "Seen":
        return cls(low=values.min(), high=values.max(), mean=values.mean(), std=values.std())


class ColumnEncoding(Frozen):
    """What all encoded columns have: a missing value becomes `fill`, on the new scale (None: an error).

    With `indicator`, a column "x is missing" says where.
    """

    column: str
    fill: list[float] | None
    indicator: bool

    @property
    def own_names(self) -> list[str]:
        raise NotImplementedError

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [*self.own_names, f"{self.column} is missing"] if self.indicator else self.own_names

    @property
    def stays_text(self) -> bool:
        """Whether the column of a CSV file must not be read as numbers, because they would be others."""
        return False

    def absent(self, rows: int) -> Encoded:
        """Return the features for a table without this column, as if all of its values were missing."""
        if self.fill is None:
            raise DataError(f"'nodes' has no column {self.column!r}, and missing values are not filled in")
        note = f"column {self.column!r} is not in the table: it is filled in"
        difference = Difference(self.column, "absent", rows, "", note)
        features = np.tile([*self.fill, 1.0] if self.indicator else self.fill, (rows, 1))
        return Encoded(features, [difference])

    def filled_in(self, column: Column, features: Floats, missing: Bools) -> Floats:
        if missing.any():
            if self.fill is None:
                check_complete(column, missing)
            features[missing] = self.fill
        return np.column_stack([features, missing]) if self.indicator else features


class NumberColumn(ColumnEncoding):
    """A number x becomes `(x - shift) / scale`; of a date, x are the years before `reference`, in days since 1970."""

    kind: NumberKind
    shift: float = 0.0
    scale: float = 1.0
    decimal: Literal[".", ","] = "."
    format: str | None = None
    reference: float | None = None
    weekday: bool = False
    seen: Seen | None = None

    @classmethod
    def fit(
        cls,
        column: Column,
        numbers: Floats,
        reading: Reading,
        scale: FeatureScale,
        *,
        filled: bool,
        indicator: bool,
        weekday: bool,
    ) -> "NumberColumn":
        """Take shift and scale from the values that are not missing; `numbers` are those of the column, as read."""
        missing = np.isnan(numbers)
        if not filled:
            check_complete(column, missing)
        reference = float(numbers[~missing].max()) if reading.kind == "date" else None
        values = numbers if reference is None else (reference - numbers) / _DAYS_PER_YEAR
        present = values[~missing]
        shift, divisor = shift_and_scale(present, "none" if reading.kind == "flag" else scale)
        days = (_weekdays(numbers[~missing]).mean(axis=0).tolist()) if weekday else []
        return cls(
            **reading.model_dump(),
            column=str(column.name),
            fill=[(float(present.mean()) - shift) / divisor, *days] if filled else None,
            indicator=indicator and bool(missing.any()),
            shift=shift,
            scale=divisor,
            reference=reference,
            weekday=weekday,
            seen=Seen.of(present),
        )

    @property
    def reading(self) -> Reading:
        return Reading(kind=self.kind, decimal=self.decimal, format=self.format)

    @property
    def stays_text(self) -> bool:
        return self.decimal == ","

    @property
    def own_names(self) -> list[str]:
        if self.reference is None:
            return [self.column]
        last = np.datetime64(int(self.reference), "D")
        days = [f"{self.column} on a {day}" for day in _WEEKDAYS] if self.weekday else []
        return [f"{self.column}, years before {last}", *days]

    def encode(self, column: Column, *, allow_unknown: bool) -> Encoded:
        numbers = self.reading.read(column)
        differences = []
        if numbers.unread.any():
            example = first_of(column, numbers.unread)
            if self.fill is None:
                raise DataError(f"column {self.column!r} has a value that cannot be read as {self.kind}: {example}")
            rows = int(numbers.unread.sum())
            note = f"column {self.column!r}: values that cannot be read as {self.kind}, and count as missing: {rows:,}"
            differences.append(Difference(self.column, "unreadable", rows, example, f"{note}, first {example}"))
        values = numbers.values if self.reference is None else (self.reference - numbers.values) / _DAYS_PER_YEAR
        check_finite(column, values)
        differences += self._shift_of(column, values)
        features = (values[:, None] - self.shift) / self.scale
        missing = np.isnan(values)
        if self.weekday:
            features = np.column_stack([features, _weekdays(np.where(missing, 0.0, numbers.values))])
        return Encoded(self.filled_in(column, features, missing), differences)

    def _shift_of(self, column: Column, values: Floats) -> list[Difference]:
        present = values[~np.isnan(values)]
        if self.seen is None or not len(present):
            return []
        found, seen = [], self.seen
        outside = (values < seen.low) | (values > seen.high)
        if outside.any():
            rows, example = int(outside.sum()), first_of(column, outside)
            fitted = f"the fitted range, {seen.low:.6g} to {seen.high:.6g}"
            if self.reference is not None:
                fitted = f"the fitted dates, {self._date(seen.high)} to {self._date(seen.low)}"
            note = f"column {self.column!r}: values outside {fitted}: {rows:,}, first {example}"
            found.append(Difference(self.column, "outside", rows, example, note))
        if seen.std > 0:
            # Values outside the range are reported above; one of them alone must not move the mean.
            moved = (float(present.clip(seen.low, seen.high).mean()) - seen.mean) / seen.std
            if abs(moved) > _SHIFTED and abs(moved) * np.sqrt(len(present)) > _CERTAIN:
                note = f"column {self.column!r}: the mean moved by {moved:+.1f} standard deviations since the fit"
                found.append(Difference(self.column, "shifted", len(present), f"{moved:+.1f}", note))
        return found

    def _date(self, years: float) -> str:
        return str(np.datetime64(round((self.reference or 0) - years * _DAYS_PER_YEAR), "D"))


class LevelsColumn(ColumnEncoding):
    """A column whose values are among known levels."""

    levels: list[str]
    spellings: dict[str, str] | None = None
    of_numbers: bool = False

    @property
    def stays_text(self) -> bool:
        return not self.of_numbers

    def codes(self, column: Column, allow_unknown: bool, become: str) -> tuple[Ints, list[Difference]]:
        codes = codes_among(column, self.levels, spellings=self.spellings, allow_unknown=allow_unknown)
        unseen = codes == UNKNOWN
        if not unseen.any():
            return codes, []
        rows, example = int(unseen.sum()), first_of(column, unseen)
        note = f"column {self.column!r}: values that the fitted table does not have, which {become}: {rows:,}"
        return codes, [Difference(self.column, "unseen", rows, example, f"{note}, first {example}")]


class CategoryColumn(LevelsColumn):
    """A column of 0 and 1 per level; with the kind "rare", one more for all other levels."""

    kind: Literal["category", "rare"]

    @property
    def own_names(self) -> list[str]:
        others = [OTHER_LEVELS] if self.kind == "rare" else []
        return [f"{self.column}={level}" for level in [*self.levels, *others]]

    def encode(self, column: Column, *, allow_unknown: bool) -> Encoded:
        become = f"become {OTHER_LEVELS!r}" if self.kind == "rare" else "become zeros"
        codes, differences = self.codes(column, allow_unknown, become)
        return Encoded(self.filled_in(column, self.one_hot(codes), codes == MISSING), differences)

    def one_hot(self, codes: Ints) -> Floats:
        return np.asarray(self._places(codes)[:, None] == np.arange(len(self.own_names)), dtype=np.float64)

    def shares(self, codes: Ints) -> Floats:
        """Return the mean of each column of 0 and 1, without making them."""
        return np.bincount(self._places(codes), minlength=len(self.own_names)) / len(codes)

    def _places(self, codes: Ints) -> Ints:
        return np.where(codes == UNKNOWN, len(self.levels), codes) if self.kind == "rare" else codes


def finite_numbers(column: Column, reading: Reading | None = None) -> Floats:
    """Return a column as numbers, NaN where a value is missing or cannot be read."""
    values = (reading or Reading()).read(column).values
    check_finite(column, values)
    return values


def check_finite(column: Column, values: Floats) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        where = f"{infinite.sum()} infinite values, first in row {np.argmax(infinite)}"
        raise DataError(f"column {column.name!r} must be finite (got {where})")
    large = np.abs(values) > _LARGEST
    if large.any():
        row = int(np.argmax(large))
        got = f"got {values[row]:g} in row {row}"
        raise DataError(f"column {column.name!r} has numbers too large for 32-bit features ({got})")


def check_complete(column: Column, missing: Bools) -> None:
    if missing.any():
        where = first_missing(column.mask(missing))
        unread = missing & column.notna().to_numpy()
        such = f", such as {first_of(column, unread)}" if unread.any() else ""
        raise DataError(
            f"column {column.name!r} has missing values ({where}){such}: fix the table, "
            f"or choose missing='drop', 'mean' or 'indicator'"
        )


def shift_and_scale(present: Floats, scale: FeatureScale) -> tuple[float, float]:
    """Return what to subtract from numbers, and what to divide them by."""
    low, high = float(present.min()), float(present.max())
    if scale == "minmax" and low < high:
        return low / 2 + high / 2, high / 2 - low / 2
    if scale == "standard" and low < high:
        return float(present.mean()), float(present.std())
    return 0.0, 1.0


def _weekdays(days: Floats) -> Floats:
    """Return a column of 0 and 1 per day of the week; day 0 was a Thursday."""
    return np.asarray((np.floor(days)[:, None] + 3) % 7 == np.arange(7), dtype=np.float64)
