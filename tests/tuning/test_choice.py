"""Which configuration is taken, and what is said about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tuning.points import point, with_gaps
from tests.tuning.test_front import some_points

from fairpass.errors import DataError
from fairpass.tuning import Point, choose, decide, pareto_front

USEFUL, MIDDLE, FAIR, BEATEN = point(0.8, 0.30), point(0.75, 0.10), point(0.6, 0.02), point(0.55, 0.2)
POINTS = [FAIR, BEATEN, USEFUL, MIDDLE]


@pytest.mark.parametrize(("fairness", "expected"), [(0, USEFUL), (0.1, USEFUL), (0.5, MIDDLE), (0.9, FAIR), (1, FAIR)])
def test_fairness_moves_along_the_front(fairness: float, expected: Point) -> None:
    assert choose(POINTS, fairness=fairness) == expected


@given(some_points, st.lists(st.floats(0, 1), min_size=2, max_size=5).map(sorted))
def test_more_fairness_is_never_less_fair(points: list[Point], wishes: list[float]) -> None:
    chosen = [choose(points, fairness=wish) for wish in wishes]
    front = pareto_front(points)
    assert all(each in front for each in chosen)
    unfairness = [each.unfairness for each in chosen]
    assert unfairness == sorted(unfairness, reverse=True)


@given(some_points)
def test_ends_of_the_dial(points: list[Point]) -> None:
    front = pareto_front(points)
    assert choose(points, fairness=0).utility == max(each.utility for each in front)
    assert choose(points, fairness=1).unfairness == min(each.unfairness for each in front)


def test_without_a_wish_the_common_rule_decides() -> None:
    decision = decide(POINTS)
    assert decision.point == max(POINTS, key=lambda each: each.selection)
    assert decision.point in pareto_front(POINTS)
    assert decision.reason == "It has the largest AUC + F1 + ACC - DP - EO on validation."


def test_limits_leave_the_most_useful_within_them() -> None:
    assert choose(POINTS, max_dp=0.15) == MIDDLE
    assert choose(POINTS, max_dp=0.15, max_eo=0.05) == FAIR
    decision = decide(POINTS, max_dp=0.15)
    assert decision.met
    assert decision.reason == "It is the most useful on the validation front with a DP of at most 15.0 %."


def test_limit_on_one_difference_looks_at_that_one() -> None:
    small_dp, small_eo = with_gaps(0.7, dp=0.01, eo=0.4), with_gaps(0.7, dp=0.2, eo=0.0)
    assert choose([small_dp, small_eo], max_dp=0.05) == small_dp
    assert choose([small_dp, small_eo], max_eo=0.05) == small_eo


def test_limits_that_nothing_meets() -> None:
    decision = decide(POINTS, max_dp=0.01, max_eo=0.01)
    assert decision.point == FAIR
    assert not decision.met
    assert decision.reason == (
        "No configuration has a DP of at most 1.0 % and an EO of at most 1.0 % on validation: the nearest, "
        "with DP 2.0 % and EO 2.0 %, was taken."
    )


def test_near_constant_is_only_taken_if_there_is_nothing_else() -> None:
    constant = point(0.9, 0.0, near_constant=True)
    for wish in ({}, {"fairness": 0.0}, {"fairness": 1.0}, {"max_dp": 0.01}):
        assert choose([*POINTS, constant], **wish) != constant
    decision = decide([constant], fairness=1)
    assert decision.point == constant
    assert decision.reason.endswith("Beware: it is near constant, as all are.")


def test_one_point_is_the_choice_for_everybody() -> None:
    for wish in (0, 0.5, 1):
        assert choose([MIDDLE], fairness=wish) == MIDDLE


@pytest.mark.parametrize("name", ["fairness", "max_dp", "max_eo", "min_impact_ratio"])
@pytest.mark.parametrize("value", [-0.1, 5.0, float("nan")])
def test_wishes_are_shares(name: str, value: float) -> None:
    expected = "between 0 and 1" if name == "fairness" else "above 0 and at most 1"
    with pytest.raises(ValueError, match=f"'{name}' must be {expected}"):
        choose(POINTS, **{name: value})


@pytest.mark.parametrize("limit", ["max_dp", "max_eo"])
@pytest.mark.parametrize("fairness", [0.0, 0.5])
def test_fairness_and_a_limit_contradict_each_other(limit: str, fairness: float) -> None:
    message = rf"^'fairness' and '{limit}' must not be given together \(got {fairness} and 0.05\)$"
    with pytest.raises(ValueError, match=message):
        choose(POINTS, fairness=fairness, **{limit: 0.05})
    # Before any work: there is not even anything to choose from.
    with pytest.raises(ValueError, match=message):
        decide([], fairness=fairness, **{limit: 0.05})


def test_nothing_to_choose_from() -> None:
    with pytest.raises(DataError, match="'points' must hold at least one"):
        choose([])
