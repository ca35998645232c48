r"""Gaussian sums in any number of dimensions at linear cost, from waves along few directions.

With the rule of `directions.py` the kernel is

.. math:: \hat k(r) = c_0 + \sum_k c_k \cos(\omega_k \cdot r), \qquad c_k > 0, \quad c_0 + \sum_k c_k = 1,

a scalar product of waves, so that a sum falls into moments, their combination and an evaluation exactly as in
`spectral.py`. What is lost is precision: the kernel is not the Gaussian but one near it. What is kept, because of the
signs of the weights and because :math:`\sum_k c_k \omega_k \omega_k^\top = 2\alpha I`:

- :math:`\hat k` is positive definite, depends on differences only, and :math:`|\hat k| \le \hat k(0) = 1`. A squared
  discrepancy is never negative, and 0 for equal distributions.
- Its Hessian :math:`-\sum_k c_k \cos(\omega_k \cdot r)\, \omega_k \omega_k^\top` is between :math:`-2\alpha I` and
  :math:`2\alpha I`, as that of the Gaussian is. So the bound of `Discrepancy.curvature` holds, and a stable step lowers
  the objective that has :math:`\hat k` in place of the Gaussian.

Points are `(B, d, n)` here, and strengths `(B, q, n)`; features are `[1, cos, sin]` of all angles, `(B, 2 M + 1, n)`.
"""

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor

from fairpass.kernels.directions import default_directions, draw
from fairpass.kernels.expansion import chunks

# Numbers in a chunk's features, 4 MB in float32: few enough for the cache, enough for few calls on several threads.
CHUNK_NUMBERS = 1 << 20
# Features are kept from one step to the next up to this many numbers (64 MB in float32), beyond it computed again.
KEEP_NUMBERS = 1 << 24
# Angles up to this many radians are computed in float32, where they are off by some 1e-6; larger ones in float64.
SMALL_ANGLE = 32.0


class Slices:
    """The frequencies of a batch of problems, which differ by `alpha`.

    Args:
        dimension: of the points.
        alpha: kernel parameter, `(B,)`, of the features' type and device.
        directions: number of frequencies, rounded up to complete sets; None is `default_directions`.
    """

    def __init__(self, dimension: int, alpha: Tensor, directions: int | None) -> None:
        rule = draw(dimension, default_directions(dimension) if directions is None else directions)
        self.like = alpha
        scale = (2 * alpha.double()).sqrt()[:, None, None]
        self.frequencies = scale * torch.from_numpy(rule.frequencies).to(alpha.device)  # (B, M, d), float64
        self.count = len(rule.weights)
        weights = torch.from_numpy(rule.weights).to(alpha)
        self.spectrum = torch.cat([weights.new_tensor([rule.constant]), weights, weights])[:, None]

    @cached_property
    def _slope(self) -> Tensor:
        """Return what a derivative multiplies swapped moments with, `(B, d, 1, 2 M + 1, 1)`."""
        along = self.frequencies.mT.to(self.like)
        return torch.cat([torch.zeros_like(along[..., :1]), along, -along], -1)[:, :, None, :, None]

    def _swap(self, moments: Tensor) -> Tensor:
        # A cosine's place has the derivative of the sine, and a sine's minus that of the cosine.
        one, cosines, sines = torch.split(moments, [1, self.count, self.count], -2)
        return torch.cat([one, sines, cosines], -2)

    def gradient(self, moments: Tensor) -> Tensor:
        """Return the moments of all first derivatives, `(B, d, ...)` for moments `(B, ..., 2 M + 1, 1)`."""
        made = self._slope * self._swap(moments.flatten(1, -3))[:, None]
        return made.reshape(len(moments), -1, *moments.shape[1:])

    def divergence(self, moments: Tensor) -> Tensor:
        """Return the moments `(B, q, 2 M + 1, 1)` of the divergence of a field with moments `(B, d, q, ...)`."""
        return (self._slope * self._swap(moments)).sum(1)


class SlicedExpansion:
    """Some points and their features, chunk by chunk; if few, they are kept for the next pass."""

    def __init__(self, box: Slices, points: Tensor) -> None:
        """Take points `(B, d, n)` in float64 whose mean is near the origin."""
        self.box = box
        batch, _, count = points.shape
        numbers = batch * (2 * box.count + 1)
        self._step = max(64, CHUNK_NUMBERS // numbers // 64 * 64)  # whole cache lines
        self._kept: list[Tensor] | None = [] if numbers * count <= KEEP_NUMBERS else None
        reach = points.square().sum(1).amax(-1) * box.frequencies.square().sum(-1).amax(-1) if count else points[:0]
        is_small = box.like.dtype == torch.float64 or bool((reach < SMALL_ANGLE**2).all())
        self._points, self._frequencies = points, box.frequencies
        if is_small:
            self._points, self._frequencies = points.to(box.like.dtype), box.frequencies.to(box.like.dtype)

    def chunks(self) -> Iterator[tuple[slice, Tensor]]:
        """Return the features of some points at a time, `(B, 2 M + 1, n)`, each with the rows of these points."""
        return chunks(self._points.shape[2], self._step, self._kept, self._features)

    def _features(self, rows: slice) -> Tensor:
        angles = torch.bmm(self._frequencies, self._points[:, :, rows])
        if angles.dtype != self.box.like.dtype:
            # Whole turns are taken off in float64.
            angles = angles.remainder_(2 * torch.pi).to(self.box.like.dtype)
        out = angles.new_empty((len(angles), 2 * self.box.count + 1, angles.shape[-1]))
        out[:, 0].fill_(1.0)
        torch.cos(angles, out=out[:, 1 : self.box.count + 1])
        torch.sin(angles, out=out[:, self.box.count + 1 :])
        return out

    def moments(self, strengths: Tensor) -> Tensor:
        """Return `sum_j phi(s_j) w_j` of strengths `(B, q, n)`, `(B, q, 2 M + 1, 1)`."""
        total = strengths.new_zeros((*strengths.shape[:2], 2 * self.box.count + 1))
        for rows, features in self.chunks():
            total.baddbmm_(strengths[:, :, rows], features.mT)
        return total[..., None]

    def evaluate(self, moments: Tensor) -> Tensor:
        """Return `phi(t_i) . c T` for every point, `(B, q, n)`."""
        weighted = (moments * self.box.spectrum)[..., 0]
        parts = [torch.bmm(weighted, features) for _, features in self.chunks()]
        return torch.cat(parts, 2) if parts else moments.new_empty((*moments.shape[:2], 0))

    def gram(self, moments: Tensor) -> Tensor:
        """Return the inner products of the moments' columns, `(B, q, q)`: the quadratic forms of their strengths."""
        return torch.bmm((moments * self.box.spectrum)[..., 0], moments[..., 0].mT)


def sliced_slope_vjp(
    points: SlicedExpansion, strengths: Tensor, first: Tensor, grad: Tensor, *, by_strength: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of `<grad, spectral_slope(...)>` by points and, if wanted, by strengths.

    Points act through their angles, so the gradient by these comes first: two small products for each point and
    frequency, in place of a Hessian's `d (d + 1) / 2` columns.
    """
    box = points.box
    d, q = first.shape[1:3]
    incoming = grad.permute(0, 3, 2, 1).flatten(1, 2)  # (B, d q, N)
    pulled = torch.unflatten(points.moments(incoming), 1, (d, q))
    # As sources: derivatives are antisymmetric, so a source feels minus the derivative of the pulled moments.
    adjoint = box.divergence(pulled).neg_()
    # The slopes at the point, times the gradient that came in, and what its own strength adds to all others' slopes.
    felt = (torch.cat([first.flatten(1, 2), adjoint], 1) * box.spectrum)[..., 0].mT
    _, of_cosines, of_sines = torch.split(felt, [1, box.count, box.count], 1)
    own = torch.cat([incoming, strengths.mT], 1)
    back = box.frequencies.mT.to(grad)
    parts = []
    for rows, features in points.chunks():
        _, cosines, sines = torch.split(features, [1, box.count, box.count], 1)
        by_angle = torch.bmm(of_sines, own[:, :, rows]).mul_(cosines)
        by_angle.addcmul_(torch.bmm(of_cosines, own[:, :, rows]), sines, value=-1)
        parts.append(torch.bmm(back, by_angle))
    by_point = torch.cat(parts, 2).mT
    return by_point, points.evaluate(adjoint).mT if by_strength else None


def differentiable_sum(box: Slices, t: Tensor, s: Tensor, w: Tensor) -> Tensor:
    """Return the sum for `(B, N, d)` targets and `(B, M, d)` sources by plain operations, differentiable at will.

    All features are held at once: for derivatives of derivatives, which no layer needs.
    """
    targets, sources = _plain_features(box, t, s)
    return targets @ (box.spectrum * (sources.mT @ w))


def differentiable_slope(box: Slices, points: Tensor, w: Tensor) -> Tensor:
    """Return the slopes `(B, N, q, d)` of the sum by plain operations; see `differentiable_sum`."""
    features, _ = _plain_features(box, points, points)
    weighted = (features.mT @ w).mT[..., None] * box.spectrum  # (B, q, 2 M + 1, 1)
    return torch.einsum("bnm,bdqm->bnqd", features, box.gradient(weighted)[..., 0])


def _plain_features(box: Slices, t: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """Return the features of both sets of points, `(B, N, 2 M + 1)`, from the sources' mean."""
    origin = s.detach().sum(1, keepdim=True) / max(1, s.shape[1])

    def of(points: Tensor) -> Tensor:
        angles = ((points - origin).double() @ box.frequencies.mT).to(points)
        return torch.cat([torch.ones_like(angles[..., :1]), angles.cos(), angles.sin()], -1)

    targets = of(t)
    return targets, targets if t is s else of(s)
