"""What a column contains is recognised from its name and its values."""

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairpass.datasets.column_kinds import Recognised, recognise
from fairpass.datasets.column_reading import Reading
from fairpass.datasets.table_inspection import ColumnContent


def of(values: Any, name: str = "x", **options: Any) -> Recognised:
    return recognise(pd.Series(values, name=name), **options)


def numbers(values: Any) -> list[float]:
    column = pd.Series(values, name="x")
    reading = recognise(column).reading
    assert reading is not None
    found: list[float] = reading.read(column).values.tolist()
    return found


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], "number"),
        ([0.5, None], "number"),
        (["1,5", "2,75"], "number"),
        (["1", "2", "3"], "number"),
        ([0, 1, 1], "number"),
        (["0", "1"], "number"),
        (pd.to_timedelta([1, 2], unit="D"), "number"),
        (["$5", "$1,200.50", None], "money"),
        (["12 %", "5%"], "percent"),
        (["2020-01-01", "2021-05-05"], "date"),
        (pd.date_range("2020-01-01", periods=3), "date"),
        (pd.date_range("2020-01-01", periods=3, tz="Europe/Berlin"), "date"),
        (list(pd.date_range("2020-01-01", periods=3).date), "date"),
        (pd.period_range("2020-01", periods=3, freq="M"), "date"),
        ([True, False, None], "flag"),
        (["yes", "No", "Y"], "flag"),
        (["t", "f"], "flag"),
        (["ja", "nein"], "flag"),
        (["oui", "non"], "flag"),
        (["yes", "yes", None], "category"),
        (["M", "F", "m"], "category"),
        (["a", "b", "a"], "category"),
        (pd.Series(["1", "2"], dtype="category"), "category"),
        (["10:30", "11:40"], "category"),
        (["1", "2", "x"] * 10, "category"),
        (["02134", "10001"], "code"),
        ([f"t{i}" for i in range(30)], "text"),
        ([f"t{i % 60}" for i in range(1000)], "target"),
        ([f"t{i % 60}" for i in range(100)], "text"),
        ([1, "a"], "mixed"),
        ([None, None], "empty"),
    ],
)
def test_kinds(values: Any, kind: str) -> None:
    assert of(values).kind == kind


@pytest.mark.parametrize("name", ["zip", "ZipCode", "postal_code", "DeptID", "plz"])
def test_codes_by_name(name: str) -> None:
    values = [2134, 10001, 300] * 5
    assert of(values, name).kind == "code"
    assert of([str(value) for value in values], name).kind == "code"
    assert "a category, not a number" in of(values, name).note
    assert of(values, "amount_paid").kind == "number"
    assert of([0, 1] * 5, name).kind == "number"  # two values: no matter
    assert of(range(15), name).kind == "number"  # nothing repeats
    assert of([2134.5, 10001, 300] * 5, name).kind == "number"
    assert of([i % 60 for i in range(1000)], name).kind == "target"


def test_words_for_missing_values() -> None:
    values = ["1,5", "?", "N/A", "2,5", "-", " "]
    assert numbers(values)[0] == 1.5
    assert np.isnan(numbers(values)).tolist() == [False, True, True, False, True, True]
    assert of(values).note == "'?', 'N/A', '-', '' counts as missing (4 rows)"
    assert of(["yes", "no", "?"]).kind == "flag"
    assert of(["2020-01-01", "unknown"]).kind == "date"
    assert of(["red", "?", "blue"]) == Recognised("category")  # a word like any other


def test_a_few_values_of_another_kind() -> None:
    values = [str(i) for i in range(100)] + ["many"]
    assert of(values).kind == "number"
    assert of(values).note == "values that are not numbers count as missing: 'many'"
    assert np.isnan(numbers(values)[-1])
    assert of(values).unread == 1
    assert ColumnContent.of(pd.Series(values, name="x")).rule is None  # `fairpass init` would stop at 'many'
    assert ColumnContent.of(pd.Series(values[:-1], name="x")).rule == "number"
    days = pd.date_range("2020-01-01", periods=100).strftime("%d.%m.%Y").tolist()
    assert of([*days, "soon"]).note == "values that are not dates before 2200 count as missing: 'soon'"


@pytest.mark.parametrize("kind", ["text", "date", "datetime64[s]"])
def test_dates_far_in_the_future(kind: str) -> None:
    days = [date(2020, 1, 1), date(9999, 12, 31), date(1600, 2, 29)]  # "never" is every third day
    values = days if kind == "date" else [str(day) for day in days]
    column = pd.Series(np.array(values, dtype=kind) if kind == "datetime64[s]" else values, name="x")
    found = recognise(column)
    assert (found.kind, found.unread) == ("date", 1)
    assert found.note.startswith("values that are not dates before 2200 count as missing: '9999-12-31")
    assert found.reading is not None
    numbers, unread = found.reading.read(column)
    assert unread.tolist() == [False, True, False]
    assert np.isnan(numbers).tolist() == unread.tolist()
    assert numbers[~unread].tolist() == [18262, -135081]
    assert ColumnContent.of(column).rule is None  # `fairpass init` would stop at 9999-12-31


def test_sparse_columns() -> None:
    dummies = pd.get_dummies(pd.Series(["a", "b"] * 20), sparse=True)
    assert recognise(dummies["a"]).kind == "flag"


def test_doubts_are_said() -> None:
    assert "day and month could be swapped: it is read with the month first" in of(["1/2/2020", "3/4/2020"]).note
    assert "'53,235' is read as 53235" in of(["53,235", "7"]).note
    assert "several currencies ($, eur)" in of(["$5", "5 EUR"]).note
    assert "values without a percent sign are percentages" in of(["5 %", "7"]).note
    assert of(["53.235", "7"], usual_decimal=",").reading == Reading(decimal=",")


def test_values() -> None:
    assert numbers(["Yes", "NO", "y"]) == [1, 0, 1]
    assert numbers(["12 %", "50%"]) == [0.12, 0.5]
    assert numbers(pd.to_timedelta([1, 36], unit="h")) == [1 / 24, 1.5]
    assert numbers(["1970-01-02", "1970-01-01 12:00"]) == [1, 0.5]
    assert numbers(list(pd.to_datetime(["1970-01-02", "1970-01-03"]).date)) == [1, 2]
    assert numbers(pd.to_datetime(["1970-01-02 01:00"]).tz_localize("Europe/Berlin")) == [1]


def test_all_values_decide() -> None:
    """Not only a sample of them."""
    usual = pd.date_range("1990-01-01", periods=5000).strftime("%m/%d/%Y")
    swapped = [day for day in usual if int(day[3:5]) <= 12]
    assert "swapped" in of(swapped).note
    assert of([*swapped, "12/31/2020"]).note == ""
    assert of([*map(str, range(3000)), *(f"x{i}" for i in range(300))]).kind == "text"
