"""Clouds of points of every awkward shape, and kernel sums by an independent implementation."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest import mock

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from tests.kernels.backends import OneByOne
from torch import Tensor

from fairpass.kernels import split
from fairpass.kernels.directions import default_directions, draw
from fairpass.kernels.dispatch import BACKENDS

Array = NDArray[np.float64]


def normal(random: np.random.Generator, n: int, d: int) -> Array:
    return random.normal(size=(n, d)) / 3


def uniform(random: np.random.Generator, n: int, d: int) -> Array:
    return random.uniform(-1, 1, (n, d))


def clusters(random: np.random.Generator, n: int, d: int) -> Array:
    centres = random.uniform(-1, 1, (3, d))
    return np.asarray(centres[random.integers(3, size=n)] + 0.01 * random.normal(size=(n, d)))


def outliers(random: np.random.Generator, n: int, d: int) -> Array:
    return random.normal(size=(n, d)) * np.where(random.random((n, 1)) < 0.02, 1.0, 0.003)


def heavy_tails(random: np.random.Generator, n: int, d: int) -> Array:
    drawn = random.standard_cauchy((n, d))
    return np.asarray(drawn / np.abs(drawn).max(initial=1.0))


def duplicates(random: np.random.Generator, n: int, d: int) -> Array:
    return random.integers(-2, 3, (n, d)) / 2


def strip(random: np.random.Generator, n: int, d: int) -> Array:
    """Lie along a diagonal, as the nearly opposite logits of a binary classifier do."""
    return np.asarray(random.normal(size=(n, 1)) * (-1.0) ** np.arange(d) + 0.01 * random.normal(size=(n, d)))


def one_place(random: np.random.Generator, n: int, d: int) -> Array:
    return np.tile(random.normal(size=d), (n, 1))


SHAPES = [normal, uniform, clusters, outliers, heavy_tails, duplicates, strip, one_place]


@pytest.fixture(scope="session", autouse=True)
def new_backend() -> Iterator[None]:
    """Register a backend that the library does not have: one class and one entry are enough for the battery."""
    with mock.patch.dict(BACKENDS, {OneByOne.name: OneByOne}):
        yield


@pytest.fixture(scope="session")
def cloud() -> Callable[..., Tensor]:
    """Return a maker of `n` points in `d` dimensions, about 2 across, in float64."""

    def make(shape: int, seed: int, n: int, d: int) -> Tensor:
        return torch.from_numpy(SHAPES[shape % len(SHAPES)](np.random.default_rng(seed), n, d))

    return make


@pytest.fixture(scope="session")
def oracle() -> Callable[..., Tensor]:
    """Return the kernel sum over all pairs in float64, by SciPy's distances and NumPy's exponential.

    The sliced backend has a kernel of its own, which is computed here from all differences.
    """

    def solve(targets: Tensor, sources: Tensor, strengths: Tensor, alpha: float, backend: str = "dense") -> Tensor:
        t, s, w = (x.detach().double().numpy() for x in (targets, sources, strengths))
        if backend != "sliced":
            return torch.from_numpy(np.exp(-alpha * cdist(t, s, "sqeuclidean")) @ w)
        rule = draw(t.shape[1], default_directions(t.shape[1]))
        kernel = np.full((len(t), len(s)), rule.constant)
        for frequency, weight in zip(np.sqrt(2 * alpha) * rule.frequencies, rule.weights, strict=True):
            kernel += weight * np.cos(((t[:, None] - s) * frequency).sum(-1))
        return torch.from_numpy(kernel @ w)

    return solve


@pytest.fixture(scope="session")
def eager_cuts() -> Callable[[], AbstractContextManager[None]]:
    """Return a context in which cutting is free, so that even a handful of wide-spread points is cut."""

    @contextmanager
    def context() -> Iterator[None]:
        with mock.patch.object(split, "PIECE", 0.0), mock.patch.object(split, "CUT", 0.0):
            yield

    return context
