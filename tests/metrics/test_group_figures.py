"""The figures of an audit: what counts give, against the definitions."""

import math

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_score

from fairpass.errors import DataError
from fairpass.metrics import GroupCounts, calibration, group_figures, widest_gap
from fairpass.metrics.proportions import difference, proportion, ratio

WHITE = GroupCounts("white", people=400, positives=200, selected=240, true=160)
BLACK = GroupCounts("black", people=100, positives=40, selected=40, true=30)
FEW = GroupCounts("native", people=5, positives=5, selected=5, true=5)


def test_figures_are_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    y, pred = generator.integers(0, 2, 300), generator.integers(0, 2, 300)
    own = GroupCounts("all", 300, int(y.sum()), int(pred.sum()), int((y & pred).sum()))
    (found,) = group_figures([own])
    (tn, fp), (fn, tp) = confusion_matrix(y, pred)
    assert found.false_positive_rate.value == pytest.approx(fp / (fp + tn))
    assert found.false_negative_rate.value == pytest.approx(fn / (fn + tp))
    assert found.precision.value == pytest.approx(precision_score(y, pred))
    assert found.selection_rate == proportion(int(pred.sum()), 300)
    assert found.precision == proportion(int(tp), int(tp + fp))


def test_the_group_selected_most_often_is_the_reference() -> None:
    white, black = group_figures([WHITE, BLACK])
    assert white.is_reference
    assert white.impact_ratio == (1, 1, 1)
    assert black.impact_ratio == ratio(40, 100, 240, 400)
    assert black.impact_ratio.value == pytest.approx(0.4 / 0.6)


def test_a_small_category_is_not_compared() -> None:
    white, black, few = group_figures([WHITE, BLACK, FEW], least_share=0.02)
    assert few.excluded
    assert not few.is_reference
    assert math.isnan(few.impact_ratio.value)
    assert few.selection_rate.value == 1
    assert white.is_reference
    assert black.impact_ratio.value == pytest.approx(0.4 / 0.6)
    assert group_figures([WHITE, BLACK, FEW])[2].is_reference  # without the rule


def test_nobody_selected_gives_no_ratio() -> None:
    rows = group_figures([GroupCounts("a", 20, 5, 0, 0), GroupCounts("b", 20, 5, 0, 0), GroupCounts("c", 0, 0, 0, 0)])
    assert all(math.isnan(row.impact_ratio.value) for row in rows)
    assert math.isnan(rows[0].precision.value)
    assert rows[2].excluded
    assert group_figures([]) == ()


def test_the_widest_gap_is_corrected_for_being_the_widest() -> None:
    gap = widest_gap([WHITE, BLACK])
    assert gap is not None
    assert (gap.high.group, gap.low.group, gap.pairs) == ("white", "black", 1)
    assert gap.difference == difference(240, 400, 40, 100)
    middle = GroupCounts("asian", 100, 50, 50, 25)
    among = widest_gap([BLACK, middle, WHITE], comparisons=2)
    assert among is not None
    assert (among.high.group, among.low.group, among.pairs) == ("white", "black", 3)
    assert among.difference == difference(240, 400, 40, 100, level=1 - 0.05 / 6)
    assert widest_gap([WHITE, GroupCounts("nobody", 0, 0, 0, 0)]) is None


def test_the_widest_gap_that_can_be_shown() -> None:
    few = GroupCounts("few", 5, 2, 1, 1)
    gap = widest_gap([WHITE, BLACK, few])
    assert gap is not None
    assert (gap.high.group, gap.low.group) == ("white", "few")
    assert gap.difference.includes_zero
    assert gap.shown is not None
    assert (gap.shown.high.group, gap.shown.low.group) == ("white", "black")
    alike = widest_gap([few, GroupCounts("other", 5, 2, 2, 1)])
    assert alike is not None
    assert alike.shown is None


def test_calibration_of_true_probabilities() -> None:
    generator = np.random.default_rng(0)
    scores = generator.random(20_000)
    found = calibration(scores, generator.random(20_000) < scores)
    assert found.in_the_large.value == pytest.approx(0, abs=0.01)
    assert found.in_the_large.includes_zero
    assert found.mean_score - found.share == pytest.approx(found.in_the_large.value)
    assert sum(each.people for each in found.bins) == 20_000
    for each in found.bins:
        assert each.low <= each.mean_score <= each.high
        assert each.positives / each.people == pytest.approx(each.mean_score, abs=0.03)


def test_scores_that_are_too_high_are_seen() -> None:
    found = calibration([0.9, 0.8, 1.0, 0.0], [True, False, False, False], bins=2)
    assert found.in_the_large.value == pytest.approx(0.675 - 0.25)
    assert [each.people for each in found.bins] == [1, 3]
    assert found.bins[1].positives == 1
    empty = calibration([0.1], [False])
    assert math.isnan(empty.in_the_large.low)
    assert math.isnan(empty.bins[4].mean_score)


def test_calibration_wants_probabilities() -> None:
    with pytest.raises(DataError, match=r"'bins' must be at least 1 \(got 0\)"):
        calibration([0.2, 0.3], [True, False], bins=0)
    with pytest.raises(DataError, match=r"'scores' must lie between 0 and 1 \(got -2 to 3\)"):
        calibration([-2.0, 3.0], [True, False])
    with pytest.raises(
        DataError, match=r"'scores' and 'has_label' must have one shape \[N\] \(got \(2,\) and \(1,\)\)"
    ):
        calibration([0.2, 0.3], [True])
