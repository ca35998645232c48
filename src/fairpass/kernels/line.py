r"""Gaussian sums over points on a line: the Fourier series of `spectral.py` with as few calls as possible.

A classifier of two classes works on a single column, and on a graph of a thousand nodes nearly all of the time goes
into the calls themselves. So what `box.py` and `spectral.py` do for up to three dimensions is written out here for
one. With :math:`T_k = \sum_j w_j e^{i \omega_k x_j}`, kept as its real and its imaginary parts,

.. math::
    E(x) = \sum_j e^{-\alpha (x - x_j)^2} w_j \approx \mathrm{Re} \sum_k c_k \bar T_k e^{i \omega_k x},

a derivative multiplies the coefficients by :math:`i \omega_k`: cosines and sines change places.
"""

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]

# Angles are computed in the type of the points. In float32 the error of a sum is then about 3e-8 times this number.
MAX_WAVES = 24
# Points, of all problems together, for which cosines and sines cost no more than multiplying waves in more calls.
FEW_POINTS = 4096
# Numbers in a chunk of waves (8 MB in float32): each chunk takes some twenty calls.
CHUNK_NUMBERS = 1 << 21
# Waves are kept from one pass to the next up to this many numbers (64 MB in float32), beyond it computed again.
KEEP_NUMBERS = 1 << 24


class Line:
    """Points on a line and their waves, of one problem or of a batch.

    Args:
        points: `(B, 1, N)`, without gradient.
        middle: of the points, a number or `(B, 1, 1)`.
        side: period of the waves, likewise.
        reaches: the same in units of the kernel's reach.
        log_eps: `alpha` times the square of the reach.
        waves: number of frequencies.
    """

    def __init__(
        self,
        points: Tensor,
        middle: float | Tensor,
        side: float | Floats,
        reaches: float | Floats,
        log_eps: float,
        waves: int,
    ) -> None:
        self._points, self._middle, self.waves = points, middle, waves
        batch, _, count = points.shape
        self._step = max(256, CHUNK_NUMBERS // (2 * waves * batch))
        self._kept: list[Tensor] | None = [] if 2 * waves * batch * count <= KEEP_NUMBERS else None
        k, signed, square = _counted(waves)
        lowest, scale = 2 * math.pi / side, math.sqrt(math.pi / log_eps) / reaches
        table = np.empty((batch, 4, 1, 2 * waves))
        table[:, 0] = lowest * k
        # Two exponentials for each cosine.
        table[:, 1] = weight = 2 * scale * np.exp(-(math.pi**2) / (log_eps * reaches * reaches) * square)
        table[:, 2] = slope = lowest * signed * weight
        table[:, 3] = -lowest * signed * slope
        # `(B, 1, 2 waves)`: frequencies, and what moments are multiplied with for the sum and its derivatives.
        self._frequencies, self._weights, self._first, self._second = torch.from_numpy(table).to(points).unbind(1)
        # Of the constant wave, which has no derivative.
        self._constant = scale if isinstance(scale, float) else torch.from_numpy(scale).to(points)

    def _chunks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield the waves of some points after others: all cosines, then all sines, `(B, 2 waves, n)`."""
        for i, start in enumerate(range(0, self._points.shape[2], self._step)):
            rows = slice(start, start + self._step)
            if self._kept is None:
                yield rows, self._expand(rows)
                continue
            if len(self._kept) == i:
                self._kept.append(self._expand(rows))
            yield rows, self._kept[i]

    def _expand(self, rows: slice) -> Tensor:
        # Relative to their middle points far from the origin lose no digits that their differences have.
        points = self._points[:, :, rows] - self._middle
        batch, _, count = points.shape
        out = points.new_empty((batch, 2 * self.waves, count))
        cosines, sines = out[:, : self.waves], out[:, self.waves :]
        if batch * count <= FEW_POINTS:
            angles = self._frequencies[..., : self.waves].mT * points
            torch.cos(angles, out=cosines)
            torch.sin(angles, out=sines)
            return out
        angles = points.mul_(self._frequencies[..., :1])
        torch.cos(angles, out=cosines[:, :1])
        torch.sin(angles, out=sines[:, :1])
        # e^{i(p+j)x} = e^{ipx} e^{ijx}: rounding errors add up over the few doublings, not over all waves.
        both = out.view(batch, 2, self.waves, count)
        p = 1
        while p < self.waves:
            low, high = slice(0, min(p, self.waves - p)), slice(p, min(2 * p, self.waves))
            cosine, sine = cosines[:, p - 1 : p], sines[:, p - 1 : p]
            torch.mul(both[:, :, low], cosine[:, None], out=both[:, :, high])
            cosines[:, high].addcmul_(sines[:, low], sine, value=-1)
            sines[:, high].addcmul_(cosines[:, low], sine)
            p *= 2
        return out

    def _moments(self, strengths: Tensor) -> Tensor:
        """Return `sum_j w_j cos`, then `sum_j w_j sin`, of strengths `(B, N, q)`: `(B, q, 2 waves)`."""
        total = None
        for rows, waves in self._chunks():
            part = torch.bmm(strengths[:, rows].mT, waves.mT)
            total = part if total is None else total.add_(part)
        return strengths.new_zeros((len(strengths), strengths.shape[2], 2 * self.waves)) if total is None else total

    def _evaluate(self, coefficients: Tensor) -> Tensor:
        """Return a series at every point, `(B, N, r)`, for coefficients `(B, r, 2 waves)`."""
        parts = [torch.bmm(coefficients, waves) for _, waves in self._chunks()]
        return (parts[0] if len(parts) == 1 else torch.cat(parts, 2)).mT

    def _slope_of(self, moments: Tensor) -> Tensor:
        return moments.roll(self.waves, -1).mul_(self._first)

    def _gram_of(self, moments: Tensor, strengths: Tensor) -> Tensor:
        total = strengths.sum(1, keepdim=True)
        return torch.baddbmm((total * self._constant).mT * total, moments * self._weights, moments.mT)

    def gram(self, strengths: Tensor) -> Tensor:
        """Return the quadratic forms `w' K w` of the columns of strengths `(B, N, q)`, `(B, q, q)`."""
        return self._gram_of(self._moments(strengths), strengths)

    def slope(self, strengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the derivative of each column's sum at each point, `(B, N, q, 1)`, `w' K w`, and the moments."""
        moments = self._moments(strengths)
        values = self._evaluate(self._slope_of(moments))
        return values.unsqueeze(-1), self._gram_of(moments, strengths), moments

    def slope_vjp(
        self, strengths: Tensor, moments: Tensor, grad: Tensor, *, by_strength: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return the gradients of `<grad, slope(strengths)>` by points and, if wanted, by strengths."""
        q = strengths.shape[2]
        incoming = grad.squeeze(-1)
        pulled = self._moments(incoming)
        # As a target a point feels the second derivative of the sum, as a source minus that of the pulled sum.
        coefficients = torch.cat([moments, -pulled], 1).mul_(self._second)
        if by_strength:
            coefficients = torch.cat([coefficients, self._slope_of(pulled).neg_()], 1)
        values = self._evaluate(coefficients)
        by_point = (values[..., :q] * incoming).addcmul_(values[..., q : 2 * q], strengths)
        if q > 1:
            by_point = by_point.sum(-1, keepdim=True)
        return by_point, values[..., 2 * q :] if by_strength else None


@lru_cache
def _counted(waves: int) -> tuple[Floats, Floats, Floats]:
    """Return the numbers of the waves, of all cosines and then of all sines; with the signs of a slope; and squared."""
    k = np.arange(1.0, waves + 1)
    return np.r_[k, k], np.r_[k, -k], np.r_[k, k] ** 2


def fit_line(points: Tensor, alpha: Tensor, eps: float) -> Line | None:
    """Return points `(B, N, 1)` as a line, with the waves that keep the error of the kernel below `eps`.

    None if they lie too far apart for waves computed in their own type, or if they are not finite.
    """
    x = points.detach().mT
    log_eps = math.log(2.1 / eps)
    middle: float | Tensor
    side: float | Floats
    reaches: float | Floats
    if len(x) == 1:
        # Plain numbers: on few points the calls are what takes time.
        low, high = (end.item() for end in torch.aminmax(x))
        margin, middle = math.sqrt(log_eps / alpha.item()), (low + high) / 2
        side = high - low + margin
        reaches = widest = side / margin
    else:
        lows, highs = x.amin(2, keepdim=True), x.amax(2, keepdim=True)
        margins = np.sqrt(log_eps / alpha.double().cpu().numpy())[:, None, None]
        middle = (lows + highs) / 2
        side = (highs - lows).double().cpu().numpy() + margins
        reaches = side / margins
        widest = float(np.max(reaches))
    # Not so if one of them is nan.
    if widest * log_eps <= math.pi * MAX_WAVES:
        return Line(x, middle, side, reaches, log_eps, math.ceil(widest * log_eps / math.pi))
    return None
