"""Answers to limits on unfairness: right as often as they say, and in words that a person can act on."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from fairpass.errors import DataError
from fairpass.metrics.limits import LIMITS, check_limits
from fairpass.metrics.promise import Promise, check_promise
from fairpass.projects.sections import LIMIT_NAMES


def people(counts: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """Return labels, predictions and groups of so many people, so many of them predicted positive."""
    pred = np.concatenate([np.arange(n) < selected for selected, n in counts.values()]).astype(int)
    sens = np.repeat(np.arange(len(counts)), [n for _, n in counts.values()])
    return {
        "y": np.ones_like(pred),
        "pred": pred,
        "sens": sens,
        "group_names": list(counts),
        "label_names": ["no", "yes"],
    }


def check(counts: dict[str, tuple[int, int]], **limits: Any) -> Promise:
    given = people(counts)
    return check_promise(given.pop("y"), given.pop("pred"), limits=limits, **given)


def test_the_three_answers() -> None:
    many = check({"men": (300, 1000), "women": (290, 1000)}, max_dp=0.06)
    assert many.verdict == "shown"
    (found,) = many.checks
    assert found.estimate == pytest.approx(0.01)
    assert 0.01 < found.bound <= 0.06
    assert (found.high_group, found.low_group, found.label, found.more_people) == ("men", "women", "yes", 0)
    assert found.sentence == (
        "It is shown that the share predicted 'yes' differs by at most 6.0 points between groups (measured: 1.0, with "
        f"95 % confidence at most {100 * found.bound:.1f}, on 2,000 people of the safety set)."
    )
    few = check({"men": (30, 100), "women": (29, 100)}, max_dp=0.06).checks[0]
    assert few.verdict == "not shown"
    assert few.bound > 0.06
    assert few.more_people is not None
    # With that many more, and the same shares, it is shown.
    factor = (few.more_people + 200) / 200
    larger = {group: (round(n * factor), round(100 * factor)) for group, n in (("men", 30), ("women", 29))}
    assert check(larger, max_dp=0.06).verdict == "shown"
    assert f"about {few.more_people:,} more labelled people" in few.sentence
    assert few.more_people % 100 == 0  # two digits of four
    worse = check({"men": (500, 1000), "women": (290, 1000)}, max_dp=0.06).checks[0]
    assert worse.verdict == "violated"
    assert "more than 6.0 points higher in 'men' than in 'women'" in worse.sentence


def test_what_was_measured_is_beyond_the_limit() -> None:
    found = check({"men": (35, 100), "women": (28, 100)}, max_dp=0.06).checks[0]
    assert (found.verdict, found.more_people) == ("not shown", None)
    assert found.sentence.endswith("More people would not help: what was measured is no better.")


@pytest.mark.parametrize("name", LIMIT_NAMES)
def test_limits_that_are_almost_zero(name: str) -> None:
    for limit in (5e-324, 1e-300, 9e-7):
        with pytest.raises(ValueError, match=f"'{name}' must be at least 1e-06"):
            check_limits({name: limit})
    found = check({"men": (30, 100), "women": (30, 100)}, **{name: 1e-6}).checks[0]
    assert found.more_people in (0, None)


def test_impact_ratio() -> None:
    ratio = check({"men": (400, 1000), "women": (390, 1000)}, min_impact_ratio=0.8).checks[0]
    assert ratio.verdict == "shown"
    assert ratio.estimate == pytest.approx(0.975)
    assert 0.8 <= ratio.bound < 0.975
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low <= 0.975 <= ratio.high
    assert check({"men": (400, 1000), "women": (250, 1000)}, min_impact_ratio=0.8).verdict == "violated"
    nobody = check({"men": (0, 50), "women": (0, 50)}, min_impact_ratio=0.8).checks[0]
    assert (nobody.verdict, nobody.estimate) == ("not shown", None)
    assert nobody.sentence.endswith("Nobody is predicted 'yes', so there is no ratio.")


def test_a_group_of_whom_nobody_is_selected_has_a_ratio_of_zero() -> None:
    one = check({"men": (100, 200), "women": (0, 200)}, min_impact_ratio=0.8).checks[0]
    two = check({"men": (0, 200), "women": (100, 200), "others": (0, 200)}, min_impact_ratio=0.8).checks[0]
    for found in (one, two):
        assert (found.verdict, found.estimate) == ("violated", 0.0)
        assert found.low == pytest.approx(0, abs=1e-4)
        assert "measured: 0.00" in found.sentence


def test_a_violation_is_said_of_a_pair_that_shows_it() -> None:
    found = check({"a": (600, 1000), "b": (400, 1000), "c": (3, 3)}, max_dp=0.05).checks[0]
    assert (found.verdict, found.high_group, found.low_group) == ("violated", "a", "b")
    assert found.estimate == pytest.approx(0.2)
    assert "more than 5.0 points higher in 'a' than in 'b' (measured: 20.0" in found.sentence


def test_the_interval_is_of_the_widest_difference_of_all() -> None:
    """It covers the widest true difference as often as it says, although the widest measured one is too wide."""
    rates, sizes, missed = np.array([0.3, 0.3, 0.3, 0.3]), np.array([60, 60, 60, 60]), 0
    drawn = np.random.default_rng(2).binomial(sizes, rates, size=(60, 4))
    for counts in drawn.tolist():
        given = {str(place): (count, 60) for place, count in enumerate(counts)}
        found = check(given, max_dp=0.1).checks[0]
        assert found.low is not None
        assert found.high is not None
        assert found.estimate is not None
        assert found.low <= found.estimate <= found.bound <= found.high
        missed += not found.low <= 0 <= found.high
    assert missed / len(drawn) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(drawn))


def test_violations_of_several_limits_share_the_error() -> None:
    counts = {"men": (325, 1000), "women": (230, 1000)}
    alone = check(counts, max_dp=0.05)
    together = check(counts, max_dp=0.05, max_eo=1.0, min_impact_ratio=0.1)
    assert alone.verdict == "violated"
    assert together.verdict == "not shown"


def test_a_near_constant_model_keeps_its_limit_with_a_warning() -> None:
    y, sens = np.arange(2000) % 2, np.arange(2000) // 1000
    alike = check_promise(y, np.zeros(2000, dtype=int), sens=sens, limits={"max_dp": 0.05}, label_names=["no", "yes"])
    assert alike.verdict == "shown"
    assert alike.warning.startswith("Beware: 'no' is predicted for 100.0 % of these people.")
    assert alike.sentence.endswith(alike.warning)
    assert Promise.from_dict(alike.to_dict()) == alike
    assert check_promise(y, y, sens=sens, limits={"max_dp": 0.05}).warning == ""


def test_equal_opportunity_is_among_the_positive_ones() -> None:
    y, pred, sens = np.repeat([0, 1, 0, 1], 500), np.repeat([1, 1, 0, 1], 500), np.repeat([0, 0, 1, 1], 500)
    found = check_promise(y, pred, sens=sens, limits={"max_dp": 0.05, "max_eo": 0.05})
    verdicts = {each.metric: each.verdict for each in found.checks}
    assert verdicts == {"delta_dp": "violated", "delta_eo": "shown"}
    assert found.verdict == "violated"
    assert [count.people for count in found.checks[1].counts] == [500, 500]


def test_every_pair_of_groups_and_every_label_counts() -> None:
    counts = {"a": (300, 1000), "b": (300, 1000), "c": (3, 10)}
    found = check(counts, max_dp=0.06).checks[0]
    assert found.verdict == "not shown"  # the ten people of c show nothing
    assert check({name: counts[name] for name in "ab"}, max_dp=0.06).verdict == "shown"
    generator = np.random.default_rng(0)
    y, sens = generator.integers(0, 4, 3000), generator.integers(0, 2, 3000)
    several = check_promise(y, y, sens=sens, limits={"max_dp": 0.2}, label_names=list("wxyz"))
    assert {count.label for count in several.checks[0].counts} == set("wxyz")
    assert "that the share predicted any one label differs by at most 20.0 points" in several.sentence
    assert f" for {several.checks[0].label!r}, with 95 % confidence" in several.sentence


def test_a_group_without_anybody_is_never_shown() -> None:
    given = people({"men": (10, 100), "women": (10, 100)})
    given["group_names"] = ["men", "women", "others"]
    found = check_promise(given.pop("y"), given.pop("pred"), limits={"max_dp": 1.0}, **given).checks[0]
    assert (found.verdict, found.estimate, found.bound) == ("not shown", None, 1.0)
    assert found.sentence.endswith("The check has nobody of 'others'.")


def test_unknown_groups_do_not_count() -> None:
    given = people({"men": (300, 1000), "women": (290, 1000)})
    given["sens"] = np.where(np.arange(2000) % 4 == 0, -1, given["sens"])
    assert check_promise(given.pop("y"), given.pop("pred"), limits={"max_dp": 0.1}, **given).people == 1500


@pytest.mark.parametrize(("gap", "people", "samples"), [(0.05, 250, 120), (0.06, 250, 120), (0.0, 500, 30)])
def test_answers_are_right_as_often_as_they_say(gap: float, people: int, samples: int) -> None:
    """Two groups at the limit or beyond it are called shown in at most 5 % of all samples."""
    generator = np.random.default_rng(1)
    others = people * 4 // 5
    drawn = generator.binomial([people, others], [0.05 + gap, 0.05], size=(samples, 2)).tolist()
    answers: Counter[str] = Counter()
    for (first, second), times in Counter(map(tuple, drawn)).items():
        answers[check({"a": (first, people), "b": (second, others)}, max_dp=0.05).verdict] += times
    share, deviation = answers["shown"] / samples, np.sqrt(0.05 * 0.95 / samples)
    assert share <= 0.05 + 2 * deviation if gap else share > 0.5
    assert answers["violated"] / samples <= (0.05 + 2 * deviation if gap <= 0.05 else 1)


def test_kept_as_json() -> None:
    found = check({"men": (300, 1000), "women": (290, 1000)}, max_dp=0.06, min_impact_ratio=0.8)
    stored = json.loads(json.dumps(found.to_dict()))
    assert Promise.from_dict(stored) == found
    assert (stored["verdict"], stored["on"], stored["people"]) == ("shown", "safety", 2000)


@pytest.mark.parametrize("damage", [{"checks": []}, {"checks": [{}]}, {"checks": 3}, {"people": None, "checks": [1]}])
def test_what_is_no_promise_is_refused(damage: dict[str, Any]) -> None:
    stored = check({"men": (300, 1000), "women": (290, 1000)}, max_dp=0.06).to_dict()
    with pytest.raises(ValueError, match="checks"):
        Promise.from_dict({**stored, **damage})
    wrong = {**stored["checks"][0], "verdict": "perhaps"}
    with pytest.raises(ValueError, match="'shown', 'not shown' or 'violated'"):
        Promise.from_dict({**stored, "checks": [wrong]})


def test_limits_are_fractions() -> None:
    assert tuple(LIMITS) == LIMIT_NAMES
    assert check_limits({"max_dp": 0.05, "max_eo": None}) == {"max_dp": 0.05}
    for wrong in (0.0, -0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="'max_eo' must be above 0 and at most 1"):
            check_limits({"max_eo": wrong})
    with pytest.raises(ValueError, match=r"'confidence' must be at least 0.5 and below 1 \(got 95\)"):
        check_limits({"max_dp": 0.1}, 95)
    with pytest.raises(ValueError, match="there is no limit 'max_pd'"):
        check_limits({"max_pd": 0.1})
    with pytest.raises(ValueError, match="'limits' must have at least one of"):
        check({"men": (1, 2), "women": (1, 2)}, max_dp=None)
    with pytest.raises(DataError, match="two groups or more"):
        check({"men": (1, 2)}, max_dp=0.5)
