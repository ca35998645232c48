"""Slopes of Gaussian sums: against the pairs in float64, against autograd, and to any order."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from tests.kernels.backends import BACKENDS, WITHOUT_EPS
from torch import Tensor
from torch.autograd import backward, gradcheck, gradgradcheck

from fairpass.kernels import gauss_slope, gauss_sum
from fairpass.kernels.backend import KernelBackend
from fairpass.kernels.directions import default_directions, draw
from fairpass.kernels.dispatch import Backend

Make = Callable[..., Tensor]
Context = Callable[[], AbstractContextManager[None]]

every_backend = pytest.mark.parametrize("backend", BACKENDS)
low_dimension = pytest.mark.parametrize("d", [1, 2, 3])
WIDEST = {1: 300.0, 2: 15.0, 3: 2.5}  # reaches, for the spectral backend


def problem(seed: int, n: int = 40, d: int = 2, q: int = 3) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    points, strengths = (torch.randn(shape, generator=random, dtype=torch.float64) for shape in ((n, d), (n, q)))
    return points, strengths


def by_pairs(points: Tensor, strengths: Tensor, alpha: float, backend: Backend = "dense") -> Tensor:
    """Return `2 alpha sum_j k_ij (x_j - x_i) w_j` in float64, by differences; the sliced kernel has other slopes."""
    x, w = points.detach().double(), strengths.detach().double()
    difference = x[None] - x[:, None]
    if backend == "sliced":
        rule = draw(x.shape[1], default_directions(x.shape[1]))
        frequencies = math.sqrt(2 * alpha) * torch.from_numpy(rule.frequencies)
        slopes = torch.sin(difference @ frequencies.mT) * torch.from_numpy(rule.weights) @ frequencies
        return torch.einsum("ijd,jq->iqd", slopes, w)
    kernel = torch.exp(-alpha * difference.square().sum(-1))
    return 2 * alpha * torch.einsum("ij,ijd,jq->iqd", kernel, difference, w)


def reference(backend: Backend) -> Backend:
    """Return the backend that is right about the kernel of this one."""
    return "sliced" if backend == "sliced" else "dense"


@every_backend
@examples(40)
@given(
    seed=st.integers(0, 10_000),
    shape=st.integers(0, 7),
    d=st.integers(1, 3),
    log_alpha=st.floats(-3, 3),
    width=st.floats(0, 1),
    offset=st.sampled_from([0.0, 1e3]),
    eps=st.sampled_from([1e-3, 1e-7, 1e-10]),
)
def test_error_is_a_few_eps(
    cloud: Make,
    eager_cuts: Context,
    backend: Backend,
    seed: int,
    shape: int,
    d: int,
    log_alpha: float,
    width: float,
    offset: float,
    eps: float,
) -> None:
    alpha = 10**log_alpha
    widest = WIDEST[d] if backend == "spectral" else 1e3
    span = math.sqrt(math.log(1 / eps) / alpha) * 10 ** (-2 + width * (2 + math.log10(widest)))
    points = span / 2 * (cloud(shape, seed, 150, d) + 2 * offset)
    w = problem(seed, 150)[1]
    with eager_cuts():
        slopes, gram = gauss_slope(points, w, alpha, eps=eps, backend=backend)
    unit = w.abs().sum(0)
    error = (slopes - by_pairs(points, w, alpha, backend)).abs().amax(-1) / (math.sqrt(alpha) * unit)
    # Rounding counts the coordinates' digits: two of them differ by no less than that of the larger one.
    rounding = 64 * torch.finfo(torch.float64).eps * (1 + math.sqrt(alpha) * span * (1 + offset))
    assert float(error.max()) <= (0 if backend in WITHOUT_EPS else 6 * eps) + rounding
    wanted = w.mT @ gauss_sum(points, points, w, alpha, backend=reference(backend))
    assert float(((gram - wanted).abs() / (unit * unit[:, None])).max()) <= eps + 1e-13


@every_backend
@low_dimension
def test_is_the_gradient_of_the_sum(backend: Backend, d: int) -> None:
    x, w = problem(d, d=d, q=2)
    at = x.clone().requires_grad_()
    slopes, _ = gauss_slope(x, w, 0.7, backend=backend, eps=1e-10)
    for column in range(2):
        total = gauss_sum(at, x, w, 0.7, backend=reference(backend))[:, column].sum()
        (wanted,) = torch.autograd.grad(total, at)
        torch.testing.assert_close(slopes[:, column], wanted, rtol=0, atol=1e-7)


@every_backend
@low_dimension
def test_gradients(backend: Backend, d: int) -> None:
    inputs = [x.requires_grad_() for x in problem(d, 5, d, 2)]

    def of(x: Tensor, w: Tensor) -> Tensor:
        return gauss_slope(x, w, 0.8, eps=1e-12, backend=backend)[0]

    assert gradcheck(of, inputs, fast_mode=d == 3)
    assert gradgradcheck(of, inputs, fast_mode=d == 3)


@pytest.mark.parametrize("backend", ["tiled", "split", "auto"])
def test_gradients_over_a_wide_span(eager_cuts: Context, backend: Backend) -> None:
    x, w = problem(1, 6, 2, 2)
    x = 30 * x
    x[:3] = x[3:] + 0.3
    inputs = [x.requires_grad_(), w.requires_grad_()]
    with eager_cuts():
        assert gradcheck(lambda x, w: gauss_slope(x, w, 0.8, eps=1e-12, backend=backend)[0], inputs)
        assert gradgradcheck(lambda x, w: gauss_slope(x, w, 0.8, eps=1e-12, backend=backend)[0], inputs, fast_mode=True)


@every_backend
def test_strengths_may_be_constants(backend: Backend) -> None:
    x, w = problem(2, 5)
    x.requires_grad_()
    assert gradgradcheck(lambda x: gauss_slope(x, w, 0.8, eps=1e-12, backend=backend)[0], [x])


@every_backend
def test_points_may_be_constants(backend: Backend) -> None:
    x, w = problem(3, 5)
    w.requires_grad_()
    assert gradcheck(lambda w: gauss_slope(x, w, 0.8, eps=1e-12, backend=backend)[0], [w])


@every_backend
def test_quadratic_forms_come_as_constants(oracle: Make, backend: Backend) -> None:
    x, w = (z.requires_grad_() for z in problem(4))
    slopes, gram = gauss_slope(x, w, 1.3, backend=backend, eps=1e-10)
    assert slopes.requires_grad
    assert not gram.requires_grad
    torch.testing.assert_close(gram, w.detach().mT @ oracle(x, x, w, 1.3, backend))


@every_backend
def test_batch_equals_one_by_one(eager_cuts: Context, backend: Backend) -> None:
    x, w = (torch.stack([z, 5 * z.flip(0), 0.1 * z]) for z in problem(5))
    alpha = torch.tensor([0.01, 1.0, 30.0], dtype=torch.float64)
    with eager_cuts():
        slopes, gram = gauss_slope(x, w, alpha, backend=backend, eps=1e-12)
        assert slopes.shape == (3, 40, 3, 2)
        for k in range(3):
            one = gauss_slope(x[k], w[k], float(alpha[k]), backend=backend, eps=1e-12)
            torch.testing.assert_close((slopes[k], gram[k]), one, rtol=0, atol=1e-9)


@every_backend
def test_non_contiguous_points(backend: Backend) -> None:
    x, w = problem(6, 300)
    strided = torch.stack([x.mT, -x.mT], -1)[..., 0].mT
    found, wanted = (gauss_slope(z, w, 1.0, backend=backend) for z in (strided, x))
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


@every_backend
def test_no_points(backend: Backend) -> None:
    slopes, gram = gauss_slope(torch.zeros(0, 2), torch.zeros(0, 3), 1.0, backend=backend)
    assert slopes.shape == (0, 3, 2)
    assert torch.equal(gram, torch.zeros(3, 3))


@every_backend
def test_inputs_are_not_changed(backend: Backend) -> None:
    inputs = [x.requires_grad_() for x in problem(7, 300)]
    before = [x.detach().clone() for x in inputs]
    backward(gauss_slope(inputs[0], inputs[1], 1.0, backend=backend)[0].square().sum())
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))


@every_backend
def test_far_from_the_origin_no_digits_are_lost(backend: Backend) -> None:
    x, w = (z.float() for z in problem(8, 400))
    x = x + 1e4
    slopes, _ = gauss_slope(x, w, 1.0, backend=backend)
    error = (slopes.double() - by_pairs(x, w, 1.0, backend)).abs().amax((0, 2))
    assert bool((error <= 4e-6 * w.double().abs().sum(0)).all())


def test_each_piece_of_a_wide_problem_has_its_own_origin() -> None:
    x, w = (z.float() for z in problem(9, 1500))
    x = x + 1e4 * torch.arange(3).repeat(500)[:, None]  # three far clusters
    slopes, _ = gauss_slope(x, w, 1.0, backend="split")
    error = (slopes.double() - by_pairs(x, w, 1.0)).abs().amax((0, 2)) / w.double().abs().sum(0)
    assert float(error.max()) <= 1e-6


def test_spectral_visits_no_pairs() -> None:
    x, w = (z.requires_grad_() for z in problem(10, 2000))
    with mock.patch.object(KernelBackend, "slopes_and_sums", side_effect=AssertionError):
        backward(gauss_slope(x, w, 1.0)[0].sum())


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan])
def test_alpha_must_be_positive(alpha: float) -> None:
    with pytest.raises(ValueError, match="'alpha' must be positive and finite"):
        gauss_slope(*problem(0), alpha)


def test_errors_name_the_points() -> None:
    x, w = problem(0)
    with pytest.raises(ValueError, match="'points' must have two axes or more"):
        gauss_slope(x[:, 0], w, 1.0)
    with pytest.raises(ValueError, match="'points' must have at least one dimension"):
        gauss_slope(x[:, :0], w, 1.0)
    with pytest.raises(ValueError, match=r"'strengths' must have one row for each of the points \(got 39"):
        gauss_slope(x, w[1:], 1.0)
    with pytest.raises(ValueError, match="'points' must be finite"):
        gauss_slope(x / 0, w, 1.0)
    with pytest.raises(ValueError, match="'eps' must be between 0 and"):
        gauss_slope(x, w, 1.0, eps=1.0)
    with pytest.raises(ValueError, match="'backend' must be one of"):
        gauss_slope(x, w, 1.0, backend="fft")  # type: ignore[arg-type] # that is the point
    with pytest.raises(ValueError, match="'backend' 'spectral' needs points in at most 3 dimensions"):
        gauss_slope(x.repeat(1, 2), w, 1.0, backend="spectral")
