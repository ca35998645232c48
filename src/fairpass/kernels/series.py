"""Kernel sums from moments, for every backend whose kernel is a short series of waves.

With waves `phi = [1, cos, sin]` and weights `c` the kernel is `phi(t) . c phi(s)`. A sum is then `phi(t_i) . c T` with
the moments `T = sum_j phi(s_j) w_j`, a few numbers however large N is. The derivative of a wave is another wave of the
same frequency. So the gradient of a sum is the evaluation of other, equally small moments, in which cosines and sines
are swapped. Points are `(B, d, n)` here, strengths `(B, q, n)` and moments `(B, q, *waves)`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from fairpass.kernels.backend import Gradients, KernelBackend, pull_back
from fairpass.kernels.box import Waves
from fairpass.world import world

# Numbers in a chunk's largest temporary, 4 MB in float32: few enough for the cache, enough for few chunks.
CHUNK_NUMBERS = 1 << 20
# Features are kept from one pass to the next up to this many numbers (64 MB in float32), beyond it computed again.
KEEP_NUMBERS = 1 << 24


class Features(NamedTuple):
    """The waves at some points: `right`, `(B, m, n)`, or the products of `right` and `left`, `(B, m_left, n)`."""

    right: Tensor
    left: Tensor | None = None

    def moments(self, strengths: Tensor) -> Tensor:
        """Return `sum_j phi_j w_j` for strengths `(B, q, n)`: `(B, q, m)`, or `(B, q m, m_left)`."""
        if self.left is None:
            return torch.bmm(strengths, self.right.mT)
        weighted = (strengths[:, :, None] * self.right[:, None]).flatten(1, 2)
        return torch.bmm(weighted, self.left.mT)

    def evaluate(self, coefficients: Tensor) -> Tensor:
        """Return `phi_i . T`, `(B, q, n)`, for coefficients `(B, q, *waves)`."""
        if self.left is None:
            return torch.bmm(coefficients, self.right)
        contracted = torch.bmm(coefficients.flatten(3).flatten(1, 2), self.left)
        return contracted.view(*coefficients.shape[:3], -1).mul_(self.right[:, None]).sum(2)


class Expansion(ABC):
    """Points expanded in waves, `step` of them at a time; if all features are few `numbers`, they are kept."""

    def __init__(self, spectrum: Tensor, points: Tensor, step: int, numbers: int, keep: bool = True) -> None:
        self.spectrum, self._points, self._step = spectrum, points, step
        self._kept: list[Features] | None = [] if keep and numbers <= KEEP_NUMBERS else None

    @abstractmethod
    def _features(self, points: Tensor) -> Features: ...

    def split(self, rows: Tensor) -> Sequence[Tensor]:
        """Return `(B, r, n)` numbers of the points chunk by chunk."""
        return (rows,) if rows.shape[2] <= self._step else torch.split(rows, self._step, 2)

    def chunks(self) -> Iterable[Features]:
        if self._kept is None:
            return map(self._features, self.split(self._points))
        if not self._kept:
            self._kept = [self._features(points) for points in self.split(self._points)]
        return self._kept

    def moments(self, strengths: Tensor) -> Tensor:
        """Return `sum_j phi(s_j) w_j` of strengths `(B, q, n)`; the moments of disjoint sets, and processes, add up."""
        parts = zip(self.split(strengths), self.chunks(), strict=True)
        total, *others = (features.moments(part) for part, features in parts)
        for other in others:
            total.add_(other)
        total = world().total(total)
        return total if self.spectrum.dim() == 3 else total.view(*strengths.shape[:2], *self.spectrum.shape[2:])

    def evaluate(self, moments: Tensor) -> Tensor:
        """Return the sums that belong to the moments at every point, `(B, q, n)`."""
        return self.evaluate_series(moments * self.spectrum)

    def evaluate_series(self, coefficients: Tensor) -> Tensor:
        parts = [features.evaluate(coefficients) for features in self.chunks()]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 2)

    def gram(self, moments: Tensor) -> Tensor:
        """Return the inner products of the moments' columns, `(B, q, q)`: the quadratic forms of their strengths."""
        return torch.bmm((moments * self.spectrum).flatten(2), moments.flatten(2).mT)


class Series(KernelBackend):
    """Sums in time proportional to the points, from the moments of an expansion."""

    @property
    @abstractmethod
    def waves(self) -> Waves: ...

    @property
    @abstractmethod
    def expansions(self) -> tuple[Expansion, Expansion]:
        """Targets and sources, expanded once if they are the same."""

    def sum(self, w: Tensor) -> Tensor:
        targets, sources = self.expansions
        return targets.evaluate(sources.moments(columns_of(w))).mT

    def vjp(self, w: Tensor, grad: Tensor) -> Gradients:
        targets, sources = self.expansions
        w, g = columns_of(w), columns_of(grad)
        q = w.shape[1]

        def fold(values: Tensor, weights: Tensor) -> Tensor:
            return (torch.unflatten(values, 1, (-1, q)) * weights[:, None]).sum(2).mT

        pulled = targets.moments(g)
        by_target = targets.evaluate(self.waves.gradient(sources.moments(w)).flatten(1, 2))
        values = sources.evaluate(torch.cat([self.waves.gradient(pulled).flatten(1, 2), pulled], 1))
        return fold(by_target, g), fold(values[:, :-q], w), values[:, -q:].mT

    def gram(self, w: Tensor) -> Tensor:
        points, _ = self.expansions
        return points.gram(points.moments(columns_of(w)))

    def slope(self, points: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        slopes, gram = _Slope.apply(points, w, self)  # type: ignore[no-untyped-call] # torch's own
        return slopes, gram

    def slope_forward(self, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the slopes `(B, N, q, d)`, the quadratic forms, and what `slope_vjp` needs: the moments' gradient."""
        points, _ = self.expansions
        moments = points.moments(columns_of(w))
        first = self.waves.gradient(moments)
        values = points.evaluate(first.flatten(1, 2))
        return torch.unflatten(values, 1, first.shape[1:3]).permute(0, 3, 2, 1), points.gram(moments), first

    def slope_vjp(self, w: Tensor, first: Tensor, grad: Tensor, *, by_strength: bool) -> tuple[Tensor, Tensor | None]:
        """Return the gradients of `<grad, slopes>` by points and, if wanted, by strengths."""
        points, _ = self.expansions
        waves, (d, q) = self.waves, first.shape[1:3]
        incoming = grad.permute(0, 3, 2, 1).contiguous()  # (B, d, q, N)
        # As targets: the Hessian of each column's sum, times the incoming gradient.
        below, where = _symmetric(d, grad.device)
        second = waves.gradient(first).flatten(1, 2).index_select(1, below)
        # As sources: derivatives are antisymmetric, so a source feels minus the derivative of the pulled moments.
        pulled = torch.unflatten(points.moments(incoming.flatten(1, 2)), 1, (d, q))
        adjoint = waves.divergence(pulled).neg_()
        parts = [second.flatten(1, 2), waves.gradient(adjoint).flatten(1, 2), *([adjoint] if by_strength else [])]
        values = torch.unflatten(points.evaluate(torch.cat(parts, 1)), 1, (-1, q))
        hessian = torch.unflatten(values.index_select(1, where), 1, (d, d))
        pulls = (hessian * incoming[:, None]).sum(2)
        by_point = pulls.addcmul_(values[:, len(below) : len(below) + d], columns_of(w)[:, None]).sum(2).mT
        return by_point, values[:, -1].mT if by_strength else None


class _Slope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, points: Tensor, w: Tensor, series: Series) -> tuple[Tensor, Tensor]:
        slopes, gram, ctx.kept = series.slope_forward(w)
        ctx.series = series
        ctx.save_for_backward(points, w)
        ctx.mark_non_differentiable(gram)
        return slopes, gram

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        points, w = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return *ctx.series.slope_vjp(w, ctx.kept, grad, by_strength=ctx.needs_input_grad[1]), None

        def slopes(points: Tensor, w: Tensor) -> Tensor:  # create_graph=True
            return cast(Tensor, ctx.series.slopes_and_sums(points, points, w)[0])

        return *pull_back(slopes, (points, w), grad), None


def columns_of(strengths: Tensor) -> Tensor:
    """Return `(B, N, q)` strengths as `(B, q, N)`, each column contiguous."""
    return strengths.mT.contiguous()


@lru_cache
def _symmetric(dimension: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the flat indices of a matrix' entries on and below the diagonal, and each entry's place among them."""
    rows, columns = np.tril_indices(dimension)
    places = np.zeros((dimension, dimension), np.int64)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    below, where = rows * dimension + columns, places.flatten()
    return torch.from_numpy(below).to(device), torch.from_numpy(where).to(device)
