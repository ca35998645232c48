"""The periodic box in which a Gaussian is a short Fourier series, and the modes of that series.

What belongs to a box alone is a few numbers, kept in numpy: for so few its calls are the quicker ones. `spectral.py`
says what the series is good for, and sums with it.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fairpass.kernels.cost import SPECTRAL_CALL, spectral_cost

Floats = NDArray[np.float64]

MAX_DIMENSION = 3
# Points that suffice to see along which axes they lie.
_SAMPLE = 4096


@dataclass(frozen=True)
class Box:
    """The periodic box of one problem (or one batch of problems) and its modes.

    Moments are laid out `(B, q, m_d, m_1 ... m_{d-1})`: the last dimension is apart from the others, which are
    multiplied out.

    Attributes:
        axes: orthonormal axes in which the points' box is small, as rows, `(B, d, d)`.
        side: period along each axis, `(B, d)`.
        sizes: number of real features along each axis, `2 kappa + 1`.
        alpha: kernel parameter, `(B,)`.
        like: any tensor of the features' type and device.
    """

    axes: Floats
    side: Floats
    sizes: tuple[int, ...]
    alpha: Floats
    like: Tensor

    def turns(self, multiples: tuple[NDArray[np.int64], ...]) -> Tensor:
        """Return what maps a point to the turns of some multiples of each axis' first wave, `(B, rows, d)`, float64."""
        rows = [(k / self.side[:, i, None])[..., None] * self.axes[:, None, i] for i, k in enumerate(multiples)]
        return torch.from_numpy(np.concatenate(rows, 1)).to(self.like.device)

    @cached_property
    def spectrum(self) -> Tensor:
        """Return `c` of every mode, `(B, 1, m_d, m_1 ... m_{d-1})`."""
        modes = _modes(self.sizes)
        side, alpha = self.side[:, modes.axis], self.alpha[:, None]
        weights = np.exp(modes.exponent / (side * side * alpha)) * modes.exponentials
        weights /= np.sqrt(alpha / math.pi) * side
        *others, last = (weights[:, part] for part in modes.parts)
        left = others[0] if others else np.ones((len(weights), 1))
        if len(others) == 2:
            left = (left[:, :, None] * others[1][:, None]).reshape(len(left), -1)
        return torch.from_numpy(last[:, None, :, None] * left[:, None, None]).to(self.like)

    @cached_property
    def _derivatives(self) -> list[tuple[Tensor, int, Tensor]]:
        """Return for each axis what its derivative multiplies the moments with, after it has put them in which order.

        The factors are `(B, d, 1, m_d, m_left)`, one of the last two being 1: the direction of the axis is part of
        them, so that gradients are in the points' own coordinates. The order is along the axis of the moments named.
        """
        modes = _modes(self.sizes)
        omega = modes.slope / self.side[:, modes.axis]
        found = []
        for k, (axis, order) in enumerate(_swaps(self.sizes, self.like.device)):
            along = omega[:, modes.parts[k]]
            if len(self.sizes) == 3 and k < 2:
                other = self.sizes[1 - k]
                along = np.repeat(along, other, 1) if k == 0 else np.tile(along, other)
            along = along[:, None, None, :, None] if axis == 3 else along[:, None, None, None]
            factor = torch.from_numpy(self.axes[:, k, :, None, None, None] * along).to(self.like)
            found.append((factor, axis, order))
        return found

    def gradient(self, moments: Tensor) -> Tensor:
        """Return the moments of all first derivatives, `(B, d, ...)` for moments `(B, ..., m_d, m_left)`."""
        made = self._derive(moments.flatten(1, -3)[:, None])
        return made.reshape(len(moments), len(self.sizes), *moments.shape[1:])

    def divergence(self, moments: Tensor) -> Tensor:
        """Return the moments `(B, q, m_d, m_left)` of the divergence of a field with moments `(B, d, q, ...)`."""
        return self._derive(moments).sum(1)

    def _derive(self, moments: Tensor) -> Tensor:
        # A cosine's derivative is minus a sine, a sine's a cosine: the halves change places.
        (factor, axis, order), *others = self._derivatives
        total = factor * moments.index_select(axis, order)
        for factor, axis, order in others:
            total.addcmul_(factor, moments.index_select(axis, order))
        return total


class _Modes(NamedTuple):
    """Of every feature of all axes: what does not depend on the points.

    Attributes:
        axis: its axis.
        parts: which features are of the first axis, the second, and so on.
        exponentials: how many of them it stands for, two for each cosine.
        exponent: `-(pi k)^2`.
        slope: `2 pi k`, with the sign that a derivative's wave has in its place.
    """

    axis: NDArray[np.int64]
    parts: list[slice]
    exponentials: Floats
    exponent: Floats
    slope: Floats


@lru_cache
def _modes(sizes: tuple[int, ...]) -> _Modes:
    ends = np.cumsum(sizes).tolist()
    # A cosine's place has the derivative of the sine, and a sine's minus that of the cosine.
    signed = np.concatenate([np.r_[0.0, 1.0 : size // 2 + 1, -1.0 : -size // 2 : -1.0] for size in sizes])
    return _Modes(
        axis=np.repeat(np.arange(len(sizes)), sizes),
        parts=[slice(end - size, end) for size, end in zip(sizes, ends, strict=True)],
        exponentials=np.where(signed == 0, 1.0, 2.0),
        exponent=-((math.pi * signed) ** 2),
        slope=2 * math.pi * signed,
    )


@lru_cache
def _swaps(sizes: tuple[int, ...], device: torch.device) -> list[tuple[int, Tensor]]:
    """Return for each axis where it is in `(B, d, q, m_d, m_left)`, and the order in which cosines and sines swap."""
    orders = []
    for size in sizes:
        kappa = size // 2
        orders.append(torch.cat([torch.zeros(1, dtype=torch.long), torch.arange(1, size).roll(kappa)]))
    *left, right = orders
    if len(left) == 2:
        grid = torch.arange(sizes[0] * sizes[1]).view(sizes[:2])
        left = [grid[left[0]].flatten(), grid[:, left[1]].flatten()]
    return [*((4, order.to(device)) for order in left), (3, right.to(device))]


def reach(alpha: Floats, eps: float, dimension: int) -> Floats:
    """Return the distance `R` beyond which the kernel may be left out, and the whole error is within `eps`.

    In each dimension two periodic images come this near at most, and the modes above the highest weigh less
    than a tenth of one of them.
    """
    distance: Floats = np.sqrt(math.log(2.1 * dimension / eps) / alpha)
    return distance


def feature_count(side_in_reaches: float, eps: float, dimension: int) -> int:
    """Return `m = 2 kappa + 1` for a box of this side; `alpha` plays no part, as `alpha R^2` is fixed."""
    return 2 * math.ceil(side_in_reaches * math.log(2.1 * dimension / eps) / math.pi) + 1


def fit_box(points: tuple[Tensor, ...], alpha: Tensor, eps: float) -> Box:
    """Return the box that holds all `points`, with the modes that keep the error of the kernel below `eps`.

    Here and below points are `(B, d, n)` in float64: with the nodes last, every element-wise operation runs
    along them, and points in a wide box lose no digits that their differences have.
    """
    batch, dimension = points[0].shape[:2]
    widths = alpha.double().cpu().numpy()
    margin = reach(widths, eps, dimension)[:, None]
    own = np.repeat(np.eye(dimension)[None], batch, 0)
    side = _extent(points) + margin
    straight = Box(own, side, _sizes(side / margin, eps), widths, alpha)
    nodes = batch * points[0].shape[-1]
    # To look for better axes takes about as long as the fixed overhead of a sum.
    if dimension == 1 or spectral_cost(nodes, nodes, 1, straight.sizes, same=True) < 2 * SPECTRAL_CALL:
        return straight
    # Distances do not depend on the axes, the number of modes does: along their principal axes the two
    # nearly opposite logits of a binary classifier are a thin strip.
    principal = _principal_axes(points[0])
    axes = torch.from_numpy(principal).to(points[0])
    side = _extent(tuple(axes @ p for p in points)) + margin
    turned = Box(principal, side, _sizes(side / margin, eps), widths, alpha)
    return turned if math.prod(turned.sizes) < math.prod(straight.sizes) else straight


def _sizes(reaches: Floats, eps: float) -> tuple[int, ...]:
    return tuple(feature_count(n, eps, reaches.shape[1]) for n in reaches.max(0).tolist())


def _principal_axes(points: Tensor) -> Floats:
    """Return the principal axes of each problem's points as rows.

    Widest first: the last axis' features are the ones repeated for every column.
    """
    sample = points[..., :: max(1, points.shape[-1] // _SAMPLE)]
    centred = sample - sample.mean(-1, keepdim=True)
    axes: Floats = np.linalg.eigh((centred @ centred.mT).cpu().numpy()).eigenvectors
    return np.ascontiguousarray(axes.swapaxes(1, 2)[:, ::-1])


def _extent(points: tuple[Tensor, ...]) -> Floats:
    """Return how far the points are spread along each axis, `(B, rows)`."""
    # Not `aminmax`, which takes eight times as long.
    low, high = points[0].amin(-1), points[0].amax(-1)
    for others in points[1:]:
        low, high = torch.minimum(low, others.amin(-1)), torch.maximum(high, others.amax(-1))
    extent: Floats = (high - low).cpu().numpy()
    return extent
