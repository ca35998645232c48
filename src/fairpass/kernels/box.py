"""The periodic box in which a Gaussian is a short Fourier series, and the modes of that series.

Its few numbers are kept in NumPy, whose calls are faster for them. `spectral.py` defines the series.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fairpass.kernels.cost import SPECTRAL_CALL, spectral_cost
from fairpass.world import world

Floats = NDArray[np.float64]

MAX_DIMENSION = 3
# Points that suffice to find their principal axes.
_SAMPLE = 4096


class Waves(ABC):
    """The waves `[1, cos, sin]` of a series: their weights and derivatives, for moments `(B, q, *waves)`."""

    @property
    @abstractmethod
    def spectrum(self) -> Tensor:
        """Weight `c` of every wave, `(B or 1, 1, *waves)`."""

    @property
    @abstractmethod
    def derivatives(self) -> list[tuple[Tensor, int, Tensor]]:
        """Per axis: factor `(B, d, 1, *waves)`, dim, and permutation that swaps cosines and sines."""

    def gradient(self, moments: Tensor) -> Tensor:
        """Return the moments of all first derivatives, `(B, d, ...)` for moments `(B, ..., *waves)`."""
        made = self._derive(moments.flatten(1, 1 - self.spectrum.dim())[:, None])
        return made.reshape(*made.shape[:2], *moments.shape[1:])

    def divergence(self, moments: Tensor) -> Tensor:
        """Return the moments `(B, q, *waves)` of the divergence of a field with moments `(B, d, q, *waves)`."""
        return self._derive(moments).sum(1)

    def _derive(self, moments: Tensor) -> Tensor:
        (factor, axis, order), *others = self.derivatives
        total = factor * moments.index_select(axis, order)
        for factor, axis, order in others:
            total.addcmul_(factor, moments.index_select(axis, order))
        return total


@lru_cache
def swapped(waves: int, device: torch.device) -> Tensor:
    """Return the permutation from `[1, cos, sin]` to `[1, sin, cos]`."""
    return torch.cat([torch.zeros(1, dtype=torch.long), torch.arange(1, 2 * waves + 1).roll(waves)]).to(device)


@lru_cache
def _modes(size: int) -> tuple[Floats, Floats, Floats]:
    """Return per feature of an axis: its exponentials, `-(pi k)^2`, and `2 pi k` with the sign of its derivative."""
    signed = np.r_[0.0, 1.0 : size // 2 + 1, -1.0 : -size // 2 : -1.0]
    return np.where(signed == 0, 1.0, 2.0), -((math.pi * signed) ** 2), 2 * math.pi * signed


@dataclass(frozen=True)
class Box(Waves):
    """The periodic box of a batch of problems; moments are `(B, q, m_d, m_1, ..., m_{d-1})`."""

    axes: Floats  # orthonormal, as rows, in which the points' box is small, `(B, d, d)`
    side: Floats  # period along each axis, `(B, d)`
    sizes: tuple[int, ...]  # number of real features along each axis, `2 kappa + 1`
    alpha: Floats
    like: Tensor  # any tensor of the features' type and device

    def turns(self, multiples: tuple[NDArray[np.int64], ...]) -> Tensor:
        """Return the map from points to turns of multiples of each axis' first wave, `(B, rows, d)` in float64."""
        rows = [(k / self.side[:, i, None])[..., None] * self.axes[:, None, i] for i, k in enumerate(multiples)]
        return torch.from_numpy(np.concatenate(rows, 1)).to(self.like.device)

    def _along(self, k: int, values: Floats) -> Floats:
        """Return `(B, m_k)` numbers of an axis in the layout of the moments."""
        shape = [1] * len(self.sizes)
        shape[(k + 1) % len(shape)] = -1
        return values.reshape(len(values), 1, *shape)

    @cached_property
    def spectrum(self) -> Tensor:
        alpha, parts = self.alpha[:, None], []
        for k, size in enumerate(self.sizes):
            (exponentials, exponent, _), side = _modes(size), self.side[:, k, None]
            weights = np.exp(exponent / (side * side * alpha)) * exponentials / (np.sqrt(alpha / math.pi) * side)
            parts.append(self._along(k, weights))
        return torch.from_numpy(parts[-1] * math.prod(parts[:-1])).to(self.like)

    @cached_property
    def derivatives(self) -> list[tuple[Tensor, int, Tensor]]:
        batch, dimension = self.side.shape
        found = []
        for k, size in enumerate(self.sizes):
            along = self._along(k, _modes(size)[2] / self.side[:, k, None])[:, None]
            factor = self.axes[:, k].reshape(batch, dimension, *[1] * (dimension + 1)) * along
            order = swapped(size // 2, self.like.device)
            found.append((torch.from_numpy(factor).to(self.like), 3 + (k + 1) % dimension, order))
        return found


def reach(alpha: Floats, eps: float, dimension: int) -> Floats:
    """Return the distance `R` beyond which the kernel can be neglected with a total error of at most `eps`."""
    # In each dimension at most two periodic images come this near, and the modes above the highest weigh less than a
    # tenth of one of them.
    return np.asarray(np.sqrt(math.log(2.1 * dimension / eps) / alpha))


def feature_count(side_in_reaches: float, eps: float, dimension: int) -> int:
    """Return `m = 2 kappa + 1` for a box of this side; it does not depend on `alpha`, as `alpha R^2` is fixed."""
    return 2 * math.ceil(side_in_reaches * math.log(2.1 * dimension / eps) / math.pi) + 1


def fit_box(points: tuple[Tensor, ...], alpha: Tensor, eps: float) -> Box:
    """Return the box that holds all `points`, with the modes that keep the error of the kernel below `eps`.

    Points are `(B, d, n)` in float64, so that in a wide box they lose no digits that their differences have.
    """
    batch, dimension = points[0].shape[:2]
    widths = alpha.double().cpu().numpy()
    margin = reach(widths, eps, dimension)[:, None]

    def box(axes: Floats, extent: Floats) -> Box:
        side = extent + margin
        sizes = tuple(feature_count(n, eps, dimension) for n in (side / margin).max(0).tolist())
        return Box(axes, side, sizes, widths, alpha)

    straight = box(np.repeat(np.eye(dimension)[None], batch, 0), _extent(points))
    nodes = batch * world().count(points[0].shape[-1])
    # Finding better axes takes about as long as the fixed overhead of a sum.
    if dimension == 1 or spectral_cost(nodes, nodes, 1, straight.sizes, same=True) < 2 * SPECTRAL_CALL:
        return straight
    # Distances do not depend on the axes, the number of modes does: along their principal axes the two
    # nearly opposite logits of a binary classifier are a thin strip.
    principal = _principal_axes(points[0])
    axes = torch.from_numpy(principal).to(points[0])
    turned = box(principal, _extent(tuple(axes @ p for p in points)))
    return turned if math.prod(turned.sizes) < math.prod(straight.sizes) else straight


def _principal_axes(points: Tensor) -> Floats:
    """Return the principal axes as rows. The last axis' features are repeated for every column: it is the narrowest."""
    sample = points[..., :: max(1, points.shape[-1] // _SAMPLE)]
    centred = sample - world().mean(sample, -1)
    axes: Floats = np.linalg.eigh(world().total(centred @ centred.mT).cpu().numpy()).eigenvectors
    return np.ascontiguousarray(axes.swapaxes(1, 2)[:, ::-1])


def _extent(points: tuple[Tensor, ...]) -> Floats:
    low, high = world().bounds(points[0], -1)
    for others in points[1:]:
        lows, highs = world().bounds(others, -1)
        low, high = torch.minimum(low, lows), torch.maximum(high, highs)
    return np.asarray((high - low).cpu())
