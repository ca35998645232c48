"""The quadratic form of the Gaussian kernel, from moments alone."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairpass.kernels.sums import gauss_form

Make = Callable[..., Tensor]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    shape=st.integers(0, 7),
    n=st.sampled_from([1, 40, 400]),  # by pairs, and from moments
    d=st.integers(1, 3),
    log_scale=st.floats(-2, 3),
    eps=st.sampled_from([1e-3, 1e-7, 1e-10]),
    same=st.booleans(),
)
def test_error_is_within_eps(
    cloud: Make, oracle: Make, seed: int, shape: int, n: int, d: int, log_scale: float, eps: float, same: bool
) -> None:
    points = 10**log_scale * cloud(shape, seed, n, d)
    left, right = torch.randn((2, n, 3), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if same:
        right = left
    wanted = (left * oracle(points, points, right, 0.5)).sum()
    size = (left.abs().sum(0) * right.abs().sum(0)).sum()
    error = gauss_form(points, left, right, 0.5, eps=eps) - wanted
    assert abs(float(error)) <= (eps + 1e-13) * float(size)


@pytest.mark.parametrize("n", [40, 400])
def test_batch_equals_one_by_one(n: int) -> None:
    points, left, right = torch.randn((3, 2, n, 2), generator=torch.Generator().manual_seed(n))
    alpha = torch.tensor([0.2, 5.0])
    together = gauss_form(points, left, right, alpha)
    for k in range(2):
        one = gauss_form(points[k], left[k], right[k], float(alpha[k]))
        torch.testing.assert_close(together[k], one, rtol=0, atol=1e-6 * n**2)


def test_has_no_gradient() -> None:
    points = torch.randn(300, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert not gauss_form(points, points, points, 1.0).requires_grad


def test_errors_name_the_argument() -> None:
    points = torch.randn(5, 2)
    with pytest.raises(ValueError, match="'alpha' must be positive and finite"):
        gauss_form(points, points, points, 0.0)
    with pytest.raises(ValueError, match="'points' must be finite"):
        gauss_form(points / 0, points, points, 1.0)
