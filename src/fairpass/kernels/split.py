"""Gaussian sums over a wide span: cut the points into pieces that hardly reach each other.

Beyond its reach a Gaussian is below `eps`, so a piece of the targets needs only the sources within reach of
it. Cut in two along its widest axis, again and again while that pays, a wide cloud of points falls into
pieces narrow enough for few modes, or empty enough for visiting their pairs; far outliers fall off first.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from fairpass.kernels.box import feature_count
from fairpass.kernels.cost import CUT, PIECE, pairwise_cost, spectral_cost

Sum = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Vjp = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


class Piece(NamedTuple):
    """Indices of some targets, and of all the sources that reach them."""

    targets: Tensor
    sources: Tensor


class Cut(NamedTuple):
    """The pieces of one problem, each target in one of them, and what solving them all will cost."""

    pieces: list[Piece]
    cost: float


def cut(targets: Tensor, sources: Tensor, q: int, reach: float, eps: float) -> Cut:
    """Cut `(d, N)` targets and `(d, M)` sources for as long as two halves look cheaper than the whole."""
    dimension = len(targets)

    def cost(n: float, m: float, spans: list[float]) -> float:
        sizes = tuple(feature_count(span / reach + 1, eps, dimension) for span in spans)
        return PIECE + min(pairwise_cost(n * m, q), spectral_cost(n, m, q, sizes, same=False))

    pieces, total = [], 0.0
    whole = Piece(*(torch.arange(p.shape[1], device=p.device) for p in (targets, sources)))
    todo = [whole]
    while todo:
        mine, theirs = todo.pop()
        here = targets[:, mine]
        low, high = torch.aminmax(here, dim=1, keepdim=True)
        there = sources[:, theirs]
        near = ((there >= low - reach) & (there <= high + reach)).all(0)
        theirs, there = theirs[near], there[:, near]
        n, m = len(mine), len(theirs)
        if m == 0:
            pieces.append(Piece(mine, theirs))
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
            pieces.append(Piece(mine, theirs))
            total += now
            continue
        total += CUT * (n + m)
        # Differences, so that the lowest and the highest point are apart whatever the rounding.
        left = here[axis] - low[axis] <= width / 2
        todo += [Piece(mine[left], theirs), Piece(mine[~left], theirs)]
    return Cut(pieces, total)


def split_sum(t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, cuts: list[Cut], solve: Sum) -> Tensor:
    """Solve each piece of each problem with `solve` and put the results in their places."""
    out = t.new_zeros((*t.shape[:2], w.shape[-1]))
    for b, (pieces, _) in enumerate(cuts):
        one = slice(b, b + 1)
        for mine, theirs in pieces:
            out[b, mine] = solve(t[one, mine], s[one, theirs], w[one, theirs], alpha[one])[0]
    return out


def split_vjp(
    t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, grad: Tensor, cuts: list[Cut], solve: Vjp
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients by targets, sources and strengths, piece by piece."""
    by_target, by_source, by_strength = torch.zeros_like(t), torch.zeros_like(s), torch.zeros_like(w)
    for b, (pieces, _) in enumerate(cuts):
        one = slice(b, b + 1)
        for mine, theirs in pieces:
            parts = solve(t[one, mine], s[one, theirs], w[one, theirs], alpha[one], grad[one, mine])
            by_target[b, mine] = parts[0][0]
            by_source[b].index_add_(0, theirs, parts[1][0])
            by_strength[b].index_add_(0, theirs, parts[2][0])
    return by_target, by_source, by_strength
