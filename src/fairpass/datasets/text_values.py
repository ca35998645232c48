"""Amounts, dates and flags as people write them, read from text.

All functions take distinct texts without surrounding space and work on all of them at once.
"""

import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairpass.datasets.column_rules import DecimalMark
from fairpass.datasets.graph import Bools, Column, Floats

# In a column of numbers, amounts or dates, these count as missing; in lower case.
MISSING_SPELLINGS = frozenset(
    ("", "?", "-", "--", "---", ".", "n/a", "#n/a", "na", "n.a.", "nan", "null", "none", "unknown", "missing")
)

_TRUE = "yes y true t 1 1.0 on ja j wahr oui o vrai si sí sì sim tak evet"
_FALSE = "no n false f 0 0.0 off nein falsch non faux não nao nie nee nej hayır"
FLAG_WORDS: dict[str, bool] = {**dict.fromkeys(_TRUE.split(), True), **dict.fromkeys(_FALSE.split(), False)}

_CODES = (
    *("usd|eur|gbp|chf|jpy|cny|rmb|inr|cad|aud|nzd|sek|nok|dkk|pln|czk|huf|ron|bgn|try|rub|uah|brl|mxn|zar|krw|sgd",),
    *("hkd|thb|idr|php|ils|aed|sar|euros?|dollars?|kr|zł|kč|fr",),
)
_TELLING = 100  # texts that say whether a column has plain numbers
_SPACE = "[ '\u00a0\u202f’]"  # between thousands, or before a currency
# Without look-around, so that Arrow's regular expressions can do the work.
_CURRENCY = rf"(?:(?:us|c|a|nz|r|hk|s)?\$|[€£¥₹₽₺₩₪฿]|{'|'.join(_CODES)})\.?"
_BEFORE, _AFTER = rf"(?i)^([+-]?){_SPACE}*({_CURRENCY}){_SPACE}*", rf"(?i){_SPACE}*({_CURRENCY})$"


class Amounts(NamedTuple):
    """Numbers, NaN where a text is none, and what was around them."""

    values: Floats
    decimal: DecimalMark
    ambiguous: bool  # whether every mark could be a decimal mark, or stand between thousands
    currencies: list[str]
    percents: Bools


def read_amounts(texts: Column, decimal: DecimalMark | None = None, usual: DecimalMark | None = None) -> Amounts:
    """Read numbers such as "1,234.50", "$ 12", "1.234,50 EUR", "(1 200)" (negative), "12 %" and "−3".

    Without `decimal`, the mark follows from all texts. If it does not, it is `usual`; by default a point, except for
    money with three digits after each point.
    """
    texts = texts.astype("str")
    if (
        decimal != ","
        and (plain := _plain_numbers(texts)) is not None
        and (usual != "," or not _groups(texts, ".").all())
    ):
        return Amounts(plain, ".", False, [], np.zeros(len(texts), dtype=bool))
    percents = texts.str.endswith("%").to_numpy(bool)
    texts = texts.str.removesuffix("%").str.replace("−", "-", regex=False).str.strip()
    bracketed = texts.str.contains(r"^\(.*\)$").to_numpy(bool)
    texts = texts.str.replace(r"^\((.*)\)$", r"\1", regex=True)
    currencies = _currencies(texts)
    if currencies:
        texts = texts.str.replace(_BEFORE, r"\1", regex=True).str.replace(_AFTER, "", regex=True)
    minus = texts.str.contains(r"^-|-$").to_numpy(bool)
    texts = texts.str.replace(rf"^[+-]{_SPACE}*|-$", "", regex=True)
    mark, ambiguous = (decimal, False) if decimal is not None else _decimal_mark(texts, usual, money=bool(currencies))
    other, point = re.escape({".": ",", ",": "."}[mark]), re.escape(mark)
    between = rf"(?:{other}|{_SPACE})"
    whole = rf"(?:[0-9]{{1,3}}(?:{between}[0-9]{{2,3}})*{between}[0-9]{{3}}|[0-9]+)"
    valid = texts.str.contains(rf"^(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?$")
    digits = texts.str.replace(between, "", regex=True).str.replace(mark, ".", regex=False)
    values = pd.to_numeric(digits.where(valid), errors="coerce").to_numpy(np.float64)
    return Amounts(np.where(minus | bracketed, -values, values), mark, ambiguous, currencies, percents)


def _plain_numbers(texts: Column) -> Floats | None:
    """Return texts as numbers, None if one of them needs a closer look; mostly the first ones tell."""
    for some in (texts.head(_TELLING), texts):
        numbers = pd.to_numeric(some, errors="coerce").to_numpy(np.float64)
        if np.isnan(numbers).any():
            return None
    return np.asarray(numbers)


def _currencies(texts: Column) -> list[str]:
    """Return the currencies before or after numbers, in lower case."""
    around = texts.str.replace(r"[0-9.,]+", "0", regex=True).unique()  # few, unlike the amounts
    found = [match[match.lastindex or 0] for text in around for match in re.finditer(rf"{_BEFORE}|{_AFTER[4:]}", text)]
    return sorted({currency.lower() for currency in found if currency})


def _groups(texts: Column, mark: str) -> "pd.Series[bool]":
    """Return which texts could have this mark between thousands: "1.234"; or have none at all."""
    return texts.str.contains(rf"^[+-]?(?:[1-9][0-9]{{0,2}}{re.escape(mark)}[0-9]{{3}}|[0-9]+)$")


def _decimal_mark(texts: Column, usual: DecimalMark | None, *, money: bool) -> tuple[DecimalMark, bool]:
    """Return the decimal mark that most texts need, and whether none needs one."""
    commas, points = (texts.str.count(re.escape(mark)) for mark in (",", "."))
    last_is_comma = texts.str.contains(r",[^.,]*$")
    both = (commas > 0) & (points > 0)
    comma = (both & last_is_comma) | (points > 1) | ((commas == 1) & (points == 0) & ~_groups(texts, ","))
    point = (both & ~last_is_comma) | (commas > 1) | ((points == 1) & (commas == 0) & ~_groups(texts, "."))
    if comma.any() or point.any():
        return ("," if comma.sum() > point.sum() else "."), False
    if not (commas.any() or points.any()):
        return ".", False
    if usual is not None:
        return usual, True
    return ("," if money and points.any() and not commas.any() else "."), True


# Formats of days; each may be followed by a time. ISO is tried first.
ISO = "ISO8601"
_DAYS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d. %b %Y", "%b %d, %Y", "%b %d %Y"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S")
_LOOKS_LIKE_A_DATE = "|".join(
    (
        r"^[0-9]{4}-[0-9]{2}(?:-[0-9]{2})?(?:[^0-9]|$)",
        r"^[0-9]{1,4}[-/. ]\s?\w{1,9}[-/. ]\s?[0-9]{2,4}(?:[^0-9]|$)",
        r"^[A-Za-z]{3,9}\.? [0-9]{1,2},? [0-9]{4}",
    )
)
_SAMPLE = 200
# Years of two digits are those from 1930 to 2029, as in spreadsheets.
_TWO_DIGITS, _CENTURY = int(np.datetime64("2030-01-01", "D").astype(int)), 36_525
FAR = 2200  # a date from this year on, such as 9999-12-31, stands for "never"


class Dates(NamedTuple):
    """Days since 1970, NaN where a text is no date, and the format that reads them."""

    values: Floats
    format: str
    ambiguous: bool = False  # whether day and month could be swapped


def read_dates(texts: Column, format: str | None = None) -> Dates | None:
    """Read dates, with or without a time; without `format`, it is the one that fits most texts. None if none fits."""
    texts = texts.astype(object)
    if format is not None:
        return Dates(_parse(texts, format), format)
    sample = texts if len(texts) <= _SAMPLE else texts.sample(_SAMPLE, random_state=0)
    sample = sample[sample.str.contains(_LOOKS_LIKE_A_DATE, regex=True)]
    fitting = [format for format in (ISO, *_DAYS) if len(sample) and not np.isnan(_parse(sample, format)).all()]
    if not fitting:
        return None
    read = [Dates(_parse(texts, format), format) for format in fitting]
    counts = [np.count_nonzero(~np.isnan(each.values)) for each in read]
    best = [each for each, count in zip(read, counts, strict=True) if count == max(counts)]
    if len(best) == 1 or best[0].format == ISO:
        return best[0]
    # Day and month can be swapped. Dates are often the first of a month: the day is the part that varies less.
    days = [len(np.unique(_day_of_month(each.values))) for each in best]
    chosen = best[int(np.argmin(days))]
    if len(set(days)) == 1 and chosen.format.startswith("%d/"):  # the slash is American more often than not
        chosen = next((each for each in best if each.format.startswith("%m/")), chosen)
    return chosen._replace(ambiguous=True)


def _parse(texts: Column, format: str) -> Floats:
    """Return dates in a format, followed by any time unless the format has one, as days since 1970."""
    formats = [format] if format == ISO or "%H" in format or "%I" in format else [format + time for time in _TIMES]
    formats += [each.replace("%b", "%B") for each in formats if "%b" in each]  # short and long names of months
    values = np.full(len(texts), np.nan)
    texts = texts.where(texts.str.contains("[0-9]"), "")  # pandas knows "now" and "today"
    for each in formats:
        todo = np.isnan(values)
        if todo.any():
            values[todo] = days_since_1970(pd.to_datetime(texts[todo], format=each, errors="coerce", utc=True))
    if "%y" in format:
        late = values >= _TWO_DIGITS  # Python reads 68 as 2068
        values[late] -= _CENTURY
    return values


def days_since_1970(dates: Any) -> Floats:
    """Return datetimes as days with their fraction, NaN where there is none."""
    moments = pd.Series(dates).dt.tz_localize(None).to_numpy()
    days = (moments - np.datetime64(0, "D")) / np.timedelta64(1, "D")
    return np.where(np.isnat(moments), np.nan, days)


def without_far_dates(days: Floats) -> Floats:
    """Return days since 1970, NaN where they are far in the future: next to such a date, all others look the same."""
    return np.where(days >= np.datetime64(str(FAR), "D").astype(np.int64), np.nan, days)


def _day_of_month(days: Floats) -> Any:
    known = days[~np.isnan(days)].astype("datetime64[D]")
    return (known - known.astype("datetime64[M]")).astype(np.int64)
