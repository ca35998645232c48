"""Amounts and dates as people write them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpass.datasets.text_values import read_amounts, read_dates


def amounts(*texts: str, **options: Any) -> list[float]:
    values: list[float] = read_amounts(pd.Series(texts), **options).values.tolist()
    return values


def dates(*texts: str, **options: Any) -> list[str | None]:
    read = read_dates(pd.Series(texts), **options)
    assert read is not None
    return [None if np.isnan(day) else str(np.datetime64(int(day), "D")) for day in read.values]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["$53,235.21", "$1,200"], [53235.21, 1200]),
        (["1.234,50 EUR", "12 EUR"], [1234.5, 12]),
        (["€ 12", "€ 13,5"], [12, 13.5]),
        (["(1,200)", "5"], [-1200, 5]),
        (["($1,200.00)", "-$5", "$-6", "$ 7-"], [-1200, -5, -6, -7]),
        (["1 234,5", "−3"], [1234.5, -3]),
        (["1 234,5", "1\u202f234,25"], [1234.5, 1234.25]),
        (["CHF 1'200.50", "Fr. 5"], [1200.5, 5]),
        (["1.234.567", "12"], [1234567, 12]),
        (["1,00,000.5", "7"], [100000.5, 7]),
        (["R$ 1.000,00", "zł 5"], [1000, 5]),
        (["12 %", "0,5%"], [12, 0.5]),
        ([".5", "1e5", "+3"], [0.5, 100000, 3]),
        (["0,123", "1,500"], [0.123, 1.5]),
    ],
)
def test_amounts(texts: list[str], values: list[float]) -> None:
    assert amounts(*texts) == values


@pytest.mark.parametrize("text", ["abc", "1,2,3", "1.2.3", "12 months", "$", "", "1-2", "0x10", "12,34.56,78"])
def test_no_amounts(text: str) -> None:
    assert np.isnan(amounts(text, "5")[0])


def test_a_mark_that_could_be_either() -> None:
    assert amounts("53,235") == [53235]
    assert amounts("53.235") == [53.235]
    assert amounts("53.235", usual=",") == [53235]
    assert amounts("$1.234", "$2.000") == [1234, 2000]  # nobody writes three digits of a cent
    assert amounts("1.234", "2.5", decimal=",")[0] == 1234
    assert read_amounts(pd.Series(["53,235", "7"])).ambiguous
    assert not read_amounts(pd.Series(["53,235", "1,5"])).ambiguous


def test_currencies() -> None:
    assert read_amounts(pd.Series(["$5", "5 EUR", "7"])).currencies == ["$", "eur"]


@given(st.lists(st.integers(-(10**9), 10**9).map(lambda cents: cents / 100), min_size=1, unique=True))
def test_amounts_are_the_same_in_every_country(values: list[float]) -> None:
    values = [*values, 1234.56]  # tells the mark
    american = [f"{value:,.2f}" for value in values]
    swap = str.maketrans(",.", ".,")
    forms = {
        "american": american,
        "money": [f"${text}" for text in american],
        "german": [f"{text.translate(swap)} EUR" for text in american],
        "french": [text.translate(swap).replace(".", "\u202f") for text in american],
        "swiss": [text.replace(",", "'") for text in american],
        "accounting": [f"({text[1:]})" if text.startswith("-") else text for text in american],
    }
    for name, texts in forms.items():
        assert amounts(*texts) == values, name


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["2020-01-31", "2021-02-01"], ["2020-01-31", "2021-02-01"]),
        (["2020-01-31T23:59:00Z", "2021-02-01 10:00"], ["2020-01-31", "2021-02-01"]),
        (["31.01.2020", "1.2.2021"], ["2020-01-31", "2021-02-01"]),
        (["31.01.2020 10:15", "1.2.2021"], ["2020-01-31", "2021-02-01"]),
        (["7/5/2011", "1/31/2012"], ["2011-07-05", "2012-01-31"]),
        (["31/1/2012", "1/2/2012"], ["2012-01-31", "2012-02-01"]),
        (["1/22/2020 5:30 PM", "1/2/2020 5:30 AM"], ["2020-01-22", "2020-01-02"]),
        (["1/31/12", "2/1/12"], ["2012-01-31", "2012-02-01"]),
        (["5/31/68", "5/30/29", "5/30/30"], ["1968-05-31", "2029-05-30", "1930-05-30"]),
        (["5 Mar 2020", "6 April 2020"], ["2020-03-05", "2020-04-06"]),
        (["Mar 5, 2020", "March 6, 2020"], ["2020-03-05", "2020-03-06"]),
        (["2020-03", "2020-04"], ["2020-03-01", "2020-04-01"]),
        (["2020-01-01", "9999-12-31", "soon"], ["2020-01-01", "9999-12-31", None]),
    ],
)
def test_dates(texts: list[str], days: list[str | None]) -> None:
    assert dates(*texts) == days


@pytest.mark.parametrize("texts", [["abc", "def"], ["12-34-56", "99"], ["10:30", "11:40"], ["v1.2", "v1.3"]])
def test_no_dates(texts: list[str]) -> None:
    assert read_dates(pd.Series(texts)) is None


def test_swapped_day_and_month() -> None:
    read = read_dates(pd.Series(["1/2/2020", "3/4/2020"]))
    assert read is not None
    assert (read.format, read.ambiguous) == ("%m/%d/%Y", True)
    # The first of several months, in either order.
    assert dates("01/03/2020", "01/06/2020") == ["2020-03-01", "2020-06-01"]
    assert dates("03/01/2020", "06/01/2020") == ["2020-03-01", "2020-06-01"]


@given(
    st.lists(st.dates(), min_size=1, max_size=20, unique=True), st.sampled_from(["%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d"])
)
def test_dates_come_back(days: list[Any], format: str) -> None:
    days = [day.replace(year=1900 + day.year % 200) for day in days if (day.month, day.day) != (2, 29)]
    texts = [day.strftime(format) for day in [*days, pd.Timestamp("2001-12-31")]]
    assert dates(*texts) == [*(day.isoformat() for day in days), "2001-12-31"]
