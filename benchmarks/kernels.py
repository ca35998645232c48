"""Gaussian sums over all nodes: against all pairs, as the nodes grow, and slopes against their sums."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.result import Cell, Result, Table
from benchmarks.timing import side_by_side
from fairpass.kernels import gauss_slope, gauss_sum
from fairpass.kernels.backend import Problem
from fairpass.kernels.dispatch import Backend, choose

BAIL_NODES = 18_876


def run(quick: bool) -> Result:
    return Result("kernels", [_against_pairs(quick), _growth(quick), _slope_against_sums(quick)])


def cloud(n: int, span: float, d: int = 2) -> Tensor:
    """Return normal points in `d` dimensions about `span` across (six standard deviations)."""
    random = torch.Generator().manual_seed(n + d)
    return span / 6 * torch.randn((n, d), generator=random)


def signed_strengths(n: int, q: int = 3) -> Tensor:
    """Return strengths such as the discrepancy has: `1/N_0` in one group, `-1/N_1` in the other."""
    random = torch.Generator().manual_seed(n + q)
    first = torch.rand((n, 1), generator=random) < 0.4
    sign = torch.where(first, 1 / first.sum(), -1 / (n - first.sum()))
    return sign * torch.cat([torch.ones(n, 1), torch.randn((n, q - 1), generator=random)], 1)


def forward_backward(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, w: Tensor) -> Callable[[], object]:
    """Return a call of the function and of its gradient by both arguments."""
    leaves = x.clone().requires_grad_(), w.clone().requires_grad_()

    def call() -> object:
        out = function(*leaves)
        return torch.autograd.grad(out, leaves, torch.ones_like(out))

    return call


def _sum(alpha: float, backend: Backend) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, w: gauss_sum(x, x, w, alpha, backend=backend)


def _against_pairs(quick: bool) -> Table:
    cases = [(0.3, 8.0, 2), (1.0, 20.0, 2), (1.0, 8.0, 1), (1.0, 4.0, 3), (1.0, 1000.0, 2)]
    rows: list[dict[str, Cell]] = []
    for alpha, span, d in cases[:2] if quick else cases:
        x, w = cloud(BAIL_NODES, span, d), signed_strengths(BAIL_NODES)
        taken = side_by_side(
            {
                "auto": forward_backward(_sum(alpha, "auto"), x, w),
                "tiled": forward_backward(_sum(alpha, "tiled"), x, w),
            },
            rounds=2 if quick else 5,
        )
        rows.append(
            {
                "nodes": BAIL_NODES,
                "d": d,
                "alpha": alpha,
                "span": span,
                "backend": choose(Problem(x[None], x[None], torch.tensor([alpha]), 3), "auto").name,
                "ms": 1e3 * taken["auto"].median,
                "tiled ms": 1e3 * taken["tiled"].median,
                "times faster": taken["tiled"].median / taken["auto"].median,
                **_errors(x, w, alpha),
            }
        )
    return Table("Gaussian sum over all nodes, forward and backward, against all pairs", rows)


def _errors(x: Tensor, w: Tensor, alpha: float) -> dict[str, Cell]:
    """Return the largest errors at some of the nodes, relative to `sum |w|` and to `sqrt(alpha) sum |w|`."""
    some = torch.arange(0, len(x), 97)
    slopes, sums = gauss_slope(x, w, alpha)[0], gauss_sum(x, x, w, alpha)
    exact_x, exact_w = x.double(), w.double()
    at = exact_x[some].requires_grad_()
    exact = gauss_sum(at, exact_x, exact_w, alpha, backend="tiled")
    (slope,) = torch.autograd.grad(exact[:, 0].sum(), at)
    size = exact_w.abs().sum(0)
    return {
        "error": float(((sums[some] - exact.detach()).abs() / size).max()),
        "slope error": float((slopes[some, 0] - slope).abs().max() / (alpha**0.5 * size[0])),
    }


def _growth(quick: bool) -> Table:
    sizes = [10_000, 100_000] if quick else [10_000, 100_000, 1_000_000]
    rows: list[dict[str, Cell]] = []
    for n in sizes:
        x, w = cloud(n, 8.0), signed_strengths(n)
        taken = side_by_side(
            {
                "forward": lambda x=x, w=w: gauss_sum(x, x, w, 0.3, backend="spectral"),  # type: ignore[misc] # bound now
                "both": forward_backward(_sum(0.3, "spectral"), x, w),
            },
            rounds=3,
        )
        per_node = 1e9 * taken["both"].least / n
        first = rows[0]["ns a node"] if rows else per_node
        rows.append(
            {
                "nodes": n,
                "forward ms": 1e3 * taken["forward"].least,
                "with backward ms": 1e3 * taken["both"].least,
                "ns a node": per_node,
                "against the first": per_node / float(first or 1),
            }
        )
    return Table("The spectral sum as the nodes grow (alpha 0.3, span 8)", rows)


def _slope_against_sums(quick: bool) -> Table:
    rows: list[dict[str, Cell]] = []
    for alpha, span in [(0.3, 8.0)] if quick else [(0.3, 8.0), (1.0, 20.0)]:
        x, w = cloud(BAIL_NODES, span), signed_strengths(BAIL_NODES, 1)

        def slope(x: Tensor, w: Tensor, alpha: float = alpha) -> Tensor:
            return gauss_slope(x, w, alpha, backend="spectral")[0][:, 0]

        def from_sums(x: Tensor, w: Tensor, alpha: float = alpha) -> Tensor:
            sums = gauss_sum(x, x, torch.cat([w, w * x], 1), alpha, backend="spectral")
            return 2 * alpha * (sums[:, 1:] - sums[:, :1] * x)

        taken = side_by_side({"slope": forward_backward(slope, x, w), "sums": forward_backward(from_sums, x, w)})
        rows.append(
            {
                "nodes": BAIL_NODES,
                "alpha": alpha,
                "span": span,
                "slope ms": 1e3 * taken["slope"].median,
                "its sums ms": 1e3 * taken["sums"].median,
                "times faster": taken["sums"].median / taken["slope"].median,
            }
        )
    return Table("The slope of a sum, forward and backward, against the sums it consists of", rows)
