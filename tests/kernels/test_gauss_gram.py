"""The quadratic forms of the Gaussian kernel, from moments alone."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from torch import Tensor

from fairpass.kernels.sums import gauss_gram

Make = Callable[..., Tensor]


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    shape=st.integers(0, 7),
    n=st.sampled_from([1, 40, 400]),  # by pairs, and from moments
    d=st.integers(1, 3),
    log_scale=st.floats(-2, 3),
    eps=st.sampled_from([1e-3, 1e-7, 1e-10]),
)
def test_error_is_within_eps(
    cloud: Make, oracle: Make, seed: int, shape: int, n: int, d: int, log_scale: float, eps: float
) -> None:
    points = 10**log_scale * cloud(shape, seed, n, d)
    w = torch.randn((n, 3), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    size = w.abs().sum(0)
    error = gauss_gram(points, w, 0.5, eps=eps) - w.mT @ oracle(points, points, w, 0.5)
    assert bool((error.abs() <= (eps + 1e-13) * size * size[:, None]).all())


@pytest.mark.parametrize("n", [40, 400])
def test_batch_equals_one_by_one(n: int) -> None:
    points, w = torch.randn((2, 2, n, 2), generator=torch.Generator().manual_seed(n))
    alpha = torch.tensor([0.2, 5.0])
    together = gauss_gram(points, w, alpha)
    for k in range(2):
        one = gauss_gram(points[k], w[k], float(alpha[k]))
        torch.testing.assert_close(together[k], one, rtol=0, atol=1e-6 * n**2)


def test_has_no_gradient() -> None:
    points = torch.randn(300, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert not gauss_gram(points, points, 1.0).requires_grad


@pytest.mark.parametrize("d", [2, 5])
def test_of_slices(oracle: Make, d: int) -> None:
    points, w = torch.randn((2, 40, d), generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    found = gauss_gram(points, w, 0.5, backend="sliced")
    torch.testing.assert_close(found, w.mT @ oracle(points, points, w, 0.5, "sliced"))


def test_errors_name_the_argument() -> None:
    points = torch.randn(5, 2)
    with pytest.raises(ValueError, match="'alpha' must be positive and finite"):
        gauss_gram(points, points, 0.0)
    with pytest.raises(ValueError, match="'points' must be finite"):
        gauss_gram(points / 0, points, 1.0)
