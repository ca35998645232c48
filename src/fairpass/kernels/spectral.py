r"""Gaussian sums as Fourier series: O(N) for points in at most three dimensions.

Beyond its reach `R = sqrt(ln(1/eps)/alpha)` the one-dimensional Gaussian is below `eps`. So on a box of side
`L = span + R` it is, to `eps`, the series

.. math::
    e^{-\alpha r^2} \approx \sum_{|k| \le \kappa} c_k e^{2\pi i k r/L}, \quad
    c_k = \frac{\sqrt{\pi/\alpha}}{L} e^{-(\pi k/L)^2/\alpha}, \quad \kappa = \lceil \alpha L R / \pi \rceil .

In `d` dimensions the waves are products, `m^d` of them. On a graph of a thousand nodes the calls themselves would take
nearly all of the time, so the angles of all dimensions come from one product, and points on a line have a class.
"""

import math
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fairpass.kernels import series
from fairpass.kernels.backend import Problem
from fairpass.kernels.box import MAX_DIMENSION, Box, Floats, swapped
from fairpass.kernels.cost import spectral_cost
from fairpass.kernels.series import Expansion, Features, Series
from fairpass.world import world

Number = float | Floats

# Up to this many waves at this many points each wave is computed on its own; more are multiplied, in more calls.
FEW_WAVES, FEW_POINTS = 16, 1 << 14
# The same for points on a line, of all problems together.
FEW_ON_A_LINE = 4096
# On a line, angles are computed in the type of the points. In float32 the error of a sum is about 3e-8 times this.
MAX_WAVES = 24


class Spectral(Series):
    """Sums to `eps sum_j |w_j|`, plus rounding, by a Fourier series in a box."""

    name = "spectral"
    max_dimension = MAX_DIMENSION

    @staticmethod
    def cost(problem: Problem) -> float:
        batch, n, m = len(problem.targets), problem.targets.shape[1], problem.sources.shape[1]
        return spectral_cost(batch * n, batch * m, problem.columns, problem.box.sizes, same=problem.is_same)

    @property
    def waves(self) -> Box:
        return self.problem.box

    @cached_property
    def expansions(self) -> tuple[Expansion, Expansion]:
        box, (points, others), keep = self.problem.box, self.problem.centred, not self.problem.is_piece
        targets = BoxExpansion(box, points, keep=keep)
        return targets, targets if self.problem.is_same else BoxExpansion(box, others, keep=keep)


class BoxExpansion(Expansion):
    """Points `(B, d, n)` in float64, expanded in the waves of a box."""

    def __init__(self, box: Box, points: Tensor, *, keep: bool = True) -> None:
        batch, _, count = points.shape
        left, right = math.prod(box.sizes[:-1]), box.sizes[-1]
        step = max(256, series.CHUNK_NUMBERS // (batch * max(left, 6 * right)))
        super().__init__(box.spectrum, points, step, batch * count * (left + right), keep)
        self._box = box
        multiples = tuple(_multiples(size // 2, batch * min(step, count)) for size in box.sizes)
        self._rows = [len(k) for k in multiples]
        self._turns = box.turns(multiples)

    def _features(self, points: Tensor) -> Features:
        # Whole turns are taken off in float64: the error of a high frequency is then no larger than a low one's.
        turns = torch.bmm(self._turns, points).frac_()
        angles = torch.split(turns.to(self._box.like.dtype).mul_(2 * math.pi), self._rows, 1)
        *others, right = (waves_at(size // 2, angle) for size, angle in zip(self._box.sizes, angles, strict=True))
        if len(others) == 2:
            return Features(right, (others[0][:, :, None] * others[1][:, None]).flatten(1, 2))
        return Features(right, others[0] if others else None)


def _multiples(kappa: int, points: int) -> NDArray[np.int64]:
    """Return the multiples of the first wave that are computed directly: all if they are few, else powers of two."""
    if kappa <= 3 or (kappa <= FEW_WAVES and points <= FEW_POINTS):
        return np.arange(1, kappa + 1)
    return 1 << np.arange(kappa.bit_length())


def waves_at(kappa: int, angles: Tensor) -> Tensor:
    """Return `[1, cos, sin]` of the first `kappa` multiples of an angle, given all or the powers of two among them."""
    out = angles.new_empty((len(angles), 2 * kappa + 1, angles.shape[-1]))
    out[:, 0].fill_(1.0)
    if angles.shape[1] == kappa:
        torch.cos(angles, out=out[:, 1 : kappa + 1])
        torch.sin(angles, out=out[:, kappa + 1 :])
        return out
    cosines, sines = angles.cos(), angles.sin()
    # e^{i(p+j)x} = e^{ipx} e^{ijx}: rounding errors add up over the few doublings, not over all waves.
    for i in range(cosines.shape[1]):
        p, c, s = 1 << i, cosines[:, i : i + 1], sines[:, i : i + 1]
        out[:, p : p + 1], out[:, kappa + p : kappa + p + 1] = c, s
        count = min(p, kappa - p + 1) - 1
        if count > 0:
            low_c, low_s = out[:, 1 : 1 + count], out[:, kappa + 1 : kappa + 1 + count]
            torch.mul(low_c, c, out=out[:, p + 1 : p + 1 + count]).addcmul_(low_s, s, value=-1)
            torch.mul(low_s, c, out=out[:, kappa + p + 1 : kappa + p + 1 + count]).addcmul_(low_c, s)
    return out


class Line(Spectral):
    r"""Slopes and quadratic forms of points on a line with as few calls as possible; sums are those of `Spectral`.

    A classifier of two classes works on a single column. With the moments :math:`T_k = \sum_j w_j e^{i \omega_k x_j}`,
    kept as sums of cosines and sines, a sum is :math:`\mathrm{Re} \sum_k c_k \bar T_k e^{i \omega_k x}`. A derivative
    multiplies the coefficients by :math:`i \omega_k`: cosines and sines are swapped.
    """

    def __init__(self, problem: Problem, line: "LineExpansion") -> None:
        super().__init__(problem)
        self.line = line

    @classmethod
    def fit(cls, problem: Problem) -> "Line | None":
        """Return the backend if the points are close enough for waves computed in their own type, and finite."""
        x, log_eps = problem.targets.mT, math.log(2.1 / problem.eps)
        middle: float | Tensor
        side: Number
        margin: Number
        if x.shape[0] == 1:
            # Plain numbers, because calls on few points take nearly all of the time.
            ends = world().bounds(x, 2) if world().is_shared else torch.aminmax(x)
            low, high = (end.item() for end in ends)
            margin, middle = math.sqrt(log_eps / problem.alpha.item()), (low + high) / 2
            side = high - low + margin
            widest = side / margin
        else:
            lows, highs = (end.unsqueeze(2) for end in world().bounds(x, 2))
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
        self, points: Tensor, middle: float | Tensor, side: Number, reaches: Number, log_eps: float, waves: int
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
        if batch * count <= FEW_ON_A_LINE:
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
    """Return the numbers `k` of the features, their squares, and the factors of the sum and two derivatives."""
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
