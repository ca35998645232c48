"""Kernel sums over fixed sources, stored in a form that can be evaluated anywhere later.

A field is :math:`E(x) = \\sum_j k(x, s_j) w_j` for each column of the strengths. It stores the moments of the sources,
a few numbers however many sources there are, or the sources themselves if they take less room. Away from all sources a
Gaussian vanishes, while its Fourier series repeats itself. So the box of a stored series exceeds the sources by a reach
on every side, and outside it the field is 0.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

import numpy as np
import torch
from torch import Tensor

from fairpass.kernels.backend import Problem
from fairpass.kernels.box import MAX_DIMENSION, Box, feature_count, reach
from fairpass.kernels.dispatch import Backend, is_sliced
from fairpass.kernels.pairwise import Laplace, Tiled
from fairpass.kernels.series import columns_of
from fairpass.kernels.sliced import Frequencies, SlicedExpansion
from fairpass.kernels.spectral import BoxExpansion
from fairpass.world import world

# Tolerance of a stored series. It is computed once and costs little, so it adds nothing to the error of the layers.
_EPS = 1e-8
# A series of fewer numbers than this is stored in any case.
_FEW_NUMBERS = 1 << 12
# Number of waves, of all points together, that are computed at once.
_CHUNK_NUMBERS = 1 << 22


@dataclass(frozen=True)
class _Boxed(ABC):
    """A field that is 0 outside a box, at whose borders the kernel of every source is negligible."""

    center: Tensor  # `(d,)` in float64
    side: Tensor  # along each axis, `(d,)` in float64

    @property
    def dimension(self) -> int:
        return len(self.center)

    def slopes(self, points: Tensor) -> Tensor:
        is_inside = ((points.double() - self.center).abs() <= self.side / 2).all(-1)[:, None, None]
        return torch.where(is_inside, self._slopes(points), 0.0)

    @abstractmethod
    def _slopes(self, points: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Series(_Boxed):
    """A field as the moments of a Fourier series."""

    alpha: Tensor  # `()` in float64
    moments: Tensor  # `(q, m_d, m_1, ..., m_{d-1})`

    def __post_init__(self) -> None:
        dimension, sizes = self.center.numel(), self.moments.shape[1:]
        _check(self.center.shape == self.side.shape == (dimension,) and self.alpha.dim() == 0, "one alpha and box")
        _check(1 <= dimension <= MAX_DIMENSION and len(sizes) == dimension, "moments for each dimension")
        _check(all(size % 2 == 1 for size in sizes), "a constant, cosines and sines in each dimension")
        _check(bool((self.side > 0).all()) and bool(self.alpha > 0), "a positive alpha and side")

    @classmethod
    def of(cls, points: Tensor, strengths: Tensor, alpha: Tensor) -> "Series | None":
        """Return the series of `(n, d)` sources with `(n, q)` strengths; None if the sources take less room."""
        n, dimension, q = world().count(len(points)), points.shape[1], strengths.shape[1]
        center, side, margin = _room(points, alpha)
        sizes = tuple(feature_count(length / margin, _EPS, dimension) for length in side.tolist())
        if q * math.prod(sizes) > max(_FEW_NUMBERS, n * (dimension + q)):
            return None
        expanded = BoxExpansion(_box(alpha, side, sizes, strengths), _centred(points, center), keep=False)
        return cls(center, side, alpha.double(), expanded.moments(columns_of(strengths[None]))[0])

    def _slopes(self, points: Tensor) -> Tensor:
        _, last, *others = self.moments.shape
        box = _box(self.alpha, self.side, (*others, last), points)
        first = box.gradient(self.moments.to(points)[None])
        values = BoxExpansion(box, _centred(points, self.center), keep=False).evaluate(first.flatten(1, 2))
        return torch.unflatten(values[0], 0, first.shape[1:3]).permute(2, 1, 0)


@dataclass(frozen=True)
class Slices(_Boxed):
    """A field as waves along few directions, for more than three dimensions."""

    frequencies: Tensor  # `(M, d)` in float64
    cosines: Tensor  # coefficients `(q, M)`
    sines: Tensor  # coefficients `(q, M)`

    def __post_init__(self) -> None:
        count, dimension = self.frequencies.shape if self.frequencies.dim() == 2 else (-1, -1)
        _check(self.center.shape == self.side.shape == (dimension,), "a box and frequencies in each dimension")
        _check(self.cosines.shape == self.sines.shape and self.cosines.dim() == 2, "cosines and sines")
        _check(self.cosines.shape[1] == count, "a cosine and a sine of each frequency")

    @classmethod
    def of(cls, points: Tensor, strengths: Tensor, alpha: Tensor, directions: int | None) -> "Slices":
        waves = Frequencies(points.shape[1], alpha.to(points).reshape(1), directions)
        center, side, _ = _room(points, alpha)
        moments = SlicedExpansion(waves, _centred(points, center)).moments(columns_of(strengths[None]))
        _, cosines, sines = torch.split((moments * waves.spectrum)[0], [1, waves.count, waves.count], 1)
        return cls(center, side, waves.frequencies[0], cosines.clone(), sines.clone())

    def _slopes(self, points: Tensor) -> Tensor:
        along = self.frequencies.to(points)
        # (M, q d): each column's coefficients times the frequencies.
        by_cosine, by_sine = (
            (part.to(points).T[:, :, None] * along[:, None]).flatten(1) for part in (self.sines, self.cosines)
        )
        parts = []
        for some in torch.split(points, max(1, _CHUNK_NUMBERS // len(self.frequencies))):
            angles = ((some.double() - self.center) @ self.frequencies.T).remainder_(2 * math.pi).to(points)
            parts.append(angles.cos() @ by_cosine - angles.sin() @ by_sine)
        return torch.unflatten(torch.cat(parts), 1, (-1, self.dimension))


@dataclass(frozen=True)
class Sources:
    """A field as its sources."""

    alpha: Tensor  # `()`
    points: Tensor  # `(n, d)`
    strengths: Tensor  # `(n, q)`
    laplace: Tensor  # whether the kernel is Laplace's, `()`

    def __post_init__(self) -> None:
        _check(self.points.dim() == self.strengths.dim() == 2, "a matrix of points and one of strengths")
        _check(len(self.points) == len(self.strengths), "strengths for each of the points")
        _check(self.alpha.dim() == 0 and bool(self.alpha > 0), "a positive alpha")

    @property
    def dimension(self) -> int:
        return self.points.shape[1]

    def slopes(self, points: Tensor) -> Tensor:
        problem = Problem(points[None], self.points.to(points)[None], self.alpha.to(points)[None])
        backend = Laplace(problem) if bool(self.laplace) else Tiled(problem)
        columns, ones = torch.split(self.strengths.to(points)[None], 1, 2), points.new_ones((1, len(points), 1))
        return torch.stack([backend.vjp(column, ones)[0][0] for column in columns], 1)


# Their `slopes` are the gradients of each column's sum at `(N, d)` points, `(N, q, d)`.
Field = Series | Slices | Sources
KINDS: tuple[Any, ...] = get_args(Field)


def field_of(tensors: Mapping[str, Tensor]) -> Field:
    """Return the field with these tensors (its `vars`); raise `ValueError` if they are not those of a field."""
    for name, value in tensors.items():
        _check(bool(torch.isfinite(value).all()), f"finite numbers in '{name}'")
    for kind in KINDS:
        if tensors.keys() == kind.__dataclass_fields__.keys():
            return cast(Field, kind(**tensors))
    raise ValueError(f"a kernel field must have the tensors of a series, slices or sources (got {sorted(tensors)})")


@torch.no_grad()
def kept_field(
    points: Tensor, strengths: Tensor, alpha: Tensor, backend: Backend, directions: int | None, *, laplace: bool
) -> Field:
    """Return the field of `(n, d)` sources with `(n, q)` strengths in the form that takes the least room.

    `backend` and `directions` are those of the sums over these points: if they are sliced, so is the field.
    """
    count, dimension = world().count(len(points)), points.shape[1]
    if count and not laplace:
        if is_sliced(count, count, dimension, backend, directions):
            return Slices.of(points, strengths, alpha, directions)
        if dimension <= MAX_DIMENSION and (series := Series.of(points, strengths, alpha)):
            return series
    points, strengths = world().gather(points), world().gather(strengths)
    return Sources(alpha.double(), points.clone(), strengths.clone(), torch.tensor(laplace))


def _room(points: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, float]:
    """Return centre and sides of the points' box with a margin of the kernel's reach, and the reach."""
    low, high = (bound.double() for bound in world().bounds(points, 0))
    margin = float(reach(np.array([float(alpha)]), _EPS, points.shape[1])[0])
    return (low + high) / 2, high - low + 2 * margin, margin


def _box(alpha: Tensor, side: Tensor, sizes: tuple[int, ...], like: Tensor) -> Box:
    sides, alphas = (x.double().cpu().numpy().reshape(1, -1) for x in (side, alpha))
    return Box(np.eye(len(sizes))[None], sides, sizes, alphas[0], like)


def _centred(points: Tensor, center: Tensor) -> Tensor:
    """Return points relative to a centre, `(1, d, n)` in float64."""
    return (points.double() - center.to(points.device)).mT[None].contiguous()


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"a kernel field must have {what}")
