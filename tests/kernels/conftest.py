"""Clouds of points of every awkward shape, and kernel sums by an independent implementation."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from torch import Tensor

Cloud = Callable[[int, int, int], Tensor]


def _normal(random: np.random.Generator, n: int, d: int) -> np.ndarray:
    return random.normal(size=(n, d)) / 3


def _uniform(random: np.random.Generator, n: int, d: int) -> np.ndarray:
    return random.uniform(-1, 1, (n, d))


def _clusters(random: np.random.Generator, n: int, d: int) -> np.ndarray:
    centres = random.uniform(-1, 1, (3, d))
    return centres[random.integers(3, size=n)] + 0.01 * random.normal(size=(n, d))


def _outliers(random: np.random.Generator, n: int, d: int) -> np.ndarray:
    far = random.random((n, 1)) < 0.02
    return random.normal(size=(n, d)) * np.where(far, 1.0, 0.003)


def _heavy_tails(random: np.random.Generator, n: int, d: int) -> np.ndarray:
    drawn = random.standard_cauchy((n, d))
    return drawn / np.abs(drawn).max(initial=1.0)


def _duplicates(random: np.random.Generator, n: int, d: int) -> np.ndarray:
    return random.integers(-2, 3, (n, d)) / 2


def _strip(random: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Along a diagonal, as the nearly opposite logits of a binary classifier are."""
    return random.normal(size=(n, 1)) * (-1.0) ** np.arange(d) + 0.01 * random.normal(size=(n, d))


def _one_place(random: np.random.Generator, n: int, d: int) -> np.ndarray:
    return np.tile(random.normal(size=d), (n, 1))


SHAPES = {
    shape.__name__.lstrip("_"): shape
    for shape in (_normal, _uniform, _clusters, _outliers, _heavy_tails, _duplicates, _strip, _one_place)
}


@pytest.fixture(scope="session")
def cloud() -> Callable[..., Tensor]:
    """Return a maker of `n` points in `d` dimensions, about 1 across, in float64."""

    def make(shape: str, seed: int, n: int, d: int) -> Tensor:
        return torch.from_numpy(SHAPES[shape](np.random.default_rng(seed), n, d))

    return make


@pytest.fixture(scope="session")
def oracle() -> Callable[..., Tensor]:
    """Return the kernel sum of all pairs in float64, by SciPy's distances and NumPy's exponential."""

    def solve(
        targets: Tensor, sources: Tensor, strengths: Tensor, alpha: float, metric: str = "sqeuclidean"
    ) -> Tensor:
        t, s, w = (x.detach().double().numpy() for x in (targets, sources, strengths))
        return torch.from_numpy(np.exp(-alpha * cdist(t, s, metric)) @ w)

    return solve
