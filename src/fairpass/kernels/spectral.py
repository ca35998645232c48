r"""Gaussian sums as Fourier series: O(N) for points in at most three dimensions.

Beyond its reach `R = sqrt(ln(1/eps)/alpha)` the one-dimensional Gaussian is below `eps`. So on a box of side
`L = span + R` it is, to `eps`, the series

.. math::
    e^{-\alpha r^2} \approx \sum_{|k| \le \kappa} c_k e^{2\pi i k r/L}, \qquad
    c_k = \frac{\sqrt{\pi/\alpha}}{L} e^{-(\pi k/L)^2/\alpha}, \qquad
    \kappa = \Big\lceil \frac{\alpha L R}{\pi} \Big\rceil .

In `d` dimensions the waves are products, `m^d` of them. On a graph of a thousand nodes the calls themselves would take
nearly all of the time, so the angles of all dimensions come from one product.
"""

import math
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fairpass.kernels import series
from fairpass.kernels.backend import Problem
from fairpass.kernels.box import MAX_DIMENSION, Box
from fairpass.kernels.cost import spectral_cost
from fairpass.kernels.series import Expansion, Features, Series

# Up to this many waves at this many points each wave is computed on its own; more are multiplied, in more calls.
FEW_WAVES, FEW_POINTS = 16, 1 << 14


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
    """Return `[1, cos, sin]` of the first `kappa` multiples of an angle, `(B, 2 kappa + 1, n)`.

    `angles` has all multiples or the powers of two among them. The waves between then follow from
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
