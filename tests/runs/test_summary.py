"""Means, deviations, ranks and flags of runs, from numbers made up for the purpose."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpass.metrics import Evaluation, evaluate
from fairpass.runs import Row, RunRecord, ranks, summarise
from fairpass.runs.summary import METRICS

_SOME = evaluate([0, 1, 0, 1], [0.1, 0.9, 0.6, 0.8], sens=[0, 0, 1, 1])


def evaluation(auc: float, f1: float, acc: float, dp: float, eo: float, *, constant: bool = False) -> Evaluation:
    """Return an evaluation with these metrics, in percent."""
    percent = {"auc": auc, "f1": f1, "acc": acc, "delta_dp": dp, "delta_eo": eo}
    fractions = {name: value / 100 for name, value in percent.items()}
    return replace(_SOME, metrics={**_SOME.metrics, **fractions}, near_constant=constant)


def success(method: str, seed: int, *percent: float, constant: bool = False) -> RunRecord:
    return RunRecord(method, seed, 1.0, evaluation(*percent, constant=constant))


def failure(method: str, seed: int, error: str = "no luck") -> RunRecord:
    return RunRecord(method, seed, 3.0, None, error)


def rows_of(*runs: RunRecord) -> dict[str, Row]:
    return {row.method: row for row in summarise(runs, references=["constant"])}


def test_means_and_deviations_are_those_of_the_runs() -> None:
    table = np.array([[60.0, 70, 65, 10, 8], [64, 76, 68, 4, 5], [61, 72, 66, 1, 2]])
    (row,) = summarise(success("a", seed, *values) for seed, values in enumerate(table))
    assert row.seeds == (0, 1, 2)
    assert row.failed == 0
    np.testing.assert_allclose([row.mean[name] for name in METRICS], table.mean(0))
    np.testing.assert_allclose([row.std[name] for name in METRICS], table.std(0, ddof=1))


def test_one_run_has_no_deviation() -> None:
    row = rows_of(success("a", 0, 60, 70, 65, 10, 8))["a"]
    assert all(math.isnan(value) for value in row.std.values())
    assert row.to_dict()["std"] == dict.fromkeys(METRICS)
    json.dumps(row.to_dict(), allow_nan=False)


def test_ranks_know_which_way_is_better() -> None:
    rows = rows_of(
        success("constant", 0, 50, 90, 90, 0, 0),
        success("better", 0, 70, 80, 75, 1, 2),
        success("worse", 0, 60, 70, 65, 3, 4),
    )
    assert rows["better"].ranks == dict.fromkeys(METRICS, 1.0)
    assert rows["worse"].ranks == dict.fromkeys(METRICS, 2.0)
    assert (rows["better"].rank, rows["worse"].rank, rows["constant"].rank) == (1, 2, None)


def test_equal_methods_share_their_rank() -> None:
    values = [(70.1, 80.2, 75.3, 1.4, 2.5), (60.7, 70.9, 65.1, 3.3, 4.2), (61.3, 77.7, 63.9, 3.1, 4.9)]
    one = [success("one", seed, *each) for seed, each in enumerate(values)]
    other = [success("other", seed, *each) for seed, each in enumerate(reversed(values))]
    assert [row.rank for row in summarise([*one, *other])] == [1.5, 1.5]


@given(st.lists(st.tuples(*[st.floats(0, 100)] * 5), min_size=1, max_size=6))
def test_ranks_add_up(table: list[tuple[float, ...]]) -> None:
    rows = summarise(success(f"m{i}", 0, *values) for i, values in enumerate(table))
    count = len(table)
    for metric in METRICS:
        assert sum(row.ranks[metric] for row in rows) == pytest.approx(count * (count + 1) / 2)


def test_failed_runs_are_told_and_left_out() -> None:
    rows = rows_of(
        success("half", 0, 60, 70, 65, 10, 8),
        failure("half", 1),
        failure("none", 0, "too large"),
        failure("none", 1, "too large"),
    )
    assert rows["half"].mean["AUC"] == pytest.approx(60)
    assert rows["half"].flags == ("failed in 1 of 2 runs: no luck",)
    assert (rows["half"].failed, rows["half"].seconds) == (1, 2.0)
    assert (rows["none"].mean, rows["none"].std, rows["none"].rank) == ({}, {}, None)
    assert rows["none"].flags == ("failed in 2 of 2 runs: too large",)


def test_flags() -> None:
    rows = rows_of(
        success("constant", 0, 50, 90, 70, 0, 0, constant=True),
        success("constant", 1, 50, 90, 70, 0, 0, constant=True),
        success("good", 0, 70, 80, 75, 1, 2),
        success("good", 1, 70, 80, 75, 1, 2),
        success("lame", 0, 60, 70, 70, 1, 2, constant=True),
        success("short", 0, 70, 80, 75, 1, 2),
        success("short", 1, 70, 80, 75, 1, 2, constant=True),
    )
    assert rows["constant"].flags == ("predicts the same for every node: fair, but of no use",)
    assert rows["good"].flags == ()
    assert rows["lame"].flags == (
        "1 of 2 seeds only",
        "near constant in 1 of 1 runs",
        "not more accurate than the constant (70.0)",
    )
    assert rows["short"].flags == ("near constant in 1 of 2 runs",)


def test_ranks_share_what_prints_the_same() -> None:
    means = pd.DataFrame({"ACC": [70.004, 69.996, 71.0], "DP": [1.0, 2.0, 3.0]}, index=["a", "b", "c"])
    found = ranks(means)
    assert found["ACC"].to_dict() == {"a": 2.5, "b": 2.5, "c": 1.0}
    assert found["DP"].to_dict() == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert list(means["ACC"]) == [70.004, 69.996, 71.0]


def test_nothing_gives_nothing() -> None:
    assert summarise([]) == ()
