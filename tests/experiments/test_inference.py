"""Intervals that cover, tests that reject as often as they should, components that are found again."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fairpass.experiments.inference import (
    bootstrap_interval,
    critical_difference,
    friedman_p_value,
    holm,
    is_dominated,
    mean_interval,
    paired_p_value,
    variance_components,
)


def test_mean_interval_is_students() -> None:
    values = [3.0, 5.0, 4.0, 8.0]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = mean_interval(values)
    assert found.estimate == 5.0
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.half == pytest.approx((expected.high - expected.low) / 2)


@pytest.mark.parametrize("interval", [mean_interval, bootstrap_interval])
def test_too_few_values_have_no_interval(interval: object) -> None:
    assert callable(interval)
    assert interval([2.0])[0] == 2.0
    assert all(map(math.isnan, interval([2.0])[1:]))
    assert not interval([2.0]).is_resolved
    assert math.isnan(interval([]).estimate)
    assert interval([2.0, 2.0]) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize("count", [5, 10, 20])
def test_the_bootstrap_interval_covers_the_mean_as_often_as_it_says(count: int) -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(500):
        found = bootstrap_interval(generator.normal(1.0, 2.0, count), resamples=400)
        covered += found.low <= 1.0 <= found.high
    # The plain percentile interval of five values covers 84 %.
    assert covered / 500 == pytest.approx(0.95, abs=0.025)


def test_the_bootstrap_follows_a_skewed_sample() -> None:
    values = np.random.default_rng(2).exponential(size=12) ** 2
    found, student = bootstrap_interval(values), mean_interval(values)
    assert found.high > student.high
    assert found.low == student.low


def test_the_bootstrap_is_the_same_every_time() -> None:
    values = np.random.default_rng(1).normal(size=8)
    assert bootstrap_interval(values) == bootstrap_interval(values)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_corrects_upwards_and_keeps_the_order(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(a >= v for a, v in zip(adjusted, values, strict=True))
    assert all(a <= 1 for a in adjusted)
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.asarray(adjusted)[order]) >= 0).all()
    assert min(adjusted) == pytest.approx(min(1.0, len(values) * min(values)))


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, math.nan]) == pytest.approx([0.03, 0.06, 0.06, math.nan], nan_ok=True)


def test_paired_p_values() -> None:
    differences = [0.3, -0.1, 0.5, 0.4]
    assert paired_p_value(differences) == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
    assert paired_p_value([0.0, 0.0]) == 1.0
    assert paired_p_value([1.0, 1.0]) == 0.0
    assert math.isnan(paired_p_value([1.0]))


def frame(accuracy: list[float], bias: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"ACC": accuracy, "DP": bias})


def test_who_is_better_in_both_dominates() -> None:
    better = {"ACC": True, "DP": False}
    own = frame([80, 81, 82, 80.5], [5, 6, 5.5, 5.2])
    good = frame([83, 84, 84.6, 83.4], [2, 2.5, 2.2, 2.1])
    assert is_dominated(good, own, better=better)
    assert not is_dominated(own, good, better=better)
    # Better in accuracy only, or by no more than chance.
    assert not is_dominated(frame([83, 84, 84.6, 83.4], [5, 6, 5.5, 5.2]), own, better=better)
    assert not is_dominated(frame([90, 75, 85, 80], [2, 2.5, 2.2, 2.1]), own, better=better)


def test_dominance_by_chance_is_rare() -> None:
    generator = np.random.default_rng(0)
    wrong = 0
    for _ in range(500):
        own, rival = (frame(*generator.normal(size=(2, 8)).tolist()) for _ in range(2))
        wrong += is_dominated(rival, own, better={"ACC": True, "DP": False})
    assert wrong / 500 < 0.05


def test_critical_difference_as_printed_by_demsar() -> None:
    """Table 5 of Demsar (2006) has q = 2.343 for two-tailed 5 % and three methods, 3.164 for ten."""
    assert critical_difference(3, 6) == pytest.approx(2.343 * math.sqrt(3 * 4 / 36), abs=2e-3)
    assert critical_difference(10, 30) == pytest.approx(3.164 * math.sqrt(10 * 11 / 180), abs=2e-3)


def test_friedman_needs_three_methods() -> None:
    ranks = pd.DataFrame({"a": [1, 1, 1, 1.0], "b": [2, 2, 2, 2.0], "c": [3, 3, 3, 3.0]})
    assert friedman_p_value(ranks) < 0.05
    assert math.isnan(friedman_p_value(ranks[["a", "b"]]))


def test_components_are_found_again() -> None:
    generator = np.random.default_rng(0)
    estimates = []
    for _ in range(60):
        encoder, split = generator.normal(0, 3.0, (3, 1, 1)), generator.normal(0, 2.0, (1, 8, 1))
        both, seed = generator.normal(0, 0.5, (3, 8, 1)), generator.normal(0, 1.0, (3, 8, 4))
        estimates.append(variance_components(encoder + split + both + seed, ("encoder", "split")))
    squares = {name: np.mean([each[name] ** 2 for each in estimates]) ** 0.5 for name in estimates[0]}
    assert squares["split"] == pytest.approx(2.0, rel=0.15)
    assert squares["encoder"] == pytest.approx(3.0, rel=0.25)  # three levels only
    assert squares["seed"] == pytest.approx(1.0, rel=0.1)
    assert squares["interaction"] == pytest.approx(0.5, rel=0.3)


def test_components_where_nothing_varies() -> None:
    one_encoder = variance_components(np.array([[[1.0, 3.0], [5.0, 7.0]]]), ("encoder", "split"))
    assert math.isnan(one_encoder["encoder"])
    assert math.isnan(one_encoder["interaction"])
    assert one_encoder["seed"] == pytest.approx(math.sqrt(2))
    # The variance of the means, 8, less what the seeds make of it, 2 / 2.
    assert one_encoder["split"] == pytest.approx(math.sqrt(7))
    single = variance_components(np.arange(6.0).reshape(2, 3, 1), ("encoder", "split"))
    assert math.isnan(single["seed"])
    assert single["interaction"] == 0.0
    assert variance_components(np.ones((2, 3, 2)), ("encoder", "split"))["split"] == 0.0
