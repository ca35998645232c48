r"""Gaussian sums in any number of dimensions at linear cost, from waves along few directions.

With the rule of `directions.py` the kernel is

.. math:: \hat k(r) = c_0 + \sum_k c_k \cos(\omega_k \cdot r), \qquad c_k > 0, \quad c_0 + \sum_k c_k = 1,

a series of waves that is close to the Gaussian. It is positive definite, depends on differences only, and
:math:`|\hat k| \le \hat k(0) = 1`: a squared discrepancy is never negative, and 0 for equal distributions. Because of
:math:`\sum_k c_k \omega_k \omega_k^\top = 2\alpha I` its Hessian is between :math:`-2\alpha I` and :math:`2\alpha I`,
like that of the Gaussian. So the bound of `Discrepancy.curvature` holds for this kernel, too.
"""

from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from fairpass.kernels import series
from fairpass.kernels.backend import Gradients, pull_back
from fairpass.kernels.box import Waves, swapped
from fairpass.kernels.directions import default_directions, draw
from fairpass.kernels.series import Expansion, Features, Series
from fairpass.kernels.spectral import waves_at
from fairpass.world import world

# Angles up to this many radians are computed in float32, with an error of about 1e-6; larger ones in float64.
SMALL_ANGLE = 32.0


class Frequencies(Waves):
    """The frequencies of a batch of problems, which differ by `alpha`, of the features' type and device."""

    def __init__(self, dimension: int, alpha: Tensor, directions: int | None) -> None:
        self._rule = draw(dimension, directions or default_directions(dimension))
        self.like, self.count = alpha, len(self._rule.weights)
        scale = (2 * alpha.double()).sqrt()[:, None, None]
        self.frequencies = scale * torch.from_numpy(self._rule.frequencies).to(alpha.device)  # (B, M, d), float64

    @cached_property
    def spectrum(self) -> Tensor:
        weights = torch.from_numpy(self._rule.weights).to(self.like)
        return torch.cat([weights.new_tensor([self._rule.constant]), weights, weights])[None, None]

    @cached_property
    def derivatives(self) -> list[tuple[Tensor, int, Tensor]]:
        along = self.frequencies.mT.to(self.like)
        factor = torch.cat([torch.zeros_like(along[..., :1]), along, -along], -1)[:, :, None]
        return [(factor, 3, swapped(self.count, along.device))]


class Sliced(Series):
    """Sums of a kernel close to the Gaussian, in any number of dimensions."""

    name = "sliced"

    @cached_property
    def waves(self) -> Frequencies:
        return Frequencies(self.problem.targets.shape[-1], self.problem.alpha, self.problem.directions)

    @cached_property
    def expansions(self) -> tuple[Expansion, Expansion]:
        targets, sources = self.problem.centred
        expanded = SlicedExpansion(self.waves, targets)
        return expanded, expanded if self.problem.is_same else SlicedExpansion(self.waves, sources)

    def slope_vjp(self, w: Tensor, first: Tensor, grad: Tensor, *, by_strength: bool) -> tuple[Tensor, Tensor | None]:
        # Points act through their angles, so the gradient by these comes first: two small products for each point and
        # frequency, instead of a Hessian's `d (d + 1) / 2` columns.
        points, waves, (d, q) = self.expansions[0], self.waves, first.shape[1:3]
        incoming = grad.permute(0, 3, 2, 1).flatten(1, 2)  # (B, d q, N)
        pulled = torch.unflatten(points.moments(incoming), 1, (d, q))
        # As sources: derivatives are antisymmetric, so a source feels minus the derivative of the pulled moments.
        adjoint = waves.divergence(pulled).neg_()
        # The slopes at the point, times the incoming gradient, and what its own strength adds to all others' slopes.
        felt = (torch.cat([first.flatten(1, 2), adjoint], 1) * waves.spectrum).mT
        _, of_cosines, of_sines = torch.split(felt, [1, waves.count, waves.count], 1)
        own = torch.cat([incoming, w.mT], 1)
        back = waves.frequencies.mT.to(grad)
        parts = []
        for mine, features in zip(points.split(own), points.chunks(), strict=True):
            _, cosines, sines = torch.split(features.right, [1, waves.count, waves.count], 1)
            by_angle = torch.bmm(of_sines, mine).mul_(cosines)
            by_angle.addcmul_(torch.bmm(of_cosines, mine), sines, value=-1)
            parts.append(torch.bmm(back, by_angle))
        return torch.cat(parts, 2).mT, points.evaluate(adjoint).mT if by_strength else None

    def slopes_and_sums(self, t: Tensor, s: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        # Plain operations that hold all features at once: for derivatives of derivatives, which no layer needs.
        origin = world().total(s.detach().sum(1, keepdim=True)) / max(1, world().count(s.shape[1]))
        waves = self.waves

        def expand(points: Tensor) -> Tensor:
            angles = ((points - origin).double() @ waves.frequencies.mT).to(points)
            return torch.cat([torch.ones_like(angles[..., :1]), angles.cos(), angles.sin()], -1)

        features = expand(t)
        moments = world().total((features if t is s else expand(s)).mT @ w)
        weighted = moments.mT * waves.spectrum  # (B, q, 2 M + 1)
        slopes = torch.einsum("bnm,bdqm->bnqd", features, waves.gradient(weighted))
        return slopes, features @ weighted.mT

    def differentiable_vjp(self, t: Tensor, s: Tensor, w: Tensor, grad: Tensor) -> Gradients:
        # The slope of this kernel is not one of its sums.
        return cast(Gradients, pull_back(lambda *inputs: self.slopes_and_sums(*inputs)[1], (t, s, w), grad))


class SlicedExpansion(Expansion):
    """Points `(B, d, n)` in float64 whose mean is near the origin, expanded in slices."""

    def __init__(self, waves: Frequencies, points: Tensor) -> None:
        batch, _, count = points.shape
        numbers = batch * (2 * waves.count + 1)
        step = max(64, series.CHUNK_NUMBERS // numbers // 64 * 64)  # whole cache lines
        self._like, self._frequencies = waves.like, waves.frequencies
        reach = points.square().sum(1).amax(-1) * self._frequencies.square().sum(-1).amax(-1) if count else points[:0]
        if self._like.dtype == torch.float64 or bool((reach < SMALL_ANGLE**2).all()):
            points, self._frequencies = points.to(self._like.dtype), self._frequencies.to(self._like.dtype)
        super().__init__(waves.spectrum, points, step, numbers * count)

    def _features(self, points: Tensor) -> Features:
        angles = torch.bmm(self._frequencies, points)
        if angles.dtype != self._like.dtype:
            # Whole turns are taken off in float64.
            angles = angles.remainder_(2 * torch.pi).to(self._like.dtype)
        return Features(waves_at(angles.shape[1], angles))
