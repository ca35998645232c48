"""Which backend is cheapest for a Gaussian sum."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fairpass.kernels.box import MAX_DIMENSION, Box, feature_count, fit_box, reach
from fairpass.kernels.cost import PIECE, pairwise_cost, spectral_cost
from fairpass.kernels.spectral import Expansion
from fairpass.kernels.split import Cut, cut

Backend = Literal["auto", "dense", "tiled", "spectral", "split"]

# Below this many pairs the pairwise sum takes less time than looking at the points' extent.
FEW_PAIRS = 1 << 16
# A box of fewer reaches than this is not worth the time it takes to see if it can be cut, nor is a sum that
# takes less time than a handful of pieces.
NARROW, HANDFUL = 6.0, 8


@dataclass(frozen=True)
class Plan:
    """A chosen backend, and what it has found out about the points.

    Attributes:
        backend: how the sum is computed.
        expansions: if spectral, the targets and the sources expanded in their box.
        cuts: if split, the pieces of each problem of the batch.
    """

    backend: Literal["dense", "tiled", "spectral", "split"]
    expansions: tuple[Expansion, Expansion] | None = None
    cuts: list[Cut] | None = None


def choose(
    t: Tensor, s: Tensor, q: int, alpha: Tensor, backend: Backend, eps: float, *, may_split: bool = True
) -> Plan:
    """Return the cheapest plan for `(B, N, d)` targets and `(B, M, d)` sources, or the one asked for.

    With `may_split=False`, as for the pieces of a problem that has been split, `"auto"` does not split again.
    """
    batch, n, dimension = t.shape
    m = s.shape[1]
    if backend in ("dense", "tiled") or batch * n * m * q == 0:
        return Plan("dense" if backend == "dense" else "tiled")
    if backend == "auto" and (batch * n * m <= FEW_PAIRS or dimension > MAX_DIMENSION):
        return Plan("tiled")
    points = _nodes_last(t.detach())
    origin = points.mean(-1, keepdim=True)
    others = points if t is s else _nodes_last(s.detach()).sub_(origin)
    points.sub_(origin)
    box = fit_box((points,) if t is s else (points, others), alpha, eps)
    if backend == "split":
        return Plan("split", cuts=_cut_all(box, points, others, q, eps))
    if backend == "auto":
        by_pairs = pairwise_cost(batch * n * m, q)
        by_modes = spectral_cost(batch * n, batch * m, q, box.sizes, same=t is s)
        in_one = min(by_pairs, by_modes)
        wide = max(box.sizes) > feature_count(NARROW, eps, dimension)
        if may_split and wide and in_one > HANDFUL * PIECE:
            cuts = _cut_all(box, points, others, q, eps)
            if sum(problem.cost for problem in cuts) < in_one:
                return Plan("split", cuts=cuts)
        if by_pairs < by_modes:
            return Plan("tiled")
    # Of the many pieces of a split problem no features are kept: they would add up.
    targets = Expansion(box, points, keep=may_split)
    return Plan("spectral", (targets, targets if t is s else Expansion(box, others, keep=may_split)))


def _nodes_last(points: Tensor) -> Tensor:
    """Return a copy `(B, d, n)` of the points in float64."""
    return torch.empty_like(points.mT, dtype=torch.float64, memory_format=torch.contiguous_format).copy_(points.mT)


def _cut_all(box: Box, points: Tensor, others: Tensor, q: int, eps: float) -> list[Cut]:
    """Cut each problem of the batch, in the axes of the box, where a diagonal strip is a straight one."""
    axes = torch.from_numpy(box.axes).to(points)
    targets, sources = axes @ points, axes @ others
    reaches = reach(box.alpha, eps, points.shape[1]).tolist()
    return [cut(mine, theirs, q, r, eps) for mine, theirs, r in zip(targets, sources, reaches, strict=True)]
