r"""Gaussian sums over points on a line: the Fourier series of `spectral.py` with as few calls as possible.

A classifier of two classes works on a single column, and on a graph of a thousand nodes nearly all of the time goes
into the calls themselves. So what `box.py` and `spectral.py` do for up to three dimensions is written out here for
one. With the moments :math:`T_k = \sum_j w_j e^{i \omega_k x_j}`, kept as sums of cosines and of sines,

.. math::
    E(x) = \sum_j e^{-\alpha (x - x_j)^2} w_j \approx \mathrm{Re} \sum_k c_k \bar T_k e^{i \omega_k x},

a derivative multiplies the coefficients by :math:`i \omega_k`: cosines and sines change places.
"""

import math
from collections.abc import Iterator, Sequence
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
        numbers = batch * (2 * waves + 1)
        self._step = max(256, CHUNK_NUMBERS // numbers)
        self._kept: list[Tensor] | None = [] if numbers * count <= KEEP_NUMBERS else None
        k, square, factors = _counted(waves)
        lowest, scale = 2 * math.pi / side, math.sqrt(math.pi / log_eps) / reaches
        spectrum = scale * np.exp(-(math.pi**2) / (log_eps * reaches * reaches) * square)
        table = np.empty((batch, 4, 1, 2 * waves + 1))
        table[:, 0] = lowest * k
        table[:, 1:] = factors * spectrum[..., None, :, :]
        table[:, 2] *= lowest
        table[:, 3] *= lowest * lowest
        # `(B, 1, 2 waves + 1)`: frequencies, and what moments are multiplied with for the sum and its derivatives.
        self._frequencies, self._weights, self._first, self._second = torch.from_numpy(table).to(points).unbind(1)

    def _chunks(self) -> Iterator[Tensor]:
        """Yield the waves of some points after others: 1, all cosines, all sines, `(B, 2 waves + 1, n)`."""
        for i, points in enumerate(self._cut(self._points)):
            if self._kept is None:
                yield self._expand(points)
                continue
            if len(self._kept) == i:
                self._kept.append(self._expand(points))
            yield self._kept[i]

    def _cut(self, rows: Tensor) -> Sequence[Tensor]:
        """Return `(B, r, N)` chunk by chunk."""
        return (rows,) if rows.shape[2] <= self._step else torch.split(rows, self._step, 2)

    def _expand(self, points: Tensor) -> Tensor:
        # Relative to their middle points far from the origin lose no digits that their differences have.
        points = points - self._middle
        batch, _, count = points.shape
        if batch * count <= FEW_POINTS:
            return torch.addcmul(_phases(self.waves, points.dtype, points.device), self._frequencies.mT, points).cos_()
        out = points.new_empty((batch, 2 * self.waves + 1, count))
        out[:, :1].fill_(1.0)
        both = out[:, 1:].view(batch, 2, self.waves, count)
        cosines, sines = both.unbind(1)
        angles = points.mul_(self._frequencies[..., 1:2])
        torch.cos(angles, out=cosines[:, :1])
        torch.sin(angles, out=sines[:, :1])
        # e^{i(p+j)x} = e^{ipx} e^{ijx}: rounding errors add up over the few doublings, not over all waves.
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
        """Return the sums of the waves with strengths `(B, N, q)`: `(B, q, 2 waves + 1)`."""
        parts = zip(self._cut(strengths.mT), self._chunks(), strict=True)
        first, *others = (torch.bmm(part, waves.mT) for part, waves in parts)
        for other in others:
            first.add_(other)
        return first

    def _evaluate(self, coefficients: Tensor) -> Tensor:
        """Return a series at every point, `(B, N, r)`, for coefficients `(B, r, 2 waves + 1)`."""
        parts = [torch.bmm(coefficients, waves) for waves in self._chunks()]
        return (parts[0] if len(parts) == 1 else torch.cat(parts, 2)).mT

    def _slope_of(self, moments: Tensor) -> Tensor:
        # A cosine's derivative is minus a sine, a sine's a cosine.
        return moments.index_select(2, _swap(self.waves, moments.device)).mul_(self._first)

    def _gram_of(self, moments: Tensor) -> Tensor:
        return torch.bmm(moments * self._weights, moments.mT)

    def gram(self, strengths: Tensor) -> Tensor:
        """Return the quadratic forms `w' K w` of the columns of strengths `(B, N, q)`, `(B, q, q)`."""
        return self._gram_of(self._moments(strengths))

    def slope(self, strengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the derivative of each column's sum at each point, `(B, N, q, 1)`, `w' K w`, and the moments."""
        moments = self._moments(strengths)
        values = self._evaluate(self._slope_of(moments))
        return values.unsqueeze(-1), self._gram_of(moments), moments

    def slope_vjp(
        self, strengths: Tensor, moments: Tensor, grad: Tensor, *, by_strength: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return the gradients of `<grad, slope(strengths)>` by points and, if wanted, by strengths."""
        q = strengths.shape[2]
        incoming = grad.squeeze(-1)
        pulled = self._moments(incoming)
        coefficients = torch.cat([moments, pulled], 1).mul_(self._second)
        if by_strength:
            coefficients = torch.cat([coefficients, self._slope_of(pulled).neg_()], 1)
        values = self._evaluate(coefficients)
        # As a target a point feels the second derivative of the sum, as a source minus that of the pulled sum.
        by_point = (values[..., :q] * incoming).addcmul_(values[..., q : 2 * q], strengths, value=-1)
        if q > 1:
            by_point = by_point.sum(-1, keepdim=True)
        return by_point, values[..., 2 * q :] if by_strength else None


@lru_cache
def _counted(waves: int) -> tuple[Floats, Floats, Floats]:
    """Return the numbers of the waves, squared as well, and the factors that do not depend on the points.

    For the sum, its derivative and the next one, `(3, 1, 2 waves + 1)`: two exponentials for each cosine or sine, and
    the sign that a derivative's wave has in its place.
    """
    k = np.arange(1.0, waves + 1)
    number, signed = np.r_[0.0, k, k][None], np.r_[0.0, k, -k][None]
    exponentials = np.where(number == 0, 1.0, 2.0)
    return number, number**2, np.stack([exponentials, exponentials * signed, -exponentials * number**2])


@lru_cache
def _phases(waves: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return what is added to the angles so that the cosine is 1, a cosine or a sine, `(2 waves + 1, 1)`."""
    phases = torch.zeros((2 * waves + 1, 1), dtype=dtype, device=device)
    phases[waves + 1 :] = -math.pi / 2
    return phases


@lru_cache
def _swap(waves: int, device: torch.device) -> Tensor:
    """Return the order in which cosines and sines have changed places."""
    order = torch.cat([torch.zeros(1, dtype=torch.long), torch.arange(1, 2 * waves + 1).roll(waves)])
    return order.to(device)


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
