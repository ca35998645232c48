import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace

import fairlearn.metrics as fl
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from tests.drawing import examples

from fairpass.errors import DataError
from fairpass.metrics import Pair, delta_dp, delta_eo, equalized_odds_difference, rates
from fairpass.metrics.catalog import METRICS
from fairpass.metrics.evaluation import worst_pair

Make = Callable[..., SimpleNamespace]
SEEDS = st.integers(0, 10_000)
DIFFERENCES = [delta_dp, delta_eo, equalized_odds_difference]


@examples(10)
@given(SEEDS, st.integers(2, 5))
def test_agrees_with_fairlearn(make_problem: Make, seed: int, groups: int) -> None:
    p = make_problem(seed, groups=groups)
    theirs = {"sensitive_features": p.sens}
    assert delta_dp(p.y, p.pred, sens=p.sens) == pytest.approx(fl.demographic_parity_difference(p.y, p.pred, **theirs))
    assert delta_eo(p.y, p.pred, sens=p.sens) == pytest.approx(fl.equal_opportunity_difference(p.y, p.pred, **theirs))
    assert equalized_odds_difference(p.y, p.pred, sens=p.sens) == pytest.approx(
        fl.equalized_odds_difference(p.y, p.pred, **theirs)
    )


@examples(20)
@given(SEEDS, st.integers(2, 4), st.integers(2, 4))
def test_worst_pair_and_class_by_brute_force(make_problem: Make, seed: int, groups: int, classes: int) -> None:
    p = make_problem(seed, groups=groups, classes=classes, unknown=True)

    def worst(kinds: list[str]) -> float:
        found = 0.0
        for c, (a, b) in itertools.product(
            [1] if classes == 2 else range(classes), itertools.combinations(range(groups), 2)
        ):
            for kind in kinds:
                among = {"all": p.y >= 0, "class": p.y == c, "rest": p.y != c}[kind]
                means = [(p.pred[among & (p.sens == group)] == c).mean() for group in (a, b)]
                found = max(found, abs(means[0] - means[1]))
        return found

    assert delta_dp(p.y, p.pred, sens=p.sens) == pytest.approx(worst(["all"]))
    assert delta_eo(p.y, p.pred, sens=p.sens) == pytest.approx(worst(["class"]))
    assert equalized_odds_difference(p.y, p.pred, sens=p.sens) == pytest.approx(worst(["class", "rest"]))


@examples(10)
@given(SEEDS)
def test_the_named_pair_is_where_the_gap_is(make_problem: Make, seed: int) -> None:
    p = make_problem(seed, groups=4, classes=3)
    table = rates(p.y, p.pred, sens=p.sens, group_names=list("abcd"), label_names=["x", "y", "z"])
    assert len(table) == 12
    rows = {(row.group, row.label): row for row in table}
    differences = [metric for metric in METRICS if metric.compares]
    for metric, difference in zip(differences, DIFFERENCES, strict=True):
        pair = worst_pair(table, metric.compares)
        high, low = (rows[group, pair.label] for group in (pair.high, pair.low))
        expected = max(getattr(high, rate) - getattr(low, rate) for rate in metric.compares)
        assert difference(p.y, p.pred, sens=p.sens) == expected


def test_rates_by_hand() -> None:
    y = np.array([1, 1, 0, 0, 1, 0, 0, 1])
    pred = np.array([1, 0, 1, 0, 1, 0, 0, 1])
    sens = np.array([0, 0, 0, 0, 1, 1, 1, -1])  # the last is of unknown group
    first, second = rates(y, pred, sens=sens, group_names=["f", "m"], label_names=["bad", "good"])
    assert (first.group, first.label, first.count, first.positives) == ("f", "good", 4, 2)
    assert (first.selection_rate, first.true_positive_rate, first.false_positive_rate) == (0.5, 0.5, 0.5)
    assert first.accuracy == 0.5
    assert (second.group, second.count, second.positives, second.accuracy) == ("m", 3, 1, 1.0)
    assert worst_pair((first, second), ["selection_rate"]) == Pair(high="f", low="m", label="good")
    assert worst_pair((first, second), ["true_positive_rate"]) == Pair(high="m", low="f", label="good")


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_unknown_groups_take_no_part_and_inputs_stay(make_problem: Make, difference: Callable[..., float]) -> None:
    p = make_problem(3, unknown=True)
    known = p.sens >= 0
    assert not known.all()
    y, pred, sens = torch.tensor(p.y), torch.tensor(p.pred), torch.tensor(p.sens)
    value = difference(y, pred, sens=sens)
    assert value == difference(p.y[known], p.pred[known], sens=p.sens[known])
    for tensor, array in ((y, p.y), (pred, p.pred), (sens, p.sens)):
        assert (tensor.numpy() == array).all()


def test_binary_differences_look_at_the_positive_class() -> None:
    y, pred = np.array([0, 0, 1, 0, 0, 1]), np.array([0, 1, 1, 0, 0, 1])
    sens = np.array([0, 0, 0, 1, 1, 1])
    assert delta_eo(y, pred, sens=sens) == 0
    assert equalized_odds_difference(y, pred, sens=sens) == 0.5
    # told that there is a third label, the same arrays are a multi-class problem with a label missing
    with pytest.raises(DataError, match="group '0' has no node of label 'c'"):
        delta_eo(y, pred, sens=sens, label_names=["a", "b", "c"])


def test_all_equal_still_names_a_pair() -> None:
    table = rates([0, 1, 0, 1, 0, 1], [1] * 6, sens=[0, 0, 1, 1, 2, 2])
    assert worst_pair(table, ["selection_rate"]) == Pair(high="0", low="2", label="1")


class TestUndefined:
    y = np.array([1, 0, 0, 0])
    pred = np.array([1, 0, 1, 0])
    sens = np.array([0, 0, 1, 1])

    def test_group_without_positives(self) -> None:
        message = "equal opportunity difference is undefined: group 'm' has no node of label '1'"
        with pytest.raises(DataError, match=message):
            delta_eo(self.y, self.pred, sens=self.sens, group_names=["f", "m"])
        with pytest.warns(UndefinedMetricWarning, match=message):
            assert math.isnan(delta_eo(self.y, self.pred, sens=self.sens, group_names=["f", "m"], undefined="nan"))
        assert delta_dp(self.y, self.pred, sens=self.sens) == 0  # needs no labels
        with pytest.raises(DataError, match="part of the table is undefined: group '1' has no node of label '1'"):
            rates(self.y, self.pred, sens=self.sens)
        with pytest.warns(UndefinedMetricWarning):
            table = rates(self.y, self.pred, sens=self.sens, undefined="nan")
        assert math.isnan(table[1].true_positive_rate)
        assert table[1].false_positive_rate == 0.5

    def test_group_without_negatives(self) -> None:
        with pytest.raises(DataError, match="group '1' has no node of a label other than '0'"):
            equalized_odds_difference(1 - self.y, self.pred, sens=self.sens, label_names=["x", "0"])
        with pytest.warns(UndefinedMetricWarning, match="equalized odds difference"):
            value = equalized_odds_difference(1 - self.y, self.pred, sens=self.sens, undefined="nan")
        assert math.isnan(value)

    @pytest.mark.parametrize("difference", DIFFERENCES)
    def test_group_absent(self, difference: Callable[..., float]) -> None:
        y, pred = np.array([0, 1, 0, 1]), np.array([1, 0, 0, 1])
        with pytest.raises(DataError, match="group 'c' has no nodes"):
            difference(y, pred, sens=self.sens, group_names=["a", "b", "c"])
        with pytest.raises(DataError, match="group '1' has no nodes"):
            difference(y, pred, sens=2 * self.sens)
        with pytest.warns(UndefinedMetricWarning, match="group 'c' has no nodes"):
            assert math.isnan(difference(y, pred, sens=self.sens, group_names=["a", "b", "c"], undefined="nan"))

    @pytest.mark.parametrize("difference", DIFFERENCES)
    @pytest.mark.parametrize(("only", "found"), [(0, 1), (-1, 0)])
    def test_fewer_than_two_groups(self, difference: Callable[..., float], only: int, found: int) -> None:
        with pytest.raises(DataError, match=f"two groups or more .got {found} in 'sens'"):
            difference([0, 1], [1, 0], sens=[only, only])

    def test_one_group_still_has_rates(self) -> None:
        (row,) = rates([0, 1], [1, 1], sens=[0, 0])
        assert (row.count, row.true_positive_rate) == (2, 1.0)

    def test_wrong_sens(self) -> None:
        with pytest.raises(DataError, match=r"'sens' must have shape \[4\], one for each node \(got \[3\]\)"):
            delta_dp(self.y, self.pred, sens=self.sens[:3])
        with pytest.raises(DataError, match=r"'group_names' must name every index up to 1 \(got 1 names\)"):
            delta_dp(self.y, self.pred, sens=self.sens, group_names=["a"])
