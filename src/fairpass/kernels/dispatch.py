"""Which backend is cheapest for a Gaussian sum."""

import warnings
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fairpass.errors import NarrowKernelWarning, QuadraticCostWarning
from fairpass.kernels.box import MAX_DIMENSION, Box, feature_count, fit_box, reach
from fairpass.kernels.cost import PIECE, pairwise_cost, sliced_cost, spectral_cost
from fairpass.kernels.directions import default_directions
from fairpass.kernels.expansion import Expanded
from fairpass.kernels.sliced import SlicedExpansion, Slices
from fairpass.kernels.spectral import Expansion
from fairpass.kernels.split import Cut, cut

Backend = Literal["auto", "exact", "dense", "tiled", "spectral", "split", "sliced"]

# Below this many pairs the pairwise sum takes less time than looking at the points' extent.
FEW_PAIRS = 1 << 16
# A box of fewer reaches than this is not worth the time it takes to see if it can be cut, nor is a sum that
# takes less time than a handful of pieces.
NARROW, HANDFUL = 6.0, 8
# Where alpha times the mean squared distance exceeds this, sliced slopes are off by more than a sixth.
NARROW_KERNEL = 2.0
# More pairs than this are not visited without a warning: those of 16,384 nodes, about a second for each sum.
MANY_PAIRS = 1 << 28


@dataclass(frozen=True)
class Plan:
    """A chosen backend, and what it has found out about the points.

    Attributes:
        backend: how the sum is computed.
        expansions: if spectral or sliced, the targets and the sources expanded in waves.
        cuts: if split, the pieces of each problem of the batch.
    """

    backend: Literal["dense", "tiled", "spectral", "split", "sliced"]
    expansions: tuple[Expanded, Expanded] | None = None
    cuts: list[Cut] | None = None


def choose(
    t: Tensor,
    s: Tensor,
    q: int,
    alpha: Tensor,
    backend: Backend,
    eps: float,
    directions: int | None = None,
    *,
    may_split: bool = True,
) -> Plan:
    """Return the cheapest plan for `(B, N, d)` targets and `(B, M, d)` sources, or the one asked for.

    With `may_split=False`, as for the pieces of a problem that has been split, `"auto"` does not split again.
    """
    batch, n, dimension = t.shape
    m = s.shape[1]
    if backend in ("dense", "tiled") or batch * n * m * q == 0:
        return Plan("dense" if backend == "dense" else "tiled")
    if is_sliced(n, m, dimension, backend, directions):
        slices = Slices(dimension, alpha, directions)
        points, others = _centred(t, s)
        if backend == "auto" and directions is None:
            _warn_if_narrow(points, alpha)
        expanded = SlicedExpansion(slices, points)
        return Plan("sliced", (expanded, expanded if t is s else SlicedExpansion(slices, others)))
    is_free = backend in ("auto", "exact")
    if is_free and (batch * n * m <= FEW_PAIRS or dimension > MAX_DIMENSION):
        return _all_pairs(n, m, batch)
    points, others = _centred(t, s)
    box = fit_box((points,) if t is s else (points, others), alpha, eps)
    cuts = _cut_all(box, points, others, q, eps) if backend == "split" else None
    if is_free:
        by_pairs = pairwise_cost(batch * n * m, q)
        by_modes = spectral_cost(batch * n, batch * m, q, box.sizes, same=t is s)
        in_one = min(by_pairs, by_modes)
        wide = max(box.sizes) > feature_count(NARROW, eps, dimension)
        if may_split and wide and in_one > HANDFUL * PIECE:
            pieces = _cut_all(box, points, others, q, eps)
            cuts = pieces if sum(problem.cost for problem in pieces) < in_one else None
        if cuts is None and by_pairs < by_modes:
            return _all_pairs(n, m, batch)
    if cuts is not None:
        return Plan("split", cuts=cuts)
    # Of the many pieces of a split problem no features are kept: they would add up.
    targets = Expansion(box, points, keep=may_split)
    return Plan("spectral", (targets, targets if t is s else Expansion(box, others, keep=may_split)))


def is_sliced(n: int, m: int, dimension: int, backend: Backend, directions: int | None = None) -> bool:
    """Return whether a sum over `m` sources at `n` targets takes slices.

    What `"auto"` takes depends on neither the columns nor the batch: all sums of a layer then have the same kernel.
    """
    if backend != "auto" or dimension <= MAX_DIMENSION:
        return backend == "sliced"
    count = default_directions(dimension) if directions is None else directions
    return sliced_cost(n + m, count) < pairwise_cost(n * m, 1)


def warn_of_pairs(n: int, m: int, batch: int, advice: str) -> None:
    """Warn if there are so many pairs that visiting them takes seconds."""
    pairs = batch * n * m
    if pairs > MANY_PAIRS:
        seconds = 1e-9 * pairwise_cost(pairs, 1)
        warnings.warn(
            f"each kernel sum over {max(n, m):,} nodes visits all {pairs:,} pairs, "
            f"which takes about {seconds:,.0f} s; {advice}",
            QuadraticCostWarning,
            stacklevel=2,
        )


def _warn_if_narrow(points: Tensor, alpha: Tensor) -> None:
    """Warn if nobody chose slices and they are far off; `points` are `(B, d, n)`, with their mean as origin."""
    narrowest = float((2 * alpha * points.square().sum(1).mean(-1)).max())
    if narrowest > NARROW_KERNEL:
        warnings.warn(
            f"the kernel is narrow for sliced sums: 'alpha' times the mean squared distance is {narrowest:.2g}, and "
            f"above {NARROW_KERNEL:g} slopes are off by more than a sixth; take an adaptive bandwidth, a smaller "
            "'alpha', more 'directions', or backend 'exact'",
            NarrowKernelWarning,
            stacklevel=3,
        )


def _all_pairs(n: int, m: int, batch: int) -> Plan:
    warn_of_pairs(n, m, batch, "a Gaussian kernel with backend 'sliced' takes time proportional to the nodes")
    return Plan("tiled")


def _centred(t: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """Return copies `(B, d, n)` of both sets of points in float64, with the targets' mean as origin."""
    points = _nodes_last(t.detach())
    origin = points.mean(-1, keepdim=True)
    others = points if t is s else _nodes_last(s.detach()).sub_(origin)
    return points.sub_(origin), others


def _nodes_last(points: Tensor) -> Tensor:
    """Return a copy `(B, d, n)` of the points in float64."""
    return torch.empty_like(points.mT, dtype=torch.float64, memory_format=torch.contiguous_format).copy_(points.mT)


def _cut_all(box: Box, points: Tensor, others: Tensor, q: int, eps: float) -> list[Cut]:
    """Cut each problem of the batch, in the axes of the box, where a diagonal strip is a straight one."""
    axes = torch.from_numpy(box.axes).to(points)
    targets, sources = axes @ points, axes @ others
    reaches = reach(box.alpha, eps, points.shape[1]).tolist()
    return [cut(mine, theirs, q, r, eps) for mine, theirs, r in zip(targets, sources, reaches, strict=True)]
