"""Kernel sums by visiting every pair: the dense oracle and its tiled form with bounded memory.

Shapes, here and in the sibling backends: targets `(B, N, d)`, sources `(B, M, d)`, strengths `(B, M, q)`,
alpha `(B,)`; the result is `(B, N, q)`. Backends know nothing of autograd: each gives a sum and its
vector-Jacobian product, and `sums.py` ties the two together.
"""

import math
from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor

# Pairs held at once by the tiled backend. 2^17 of them fill half a megabyte in float32: it stays in a core's
# cache, and is small enough for the allocator to keep it from one tile to the next.
TILE_PAIRS = 1 << 17
# Powers of 2, not of e: where most of them underflow, as over a wide span, `exp` takes ten times longer.
_LOG2_E = math.log2(math.e)


class Kernel(Protocol):
    """A kernel of the difference of two points, as its values and its derivative by the first point."""

    def values(self, targets: Tensor, sources: Tensor, alpha: Tensor) -> Tensor:
        """Return `k(t_i, s_j)` of shape `(B, N, M)`."""

    def pull_back(self, weights: Tensor, targets: Tensor, sources: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of `sum_ij c_ij k_ij` by targets and sources, given `weights = c * k`."""


class Gaussian:
    """`k(t, s) = exp(-alpha |t - s|^2)`."""

    def values(self, targets: Tensor, sources: Tensor, alpha: Tensor) -> Tensor:
        """Return the kernel matrix."""
        # Differences, not |t|^2 + |s|^2 - 2 t.s: far from the origin the latter loses all its digits.
        squared = torch.zeros((*targets.shape[:-1], sources.shape[-2]), dtype=targets.dtype, device=targets.device)
        for k in range(targets.shape[-1]):
            squared += (targets[..., :, None, k] - sources[..., None, :, k]).square_()
        return squared.mul_(_LOG2_E * -alpha[:, None, None]).exp2_()

    def pull_back(self, weights: Tensor, targets: Tensor, sources: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients by both sets of points: `dk/dt = -2 alpha (t - s) k`."""
        factor = 2 * alpha[:, None, None]
        # From an origin in the middle of the points: far from it the two terms of each difference would nearly cancel.
        origin = sources.sum(-2, keepdim=True) / max(1, sources.shape[-2])
        targets, sources = targets - origin, sources - origin
        by_target = factor * (weights @ sources - weights.sum(-1, keepdim=True) * targets)
        back = weights.mT
        by_source = factor * (back @ targets - back.sum(-1, keepdim=True) * sources)
        return by_target, by_source


class Laplace:
    """`k(t, s) = exp(-alpha |t - s|_1)`, scikit-learn's `laplacian_kernel`."""

    def values(self, targets: Tensor, sources: Tensor, alpha: Tensor) -> Tensor:
        """Return the kernel matrix."""
        return torch.cdist(targets, sources, p=1.0).mul(_LOG2_E * -alpha[:, None, None]).exp2()

    def pull_back(self, weights: Tensor, targets: Tensor, sources: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients by both sets of points: `dk/dt = -alpha sign(t - s) k`."""
        by_target, by_source = [], []
        for k in range(targets.shape[-1]):
            pulled = weights * torch.sign(targets[..., :, None, k] - sources[..., None, :, k])
            by_target.append(-pulled.sum(-1))
            by_source.append(pulled.sum(-2))
        factor = alpha[:, None, None]
        return factor * torch.stack(by_target, -1), factor * torch.stack(by_source, -1)


GAUSSIAN = Gaussian()
LAPLACE = Laplace()


def _rows(targets: Tensor, sources: Tensor, tile_pairs: int | None) -> Iterator[slice]:
    """Cut the targets so that one piece against all sources has at most `tile_pairs` pairs."""
    n = targets.shape[1]
    step = n if tile_pairs is None else max(1, tile_pairs // max(1, sources.shape[1] * targets.shape[0]))
    for start in range(0, n, max(step, 1)):
        yield slice(start, start + step)


def pairwise_sum(
    kernel: Kernel,
    targets: Tensor,
    sources: Tensor,
    strengths: Tensor,
    alpha: Tensor,
    tile_pairs: int | None = TILE_PAIRS,
) -> Tensor:
    """Return `sum_j k(t_i, s_j) w_j`; `tile_pairs=None` holds the whole kernel matrix at once."""
    out = targets.new_empty((*targets.shape[:2], strengths.shape[-1]))
    for rows in _rows(targets, sources, tile_pairs):
        out[:, rows] = kernel.values(targets[:, rows], sources, alpha) @ strengths
    return out


def pairwise_vjp(
    kernel: Kernel,
    targets: Tensor,
    sources: Tensor,
    strengths: Tensor,
    alpha: Tensor,
    grad: Tensor,
    tile_pairs: int | None = TILE_PAIRS,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `<grad, pairwise_sum(...)>` by targets, sources and strengths."""
    by_target = torch.empty_like(targets)
    by_source = torch.zeros_like(sources)
    by_strength = torch.zeros_like(strengths)
    for rows in _rows(targets, sources, tile_pairs):
        values = kernel.values(targets[:, rows], sources, alpha)
        by_strength += values.mT @ grad[:, rows]
        weights = values.mul_(grad[:, rows] @ strengths.mT)
        by_target[:, rows], pulled = kernel.pull_back(weights, targets[:, rows], sources, alpha)
        by_source += pulled
    return by_target, by_source, by_strength
