r"""Gaussian sums as Fourier series: O(N) for points in at most three dimensions.

Beyond its reach `R = sqrt(ln(1/eps)/alpha)` the one-dimensional Gaussian is below `eps`. So on a box of side
`L = span + R` it is, to `eps`, the series

.. math::
    e^{-\alpha r^2} \approx \sum_{|k| \le \kappa} c_k e^{2\pi i k r/L}, \qquad
    c_k = \frac{\sqrt{\pi/\alpha}}{L} e^{-(\pi k/L)^2/\alpha}, \qquad
    \kappa = \Big\lceil \frac{\alpha L R}{\pi} \Big\rceil .

With the real features `phi(x) = sqrt(c) [1, cos, sin]` a dimension's kernel is `phi(t) . phi(s)`, and a sum
over all sources falls into three steps, kept apart because only the small moment tensor crosses nodes (the roots
`sqrt(c)` multiply that tensor, not the features):

1. `moments(sources, strengths)`: `T = sum_j phi(s_j) w_j`, just `q m^d` numbers whatever N is;
2. moments of several chunks (or processes) are combined by adding them;
3. `evaluate(targets, T)`: `phi(t_i) . T`.

The derivative of a feature is another feature of the same dimension (`phi' = phi D`), so that the gradient of
a sum is the evaluation of other, equally small moments: `grad phi . T = phi . (D T)`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]

MAX_DIMENSION = 3
# Numbers in a chunk's largest temporary, 2 MB in float32: few enough for the cache, enough for few chunks.
CHUNK_NUMBERS = 1 << 19
# So few waves are faster computed one by one than from each other, which takes more calls.
FEW_WAVES = 16
# Features are kept from one step to the next up to this many numbers (64 MB in float32), beyond it made anew.
KEEP_NUMBERS = 1 << 24


@dataclass(frozen=True)
class Box:
    """The periodic box of one problem (or one batch of problems) and its modes.

    What belongs to the box alone are a few numbers, kept in numpy: for so few its calls are the quicker ones.

    Attributes:
        centre: the middle of the box, `(B, d, 1)`, float64.
        axes: orthonormal axes in which the points' box is small, `(B, d, d)`.
        side: period in each dimension, `(B, d)`.
        sizes: number of real features in each dimension, `2 kappa + 1`.
        alpha: kernel parameter, `(B,)`.
    """

    centre: Tensor
    axes: Tensor
    side: Floats
    sizes: tuple[int, ...]
    alpha: Floats

    @cached_property
    def derivatives(self) -> list[Tensor]:
        """Return for each dimension the matrix `D`, `(B, m, m)`, with `phi' = phi D`.

        A cosine's derivative is minus a sine, a sine's a cosine: `D` makes the halves of `T` change places.
        """
        matrices = []
        for i, size in enumerate(self.sizes):
            kappa = size // 2
            k = np.arange(1, kappa + 1)
            omega = (2 * math.pi / self.side[:, i, None]) * k
            matrix = np.zeros((len(self.side), size, size))
            matrix[:, k, k + kappa] = omega
            matrix[:, k + kappa, k] = -omega
            matrices.append(torch.from_numpy(matrix).to(self.axes))
        return matrices

    @cached_property
    def frequencies(self) -> list[Tensor]:
        """Return for each dimension `k/L`, k = 1 ... kappa, `(B, kappa, 1)`, in float64."""
        return [
            torch.from_numpy((np.arange(1, size // 2 + 1) / self.side[:, i, None])[..., None]).to(self.axes.device)
            for i, size in enumerate(self.sizes)
        ]

    @cached_property
    def anchors(self) -> list[Tensor]:
        """Return for each dimension `p/L`, p = 1, 2, 4, ..., `(B, count, 1)`, in float64."""
        return [
            frequency[:, [(1 << i) - 1 for i in range(frequency.shape[1].bit_length())]]
            for frequency in self.frequencies
        ]

    @cached_property
    def amplitudes(self) -> Tensor:
        """Return `sqrt(c)` of every mode, `(B, m_1 ... m_{d-1}, 1, m_d)`, as moments are laid out."""
        left: Floats = np.ones((len(self.side), 1))
        for i, size in enumerate(self.sizes):
            k = np.arange(size)
            k[size // 2 + 1 :] -= size // 2  # cosines, then sines of the same frequencies
            side, alpha = self.side[:, i, None], self.alpha[:, None]
            root = np.exp(-((math.pi * k / side) ** 2) / (2 * alpha)) / np.sqrt(np.sqrt(alpha / math.pi) * side)
            root[:, 1:] *= math.sqrt(2)  # each cosine stands for two exponentials
            if i < len(self.sizes) - 1:
                left = (left[:, :, None] * root[:, None]).reshape(len(left), -1)
        return torch.from_numpy(left[:, :, None, None] * root[:, None, None]).to(self.axes)

    def differentiate(self, moments: Tensor, dimension: int) -> Tensor:
        """Return `D T`, whose evaluation is the derivative of `phi . T` along one axis of the box."""
        matrix = self.derivatives[dimension]
        last = len(self.sizes) - 1
        if dimension == last:
            return moments @ matrix.mT[:, None]
        if last == 1:
            return torch.unflatten(matrix @ moments.flatten(2), 2, moments.shape[2:])
        grid = torch.unflatten(moments, 1, self.sizes[:-1]).movedim(1 + dimension, -1)
        return (grid @ matrix.mT[:, None, None]).movedim(-1, 1 + dimension).flatten(1, last)

    def gradient(self, moments: Tensor) -> Tensor:
        """Return the moments of all first derivatives, dimension by dimension: `d q` columns."""
        return torch.cat([self.differentiate(moments, k) for k in range(len(self.sizes))], 2)


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
    along them, and points far from the origin, or in a wide box, lose no digits that their differences have.
    """
    dimension = points[0].shape[1]
    widths = alpha.double().cpu().numpy()
    margin = reach(widths, eps, dimension)[:, None]
    low, high = _extent(points)
    centre, side = (low + high) / 2, (high - low).cpu().numpy() + margin
    reaches = (side / margin).max(0)
    axes = None
    if dimension > 1:
        # Distances do not depend on the axes, the number of modes does: along their principal axes the two
        # nearly opposite logits of a binary classifier are a thin strip.
        principal = _principal_axes(points[0])
        low, high = _extent(tuple(principal.mT @ (p - centre[..., None]) for p in points))
        turned = (high - low).cpu().numpy() + margin
        if (turned / margin).max(0).prod() < reaches.prod():
            centre = centre + (principal @ ((low + high) / 2)[..., None])[..., 0]
            axes, side, reaches = principal, turned, (turned / margin).max(0)
    if axes is None:
        axes = torch.eye(dimension, device=alpha.device).expand(len(alpha), -1, -1)
    return Box(
        centre=centre[..., None],
        axes=axes.to(alpha.dtype),
        side=side,
        sizes=tuple(feature_count(n, eps, dimension) for n in reaches.tolist()),
        alpha=widths,
    )


def _principal_axes(points: Tensor) -> Tensor:
    sample = points[..., :: max(1, points.shape[-1] // 4096)]
    centred = sample - sample.mean(-1, keepdim=True)
    # Widest first: the last dimension's features are the ones repeated for every column.
    axes: Tensor = torch.linalg.eigh(centred @ centred.mT).eigenvectors
    return axes.flip(-1)


def _extent(points: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    low, high = torch.aminmax(points[0], dim=-1)
    for others in points[1:]:
        bounds = torch.aminmax(others, dim=-1)
        low, high = torch.minimum(low, bounds.min), torch.maximum(high, bounds.max)
    return low, high


class Features:
    """The waves at some points: of all dimensions but the last, multiplied out, and of the last.

    `left` is `(B, m_1 ... m_{d-1}, n)` (absent in one dimension), `right` is `(B, m_d, n)`; sums over points
    are then plain matrix products.
    """

    def __init__(self, box: Box, local: Tensor) -> None:
        *others, self.right = (_waves(box, local[:, k], k) for k in range(local.shape[1]))
        self.left = others[0] if others else None
        if len(others) == 2:
            self.left = (others[0][:, :, None] * others[1][:, None]).flatten(1, 2)

    def moments(self, strengths: Tensor) -> Tensor:
        """Return `sum_j phi_j w_j`, `(B, m_left, q m_right)`, for strengths `(B, q, n)`."""
        weighted = (strengths[:, :, None] * self.right[:, None]).flatten(1, 2)
        return weighted.sum(-1)[:, None] if self.left is None else self.left @ weighted.mT

    def evaluate(self, moments: Tensor) -> Tensor:
        """Return `phi_i . T`, `(B, q, n)`."""
        if self.left is None:
            return moments[:, 0] @ self.right
        contracted = moments.flatten(2).mT @ self.left
        return torch.unflatten(contracted, 1, moments.shape[2:]).mul_(self.right[:, None]).sum(2)


def _waves(box: Box, x: Tensor, dimension: int) -> Tensor:
    """Return `[1, cos, sin]` of one coordinate's multiples, `(B, 2 kappa + 1, n)`.

    Of many, only the powers of two are computed as such; the waves between follow from `e^{i(p+j)x} = e^{ipx} e^{ijx}`,
    each from one anchor and a lower wave, so that rounding errors add up over the few doublings and not over all waves.
    """
    kappa = box.sizes[dimension] // 2
    out = box.axes.new_empty((len(x), 2 * kappa + 1, x.shape[-1]))
    out[:, :1] = 1.0
    are_few = kappa <= FEW_WAVES
    # Whole turns are taken off in float64: the error of a high frequency is then no larger than a low one's.
    turns = x[:, None] * (box.frequencies if are_few else box.anchors)[dimension]
    angle = turns.sub_(turns.round()).to(box.axes).mul_(2 * math.pi)
    if are_few:
        torch.cos(angle, out=out[:, 1 : kappa + 1])
        torch.sin(angle, out=out[:, kappa + 1 :])
        return out
    cosines, sines = angle.cos(), angle.sin()
    for i in range(cosines.shape[1]):
        p, c, s = 1 << i, cosines[:, i : i + 1], sines[:, i : i + 1]
        out[:, p : p + 1], out[:, kappa + p : kappa + p + 1] = c, s
        count = min(p, kappa - p + 1) - 1
        if count > 0:
            low_c, low_s = out[:, 1 : 1 + count], out[:, kappa + 1 : kappa + 1 + count]
            torch.mul(low_c, c, out=out[:, p + 1 : p + 1 + count]).addcmul_(low_s, s, value=-1)
            torch.mul(low_s, c, out=out[:, kappa + p + 1 : kappa + p + 1 + count]).addcmul_(low_c, s)
    return out


class Expansion:
    """Some points and their features in a box, chunk by chunk; if few, they are kept for the next pass."""

    def __init__(self, box: Box, points: Tensor, *, keep: bool = True) -> None:
        self.box = box
        self.local = box.axes.mT.double() @ (points - box.centre)
        numbers = self.local.shape[0] * self.local.shape[2] * (math.prod(box.sizes[:-1]) + box.sizes[-1])
        self._kept: list[Features] | None = [] if keep and numbers <= KEEP_NUMBERS else None
        self._step = max(256, CHUNK_NUMBERS // (len(points) * max(math.prod(box.sizes[:-1]), 6 * box.sizes[-1])))

    def _chunks(self) -> Iterator[tuple[slice, Features]]:
        for i, start in enumerate(range(0, self.local.shape[2], self._step)):
            rows = slice(start, start + self._step)
            if self._kept is None:
                yield rows, Features(self.box, self.local[:, :, rows])
                continue
            if len(self._kept) == i:
                self._kept.append(Features(self.box, self.local[:, :, rows]))
            yield rows, self._kept[i]

    def moments(self, strengths: Tensor) -> Tensor:
        """Return `T = sum_j phi(s_j) w_j`, `(B, m_left, q, m_right)`; the moments of disjoint sets add up."""
        columns = strengths.mT.contiguous()
        sizes = self.box.sizes
        total = strengths.new_zeros((len(strengths), math.prod(sizes[:-1]), columns.shape[1] * sizes[-1]))
        for rows, features in self._chunks():
            total += features.moments(columns[:, :, rows])
        return torch.unflatten(total, 2, (columns.shape[1], sizes[-1])) * self.box.amplitudes

    def evaluate(self, moments: Tensor) -> Tensor:
        """Return `phi(t_i) . T` for every point, `(B, n, q)`."""
        weighted = moments * self.box.amplitudes
        parts = [features.evaluate(weighted) for _, features in self._chunks()]
        return torch.cat(parts, 2).mT if parts else moments.new_empty((len(moments), 0, moments.shape[2]))


def spectral_sum(targets: Expansion, sources: Expansion, strengths: Tensor) -> Tensor:
    """Return `sum_j exp(-alpha |t_i - s_j|^2) w_j`, to `eps sum_j |w_j|` and rounding."""
    return targets.evaluate(sources.moments(strengths))


def spectral_vjp(
    targets: Expansion, sources: Expansion, strengths: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `<grad, spectral_sum(...)>` by targets, sources and strengths."""
    box, columns = targets.box, grad.shape[-1] * len(targets.box.sizes)

    def slopes(values: Tensor, weights: Tensor) -> Tensor:
        # Fold the columns: sum_q weights_q dE_q/dx, then from the box's axes to the points' own.
        by_axis = torch.unflatten(values, -1, (-1, weights.shape[-1])) @ weights[..., None]
        return by_axis[..., 0] @ box.axes.mT

    pulled = targets.moments(grad)
    by_target = targets.evaluate(box.gradient(sources.moments(strengths)))
    values = sources.evaluate(torch.cat([box.gradient(pulled), pulled], 2))
    by_source, by_strength = torch.split(values, [columns, grad.shape[-1]], -1)
    return slopes(by_target, grad), slopes(by_source, strengths), by_strength


def spectral_slope(points: Expansion, strengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of `E = sum_j k(., s_j) w_j` at each point, `(B, N, q, d)`, and the moments of `E`."""
    box = points.box
    moments = points.moments(strengths)
    values = points.evaluate(box.gradient(moments))
    return torch.unflatten(values, -1, (len(box.sizes), -1)).mT @ box.axes.mT[:, None], moments


def moments_gram(moments: Tensor) -> Tensor:
    """Return the inner products of the moments' columns, `(B, q, q)`: the quadratic forms of their strengths."""
    columns = moments.movedim(2, 1).flatten(2)
    return columns @ columns.mT


def spectral_slope_vjp(
    points: Expansion, strengths: Tensor, moments: Tensor, grad: Tensor, *, by_strength: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of `<grad, spectral_slope(...)>` by points and, if wanted, by strengths."""
    box = points.box
    dimension, q = len(box.sizes), strengths.shape[-1]
    local = (grad @ box.axes[:, None]).mT.flatten(-2)  # (B, N, d q), dimension by dimension
    # As targets: the Hessian of each column's sum, times the gradient that came in.
    first = box.gradient(moments)
    second = [box.differentiate(first[:, :, k * q :], k) for k in range(dimension)]
    # As sources: the adjoint of D is -D, so a source feels minus the derivative of the pulled moments.
    pulled = torch.split(points.moments(local), q, dim=2)
    adjoint = torch.stack([box.differentiate(part, k) for k, part in enumerate(pulled)]).sum(0).neg_()
    wanted = torch.cat([*second, box.gradient(adjoint), *([adjoint] if by_strength else [])], 2)
    columns = torch.unflatten(points.evaluate(wanted), -1, (-1, q))
    incoming = torch.unflatten(local, -1, (dimension, q))
    pairs = [(i, j) for j in range(dimension) for i in range(j, dimension)]
    slopes = columns[..., len(pairs) : len(pairs) + dimension, :] * strengths[..., None, :]
    for (i, j), column in zip(pairs, columns.unbind(-2), strict=False):
        slopes[..., i, :] += column * incoming[..., j, :]
        if i != j:
            slopes[..., j, :] += column * incoming[..., i, :]
    by_point = slopes.sum(-1) @ box.axes.mT
    return by_point, columns[..., -1, :] if by_strength else None
