r"""Gaussian sums over points on a line: the Fourier series of `spectral.py` with as few calls as possible.

A classifier of two classes works on a single column, and on a graph of a thousand nodes the calls themselves take
nearly all of the time. With the moments :math:`T_k = \sum_j w_j e^{i \omega_k x_j}`, kept as sums of cosines and sines,

.. math::
    E(x) = \sum_j e^{-\alpha (x - x_j)^2} w_j \approx \mathrm{Re} \sum_k c_k \bar T_k e^{i \omega_k x},

a derivative multiplies the coefficients by :math:`i \omega_k`: cosines and sines are swapped.
"""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from fairpass.kernels import series
from fairpass.kernels.backend import Problem
from fairpass.kernels.box import Floats, swapped
from fairpass.kernels.series import Expansion, Features
from fairpass.kernels.spectral import Spectral

# Angles are computed in the type of the points. In float32 the error of a sum is then about 3e-8 times this number.
MAX_WAVES = 24
# Points, of all problems together, for which cosines and sines cost no more than multiplying waves in more calls.
FEW_POINTS = 4096


class Line(Spectral):
    """Slopes and quadratic forms in one dimension; sums are those of `Spectral`."""

    def __init__(self, problem: Problem, line: "LineExpansion") -> None:
        super().__init__(problem)
        self.line = line

    @classmethod
    def fit(cls, problem: Problem) -> "Line | None":
        """Return the backend if the points are close enough for waves computed in their own type, and finite."""
        x, log_eps = problem.targets.mT, math.log(2.1 / problem.eps)
        middle: float | Tensor
        side: float | Floats
        margin: float | Floats
        if len(x) == 1:
            # Plain numbers, because calls on few points take nearly all of the time.
            low, high = (end.item() for end in torch.aminmax(x))
            margin, middle = math.sqrt(log_eps / problem.alpha.item()), (low + high) / 2
            side = high - low + margin
            widest = side / margin
        else:
            lows, highs = x.amin(2, keepdim=True), x.amax(2, keepdim=True)
            margin = np.sqrt(log_eps / problem.alpha.double().cpu().numpy())[:, None, None]
            middle = (lows + highs) / 2
            side = (highs - lows).double().cpu().numpy() + margin
            widest = float(np.max(side / margin))
        if not widest * log_eps <= math.pi * MAX_WAVES:  # also if it is nan
            return None
        waves = math.ceil(widest * log_eps / math.pi)
        return cls(problem, LineExpansion(x, middle, side, side / margin, log_eps, waves))

    def gram(self, w: Tensor) -> Tensor:
        return self.line.gram(self.line.moments(w.mT))

    def slope_forward(self, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the slopes `(B, N, q, 1)`, the quadratic forms and the moments."""
        moments = self.line.moments(w.mT)
        values = self.line.evaluate_series(self.line.first_derivative(moments)).mT
        return values.unsqueeze(-1), self.line.gram(moments), moments

    def slope_vjp(self, w: Tensor, first: Tensor, grad: Tensor, *, by_strength: bool) -> tuple[Tensor, Tensor | None]:
        line, q, incoming = self.line, w.shape[2], grad.squeeze(-1)
        pulled = line.moments(incoming.mT)
        coefficients = torch.cat([first, pulled], 1).mul_(line.second)
        if by_strength:
            coefficients = torch.cat([coefficients, line.first_derivative(pulled).neg_()], 1)
        values = line.evaluate_series(coefficients).mT
        # As a target a point feels the second derivative of the sum, as a source minus that of the pulled sum.
        by_point = (values[..., :q] * incoming).addcmul_(values[..., q : 2 * q], w, value=-1)
        if q > 1:
            by_point = by_point.sum(-1, keepdim=True)
        return by_point, values[..., 2 * q :] if by_strength else None


class LineExpansion(Expansion):
    """Points `(B, 1, N)` on a line around `middle`, and waves of period `side`, which is `reaches` times the reach."""

    def __init__(
        self,
        points: Tensor,
        middle: float | Tensor,
        side: float | Floats,
        reaches: float | Floats,
        log_eps: float,
        waves: int,
    ) -> None:
        self._middle, self.waves = middle, waves
        batch, _, count = points.shape
        numbers = batch * (2 * waves + 1)
        k, square, factors = _factors(waves)
        lowest, scale = 2 * math.pi / side, math.sqrt(math.pi / log_eps) / reaches
        weights = scale * np.exp(-(math.pi**2) / (log_eps * reaches * reaches) * square)
        table = np.empty((batch, 4, 1, 2 * waves + 1))
        table[:, 0] = lowest * k
        table[:, 1:] = factors * weights[..., None, :, :]
        table[:, 2] *= lowest
        table[:, 3] *= lowest * lowest
        # `(B, 1, 2 waves + 1)`: frequencies, and factors of the moments for the sum and its derivatives.
        self._frequencies, spectrum, self._first, self.second = torch.from_numpy(table).to(points).unbind(1)
        super().__init__(spectrum, points, max(256, 2 * series.CHUNK_NUMBERS // numbers), numbers * count)

    def first_derivative(self, moments: Tensor) -> Tensor:
        return moments.index_select(2, swapped(self.waves, moments.device)).mul_(self._first)

    def _features(self, points: Tensor) -> Features:
        # Relative to their middle, points far from the origin lose no digits that their differences have.
        points = points - self._middle
        batch, _, count = points.shape
        if batch * count <= FEW_POINTS:
            phases = _phases(self.waves, points.dtype, points.device)
            return Features(torch.addcmul(phases, self._frequencies.mT, points).cos_())
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
        return Features(out)


@lru_cache
def _factors(waves: int) -> tuple[Floats, Floats, Floats]:
    """Return the numbers `k` of the features, their squares, and the factors that do not depend on the points.

    The factors `(3, 1, 2 waves + 1)` are those of the sum and of its first and second derivative.
    """
    k = np.arange(1.0, waves + 1)
    number, signed = np.r_[0.0, k, k][None], np.r_[0.0, k, -k][None]
    exponentials = np.where(number == 0, 1.0, 2.0)
    return number, number**2, np.stack([exponentials, exponentials * signed, -exponentials * number**2])


@lru_cache
def _phases(waves: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the phases with which a cosine is 1, a cosine or a sine, `(2 waves + 1, 1)`."""
    phases = torch.zeros((2 * waves + 1, 1), dtype=dtype, device=device)
    phases[waves + 1 :] = -math.pi / 2
    return phases
