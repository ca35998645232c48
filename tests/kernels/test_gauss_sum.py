"""One battery for every backend of the Gaussian sum, and what is particular to each."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from tests.drawing import examples
from tests.kernels.backends import BACKENDS, WITHOUT_EPS
from torch import Tensor
from torch.autograd import backward, gradcheck, gradgradcheck

from fairpass.kernels import gauss_sum
from fairpass.kernels.box import fit_box
from fairpass.kernels.dispatch import Backend
from fairpass.kernels.pairwise import Tiled
from fairpass.kernels.spectral import BoxExpansion

Make = Callable[..., Tensor]
Context = Callable[[], AbstractContextManager[None]]

every_backend = pytest.mark.parametrize("backend", BACKENDS)
low_dimension = pytest.mark.parametrize("d", [1, 2, 3])
# How wide a box may be, in reaches, before its modes are too many for a quick test.
WIDEST = {1: 300.0, 2: 15.0, 3: 2.5}
SEEDS = st.integers(0, 10_000)


def problem(seed: int, n: int = 40, m: int = 30, d: int = 2, q: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    shapes = [(n, d), (m, d), (m, q)]
    t, s, w = (torch.randn(shape, generator=random, dtype=torch.float64) for shape in shapes)
    return t, s, w


@every_backend
@examples(80)
@given(
    seed=SEEDS,
    shapes=st.tuples(st.integers(0, 7), st.integers(0, 7)),
    d=st.integers(1, 3),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    log_alpha=st.floats(-3, 3),
    width=st.floats(0, 1),
    offset=st.sampled_from([0.0, 1.0, 1e3]),
    eps=st.sampled_from([1e-3, 1e-7, 1e-10]),
    imbalance=st.floats(0, 6),
)
# All in one place, where two images alias in every dimension: the error is nearly eps.
@example(0, (7, 7), 2, torch.float64, 0.0, 0.0, 0.0, 1e-7, 0.0)
def test_error_is_within_eps(
    cloud: Make,
    oracle: Make,
    eager_cuts: Context,
    backend: Backend,
    seed: int,
    shapes: tuple[int, int],
    d: int,
    dtype: torch.dtype,
    log_alpha: float,
    width: float,
    offset: float,
    eps: float,
    imbalance: float,
) -> None:
    alpha = float(torch.tensor(10**log_alpha, dtype=dtype))
    random = torch.Generator().manual_seed(seed)
    n, m = torch.randint(1, 300, (2,), generator=random).tolist()
    # From a hundredth of a reach to as wide as can be.
    widest = WIDEST[d] if backend == "spectral" else 1e3 if backend == "sliced" else 1e4
    span = math.sqrt(math.log(1 / eps) / alpha) * 10 ** (-2 + width * (2 + math.log10(widest)))
    t, s = (
        (span / 2 * (cloud(shape, seed + k, size, d) + 2 * offset)).to(dtype)
        for k, (shape, size) in enumerate(zip(shapes, (n, m), strict=True))
    )
    drawn = torch.rand((m, 2), generator=random, dtype=torch.float64)
    w = (10 ** (-imbalance * drawn) * drawn.sub(0.3).sign()).to(dtype)
    with eager_cuts():
        out = gauss_sum(t, s, w, alpha, eps=eps, backend=backend)
    assert out.dtype == dtype
    error = (out.double() - oracle(t, s, w, alpha, backend)).abs().amax(0) / w.double().abs().sum(0)
    rounding = 32 * torch.finfo(dtype).eps
    if backend == "sliced":
        # Small angles are rounded as the features are, large ones in float64.
        rounding += 16 * torch.finfo(torch.float64).eps * math.sqrt(alpha) * span * (1 + offset)
    assert float(error.max()) <= (0 if backend in WITHOUT_EPS else eps) + rounding


@pytest.mark.parametrize("backend", ["dense", "tiled", "sliced", "exact", "auto"])
@pytest.mark.parametrize("d", [5, 16])
def test_any_dimension(oracle: Make, backend: Backend, d: int) -> None:
    t, s, w = problem(d, 300, 260, d)
    torch.testing.assert_close(gauss_sum(t, s, w, 0.1, backend=backend), oracle(t, s, w, 0.1, backend))


def test_agrees_with_scikit_learn() -> None:
    t, s, w = problem(0)
    theirs = torch.from_numpy(rbf_kernel(t.numpy(), s.numpy(), gamma=0.7)) @ w
    torch.testing.assert_close(gauss_sum(t, s, w, 0.7), theirs)


def check_gradients(backend: Backend, *inputs: Tensor, fast: bool = False) -> None:
    def of(t: Tensor, s: Tensor, w: Tensor) -> Tensor:
        return gauss_sum(t, s, w, 0.8, eps=1e-12, backend=backend)

    leaves = [x.detach().requires_grad_() for x in inputs]
    assert gradcheck(of, leaves, fast_mode=fast)
    assert gradgradcheck(of, leaves, fast_mode=fast)


@every_backend
@low_dimension
def test_gradients(backend: Backend, d: int) -> None:
    check_gradients(backend, *problem(d, 5, 4, d, 2), fast=d == 3)


@pytest.mark.parametrize("backend", ["tiled", "split", "auto"])
def test_gradients_over_a_wide_span(eager_cuts: Context, backend: Backend) -> None:
    t, s, w = problem(1, 6, 6, 2, 2)
    t, s = 30 * t, 30 * s
    s[:3] = t[:3] + 0.3  # some are within reach of each other, some of none
    with eager_cuts():
        check_gradients(backend, t, s, w, fast=True)


@every_backend
def test_gradient_where_targets_are_sources(backend: Backend) -> None:
    _, x, w = problem(3, m=5, q=1)
    x.requires_grad_()
    assert gradcheck(lambda x: gauss_sum(x, x, w, 0.8, eps=1e-12, backend=backend), [x])
    assert gradgradcheck(lambda x: gauss_sum(x, x, w, 0.8, eps=1e-12, backend=backend), [x])


@every_backend
def test_same_tensor_as_equal_copies(backend: Backend) -> None:
    _, x, w = problem(4, m=400)
    once, twice = (gauss_sum(x, other, w, 2.0, backend=backend) for other in (x, x.clone()))
    torch.testing.assert_close(once, twice, rtol=1e-12, atol=1e-12)


@every_backend
def test_batch_equals_one_by_one(eager_cuts: Context, backend: Backend) -> None:
    t, s, w = (torch.stack([x, 5 * x.flip(0), 0.1 * x]) for x in problem(5))
    alpha = torch.tensor([0.01, 1.0, 30.0], dtype=torch.float64)
    with eager_cuts():
        together = gauss_sum(t, s, w, alpha, backend=backend, eps=1e-12)
        for k in range(3):
            alone = gauss_sum(t[k], s[k], w[k], float(alpha[k]), backend=backend, eps=1e-12)
            torch.testing.assert_close(together[k], alone, rtol=0, atol=1e-10)


def test_batch_axes_broadcast(oracle: Make) -> None:
    t, s, w = problem(6)
    alpha = torch.tensor([[0.1], [2.0]], dtype=torch.float64)
    out = gauss_sum(t, s, w.expand(5, *w.shape), alpha)
    assert out.shape == (2, 5, 40, 3)
    torch.testing.assert_close(out[1, 4], oracle(t, s, w, 2.0))


@every_backend
def test_gradients_of_a_batch(backend: Backend) -> None:
    t, s, w = problem(7, 5, 4, 2, 1)
    alpha = torch.tensor([0.3, 2.0], dtype=torch.float64)
    assert gradcheck(lambda t: gauss_sum(t, s, w, alpha, eps=1e-12, backend=backend), [t.requires_grad_()])


@every_backend
def test_non_contiguous_inputs(backend: Backend) -> None:
    t, s, w = problem(8, 300, 260)
    wanted = gauss_sum(t, s, w, 1.0, backend=backend)
    strided_t, strided_s, strided_w = (torch.stack([x.mT, -x.mT], -1)[..., 0].mT for x in (t, s, w))
    out = gauss_sum(strided_t, strided_s, strided_w, 1.0, backend=backend)
    torch.testing.assert_close(out, wanted, rtol=0, atol=1e-12)


@every_backend
@pytest.mark.parametrize(("n", "m", "q"), [(0, 5, 2), (5, 0, 2), (0, 0, 2), (5, 5, 0)])
def test_nothing_to_sum(backend: Backend, n: int, m: int, q: int) -> None:
    t, s, w = (x.requires_grad_() for x in problem(9, n, m, q=q))
    out = gauss_sum(t, s, w, 1.0, backend=backend)
    assert out.shape == (n, q)
    assert not out.any()
    assert not any(gradient.any() for gradient in torch.autograd.grad(out.sum(), (t, s, w)))


@every_backend
def test_inputs_are_not_changed(backend: Backend) -> None:
    t, s, w = (x.requires_grad_() for x in problem(10, 300, 260))
    before = [x.detach().clone() for x in (t, s, w)]
    backward(gauss_sum(t, s, w, torch.tensor(1.0), backend=backend).square().sum())
    assert all(torch.equal(x, y) for x, y in zip((t, s, w), before, strict=True))


@every_backend
def test_far_from_the_origin_no_digits_are_lost(oracle: Make, backend: Backend) -> None:
    random = torch.Generator().manual_seed(11)
    along = torch.randn(400, 1, generator=random)
    x = torch.cat([along, -along], 1) + 1e4  # a strip, whose box is turned
    x.requires_grad_()
    w = torch.rand(400, 1, generator=random)
    out = gauss_sum(x, x, w, 1.0, backend=backend)
    torch.testing.assert_close(out.double(), oracle(x, x, w, 1.0, backend), rtol=0, atol=1e-6 * float(w.sum()))
    (slope,) = torch.autograd.grad(out.sum(), x)
    exact = x.detach().double().requires_grad_()
    own: Backend = "sliced" if backend == "sliced" else "dense"
    dense = gauss_sum(exact, exact, w.double(), 1.0, backend=own).sum()
    (wanted,) = torch.autograd.grad(dense, exact)
    torch.testing.assert_close(slope.double(), wanted, rtol=0, atol=4e-6 * float(w.sum()))


@low_dimension
def test_moments_of_two_halves_add_up(d: int) -> None:
    _, s, w = problem(12, m=100, d=d)
    points, strengths = s.mT[None].contiguous(), w.mT[None]
    box = fit_box((points,), torch.ones(1, dtype=torch.float64), 1e-7)
    whole = BoxExpansion(box, points).moments(strengths)
    first, second = (
        BoxExpansion(box, points[..., part].contiguous()).moments(strengths[..., part])
        for part in (slice(37), slice(37, None))
    )
    torch.testing.assert_close(first + second, whole, rtol=0, atol=1e-12)
    out = BoxExpansion(box, points).evaluate(first + second)
    torch.testing.assert_close(out[0].mT, gauss_sum(s, s, w, 1.0, backend="spectral"))


def test_many_points_are_taken_in_chunks(oracle: Make) -> None:
    _, x, w = problem(13, m=2000)
    with (
        mock.patch("fairpass.kernels.series.CHUNK_NUMBERS", 1 << 14),
        mock.patch("fairpass.kernels.series.KEEP_NUMBERS", 0),
    ):
        out = gauss_sum(x, x, w, 1.0, backend="spectral")
    torch.testing.assert_close(out, oracle(x, x, w, 1.0), rtol=0, atol=1e-7 * float(w.abs().sum(0).max()))


@pytest.mark.parametrize("backend", ["spectral", "auto"])
def test_spectral_visits_no_pairs(backend: Backend) -> None:
    _, x, w = problem(14, m=2000)
    with mock.patch.object(Tiled, "sum", side_effect=AssertionError):
        gauss_sum(x, x, w, 1.0, backend=backend)


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.inf, math.nan, [1.0, -1.0]])
def test_alpha_must_be_positive_and_finite(alpha: Any) -> None:
    alpha = torch.tensor(alpha) if isinstance(alpha, list) else alpha
    with pytest.raises(ValueError, match=r"'alpha' must be positive and finite \(got"):
        gauss_sum(*problem(0), alpha)


def test_alpha_must_be_a_constant() -> None:
    with pytest.raises(ValueError, match="'alpha' must be a constant"):
        gauss_sum(*problem(0), torch.ones((), dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("name", ["targets", "sources", "strengths"])
def test_tensors_must_have_two_axes_and_one_floating_type(name: str) -> None:
    inputs: dict[str, Any] = dict(zip(("targets", "sources", "strengths"), problem(0), strict=True))
    for wrong in (inputs[name][:, 0], inputs[name].long(), inputs[name].half()):
        with pytest.raises(ValueError, match=rf"'{name}' must have two axes or more"):
            gauss_sum(**{**inputs, name: wrong}, alpha=1.0)
    with pytest.raises(ValueError, match="float32 or float64 like the others"):
        gauss_sum(**{**inputs, name: inputs[name].float()}, alpha=1.0)


def test_shapes_must_fit() -> None:
    t, s, w = problem(0)
    with pytest.raises(ValueError, match=r"'targets' and 'sources' .* same dimension \(got 2 and 1\)"):
        gauss_sum(t, s[:, :1], w, 1.0)
    with pytest.raises(ValueError, match="'targets' must have at least one dimension"):
        gauss_sum(t[:, :0], s[:, :0], w, 1.0)
    with pytest.raises(ValueError, match=r"'strengths' must have one row for each of the sources \(got 29"):
        gauss_sum(t, s, w[1:], 1.0)
    with pytest.raises(ValueError, match="batch axes of points, 'strengths' and 'alpha' must broad"):
        gauss_sum(t.expand(2, -1, -1), s, w.expand(3, -1, -1), 1.0)


@every_backend
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_points_must_be_finite(backend: Backend, bad: float) -> None:
    t, s, w = problem(0)
    for points, name in ((t, "targets"), (s, "sources")):
        points[3, 1], kept = bad, float(points[3, 1])
        with pytest.raises(ValueError, match=f"'{name}' must be finite"):
            gauss_sum(t, s, w, 1.0, backend=backend)
        points[3, 1] = kept


@pytest.mark.parametrize("eps", [0.0, -1e-7, 0.1, math.nan])
def test_eps_must_be_a_small_positive_number(eps: float) -> None:
    with pytest.raises(ValueError, match="'eps' must be between 0 and"):
        gauss_sum(*problem(0), 1.0, eps=eps)


def test_backend_must_exist() -> None:
    with pytest.raises(ValueError, match=r"'backend' must be one of .* \(got 'fft'\)"):
        gauss_sum(*problem(0), 1.0, backend="fft")  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize("backend", ["spectral", "split"])
def test_some_backends_need_a_low_dimension(backend: Backend) -> None:
    with pytest.raises(ValueError, match=rf"'backend' '{backend}' needs .* 3 dimensions \(got 4\)"):
        gauss_sum(*problem(0, d=4), 1.0, backend=backend)
