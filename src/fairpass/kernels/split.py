"""Gaussian sums over a wide span: cut the points into pieces that hardly reach each other.

Beyond its reach a Gaussian is below `eps`, so a piece of the targets needs only the sources within reach of it. A wide
cloud of points is cut in two along its widest axis, again and again while that pays. The pieces are narrow enough for
few modes, or have few enough points to visit all pairs; far outliers are cut off first.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from fairpass.kernels.backend import Gradients, KernelBackend, Problem
from fairpass.kernels.box import MAX_DIMENSION, feature_count, reach
from fairpass.kernels.cost import CUT, PIECE, pairwise_cost, spectral_cost
from fairpass.kernels.pairwise import all_pairs
from fairpass.kernels.spectral import Spectral

# Below this many pairs the pairwise sum takes less time than computing the extent of the points.
FEW_PAIRS = 1 << 16


Piece = tuple[Tensor, Tensor]  # indices of some targets, and of all the sources that reach them


class Cut(NamedTuple):
    """The pieces of one problem, each target in one of them, and the cost of all their sums."""

    pieces: list[Piece]
    cost: float


def undivided(problem: Problem) -> KernelBackend:
    is_small = problem.pairs * problem.columns == 0 or problem.pairs <= FEW_PAIRS
    if is_small or pairwise_cost(problem.pairs, problem.columns) < Spectral.cost(problem):
        return all_pairs(problem)
    return Spectral(problem)


class Split(KernelBackend):
    """The pieces of each problem of the batch, and their sums one after another."""

    name = "split"
    max_dimension = MAX_DIMENSION

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        # In the axes of the box, in which a diagonal strip is straight.
        axes = torch.from_numpy(problem.box.axes).to(problem.centred[0])
        reaches = reach(problem.box.alpha, problem.eps, axes.shape[1]).tolist()
        batch = zip(*(axes @ points for points in problem.centred), reaches, strict=True)
        self.cuts = [cut(mine, theirs, problem.columns, r, problem.eps) for mine, theirs, r in batch]
        self.cost = sum(one.cost for one in self.cuts)

    def pieces(self) -> Iterator[tuple[int, Piece, KernelBackend]]:
        whole = self.problem
        for b, (pieces, _) in enumerate(self.cuts):
            one = slice(b, b + 1)
            for mine, theirs in pieces:
                t, s = whole.targets[one, mine], whole.sources[one, theirs]
                part = replace(whole, targets=t, sources=s, alpha=whole.alpha[one], is_piece=True)
                yield b, (mine, theirs), undivided(part)

    def sum(self, w: Tensor) -> Tensor:
        targets = self.problem.targets
        out = targets.new_zeros((*targets.shape[:2], w.shape[-1]))
        for b, (mine, theirs), backend in self.pieces():
            out[b, mine] = backend.sum(w[b : b + 1, theirs])[0]
        return out

    def vjp(self, w: Tensor, grad: Tensor) -> Gradients:
        by_target, by_source, by_strength = map(torch.zeros_like, (self.problem.targets, self.problem.sources, w))
        for b, (mine, theirs), backend in self.pieces():
            parts = backend.vjp(w[b : b + 1, theirs], grad[b : b + 1, mine])
            by_target[b, mine] = parts[0][0]
            by_source[b].index_add_(0, theirs, parts[1][0])
            by_strength[b].index_add_(0, theirs, parts[2][0])
        return by_target, by_source, by_strength

    def slopes_and_sums(self, t: Tensor, s: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        parts, places = [], []
        for b, (mine, theirs), backend in self.pieces():
            one = slice(b, b + 1)
            parts.append(backend.slopes_and_sums(t[one, mine], s[one, theirs], w[one, theirs]))
            places.append(b * t.shape[1] + mine)
        # All pieces are put in their places at once: one by one, each would copy the whole for its backward.
        slopes, sums = (torch.cat(found, 1)[0] for found in zip(*parts, strict=True))
        index = torch.cat(places)
        slopes, sums = (torch.zeros_like(x).index_copy(0, index, x) for x in (slopes, sums))
        return torch.unflatten(slopes, 0, t.shape[:2]), torch.unflatten(sums, 0, t.shape[:2])


def cut(targets: Tensor, sources: Tensor, q: int, reach: float, eps: float) -> Cut:
    """Cut `(d, N)` targets and `(d, M)` sources for as long as two halves look cheaper than the whole."""
    dimension = len(targets)

    def cost(n: float, m: float, spans: list[float]) -> float:
        sizes = tuple(feature_count(span / reach + 1, eps, dimension) for span in spans)
        return PIECE + min(pairwise_cost(n * m, q), spectral_cost(n, m, q, sizes, same=False))

    pieces, total = [], 0.0
    mine, theirs = (torch.arange(p.shape[1], device=p.device) for p in (targets, sources))
    todo = [(mine, theirs)]
    while todo:
        mine, theirs = todo.pop()
        here = targets[:, mine]
        low, high = torch.aminmax(here, dim=1, keepdim=True)
        there = sources[:, theirs]
        near = ((there >= low - reach) & (there <= high + reach)).all(0)
        theirs, there = theirs[near], there[:, near]
        n, m = len(mine), len(theirs)
        if m == 0:
            pieces.append((mine, theirs))
            continue
        axis = int((high - low).argmax())
        width = float(high[axis] - low[axis])
        bottom, top = torch.aminmax(there, dim=1, keepdim=True)
        spans = (torch.maximum(top, high) - torch.minimum(bottom, low))[:, 0].tolist()
        now = cost(n, m, spans)
        # What the halves would cost if the points were spread evenly. Where they are not, one cut may do no
        # more than lose an outlier, and the next one is worth it.
        halves = [width / 2 + 2 * reach if k == axis else span for k, span in enumerate(spans)]
        share = 0.5 + reach / max(width, 2 * reach)
        if width <= 2 * reach or now <= CUT * (n + m) + 2 * cost(n / 2, m * share, halves):
            pieces.append((mine, theirs))
            total += now
            continue
        total += CUT * (n + m)
        # Differences, so that the lowest and the highest point stay apart under rounding.
        left = here[axis] - low[axis] <= width / 2
        todo += [(mine[left], theirs), (mine[~left], theirs)]
    return Cut(pieces, total)
