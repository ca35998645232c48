"""The smallest difference that test nodes can show."""

import math

import numpy as np
import pytest
import torch

from fairpass.datasets import load
from fairpass.errors import DataError
from fairpass.metrics import detectable, evaluate
from fairpass.metrics.detectable import detectable_by, detectable_difference


def test_an_unbiased_predictor_stays_below_it_in_95_percent() -> None:
    generator = np.random.default_rng(0)
    sizes, rate = [170, 80], 0.7
    draws = [generator.binomial(n, rate, 4000) / n for n in sizes]
    share = (np.abs(draws[0] - draws[1]) < detectable_difference(sizes, rate)).mean()
    assert share == pytest.approx(0.95, abs=0.012)


def test_german_cannot_show_ten_points() -> None:
    data = load("german")
    found = detectable(data.y[data.test_mask], data.sens[data.test_mask])
    assert found.nodes == 250
    assert 0.10 < found.delta_dp < 0.14
    assert "with 250 test nodes, a ΔDP below 11.7 or a ΔEO below 12.7 points" in found.sentence


def test_the_same_from_an_evaluation() -> None:
    generator = torch.Generator().manual_seed(0)
    y, sens = torch.randint(2, (300,), generator=generator), torch.randint(2, (300,), generator=generator)
    scores = torch.rand(300, generator=generator)
    assert detectable_by(evaluate(y, scores, sens=sens)) == pytest.approx(detectable(y, sens))


def test_more_labels_and_groups_take_the_largest() -> None:
    y, sens = np.repeat([0, 1, 2], 100), np.tile([0, 0, 0, 0, 0, 1, 1, 1, 2, 2], 30)
    found = detectable(y, sens)
    assert found.delta_dp == pytest.approx(detectable_difference([90, 60], 1 / 3))
    assert found.delta_eo == pytest.approx(detectable_difference([30, 20], 0.8))


def test_unknown_nodes_do_not_count_and_empty_groups_show_nothing() -> None:
    assert detectable([1, 0, 1, -1, 1], [0, 1, 1, 0, -1]).nodes == 3
    assert math.isnan(detectable_difference([10, 0], 0.5))
    assert math.isnan(detectable_difference([10], 0.5))
    assert math.isnan(detectable([], []).delta_dp)


def test_wrong_nodes_of_a_split() -> None:
    with pytest.raises(DataError, match=rf"'sens' must be below 1,000 \(got {10**9}\)"):
        detectable([0, 1], [0, 10**9])
    with pytest.raises(DataError, match=rf"'y' must be below 1,000 \(got {2**62}\)"):
        detectable([0, 2**62], [0, 1])
    with pytest.raises(DataError, match=r"'sens' must have shape \[2\], one for each node \(got \[3\]\)"):
        detectable([0, 1], [0, 1, 1])
