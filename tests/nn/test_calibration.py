"""Calibrated probabilities against scikit-learn's isotonic regression, and what a calibration must be."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from tests.drawing import examples
from torch import Tensor

from fairpass.nn.calibration import KNOTS, calibrate, calibrated


def problem(seed: int, n: int, classes: int = 2, groups: int = 2, ties: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Return logits, labels that follow them, and groups."""
    random = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn((n, classes), generator=random, dtype=torch.float64)
    if ties:
        logits = logits.round()
    sens = torch.randint(groups, (n,), generator=random)
    # In each group the label follows the logits to another degree.
    tempered = (logits * (0.3 + sens[:, None])).softmax(-1)
    y = torch.multinomial(tempered, 1, generator=random)[:, 0]
    sens[: groups * classes] = torch.arange(groups).repeat_interleave(classes)
    y[: groups * classes] = torch.arange(classes).repeat(groups)
    return logits, y, sens


def isotonic(scores: Tensor, positive: Tensor, at: Tensor) -> NDArray[np.float64]:
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores.numpy(), positive.double().numpy())
    return np.asarray(fitted.predict(at.numpy()), dtype=np.float64)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [8, 60, KNOTS])
def test_few_nodes_agree_with_scikit_learn(n: int, ties: bool) -> None:
    logits, y, sens = problem(n, n, ties=ties)
    score = logits[:, 1] - logits[:, 0]
    tables = calibrate(logits, y, sens, 2)
    assert tables.shape == (2, 1, 2, KNOTS)
    # Each node of a group has a knot of its own, so that nothing is lost; between them both are linear.
    at = torch.cat([score, torch.linspace(-9, 9, 101, dtype=torch.float64)])
    new = torch.stack([torch.zeros_like(at), at], 1)
    for group in (0, 1):
        mine = sens == group
        found = calibrated(new, torch.full((len(at),), group), tables)
        expected = isotonic(score[mine], y[mine] == 1, at)
        np.testing.assert_allclose(found[:, 1].numpy(), expected, atol=1e-12)
        torch.testing.assert_close(found.sum(-1), torch.ones(len(at), dtype=torch.float64))


@pytest.mark.parametrize("ties", [False, True])
def test_many_nodes_agree_with_scikit_learn_at_the_knots(ties: bool) -> None:
    logits, y, sens = problem(0, 5000, ties=ties)
    score = logits[:, 1] - logits[:, 0]
    tables = calibrate(logits, y, sens, 2)
    for group in (0, 1):
        mine = sens == group
        knots, values = tables[group, 0]
        np.testing.assert_allclose(values.numpy(), isotonic(score[mine], y[mine] == 1, knots), atol=1e-12)
        # Between two knots both rise from the one value to the other; here no step is higher than this.
        found = calibrated(logits[mine], sens[mine], tables)[:, 1]
        expected = isotonic(score[mine], y[mine] == 1, score[mine])
        assert float(np.abs(found.numpy() - expected).max()) <= float(values.diff().max()) + 1e-12
        assert float(np.abs(found.numpy() - expected).mean()) < 0.01


@examples(40)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(8, 300),
    ties=st.booleans(),
    single=st.booleans(),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_probabilities_rise_with_the_score(seed: int, n: int, ties: bool, single: bool, scale: float) -> None:
    logits, y, sens = problem(seed, n, ties=ties)
    logits = scale * (logits.float() if single else logits)
    tables = calibrate(logits, y, sens, 2)
    assert tables.dtype == logits.dtype
    assert bool((tables.diff(dim=-1) >= 0).all())
    score = scale * torch.linspace(-20, 20, 401, dtype=logits.dtype)
    new = torch.stack([torch.zeros_like(score), score], 1)
    for group in (-1, 0, 1):
        found = calibrated(new, torch.full((401,), group), tables)[:, 1]
        assert bool((found.diff() >= -1e-6).all())
        assert float(found.min()) >= 0
        assert float(found.max()) <= 1


def test_equal_scores_have_one_probability_whatever_the_order() -> None:
    y = torch.tensor([1, 0, 1, 0, 0, 1, 1, 1])
    sens = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    logits = torch.zeros(8, 2, dtype=torch.float64)
    for order in (torch.arange(8), torch.arange(7, -1, -1)):
        found = calibrated(logits, sens, calibrate(logits[order], y[order], sens[order], 2))
        assert found[:, 1].tolist() == [0.5] * 4 + [0.75] * 4


@pytest.mark.parametrize("classes", [2, 3])
def test_a_batch_is_its_members_one_by_one(classes: int) -> None:
    first, y, sens = problem(1, 90, classes, groups=3)
    batch = torch.stack([first, 3 * first.flip(-1), first.roll(1, 0)])
    tables = calibrate(batch, y, sens, 3)
    assert tables.shape == (3, 3, 1 if classes == 2 else 3, 2, KNOTS)
    found = calibrated(batch, sens, tables)
    for k in range(3):
        torch.testing.assert_close(tables[k], calibrate(batch[k], y, sens, 3))
        torch.testing.assert_close(found[k], calibrated(batch[k], sens, tables[k]))


def test_three_labels_sum_to_one_and_match_their_frequencies() -> None:
    logits, y, sens = problem(2, 4000, 3)
    found = calibrated(logits, sens, calibrate(logits, y, sens, 2))
    torch.testing.assert_close(found.sum(-1), torch.ones(4000, dtype=torch.float64))
    assert bool((found >= 0).all())
    for group in (0, 1):
        for label in range(3):
            mine, chance = sens == group, found[:, label]
            assert float(chance[mine].mean()) == pytest.approx(float((y[mine] == label).double().mean()), abs=0.02)
            # Also among the nodes that are thought unlikely, and among those thought likely.
            for low, high in ((0.0, 0.3), (0.3, 0.6), (0.6, 1.01)):
                some = mine & (chance >= low) & (chance < high)
                frequency = float((y[some] == label).double().mean())
                assert float(chance[some].mean()) == pytest.approx(frequency, abs=0.06)


def test_three_labels_of_the_same_group_are_each_against_the_rest() -> None:
    logits, y, sens = problem(3, 40, 3)
    tables = calibrate(logits, y, sens, 2)
    probabilities = logits.softmax(-1)
    raw = []
    for label in range(3):
        score = torch.logit(probabilities[:, label])
        columns = [isotonic(score[sens == a], y[sens == a] == label, score) for a in (0, 1)]
        raw.append(np.where(sens.numpy() == 0, *columns))
    expected = np.stack(raw, 1) / np.stack(raw, 1).sum(1, keepdims=True)
    np.testing.assert_allclose(calibrated(logits, sens, tables).numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("groups", [2, 3])
def test_an_unknown_group_gets_the_mean_over_the_groups(groups: int) -> None:
    logits, y, sens = problem(4, 120, groups=groups)
    tables = calibrate(logits, y, sens, groups)
    each = [calibrated(logits, torch.full_like(sens, a), tables) for a in range(groups)]
    torch.testing.assert_close(calibrated(logits, torch.full_like(sens, -1), tables), torch.stack(each).mean(0))


def test_nodes_of_unknown_group_are_left_out_of_the_fit() -> None:
    logits, y, sens = problem(5, 120)
    partly = torch.where(torch.arange(120) % 3 == 2, -1, sens)
    known = partly >= 0
    torch.testing.assert_close(
        calibrate(logits, y, partly, 2), calibrate(logits[known], y[known], partly[known], 2), rtol=0, atol=0
    )


def test_huge_logits_do_no_harm() -> None:
    logits, y, sens = problem(6, 120, 3)
    logits = (1e4 * logits).float()
    found = calibrated(logits, sens, calibrate(logits, y, sens, 2))
    assert bool(torch.isfinite(found).all())
    torch.testing.assert_close(found.sum(-1), torch.ones(120))
