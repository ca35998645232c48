"""The Laplace kernel, whose sums visit all pairs."""

from unittest import mock

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import laplacian_kernel
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from fairpass.kernels import laplace_sum, pairwise


def problem(seed: int, n: int = 40, m: int = 30, d: int = 2, q: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    t, s, w = (torch.randn(shape, generator=random, dtype=torch.float64) for shape in ((n, d), (m, d), (m, q)))
    return t, s, w


@pytest.mark.parametrize("d", [1, 2, 5, 16])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
def test_agrees_with_scikit_learn(d: int, alpha: float) -> None:
    t, s, w = problem(d, d=d)
    theirs = laplacian_kernel(t.numpy(), s.numpy(), gamma=alpha) @ w.numpy()
    np.testing.assert_allclose(laplace_sum(t, s, w, alpha).numpy(), theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("d", "tile_pairs"), [(1, 5), (2, 10), (2, pairwise.TILE_PAIRS), (4, 30)])
def test_gradients_away_from_ties(d: int, tile_pairs: int) -> None:
    # No two coordinates are nearer than the step of the finite differences: the kernel has a kink at zero.
    places = torch.linspace(-2, 2, 11 * d, dtype=torch.float64)
    mixed = places[torch.randperm(11 * d, generator=torch.Generator().manual_seed(d))].reshape(11, d)
    inputs = [mixed[:6].clone(), mixed[6:].clone(), problem(d, m=5, q=2)[2]]
    leaves = [x.requires_grad_() for x in inputs]
    with mock.patch.object(pairwise, "TILE_PAIRS", tile_pairs):
        assert gradcheck(lambda t, s, w: laplace_sum(t, s, w, 0.8), leaves)
        assert gradgradcheck(lambda t, s, w: laplace_sum(t, s, w, 0.8), leaves)


def test_equal_points_do_not_pull_on_each_other() -> None:
    x = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True)
    total = laplace_sum(x, x, torch.ones(4, 1, dtype=torch.float64), 1.0).sum()
    (gradient,) = torch.autograd.grad(total, x)
    assert not gradient.any()


def test_batch_equals_one_by_one() -> None:
    t, s, w = problem(3)
    alpha = torch.tensor([0.1, 4.0], dtype=torch.float64)
    together = laplace_sum(t, s, w, alpha)
    for k, a in enumerate(alpha.tolist()):
        torch.testing.assert_close(together[k], laplace_sum(t, s, w, a))


def test_arguments_are_checked() -> None:
    t, s, w = problem(4)
    with pytest.raises(ValueError, match="'alpha' must be positive and finite"):
        laplace_sum(t, s, w, 0.0)
    with pytest.raises(ValueError, match="'targets' and 'sources' must have points of the same dimension"):
        laplace_sum(t, s[:, :1], w, 1.0)
    with pytest.raises(ValueError, match="'sources' must be finite"):
        laplace_sum(t, s / 0, w, 1.0)
