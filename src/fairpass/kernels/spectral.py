r"""Gaussian sums as Fourier series: O(N) for points in at most three dimensions.

Beyond its reach `R = sqrt(ln(1/eps)/alpha)` the one-dimensional Gaussian is below `eps`. So on a box of side
`L = span + R` it is, to `eps`, the series

.. math::
    e^{-\alpha r^2} \approx \sum_{|k| \le \kappa} c_k e^{2\pi i k r/L}, \qquad
    c_k = \frac{\sqrt{\pi/\alpha}}{L} e^{-(\pi k/L)^2/\alpha}, \qquad
    \kappa = \Big\lceil \frac{\alpha L R}{\pi} \Big\rceil .

With the waves `phi(x) = [1, cos, sin]` a dimension's kernel is `phi(t) . c phi(s)`, and a sum over all sources
falls into three steps, kept apart because only the small moment tensor crosses nodes:

1. `moments(sources, strengths)`: `T = sum_j phi(s_j) w_j`, just `q m^d` numbers whatever N is;
2. moments of several chunks (or processes) are combined by adding them;
3. `evaluate(targets, T)`: `phi(t_i) . c T`.

The derivative of a wave is another wave of the same frequency, so that the gradient of a sum is the evaluation of
other, equally small moments, in which cosines and sines have changed places.

On a graph of a thousand nodes nearly all of the time would go into the calls themselves. So all dimensions' angles
come from one product. Points are `(B, d, n)` here, and strengths `(B, q, n)` once they are inside.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fairpass.kernels.box import Box
from fairpass.kernels.expansion import Expanded, chunks

# Numbers in a chunk's largest temporary, 4 MB in float32: few enough for the cache, enough for few chunks.
CHUNK_NUMBERS = 1 << 20
# Waves are computed one by one if they are so few, at so few points at a time; else from each other, in more calls.
FEW_WAVES, FEW_POINTS = 16, 1 << 14
# Features are kept from one step to the next up to this many numbers (64 MB in float32), beyond it computed again.
KEEP_NUMBERS = 1 << 24


class Features:
    """The waves at some points: of all axes but the last, multiplied out, and of the last.

    `left` is `(B, m_1 ... m_{d-1}, n)` (absent in one dimension), `right` is `(B, m_d, n)`; sums over points
    are then plain matrix products.
    """

    def __init__(self, sizes: tuple[int, ...], angles: Sequence[Tensor]) -> None:
        *others, self.right = (_waves(size // 2, angle) for size, angle in zip(sizes, angles, strict=True))
        self.left = others[0] if others else None
        if len(others) == 2:
            self.left = (others[0][:, :, None] * others[1][:, None]).flatten(1, 2)

    def moments(self, strengths: Tensor) -> Tensor:
        """Return `sum_j phi_j w_j`, `(B, q m_d, m_left)`, for strengths `(B, q, n)`."""
        if self.left is None:
            return torch.bmm(strengths, self.right.mT).flatten(1).unsqueeze(-1)
        weighted = (strengths[:, :, None] * self.right[:, None]).flatten(1, 2)
        return torch.bmm(weighted, self.left.mT)

    def evaluate(self, moments: Tensor) -> Tensor:
        """Return `phi_i . T`, `(B, q, n)`, for moments `(B, q, m_d, m_left)`."""
        if self.left is None:
            return torch.bmm(moments[..., 0], self.right)
        contracted = torch.bmm(moments.flatten(1, 2), self.left)
        return contracted.view(*moments.shape[:3], -1).mul_(self.right[:, None]).sum(2)


def _waves(kappa: int, angles: Tensor) -> Tensor:
    """Return `[1, cos, sin]` of the first `kappa` multiples of an angle, `(B, 2 kappa + 1, n)`.

    Given are all the multiples, or the powers of two among them. The waves between then follow from
    `e^{i(p+j)x} = e^{ipx} e^{ijx}`, each from one power and a lower wave, so that rounding errors add up over the few
    doublings and not over all waves.
    """
    out = angles.new_empty((len(angles), 2 * kappa + 1, angles.shape[-1]))
    out[:, 0].fill_(1.0)
    if angles.shape[1] == kappa:
        torch.cos(angles, out=out[:, 1 : kappa + 1])
        torch.sin(angles, out=out[:, kappa + 1 :])
        return out
    cosines, sines = angles.cos(), angles.sin()
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
        self.box, self._points = box, points
        batch, _, count = points.shape
        numbers = batch * count * (math.prod(box.sizes[:-1]) + box.sizes[-1])
        self._kept: list[Features] | None = [] if keep and numbers <= KEEP_NUMBERS else None
        self._step = max(256, CHUNK_NUMBERS // (batch * max(math.prod(box.sizes[:-1]), 6 * box.sizes[-1])))
        multiples = tuple(_multiples(size // 2, batch * min(self._step, count)) for size in box.sizes)
        self._rows = [len(k) for k in multiples]
        self._turns = box.turns(multiples)

    def _chunks(self) -> Iterator[tuple[slice, Features]]:
        return chunks(self._points.shape[2], self._step, self._kept, self._features)

    def _features(self, rows: slice) -> Features:
        # Whole turns are taken off in float64: the error of a high frequency is then no larger than a low one's.
        turns = torch.bmm(self._turns, self._points[:, :, rows]).frac_()
        angles = turns.to(self.box.like.dtype).mul_(2 * math.pi)
        return Features(self.box.sizes, torch.split(angles, self._rows, 1))

    def moments(self, strengths: Tensor) -> Tensor:
        """Return `T = sum_j phi(s_j) w_j` of strengths `(B, q, n)`; the moments of disjoint sets add up."""
        sizes = self.box.sizes
        shape = len(strengths), strengths.shape[1], sizes[-1], math.prod(sizes[:-1])
        total = None
        for rows, features in self._chunks():
            part = features.moments(strengths[:, :, rows])
            total = part if total is None else total.add_(part)
        return strengths.new_zeros(shape) if total is None else total.view(shape)

    def evaluate(self, moments: Tensor) -> Tensor:
        """Return `phi(t_i) . c T` for every point, `(B, q, n)`."""
        weighted = moments * self.box.spectrum
        parts = [features.evaluate(weighted) for _, features in self._chunks()]
        if len(parts) == 1:
            return parts[0]
        return torch.cat(parts, 2) if parts else moments.new_empty((*moments.shape[:2], 0))

    def gram(self, moments: Tensor) -> Tensor:
        """Return the inner products of the moments' columns, `(B, q, q)`: the quadratic forms of their strengths."""
        return torch.bmm((moments * self.box.spectrum).flatten(2), moments.flatten(2).mT)


def _multiples(kappa: int, points: int) -> NDArray[np.int64]:
    """Return which multiples of the first wave are computed as such: all of few, else the powers of two."""
    if kappa <= 3 or (kappa <= FEW_WAVES and points <= FEW_POINTS):
        return np.arange(1, kappa + 1)
    return 1 << np.arange(kappa.bit_length())


def _columns(strengths: Tensor) -> Tensor:
    """Return `(B, N, q)` with the nodes last, and each column in one piece."""
    return strengths.mT.contiguous()


def spectral_sum(targets: Expanded, sources: Expanded, strengths: Tensor) -> Tensor:
    """Return `sum_j exp(-alpha |t_i - s_j|^2) w_j`, to `eps sum_j |w_j|` and rounding."""
    return targets.evaluate(sources.moments(_columns(strengths))).mT


def spectral_gram(points: Expanded, strengths: Tensor) -> Tensor:
    """Return the quadratic forms `w' K w` of the strengths' columns, `(B, q, q)`, without a value at the points."""
    return points.gram(points.moments(_columns(strengths)))


def spectral_vjp(
    targets: Expanded, sources: Expanded, strengths: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `<grad, spectral_sum(...)>` by targets, sources and strengths."""
    box, w, g = targets.box, _columns(strengths), _columns(grad)
    q = w.shape[1]

    def fold(values: Tensor, weights: Tensor) -> Tensor:
        return (torch.unflatten(values, 1, (-1, q)) * weights[:, None]).sum(2).mT

    pulled = targets.moments(g)
    by_target = targets.evaluate(box.gradient(sources.moments(w)).flatten(1, 2))
    values = sources.evaluate(torch.cat([box.gradient(pulled).flatten(1, 2), pulled], 1))
    return fold(by_target, g), fold(values[:, :-q], w), values[:, -q:].mT


def spectral_slope(points: Expanded, strengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradient of `E = sum_j k(., s_j) w_j` at each point, `(B, N, q, d)`, `w' K w`, and `E`'s gradient.

    The last is in moments, `(B, d, q, ...)`, and the start of the next derivative.
    """
    moments = points.moments(_columns(strengths))
    first = points.box.gradient(moments)
    values = points.evaluate(first.flatten(1, 2))
    return torch.unflatten(values, 1, first.shape[1:3]).permute(0, 3, 2, 1), points.gram(moments), first


def spectral_slope_vjp(
    points: Expanded, strengths: Tensor, first: Tensor, grad: Tensor, *, by_strength: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of `<grad, spectral_slope(...)>` by points and, if wanted, by strengths."""
    box = points.box
    d, q = first.shape[1:3]
    incoming = grad.permute(0, 3, 2, 1).contiguous()  # (B, d, q, N)
    # As targets: the Hessian of each column's sum, times the gradient that came in.
    below, where = _symmetric(d, grad.device)
    second = box.gradient(first).flatten(1, 2).index_select(1, below)
    # As sources: derivatives are antisymmetric, so a source feels minus the derivative of the pulled moments.
    pulled = torch.unflatten(points.moments(incoming.flatten(1, 2)), 1, (d, q))
    adjoint = box.divergence(pulled).neg_()
    parts = [second.flatten(1, 2), box.gradient(adjoint).flatten(1, 2), *([adjoint] if by_strength else [])]
    values = torch.unflatten(points.evaluate(torch.cat(parts, 1)), 1, (-1, q))
    hessian = torch.unflatten(values.index_select(1, where), 1, (d, d))
    pulls = (hessian * incoming[:, None]).sum(2)
    by_point = pulls.addcmul_(values[:, len(below) : len(below) + d], _columns(strengths)[:, None]).sum(2).mT
    return by_point, values[:, -1].mT if by_strength else None


@lru_cache
def _symmetric(dimension: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the places of a symmetric matrix' entries on and below its diagonal, and where each entry is in these."""
    rows, columns = np.tril_indices(dimension)
    places = np.zeros((dimension, dimension), np.int64)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    found = rows * dimension + columns, places.flatten()
    below, where = (torch.from_numpy(index).to(device) for index in found)
    return below, where
