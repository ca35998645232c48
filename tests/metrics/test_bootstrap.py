from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.effort import calls

from fairpass.errors import DataError
from fairpass.metrics import bootstrap_intervals, evaluate, paired_differences
from fairpass.metrics.bootstrap import draw_weights
from fairpass.metrics.inputs import Sample

Make = Callable[..., SimpleNamespace]
METRICS = ["auc", "f1", "acc", "balanced_acc", "delta_dp", "delta_eo", "equalized_odds"]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_resample_is_measured_as_evaluate_would(make_problem: Make, classes: int, seed: int) -> None:
    p = make_problem(seed, n=80, classes=classes, groups=3, unknown=True)
    sample = Sample(p.y, None, p.sens, scores=p.scores)
    (weights,) = draw_weights(sample.y * 10 + sample.sens, 3, seed=0)
    found = sample.measure(sample.nodes.counts(sample.pred, sample.scores, weights))
    for i, row in enumerate(weights.long().numpy()):
        nodes = np.repeat(np.arange(80), row)
        expected = evaluate(p.y[nodes], p.scores[nodes], sens=p.sens[nodes])
        for name in METRICS:
            assert float(found[name][i]) == pytest.approx(getattr(expected, name)), name


def test_strata_keep_their_sizes() -> None:
    strata = torch.from_numpy(np.random.default_rng(0).integers(5, size=200))
    (weights,) = draw_weights(strata, 50, seed=1)
    for stratum in range(5):
        drawn = weights[:, strata == stratum].sum(1)
        assert (drawn == int((strata == stratum).sum())).all()
    assert weights.mean(0).sub(1).abs().max() < 1  # every node is drawn, about once on average


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("classes", [2, 3])
def test_holds_the_estimate(make_problem: Make, groups: int, classes: int) -> None:
    p = make_problem(11, n=200, groups=groups, classes=classes)
    e = evaluate(p.y, p.scores, sens=p.sens, bootstrap=100)
    assert list(e.intervals) == METRICS
    for name, interval in e.intervals.items():
        assert interval.low <= getattr(e, name) + 1e-12
        assert interval.high >= getattr(e, name) - 1e-12
        assert 0 <= interval.low < interval.high <= 1


def test_seeded_and_inputs_stay(make_problem: Make) -> None:
    p = make_problem(2, unknown=True)
    kept = p.y.copy(), p.scores.copy(), p.sens.copy()
    first = bootstrap_intervals(p.y, p.scores, sens=p.sens, resamples=50, seed=3)
    assert bootstrap_intervals(p.y, p.scores, sens=p.sens, resamples=50, seed=3) == first
    assert bootstrap_intervals(p.y, p.scores, sens=p.sens, resamples=50, seed=4) != first
    assert all((a == b).all() for a, b in zip(kept, (p.y, p.scores, p.sens), strict=True))


def test_narrows_with_nodes_and_widens_with_level(make_problem: Make) -> None:
    def width(n: int, level: float = 0.95) -> float:
        p = make_problem(4, n=n)
        interval = bootstrap_intervals(p.y, p.scores, sens=p.sens, resamples=400, level=level)["auc"]
        assert interval.level == level
        return interval.high - interval.low

    assert 2 < width(100) / width(1600) < 8  # 4 in expectation
    assert width(400, 0.5) < width(400) < width(400, 0.99)


def test_covers_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        y, sens = np.arange(200) % 2, np.arange(200) // 2 % 2
        right = random.random(200) < 0.8
        scores = np.where(right == (y == 1), 0.9, 0.1)
        interval = bootstrap_intervals(y, scores, sens=sens, resamples=200, seed=trial)["acc"]
        covered += interval.low <= 0.8 <= interval.high
    assert 0.90 <= covered / 200 <= 0.99


def test_many_resamples_are_one_piece_of_work(make_problem: Make) -> None:
    p = make_problem(6, n=5000)
    assert calls(lambda: bootstrap_intervals(p.y, p.scores, sens=p.sens, resamples=2000)) < 2000


def test_wrong_arguments(make_problem: Make) -> None:
    p = make_problem(0)
    with pytest.raises(DataError, match=r"'resamples' must be at least 1 \(got 0\)"):
        bootstrap_intervals(p.y, p.scores, sens=p.sens, resamples=0)
    with pytest.raises(DataError, match=r"'resamples' must be a whole number \(got 1.5\)"):
        bootstrap_intervals(p.y, p.scores, sens=p.sens, resamples=1.5)  # type: ignore[arg-type] # wrong on purpose
    with pytest.raises(DataError, match=r"'seed' must be at least 0 \(got -1\)"):
        bootstrap_intervals(p.y, p.scores, sens=p.sens, seed=-1)
    with pytest.raises(DataError, match=r"'level' must lie between 0 and 1 \(got 95\)"):
        bootstrap_intervals(p.y, p.scores, sens=p.sens, level=95)


def _two_predictors(n: int = 400) -> tuple[Sample, Sample, Sample]:
    generator = torch.Generator().manual_seed(3)
    y, sens = (torch.randint(2, (n,), generator=generator) for _ in range(2))
    noise = torch.rand(n, generator=generator)
    fair, unfair = 0.3 * y + 0.6 * noise, 0.3 * y + 0.4 * sens + 0.3 * noise
    return tuple(Sample(y, None, sens, scores=scores) for scores in (fair, unfair, fair.clone()))  # type: ignore[return-value] # three


def test_a_predictor_does_not_differ_from_itself() -> None:
    first, _, same = _two_predictors()
    assert set(paired_differences(first, same, resamples=50).values()) == {(0.0, 0.0, 0.0)}


def test_differences_are_between_the_metrics_and_paired() -> None:
    fair, unfair, _ = _two_predictors()
    found = paired_differences(fair, unfair, resamples=400)
    one, two = (each.measure(each.counts) for each in (fair, unfair))
    for key, estimate in found.items():
        assert estimate.value == pytest.approx(float(one[key] - two[key]))
        assert estimate.low <= estimate.value <= estimate.high
    assert found["delta_dp"].high < 0
    other = paired_differences(unfair, fair, resamples=400)["delta_dp"]
    assert other == pytest.approx((-found["delta_dp"].value, -found["delta_dp"].high, -found["delta_dp"].low))
    # What the choice of nodes does to both alike cancels out: shifted scores rank alike, so AUC does not differ at all.
    shifted = Sample(fair.y, None, fair.sens, scores=fair.scores / 2)
    assert paired_differences(fair, shifted, resamples=100)["auc"] == (0.0, 0.0, 0.0)


def test_differences_are_about_the_same_nodes() -> None:
    first, _, _ = _two_predictors()
    other, _, _ = _two_predictors(399)
    with pytest.raises(DataError, match="'first' and 'second' must be about the same nodes"):
        paired_differences(first, other)
    with pytest.raises(DataError, match=r"'resamples' must be at least 1 \(got 0\)"):
        paired_differences(first, first, resamples=0)
