"""Which backend is taken, and that none of them holds a matrix of all pairs."""

from collections.abc import Callable
from typing import Any, get_args
from unittest import mock

import pytest
import torch
from tests.kernels.backends import OneByOne
from torch import Tensor
from torch.autograd import backward
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fairpass.errors import NarrowKernelWarning, QuadraticCostWarning
from fairpass.kernels import gauss_slope, gauss_sum, laplace_sum, pairwise
from fairpass.kernels.backend import KernelBackend, Problem
from fairpass.kernels.cost import pairwise_cost
from fairpass.kernels.dispatch import BACKENDS, Backend, choose
from fairpass.kernels.pairwise import Tiled
from fairpass.kernels.split import FEW_PAIRS, Split, cut
from fairpass.kernels.sums import gauss_gram

Make = Callable[..., Tensor]
Shape = Callable[[int], Tensor]


def plan(
    points: Tensor, alpha: float = 1.0, q: int = 3, backend: Backend = "auto", directions: int | None = None
) -> KernelBackend:
    batch = points if points.dim() == 3 else points[None]
    alphas = torch.full((len(batch),), alpha, dtype=points.dtype)
    return choose(Problem(batch, batch, alphas, q, 1e-7, directions), backend)


def normal(n: int, d: int = 2) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(n + d))


def bulk_with_outliers(n: int) -> Tensor:
    """Lie within ten reaches, but for one in a hundred at a thousand reaches."""
    x = 8 * normal(n)
    x[::100] *= 500
    return x


def cauchy(n: int) -> Tensor:
    x = normal(n, 3)
    return x[:, :2] / x[:, 2:]


def clusters(n: int) -> Tensor:
    return normal(n) + 4000 * normal(10).repeat(n // 10, 1)


def geometric(n: int) -> Tensor:
    """Each outlier twice as far as the one before: a cut in the middle takes off one at a time."""
    x = normal(n)
    x[:60, 0] = 2.0 ** torch.arange(60)
    return x


WIDE: dict[str, Shape] = {
    "normal, 100 wide": lambda n: 100 * normal(n),
    "normal, 3000 wide": lambda n: 3000 * normal(n),
    "a line": lambda n: 3000 * normal(n, 1),
    "a diagonal strip": lambda n: 3000 * normal(n, 1) @ torch.tensor([[1.0, -1.0]]) + normal(n),
    "in space": lambda n: 100 * normal(n, 3),
    "bulk with outliers": bulk_with_outliers,
    "heavy tails": cauchy,
    "clusters": clusters,
    "few places": lambda n: 100 * (3 * normal(n)).round(),
    "ever farther outliers": geometric,
}
wide = pytest.mark.parametrize("shape", WIDE.values(), ids=WIDE.keys())


@pytest.mark.parametrize("backend", ["dense", "tiled", "spectral", "split", "sliced"])
def test_what_is_asked_for_is_done(backend: Backend) -> None:
    assert plan(normal(1000), backend=backend).name == backend


def test_every_backend_has_a_name() -> None:
    assert ("auto", "exact", *BACKENDS) == (*get_args(Backend), OneByOne.name)


def test_a_registered_backend_is_taken_by_its_name() -> None:
    backend: Any = OneByOne.name
    assert isinstance(plan(normal(10), backend=backend), OneByOne)
    with pytest.raises(ValueError, match=r"'backend' must be one of .* 'one by one'"):
        gauss_sum(normal(10), normal(10), normal(10), 1.0, backend="two by two")  # type: ignore[arg-type] # the point


def test_few_points_are_taken_by_pairs() -> None:
    assert plan(normal(int(FEW_PAIRS**0.5))).name == "tiled"


def test_many_points_are_spectral_in_low_dimension_and_sliced_in_higher() -> None:
    assert [plan(normal(20_000, d), 0.05).name for d in (1, 2, 3, 4, 9)] == ["spectral"] * 3 + ["sliced"] * 2
    assert [plan(normal(10_000, d), backend="exact").name for d in (1, 2, 3, 4)] == ["spectral"] * 3 + ["tiled"]


def test_all_sums_of_the_same_points_have_the_same_kernel() -> None:
    """Neither columns nor problems of a batch count, or a layer would compare values of two kernels."""
    for n in range(100, 1600, 100):
        x = normal(n, 5)
        chosen = {plan(points, 0.05, q).name for points in (x, x.expand(6, -1, -1)) for q in (1, 7)}
        assert len(chosen) == 1
    assert chosen == {"sliced"}
    assert plan(normal(100, 5)).name == "tiled"


def test_more_directions_must_pay() -> None:
    x = normal(2000, 4)
    chosen = [plan(x, 0.05, 1, directions=count).name for count in (None, 50, 100_000)]
    assert chosen == ["sliced", "sliced", "tiled"]


def test_many_pairs_are_announced_before_they_are_visited() -> None:
    x, w = normal(300, 5), torch.ones(300, 1)
    with mock.patch.object(pairwise, "MANY_PAIRS", 300 * 300 - 1):
        with mock.patch.object(Tiled, "sum", side_effect=AssertionError) as visit:
            for call in (
                lambda: gauss_sum(x, x, w, 1.0),
                lambda: gauss_slope(x, w, 1.0, backend="exact"),
                lambda: gauss_gram(x, w, 1.0),
                lambda: laplace_sum(x, x, w, 1.0),
            ):
                with (
                    pytest.warns(QuadraticCostWarning, match=r"over 300 nodes visits all 90,000 pairs, .* about 0 s; "),
                    pytest.raises(AssertionError),
                ):
                    call()
            assert visit.call_count == 4
        # What is asked for by name is done without a word, and so is a sum of few pairs.
        gauss_sum(x, x, w, 1.0, backend="tiled")
        gauss_sum(x, x[1:], w[1:], 1.0)


def test_slices_that_nobody_chose_are_announced_where_they_are_far_off() -> None:
    x, w = normal(1000, 5), torch.ones(1000, 1)  # whose mean squared distance is nearly 10
    for alpha in (0.03, 0.15):
        gauss_sum(x, x, w, alpha)
    with pytest.warns(NarrowKernelWarning, match="'alpha' times the mean squared distance is 9.6, and above 2 "):
        gauss_sum(x, x, w, 1.0)
    gauss_sum(x, x, w, 1.0, backend="sliced")
    gauss_sum(x, x, w, 1.0, directions=50)


def test_the_warning_comes_with_an_estimate() -> None:
    x = torch.zeros(1, 100_000, 1)
    problem = Problem(x, x, torch.ones(1))
    with pytest.warns(
        QuadraticCostWarning, match="over 100,000 nodes visits all 10,000,000,000 pairs, .* about 2[0-9] s"
    ):
        pairwise.warn_of_pairs(problem, "do something else")


@wide
def test_wide_spans_are_cut(oracle: Make, shape: Shape) -> None:
    x = shape(20_000)
    found = plan(x)
    assert isinstance(found, Split)
    ((pieces, cost),) = found.cuts
    # Every target is in one piece; the pieces are few; and together much cheaper than the pairs.
    assert torch.equal(torch.cat([targets for targets, _ in pieces]).sort().values, torch.arange(20_000))
    assert len(pieces) < 500
    assert cost < pairwise_cost(20_000**2, 3) / 5
    # And the sum is right.
    w = torch.rand(20_000, 1, generator=torch.Generator().manual_seed(0))
    some = torch.arange(0, 20_000, 997)
    error = gauss_sum(x, x, w, 1.0)[some].double() - oracle(x[some], x, w, 1.0)
    assert float(error.abs().max()) <= 1.1e-6 * float(w.sum())


@pytest.mark.parametrize("shape", [lambda n: 3000 * normal(n), bulk_with_outliers, cauchy])
def test_raw_logits_of_a_small_graph_are_taken_by_pairs(shape: Shape) -> None:
    """A thousand nodes, logits in the thousands: a spectral box would have fifty thousand modes a side."""
    assert plan(shape(1000)).name == "tiled"


def test_one_wide_problem_does_not_spoil_a_batch() -> None:
    x = normal(5000).repeat(4, 1, 1)
    x[2] *= 1000
    found = plan(x)
    assert isinstance(found, Split)
    pieces = [len(problem.pieces) for problem in found.cuts]
    assert pieces[2] > 1
    assert pieces[:2] + pieces[3:] == [1, 1, 1]


def test_few_targets_amidst_many_sources() -> None:
    """A piece cannot be made of less than a target, however many sources there are."""
    targets, sources = 1000 * normal(5), 1000 * normal(100_000)
    found = choose(Problem(targets[None], sources[None], torch.ones(1)), "auto")
    assert found.name in ("tiled", "split")


def test_sources_out_of_reach_are_left_out() -> None:
    x = torch.tensor([[0.0, 1.0, 100.0, 101.0]], dtype=torch.float64)
    far = torch.tensor([[1e6]], dtype=torch.float64)
    assert [len(sources) for _, sources in cut(x, far, 1, 4.0, 1e-7).pieces] == [0]
    ((_, sources),) = cut(x[:, :2], x, 1, 4.0, 1e-7).pieces
    assert sources.tolist() == [0, 1]
    assert gauss_sum(x.mT, far.mT, far, 1.0, backend="split").tolist() == [[0.0]] * 4


def test_neighbouring_numbers_can_be_cut() -> None:
    """The middle of two neighbouring numbers is one of them, and yet each must go to another side."""
    one = torch.ones(1, dtype=torch.float64)
    x = torch.cat([one, torch.nextafter(one, 2 * one)]).repeat(2000)[None]
    assert [len(targets) for targets, _ in cut(x, x, 1, 1e-17, 1e-7).pieces] == [2000, 2000]


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's own
    """Notes the size of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's own
        self.numbers = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        sizes = [x.untyped_storage().nbytes() // x.element_size() for x in tree_leaves(out) if torch.is_tensor(x)]
        self.numbers = max([self.numbers, *sizes])
        return out


@pytest.mark.parametrize(
    ("backend", "scale"),
    [("tiled", 1.0), ("spectral", 1.0), ("split", 100.0), ("sliced", 1.0), ("auto", 1.0), ("auto", 100.0)],
)
def test_no_matrix_of_all_pairs(backend: Backend, scale: float) -> None:
    n = 2000
    x = (scale * normal(n)).requires_grad_()
    w = torch.ones(n, 1).requires_grad_()
    with Largest() as largest:
        backward(gauss_sum(x, x, w, 1.0, backend=backend).sum())
        backward(gauss_slope(x, w, 1.0, backend=backend)[0].sum())
        if backend == "tiled":
            backward(laplace_sum(x, x, w, 1.0).sum())
    assert largest.numbers < n * n / 4
    with Largest() as largest:
        gauss_sum(x, x, w, 1.0, backend="dense")
    assert largest.numbers >= n * n
