"""The sentence is true, whichever way the numbers go."""

import math
from dataclasses import replace

import pytest

from fairpass.metrics import Detectable, Interval
from fairpass.runs import Row, tradeoff
from fairpass.runs.summary import METRICS


def row(method: str, *percent: float, std: float = 0.5, nodes: int = 20_000) -> Row:
    mean = dict(zip(METRICS, percent, strict=False))
    least = 2 / math.sqrt(nodes)
    return Row(method, (0, 1), 0, mean, dict.fromkeys(mean, std), {}, 1.0, (), Detectable(nodes, least, least))


PLAIN = row("gcn", 64, 70, 62, 20, 15)


@pytest.mark.parametrize(
    ("fair", "sentence"),
    [
        (
            row("gmmd", 63, 70, 60.5, 5, 3),
            "gmmd lowers ΔDP from 20.0 to 5.0 and ΔEO from 15.0 to 3.0, at a cost of 1.5 points of accuracy "
            "(95 % interval of the loss 0.5 to 2.5; ACC 62.0 to 60.5, AUC 64.0 to 63.0)",
        ),
        (
            row("gmmd", 66, 70, 62, 5, 15),
            "gmmd lowers ΔDP from 20.0 to 5.0 but leaves ΔEO at 15.0, with the same accuracy "
            "(95 % interval of the loss -1.0 to 1.0; ACC 62.0 to 62.0, AUC 64.0 to 66.0)",
        ),
        (
            row("gmmd", 66, 70, 61.5, 5, 15),
            "gmmd lowers ΔDP from 20.0 to 5.0 but leaves ΔEO at 15.0, with 0.5 points less accuracy, which these test "
            "nodes cannot tell from none (95 % interval of the loss -0.5 to 1.5; ACC 62.0 to 61.5, AUC 64.0 to 66.0)",
        ),
        (
            row("gmmd", 66, 70, 63.5, 21, 10),
            "gmmd raises ΔDP from 20.0 to 21.0 but lowers ΔEO from 15.0 to 10.0, at no cost in accuracy "
            "(95 % interval of the loss -2.4 to -0.6; ACC 62.0 to 63.5, AUC 64.0 to 66.0)",
        ),
        (
            row("gmmd", 66, 70, 60, 21, 16),
            "gmmd gains no fairness: it raises ΔDP from 20.0 to 21.0 and ΔEO from 15.0 to 16.0, at a cost of 2.0 "
            "points of accuracy (95 % interval of the loss 1.0 to 3.0; ACC 62.0 to 60.0, AUC 64.0 to 66.0)",
        ),
        (
            row("gmmd", 66, 70, 62, 17, 12, std=4),
            "gmmd lowers ΔDP from 20.0 to 17.0 and ΔEO from 15.0 to 12.0 (less than the deviation between runs), "
            "with the same accuracy (95 % interval of the loss -1.0 to 1.0; ACC 62.0 to 62.0, AUC 64.0 to 66.0)",
        ),
        (row("gmmd"), "gmmd has no result"),
    ],
)
def test_sentence(fair: Row, sentence: str) -> None:
    assert tradeoff(PLAIN, fair) == f"Against gcn, {sentence}."


def test_a_gain_that_the_test_nodes_cannot_show_is_said() -> None:
    few = tradeoff(row("gcn", 64, 70, 62, 20, 15, nodes=100), row("gmmd", 64, 70, 62, 10, 5, nodes=100))
    assert "from 15.0 to 5.0 (less than 100 test nodes can show)" in few
    unknown = replace(PLAIN, detectable=None)
    sentence = tradeoff(unknown, row("gmmd", 64, 70, 61, 5, 5))
    assert sentence.endswith("with 1.0 points less accuracy (ACC 62.0 to 61.0, AUC 64.0 to 64.0).")


def test_the_interval_on_the_same_nodes_has_precedence() -> None:
    sentence = tradeoff(PLAIN, row("gmmd", 64, 70, 61.5, 5, 3), Interval(0.003, 0.007))
    assert "at a cost of 0.5 points of accuracy (95 % interval of the loss 0.3 to 0.7" in sentence


def test_one_run_leaves_no_room_for_doubt_or_certainty() -> None:
    fair = row("gmmd", 66, 70, 62, 19, 14, std=math.nan)
    assert "deviation" not in tradeoff(row("gcn", 64, 70, 62, 20, 15, std=math.nan), fair)


def test_one_run_of_one_method_is_judged_by_the_deviation_of_the_other() -> None:
    certain, doubtful = math.nan, 3.0
    for plain, fair in ((certain, doubtful), (doubtful, certain)):
        sentence = tradeoff(row("gcn", 64, 70, 62, 20, 15, std=plain), row("gmmd", 66, 70, 62, 19, 14, std=fair))
        assert "less than the deviation" in sentence


def test_nothing_to_compare_with() -> None:
    assert tradeoff(row("gin"), PLAIN) == "There is no result of gin to compare with."
