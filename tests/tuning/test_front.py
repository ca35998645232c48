"""The front: nothing beats what is on it, whatever the order, and more points never make it smaller."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tuning.points import point

from fairpass.errors import DataError
from fairpass.methods import GMMD
from fairpass.training import Training
from fairpass.tuning import Point, hypervolume, pareto_front
from fairpass.tuning.front import dominated_area, non_dominated

# Few values, so that there are ties.
shares = st.sampled_from([i / 8 for i in range(9)])
some_points = st.lists(st.builds(point, shares, shares, near_constant=st.booleans()), min_size=1, max_size=12)


def beats(one: Point, other: Point) -> bool:
    no_worse = one.utility >= other.utility and one.unfairness <= other.unfairness
    return no_worse and (one.utility > other.utility or one.unfairness < other.unfairness)


@given(some_points)
def test_front_is_what_nothing_beats(points: list[Point]) -> None:
    useful = [each for each in points if not each.near_constant] or points
    front = pareto_front(points)
    assert front
    for each in useful:
        assert (each in front) != any(beats(other, each) for other in useful)


@given(some_points, st.randoms())
def test_front_does_not_depend_on_the_order(points: list[Point], random: Random) -> None:
    shuffled = list(points)
    random.shuffle(shuffled)
    assert pareto_front(shuffled) == pareto_front(points)


@given(some_points)
def test_front_goes_from_the_most_useful_to_the_fairest(points: list[Point]) -> None:
    front = pareto_front(points)
    assert front == sorted(front, key=lambda each: -each.utility)
    assert front == sorted(front, key=lambda each: -each.unfairness)


@given(some_points)
def test_front_is_its_own_front_and_has_the_same_area(points: list[Point]) -> None:
    front = pareto_front(points)
    assert pareto_front(front) == front
    assert hypervolume(front) == pytest.approx(hypervolume(points))


@given(st.lists(st.tuples(shares, shares), max_size=10), st.tuples(shares, shares))
def test_area_grows_with_points_and_only_with_better_ones(
    pairs: list[tuple[float, float]], more: tuple[float, float]
) -> None:
    before, after = dominated_area(pairs), dominated_area([*pairs, more])
    assert 0 <= before <= after + 1e-12 <= 1 + 1e-9
    # Inside the square, a pair adds area exactly if no other one is as good in both.
    covered = any(utility >= more[0] and unfairness <= more[1] for utility, unfairness in pairs)
    is_inside = more[0] > 0 and more[1] < 1
    assert (after > before + 1e-12) == (is_inside and not covered)


def test_area_by_hand() -> None:
    pairs = [(0.8, 0.4), (0.5, 0.1), (0.5, 0.3)]
    assert dominated_area(pairs) == pytest.approx(0.8 * 0.6 + 0.5 * 0.3)
    assert dominated_area(pairs, reference=(0.5, 0.5)) == pytest.approx(0.3 * 0.1)
    assert dominated_area([]) == 0
    assert hypervolume([point(1, 0)]) == 1


def test_equals_stay_together() -> None:
    assert non_dominated([(0.5, 0.1), (0.5, 0.1), (0.5, 0.2)]) == [0, 1]
    assert len(pareto_front([point(0.5, 0.1, hidden=8), point(0.5, 0.1, hidden=16)])) == 2
    assert len(pareto_front([point(0.5, 0.1), point(0.5, 0.1)])) == 1  # one and the same


def test_near_constant_points_crowd_nobody_out() -> None:
    constant, useful = point(0.7, 0.0, near_constant=True), point(0.6, 0.1)
    assert pareto_front([constant, useful]) == [useful]
    assert pareto_front([constant]) == [constant]
    assert hypervolume([constant, useful]) == hypervolume([useful])


def test_no_points() -> None:
    with pytest.raises(DataError, match="'points' must hold at least one configuration"):
        pareto_front([])


def test_point_knows_the_common_rule() -> None:
    one = Point("gcn", validation={"AUC": 0.9, "F1": 0.8, "ACC": 0.7, "DP": 0.2, "EO": 0.1}, test={"AUC": 0.0})
    assert one.utility == pytest.approx(0.8)
    assert one.unfairness == pytest.approx(0.15)
    assert one.selection == pytest.approx(0.9 + 0.8 + 0.7 - 0.2 - 0.1)
    assert replace(one, test=None).selection == one.selection  # the test nodes have no say


def test_point_survives_storage_and_becomes_a_classifier() -> None:
    model = GMMD(weight=7.0, training=Training(epochs=3, learning_rate=0.1))
    parameters = model.get_params(deep=False)
    training = parameters.pop("training").to_dict()
    del training["seed"]
    one = replace(point(0.5, 0.1), method="gmmd", parameters=parameters, training=training, test={"AUC": 0.5})
    assert Point(**one.to_dict()) == one
    again = one.classifier(seed=4)
    assert again.get_params(deep=False) == {**model.get_params(deep=False), "training": model.training.but(seed=4)}
