"""Gaussian sums over a wide span: cut the points into slabs that hardly reach each other.

Beyond the reach `r = sqrt(ln(1/eps)/alpha)` a Gaussian is below `eps`. Slabs along the widest axis therefore
need only the sources within `r` of them, and each slab is a smaller problem of the same kind: narrow enough for
few modes, or empty enough for its pairs to be counted one by one.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

# A slab is this many reaches wide, and sees its neighbours' sources one reach to either side.
WIDTH, HALO = 4.0, 2.0
# But it has at least this many targets: over empty space, slabs would otherwise be countless.
MIN_TARGETS = 512

Sum = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Vjp = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


def reach(alpha: float, eps: float) -> float:
    """Return the distance beyond which the kernel is below `eps`."""
    return math.sqrt(math.log(1 / eps) / alpha)


def slabs(targets: Tensor, sources: Tensor, alpha: float, eps: float) -> list[tuple[Tensor, Tensor]]:
    """Cut one problem, `(N, d)` targets and `(M, d)` sources, along its widest axis.

    Returns the indices of each slab's targets, and of the sources that can reach them.
    """
    axis = int((targets.amax(0) - targets.amin(0)).argmax())
    along, order = targets[:, axis].contiguous().sort()
    source_along, source_order = sources[:, axis].contiguous().sort()
    r = reach(alpha, eps)
    pieces = []
    start = 0
    while start < along.numel():
        beyond = torch.searchsorted(along, float(along[start]) + WIDTH * r, right=True)
        stop = min(max(int(beyond), start + MIN_TARGETS), along.numel())
        first = torch.searchsorted(source_along, float(along[start]) - r)
        last = torch.searchsorted(source_along, float(along[stop - 1]) + r, right=True)
        pieces.append((order[start:stop], source_order[int(first) : int(last)]))
        start = stop
    return pieces


def split_sum(t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, eps: float, solve: Sum) -> Tensor:
    """Solve each slab of each problem with `solve` and put the results in their places."""
    out = t.new_zeros((*t.shape[:2], w.shape[-1]))
    for b in range(t.shape[0]):
        for mine, theirs in slabs(t[b], s[b], float(alpha[b]), eps):
            if theirs.numel():
                out[b, mine] = solve(t[b : b + 1, mine], s[b : b + 1, theirs], w[b : b + 1, theirs], alpha[b : b + 1])[0]
    return out


def split_vjp(
    t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, grad: Tensor, eps: float, solve: Vjp
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients by targets, sources and strengths, slab by slab."""
    by_target, by_source, by_strength = torch.zeros_like(t), torch.zeros_like(s), torch.zeros_like(w)
    for b in range(t.shape[0]):
        one = slice(b, b + 1)
        for mine, theirs in slabs(t[b], s[b], float(alpha[b]), eps):
            if theirs.numel():
                parts = solve(t[one, mine], s[one, theirs], w[one, theirs], alpha[one], grad[one, mine])
                by_target[b, mine] = parts[0][0]
                by_source[b].index_add_(0, theirs, parts[1][0])
                by_strength[b].index_add_(0, theirs, parts[2][0])
    return by_target, by_source, by_strength
