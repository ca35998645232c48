"""Points on a line: float32 against all pairs in float64, however the waves are computed and kept."""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from torch import Tensor

from fairpass.kernels import gauss_slope, series, spectral
from fairpass.kernels.backend import Problem
from fairpass.kernels.spectral import MAX_WAVES, Line
from fairpass.kernels.sums import gauss_gram

Make = Callable[..., Tensor]

# Few points take cosines and sines, many multiply waves; chunks may be several; waves are kept, or computed again.
WAYS = {
    "few points": {"FEW_ON_A_LINE": 1 << 30},
    "many points": {"FEW_ON_A_LINE": 0},
    "many points in chunks": {"FEW_ON_A_LINE": 0, "CHUNK_NUMBERS": 1},
    "few points in chunks that are not kept": {"FEW_ON_A_LINE": 1 << 30, "CHUNK_NUMBERS": 1, "KEEP_NUMBERS": 0},
    "many points that are not kept": {"FEW_ON_A_LINE": 0, "KEEP_NUMBERS": 0},
}


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    with ExitStack() as stack:
        for name, value in WAYS[request.param].items():
            module = spectral if name == "FEW_ON_A_LINE" else series
            stack.enter_context(mock.patch.object(module, name, value))
        yield request.param


def fit_line(points: Tensor, alpha: Tensor, eps: float) -> Line | None:
    return Line.fit(Problem(points, points, alpha, eps=eps))


def strengths_of(seed: int, n: int, q: int) -> Tensor:
    return torch.randn((n, q), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_pairs(points: Tensor, strengths: Tensor, alpha: float) -> Tensor:
    """Return the slopes of the sums in float64, differentiable, `(N, q, 1)`."""
    difference = points.mT - points
    kernel = torch.exp(-alpha * difference.square())
    return (2 * alpha * (kernel * difference) @ strengths)[..., None]


@pytest.mark.usefixtures("way")
@examples(25)
@given(
    seed=st.integers(0, 10_000),
    shape=st.integers(0, 7),
    log_alpha=st.floats(-3, 3),
    reaches=st.floats(0, 3),
    offset=st.sampled_from([0.0, 1.0, 100.0]),
    q=st.integers(1, 3),
)
def test_float32_against_pairs(
    cloud: Make, seed: int, shape: int, log_alpha: float, reaches: float, offset: float, q: int
) -> None:
    alpha, eps = 10**log_alpha, 1e-7
    reach = math.sqrt(math.log(1 / eps) / alpha)
    points = (reaches * reach / 4 * (cloud(shape, seed, 600, 1).clamp(-2, 2) + offset)).float()
    w = strengths_of(seed, 600, q).float()
    assert fit_line(points[None], torch.tensor([alpha]), eps) is not None
    found_at = points.clone().requires_grad_(), w.clone().requires_grad_()
    exact_at = points.double().requires_grad_(), w.double().requires_grad_()
    (slopes, gram), wanted = gauss_slope(*found_at, alpha, eps=eps), by_pairs(*exact_at, alpha)
    size = w.double().abs().sum(0)
    assert float(((slopes - wanted).detach().abs().amax((0, 2)) / size).max()) <= 3e-6 * math.sqrt(alpha)

    x, v = (z.detach() for z in exact_at)
    exact = v.mT @ torch.exp(-alpha * (x.mT - x).square()) @ v
    for form in (gram, gauss_gram(points, w, alpha, eps=eps)):
        assert float(((form - exact).abs() / (size * size[:, None])).max()) <= 2e-6

    pulled = strengths_of(seed + 1, 600, q)[..., None]
    by_point, by_strength = torch.autograd.grad(slopes, found_at, pulled.float())
    exact_by_point, exact_by_strength = torch.autograd.grad(wanted, exact_at, pulled)
    pull = pulled.abs().sum(0).squeeze(-1)
    # A point is a target and a source: it is pulled at, and pulls.
    scale = alpha * (pulled.abs().squeeze(-1) @ size + w.double().abs() @ pull)[:, None]
    assert float(((by_point - exact_by_point).abs() / scale).max()) <= 3e-5
    assert float(((by_strength - exact_by_strength).abs() / pull).max()) <= 3e-6 * math.sqrt(alpha)


@pytest.mark.usefixtures("way")
def test_batch_equals_one_by_one() -> None:
    w = strengths_of(0, 900, 2).view(3, 300, 2)
    x = torch.randn((3, 300, 1), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x = x * torch.tensor([0.1, 1.0, 2.0])[:, None, None] + torch.tensor([0.0, 50.0, -3.0])[:, None, None]
    alpha = torch.tensor([1.0, 0.2, 0.5], dtype=torch.float64)
    x.requires_grad_()
    slopes, gram = gauss_slope(x, w, alpha, eps=1e-9)
    (by_point,) = torch.autograd.grad(slopes.square().sum(), x)
    for k in range(3):
        one = x[k].detach().requires_grad_()
        found = gauss_slope(one, w[k], float(alpha[k]), eps=1e-9)
        torch.testing.assert_close((slopes[k], gram[k]), found, rtol=0, atol=1e-6)
        torch.testing.assert_close(by_point[k], torch.autograd.grad(found[0].square().sum(), one)[0], rtol=0, atol=1e-4)


def test_as_many_waves_as_are_accurate() -> None:
    alpha, eps = torch.ones(1), 1e-5
    log_eps = math.log(2.1 / eps)
    widest = math.sqrt(log_eps) * (MAX_WAVES * math.pi / log_eps - 1)
    points = torch.linspace(0, 1, 50)[None, :, None]
    fitted = fit_line(0.999 * widest * points, alpha, eps)
    assert isinstance(fitted, Line)
    assert fitted.line.waves == MAX_WAVES
    assert fit_line(1.001 * widest * points, alpha, eps) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("batch", [1, 3])
def test_no_line_through_what_is_not_finite(bad: float, batch: int) -> None:
    points = torch.zeros(batch, 500, 1)
    points[-1, 7] = bad
    assert fit_line(points, torch.ones(batch), 1e-5) is None
    with pytest.raises(ValueError, match="'points' must be finite"):
        gauss_slope(points, torch.ones(batch, 500, 1), 1.0)


def test_points_in_one_place() -> None:
    points, w = torch.full((500, 1), 3.0), torch.ones(500, 1)
    slopes, gram = gauss_slope(points, w, 2.0)
    torch.testing.assert_close(slopes, torch.zeros(500, 1, 1), rtol=0, atol=1e-3)
    torch.testing.assert_close(gram, torch.full((1, 1), 250_000.0), rtol=1e-6, atol=0)
