"""What a column contains: recognised from its name and its values."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fairpass.datasets.column_names import words_of
from fairpass.datasets.column_reading import Reading, content_type, distinct_texts, is_missing_word, typed_numbers
from fairpass.datasets.column_rules import DecimalMark
from fairpass.datasets.graph import Column, Floats, listed
from fairpass.datasets.text_values import FAR, FLAG_WORDS, read_amounts, read_dates, without_far_dates

ColumnKind = Literal[
    "number", "money", "percent", "date", "flag", "category", "code", "target", "text", "empty", "mixed"
]  # fmt: skip

MAX_LEVELS = 50  # the default of `max_levels`
# A column is of a kind if this share of its distinct values is; the others count as missing.
_ALMOST_ALL = 0.95
# Texts of which so many differ are free text.
_DIFFERENT, _MANY = 0.9, 10
# Values repeat if there are at most half as many as rows.
_REPEATED = 0.5
_DATES = f"dates before {FAR}"
# Distinct values that decide whether it is worth looking at all.
_SAMPLE = 1000
_CODE_WORDS = {
    *("zip", "zipcode", "postcode", "postal", "postalcode", "plz", "postleitzahl", "code", "codes", "fips"),
    *("naics", "sic", "isco", "icd", "id"),
}


@dataclass(frozen=True)
class Recognised:
    """What a column contains.

    A "code" is a category of digits; "target" has more values than `max_levels`, which repeat; "text" is free text, and
    left out. `note` says what a user should know, "" if there is nothing.
    """

    kind: ColumnKind
    note: str = ""
    reading: Reading | None = None  # of a column that becomes numbers
    unread: int = 0  # distinct values that the reading cannot read; a rule would refuse them


def recognise(column: Column, *, max_levels: int = MAX_LEVELS, usual_decimal: DecimalMark | None = None) -> Recognised:
    """Return what a column contains.

    Args:
        column: A column of any type, with the column's name.
        max_levels: The largest number of values of a category with a feature for each.
        usual_decimal: The decimal mark of numbers that could have either, such as 1.234; by default a point.
    """
    content = content_type(column)
    if content == "mixed":
        return Recognised("mixed", "it has values of several types")
    if column.isna().all():
        return Recognised("empty", "no row has a value")
    if content == "category":
        return _by_levels(column, int(column.nunique()), max_levels)
    if content == "text":
        return _Texts(column).recognise(max_levels, usual_decimal)
    if content == "number" and (code := _code_by_name(column, typed_numbers(column))):
        return _by_levels(column, int(column.nunique()), max_levels, code=code)
    reading = Reading(kind=content)  # type: ignore[arg-type] # not text
    return _dates(column, reading) if content == "date" else Recognised(content, "", reading)


def _dates(column: Column, reading: Reading) -> Recognised:
    unread = column[reading.read(column).unread].drop_duplicates().map(str)
    return Recognised("date", _note_on_unread(unread, _DATES), reading, len(unread))


class _Texts:
    """The distinct texts of a column, and which of them are words for a missing value."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.codes, self.texts = distinct_texts(column)
        self.missing = is_missing_word(self.texts)
        self.present = self.texts[~self.missing]

    def recognise(self, max_levels: int, usual_decimal: DecimalMark | None) -> Recognised:
        if self.present.empty:
            return _by_levels(self.column, len(self.texts), max_levels)
        if self.present.str.contains(r"^\d+$").all() and self.present.str.contains(r"^0\d").any():
            return _by_levels(self.column, len(self.texts), max_levels, code="its values are digits that begin with 0")
        return (
            self._flags()
            or self._amounts(max_levels, usual_decimal)
            or self._dates()
            or _by_levels(self.column, len(self.texts), max_levels)
        )

    def _flags(self) -> Recognised | None:
        words = set(self.present.str.lower()) if len(self.present) <= 2 * len(FLAG_WORDS) else {""}
        if words <= FLAG_WORDS.keys() and len({FLAG_WORDS[word] for word in words}) == 2 and not words <= {"0", "1"}:
            return Recognised("flag", self._note_on_missing(), Reading(kind="flag"))
        return None

    def _amounts(self, max_levels: int, usual: DecimalMark | None) -> Recognised | None:
        if not _fits(read_amounts(_sample(self.present), usual=usual).values):
            return None
        amounts = read_amounts(self.present, usual=usual)
        if not _fits(amounts.values):
            return None
        plain = not amounts.currencies and not amounts.percents.any()
        rows = int(self.column.notna().sum())
        if plain and (code := _code_by_name(self.column, amounts.values, rows=rows)):
            return _by_levels(self.column, len(self.texts), max_levels, code=code)
        reading = Reading(
            kind="number" if plain else "money" if amounts.currencies else "percent", decimal=amounts.decimal
        )
        unread = self.present[np.isnan(amounts.values)]
        notes = [self._note_on_missing(), _note_on_unread(unread, "numbers")]
        if amounts.ambiguous:
            marked = self.present.str.contains(r"[.,]").to_numpy(dtype=bool)
            example = f"{self.present[marked].iloc[0]!r} is read as {amounts.values[marked][0]:g}"
            notes.append(f"{example}, although its mark could be the other one ('decimal')")
        if len(amounts.currencies) > 1:
            notes.append(f"it has several currencies ({', '.join(amounts.currencies)}), which are not converted")
        if reading.kind == "percent" and not amounts.percents.all():
            notes.append("values without a percent sign are percentages, too")
        return Recognised(reading.kind, _joined(notes), reading, len(unread))

    def _dates(self) -> Recognised | None:
        dates = read_dates(_sample(self.present))
        if dates is None or not _fits(dates.values):
            return None
        if len(self.present) > _SAMPLE:
            dates = read_dates(self.present)
        if dates is None or not _fits(dates.values):
            return None
        unread = self.present[np.isnan(without_far_dates(dates.values))]
        notes = [self._note_on_missing(), _note_on_unread(unread, _DATES)]
        if dates.ambiguous:
            order = "month" if dates.format.startswith("%m") else "day"
            notes.append(f"day and month could be swapped: it is read with the {order} first ('format')")
        reading = Reading(kind="date", format=dates.format)
        return Recognised("date", _joined(notes), reading, len(unread))

    def _note_on_missing(self) -> str:
        rows = np.append(self.missing, False)[self.codes].sum()
        return f"{listed(self.texts[self.missing])} counts as missing ({rows:,} rows)" if rows else ""


def _note_on_unread(unread: Column, what: str) -> str:
    return f"values that are not {what} count as missing: {listed(unread)}" if len(unread) else ""


def _by_levels(column: Column, distinct: int, max_levels: int, *, code: str = "") -> Recognised:
    """Return how a column of texts or codes is encoded, by how often its values repeat."""
    rows = int(column.notna().sum())
    if not code and distinct > _MANY and distinct >= _DIFFERENT * rows:
        return Recognised("text", f"{distinct:,} of {rows:,} values differ: free text, it is left out")
    if distinct <= max_levels:
        return Recognised("code", f"{code}: a category, not a number") if code else Recognised("category")
    if distinct > _REPEATED * rows:
        return Recognised("text", f"{distinct:,} of {rows:,} values differ, too many for a category: it is left out")
    why = f"{code}, and it has" if code else "it has"
    many = f"{distinct:,} values, more than 'max_levels' = {max_levels}"
    return Recognised("target", f"{why} {many}: a value becomes the share of each label among its training nodes")


def _code_by_name(column: Column, values: Floats, rows: int | None = None) -> str:
    """Return why whole numbers are codes, "" if they are not: by the column's name, if values repeat."""
    if _CODE_WORDS.isdisjoint(words_of(str(column.name))):
        return ""
    present = values[~np.isnan(values)]
    whole = bool(((present == np.floor(present)) & (present >= 0)).all())
    repeated = 2 < len(np.unique(present)) <= _REPEATED * (rows or len(present))
    return "its name is that of a code" if whole and repeated else ""


def _sample(texts: Column) -> Column:
    return texts if len(texts) <= _SAMPLE else texts.sample(_SAMPLE, random_state=0)


def _fits(values: Floats) -> Any:
    return np.isnan(values).sum() <= (1 - _ALMOST_ALL) * len(values)


def _joined(notes: list[str]) -> str:
    return "; ".join(filter(None, notes))
