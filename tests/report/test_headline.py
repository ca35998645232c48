"""The first sentences: rates per hundred, and never more than the people can show."""

from dataclasses import replace

import pytest

from fairpass.report import Evidence
from fairpass.report.figures import figure_tables
from fairpass.report.headline import people_of, statements
from fairpass.report.schema import Breakdown, ScoredConfusion


def counted(evidence: Evidence, groups: dict[str, tuple[int, int]], attribute: str = "sex") -> Evidence:
    """Return evidence in which so many of so many people of each group are selected."""
    rows: list[ScoredConfusion] = [
        {"group": name, "counts": [[people - selected, selected], [0, 0]], "scores": []}
        for name, (selected, people) in groups.items()
    ]
    found: Breakdown = {"attribute": attribute, "groups": rows, "small": [], "partial": [], "unknown": 0, "not_told": 0}
    return replace(evidence, breakdowns=[found])


def said(evidence: Evidence) -> tuple[str, str]:
    (found,) = statements(evidence, figure_tables(evidence))
    return found


def test_rates_are_per_hundred(evidence: Evidence) -> None:
    rates, gap = said(counted(evidence, {"male": (610, 1000), "female": (360, 1000)}))
    assert rates == "Of 100 men 61 are predicted “good customer”, of 100 women 36."
    assert gap == "The difference is 25.0 points (95 % interval 20.7 to 29.2), from 1,000 men and 1,000 women."


def test_few_people_show_nothing(evidence: Evidence) -> None:
    rates, gap = said(counted(evidence, {"male": (6, 10), "female": (4, 10)}))
    assert rates == "Of 100 men 60 are predicted “good customer”, of 100 women 40."
    assert gap.startswith(
        "These 20 people cannot show a difference: 20.0 points were measured between 10 men and 10 women"
    )
    assert gap.endswith("includes no difference.")


def test_what_other_groups_show_is_told(evidence: Evidence) -> None:
    """The widest difference may be one of a few people, where a smaller one of many can be shown."""
    _, gap = said(counted(evidence, {"a": (700, 1000), "b": (500, 1000), "c": (4, 10)}, "race"))
    assert gap.startswith("These 1,010 people cannot show a difference: 30.0 points were measured")
    assert "A difference can be shown between 1,000 people of group a and 1,000 people of group b: 20.0 points" in gap


def test_small_rates_have_a_decimal(evidence: Evidence) -> None:
    rates, _ = said(counted(evidence, {"male": (4, 1000), "a": (50, 1000)}))
    assert rates == "Of 100 men 0.4 are predicted “good customer”, of 100 people of group a 5.0."


def test_of_many_groups_the_widest_pair_is_told(evidence: Evidence) -> None:
    rates, gap = said(counted(evidence, {name: (10 * i, 100) for i, name in enumerate("abcdef", 1)}, "race"))
    assert rates == (
        "The widest difference among 6 groups of race: of 100 people of group f 60 are predicted “good customer”, "
        "of 100 people of group a 10."
    )
    assert "widened because 15 were compared" in gap
    assert gap.startswith("The widest difference is 50.0 points")


def test_of_several_labels_the_widest_is_told(hard_evidence: Evidence) -> None:
    rates, gap = said(hard_evidence)
    assert " is in “" in rates
    assert "were compared" in gap


@pytest.mark.parametrize(("group", "words"), [("Female", "women"), ("age < 25", "people of group age < 25")])
def test_people_of_a_group(group: str, words: str) -> None:
    assert people_of(group) == words
