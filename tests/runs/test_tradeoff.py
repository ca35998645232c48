"""The sentence is true, whichever way the numbers go."""

import math

import pytest

from fairpass.runs import Row, tradeoff
from fairpass.runs.summary import METRICS


def row(method: str, *percent: float, std: float = 0.5) -> Row:
    mean = dict(zip(METRICS, percent, strict=False))
    return Row(method, (0, 1), 0, mean, dict.fromkeys(mean, std), {}, 1.0, ())


PLAIN = row("gcn", 64, 70, 62, 20, 15)


@pytest.mark.parametrize(
    ("fair", "sentence"),
    [
        (
            row("gmmd", 63, 70, 60.5, 5, 3),
            "gmmd lowers ΔDP from 20.0 to 5.0 and ΔEO from 15.0 to 3.0, at a cost of 1.5 points of "
            "accuracy (ACC 62.0 to 60.5, AUC 64.0 to 63.0)",
        ),
        (
            row("gmmd", 66, 70, 62, 5, 15),
            "gmmd lowers ΔDP from 20.0 to 5.0 but leaves ΔEO at 15.0, at no cost in accuracy "
            "(ACC 62.0 to 62.0, AUC 64.0 to 66.0)",
        ),
        (
            row("gmmd", 66, 70, 63, 21, 10),
            "gmmd raises ΔDP from 20.0 to 21.0 but lowers ΔEO from 15.0 to 10.0, at no cost in "
            "accuracy (ACC 62.0 to 63.0, AUC 64.0 to 66.0)",
        ),
        (
            row("gmmd", 66, 70, 60, 21, 16),
            "gmmd gains no fairness: it raises ΔDP from 20.0 to 21.0 and ΔEO from 15.0 to 16.0, at a "
            "cost of 2.0 points of accuracy (ACC 62.0 to 60.0, AUC 64.0 to 66.0)",
        ),
        (
            row("gmmd", 66, 70, 62, 19, 14, std=3),
            "gmmd lowers ΔDP from 20.0 to 19.0 and ΔEO from 15.0 to 14.0 (less than the deviation "
            "between runs), at no cost in accuracy (ACC 62.0 to 62.0, AUC 64.0 to 66.0)",
        ),
        (row("gmmd"), "gmmd has no result"),
    ],
)
def test_sentence(fair: Row, sentence: str) -> None:
    assert tradeoff(PLAIN, fair) == f"Against gcn, {sentence}."


def test_one_run_leaves_no_room_for_doubt_or_certainty() -> None:
    fair = row("gmmd", 66, 70, 62, 19, 14, std=math.nan)
    assert "deviation" not in tradeoff(row("gcn", 64, 70, 62, 20, 15, std=math.nan), fair)


def test_one_run_of_one_method_is_judged_by_the_deviation_of_the_other() -> None:
    certain, doubtful = ({"std": math.nan}, {"std": 3.0})
    for plain, fair in ((certain, doubtful), (doubtful, certain)):
        sentence = tradeoff(row("gcn", 64, 70, 62, 20, 15, **plain), row("gmmd", 66, 70, 62, 19, 14, **fair))
        assert "less than the deviation" in sentence


def test_nothing_to_compare_with() -> None:
    assert tradeoff(row("gin"), PLAIN) == "There is no result of gin to compare with."
