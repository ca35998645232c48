"""The estimate of a node's group from its features."""

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import Tensor

from fairpass.nn.calibration import GroupEstimator


def problem(nodes: int = 4000, groups: int = 2, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return features, groups that follow from them with known probabilities, and a mask of held-out nodes."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, 3, generator=generator)
    scores = torch.stack([torch.zeros(nodes), *(1.5 * x[:, k] - k for k in range(groups - 1))], 1)
    sens = torch.multinomial(scores.softmax(1), 1, generator=generator)[:, 0]
    held_out = torch.rand(nodes, generator=generator) < 0.25
    return 10 * x + 5, sens, held_out


@pytest.mark.parametrize("groups", [2, 3])
def test_probabilities_are_calibrated(groups: int) -> None:
    x, sens, held_out = problem(groups=groups)
    estimator = GroupEstimator()
    assert estimator.is_empty
    estimator.fit(x, sens, held_out, groups)
    new_x, new_sens, _ = problem(groups=groups, seed=1)
    probabilities = estimator(new_x)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(len(new_x)))
    for group in range(groups):
        p, is_member = probabilities[:, group].numpy(), (new_sens == group).numpy()
        for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0)):
            bin = (p >= low) & (p < high)
            if bin.sum() > 200:
                assert abs(p[bin].mean() - is_member[bin].mean()) < 0.06


def test_recovers_the_probabilities_that_made_the_groups() -> None:
    x, sens, held_out = problem(20_000)
    estimator = GroupEstimator()
    estimator.fit(x, sens, held_out, 2)
    true = expit(1.5 * (x[:, 0].numpy() - 5) / 10)
    assert float(np.abs(estimator(x)[:, 1].numpy() - true).mean()) < 0.02


def test_the_sensitive_column_itself_and_unknown_groups_play_no_part() -> None:
    x, sens, held_out = problem()
    x[:, 2] = sens.float()
    sens = sens.clone()
    sens[::3] = -1
    estimator = GroupEstimator()
    estimator.fit(x, sens, held_out, 2, sens_column=2)
    assert estimator.weight is not None
    assert bool((estimator.weight[:, 2] == 0).all())
    before = x.clone()
    other = x.clone()
    other[:, 2] = 99.0
    assert torch.equal(estimator(other), estimator(x))
    assert torch.equal(x, before)


def test_constant_features_and_a_group_that_nobody_is_in() -> None:
    x, sens, held_out = problem()
    x[:, 1] = 7.0
    estimator = GroupEstimator()
    estimator.fit(x, sens, held_out, 3)
    probabilities = estimator(x)
    assert bool(probabilities.isfinite().all())
    assert float(probabilities[:, 2].max()) < 1e-6


def test_without_held_out_nodes_nothing_is_calibrated() -> None:
    x, sens, _ = problem()
    estimator = GroupEstimator()
    estimator.fit(x, sens, torch.zeros(len(x), dtype=torch.bool), 2)
    assert bool(estimator(x).isfinite().all())


def test_must_be_fitted_and_must_fit() -> None:
    estimator = GroupEstimator()
    with pytest.raises(ValueError, match="must be fitted"):
        estimator(torch.ones(1, 3))
    estimator.check(2, 3)
    estimator.fit(*problem(), 2)
    estimator.check(2, 3)
    with pytest.raises(ValueError, match=r"'weight' must have shape \(3, 3\)"):
        estimator.check(3, 3)
