"""Kernel sums over all pairs: the dense oracle, its tiled form with bounded memory, and the Laplace kernel."""

import math
import warnings

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from fairpass.errors import QuadraticCostWarning
from fairpass.kernels.backend import Gradients, KernelBackend, Problem
from fairpass.kernels.cost import pairwise_cost

# Pairs held at once by the tiled backend. 2^17 of them fill half a megabyte in float32: it stays in a core's
# cache, and is small enough for the allocator to keep it from one tile to the next.
TILE_PAIRS = 1 << 17
# More pairs than this are not visited without a warning: those of 16,384 nodes, about a second for each sum.
MANY_PAIRS = 1 << 28
# Powers of 2, not of e: where most of them underflow, as over a wide span, `exp` takes ten times longer.
_LOG2_E = math.log2(math.e)


class Tiled(KernelBackend):
    """`k(t, s) = exp(-alpha |t - s|^2)` over all pairs, one tile of targets at a time."""

    name = "tiled"

    def _values(self, targets: Tensor, sources: Tensor) -> Tensor:
        # Differences, not |t|^2 + |s|^2 - 2 t.s: far from the origin the latter loses all its digits.
        squared = torch.zeros((*targets.shape[:-1], sources.shape[-2]), dtype=targets.dtype, device=targets.device)
        for k in range(targets.shape[-1]):
            squared += (targets[..., :, None, k] - sources[..., None, :, k]).square_()
        return squared.mul_(_LOG2_E * -self.problem.alpha[:, None, None]).exp2_()

    def _pull_back(self, weights: Tensor, targets: Tensor, sources: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of `sum_ij c_ij k_ij` by targets and sources, given `weights = c * k`."""
        factor = 2 * self.problem.alpha[:, None, None]
        # With the origin amid the sources: far from it the two terms of each difference would nearly cancel.
        origin = sources.sum(-2, keepdim=True) / max(1, sources.shape[-2])
        targets, sources = targets - origin, sources - origin
        by_target = factor * (weights @ sources - weights.sum(-1, keepdim=True) * targets)
        return by_target, factor * (weights.mT @ targets - weights.mT.sum(-1, keepdim=True) * sources)

    def _tile_size(self) -> int:
        return max(1, TILE_PAIRS // max(1, self.problem.sources.shape[1] * len(self.problem.targets)))

    def _tiles(self) -> list[slice]:
        step = self._tile_size()
        return [slice(start, start + step) for start in range(0, self.problem.targets.shape[1], step)]

    def sum(self, w: Tensor) -> Tensor:
        targets, sources = self.problem.targets, self.problem.sources
        out = targets.new_empty((*targets.shape[:2], w.shape[-1]))
        for rows in self._tiles():
            out[:, rows] = self._values(targets[:, rows], sources) @ w
        return out

    def vjp(self, w: Tensor, grad: Tensor) -> Gradients:
        targets, sources = self.problem.targets, self.problem.sources
        by_target, by_source, by_strength = torch.empty_like(targets), torch.zeros_like(sources), torch.zeros_like(w)
        for rows in self._tiles():
            values = self._values(targets[:, rows], sources)
            by_strength += values.mT @ grad[:, rows]
            weights = values.mul_(grad[:, rows] @ w.mT)
            by_target[:, rows], pulled = self._pull_back(weights, targets[:, rows], sources)
            by_source += pulled
        return by_target, by_source, by_strength


class Dense(Tiled):
    """The whole kernel matrix at once: the oracle in tests."""

    name = "dense"

    def _tile_size(self) -> int:
        return max(1, self.problem.targets.shape[1])


class Laplace(Tiled):
    """`k(t, s) = exp(-alpha |t - s|_1)`, scikit-learn's `laplacian_kernel`."""

    name = "laplace"

    def _values(self, targets: Tensor, sources: Tensor) -> Tensor:
        return torch.cdist(targets, sources, p=1.0).mul(_LOG2_E * -self.problem.alpha[:, None, None]).exp2()

    def _pull_back(self, weights: Tensor, targets: Tensor, sources: Tensor) -> tuple[Tensor, Tensor]:
        by_target, by_source = [], []
        for k in range(targets.shape[-1]):
            pulled = weights * torch.sign(targets[..., :, None, k] - sources[..., None, :, k])
            by_target.append(-pulled.sum(-1))
            by_source.append(pulled.sum(-2))
        factor = self.problem.alpha[:, None, None]
        return factor * torch.stack(by_target, -1), factor * torch.stack(by_source, -1)

    def differentiable_vjp(self, t: Tensor, s: Tensor, w: Tensor, grad: Tensor) -> Gradients:
        # Each tile's kernel matrix is computed again when this is differentiated.
        def tile(rows: Tensor, pulled: Tensor, s: Tensor, w: Tensor) -> Gradients:
            weights = self._values(rows, s)
            by_target, by_source = self._pull_back(weights * (pulled @ w.mT), rows, s)
            return by_target, by_source, weights.mT @ pulled

        size = self._tile_size()
        parts = [
            checkpoint(tile, rows, pulled, s, w, use_reentrant=False)
            for rows, pulled in zip(torch.split(t, size, 1), torch.split(grad, size, 1), strict=True)
        ]
        by_target, by_source, by_strength = zip(*parts, strict=True)
        return torch.cat(by_target, 1), torch.stack(by_source).sum(0), torch.stack(by_strength).sum(0)


def warn_of_pairs(problem: Problem, advice: str) -> None:
    if problem.pairs > MANY_PAIRS:
        nodes, seconds = max(problem.targets.shape[1], problem.sources.shape[1]), 1e-9 * pairwise_cost(problem.pairs, 1)
        visits = f"each kernel sum over {nodes:,} nodes visits all {problem.pairs:,} pairs"
        warnings.warn(f"{visits}, which takes about {seconds:,.0f} s; {advice}", QuadraticCostWarning, stacklevel=2)


def all_pairs(problem: Problem) -> Tiled:
    warn_of_pairs(problem, "a Gaussian kernel with backend 'sliced' takes time proportional to the nodes")
    return Tiled(problem)
