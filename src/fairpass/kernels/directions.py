r"""Frequencies that stand for all frequencies of a Gaussian: a quadrature rule in any number of dimensions.

The Gaussian is a mean of waves, :math:`e^{-\alpha \|r\|^2} = \mathbb{E} \cos(\omega \cdot r)` with
:math:`\omega \sim N(0, 2\alpha I)`. The rule replaces this mean by few frequencies with positive weights:

- **Radii.** The squared length of :math:`\omega` follows a Gamma distribution. Its Gauss-Radau rule with a node at 0
  and `n` more radii is exact for polynomials of degree `4 n` in the length. The node at 0 is a constant: it is free.
- **Directions.** Each radius has the same number of orthonormal sets of directions. All sets are rotated to minimize
  the mean squared error of the kernel over normally distributed differences `r`; then all of them at random.

Complete orthonormal sets make :math:`\sum_k c_k \omega_k \omega_k^\top = 2\alpha I` exact. Averaged over the random
rotation, the rule differs from the Gaussian only by the error of the radial rule.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import fmin_l_bfgs_b
from scipy.special import gammaln, roots_genlaguerre

Floats = NDArray[np.float64]

SEED = 0
# Default limit, in any number of dimensions.
MOST_DIRECTIONS = 1024
# The mean of alpha |r|^2 for which the directions are chosen: that of an adaptive bandwidth, 0.3, with some margin.
_SPREAD = 0.375
# The weights of more radii are below rounding errors.
_MOST_RADII = 12
# Steps of the search. Twice as many lower the error by less than a tenth.
_STEPS = 150


class Rule(NamedTuple):
    """The quadrature rule."""

    frequencies: Floats  # `(M, d)`, in units of `sqrt(2 alpha)`
    weights: Floats  # `(M,)`
    constant: float  # weight of the frequency 0


def default_directions(dimension: int) -> int:
    """Return how many directions keep the error of the message below 5 %, in up to 21 dimensions."""
    # About four for each entry of a symmetric matrix, by which two groups with the same mean differ.
    return min(2 * dimension * (dimension + 2), MOST_DIRECTIONS)


@lru_cache
def draw(dimension: int, directions: int, seed: int = SEED) -> Rule:
    """Return the rule with at least this many directions; the same arguments give the same rule."""
    radii, weights = _radau(dimension, _radius_count(dimension, directions))
    sets = -(-directions // (dimension * len(radii)))
    of_set, share = np.repeat(radii, sets), np.repeat(weights / (sets * dimension), sets)
    random = np.random.default_rng(seed)
    turned = _spread_out(_rotations(random, len(of_set), dimension), of_set, share)
    frequencies = of_set[:, None, None] * (turned @ _rotations(random, 1, dimension))
    return Rule(frequencies.reshape(-1, dimension), np.repeat(share, dimension), float(1 - weights.sum()))


def _radius_count(dimension: int, directions: int) -> int:
    """Return the largest number of radii whose polynomials the directions integrate, too."""
    if dimension == 1:
        return min(directions, _MOST_RADII)
    count, angles = 1, directions * (dimension - 1)
    # That takes about 1.5 times as many angles as there are polynomials of that degree (measured).
    while count < _MOST_RADII and angles >= 1.5 * math.comb(dimension + 4 * count - 1, 4 * count):
        count += 1
    return count


def _radau(dimension: int, count: int) -> tuple[Floats, Floats]:
    """Return radii and weights of the Gauss-Radau rule for the length of a standard normal vector, without the 0."""
    halves, weights = map(np.asarray, roots_genlaguerre(count, dimension / 2))  # of half the squared length
    return np.sqrt(2 * halves), weights / halves / math.exp(gammaln(dimension / 2))


def _rotations(random: np.random.Generator, count: int, dimension: int) -> Floats:
    """Return orthogonal matrices, uniformly distributed, `(count, d, d)`."""
    q, r = np.linalg.qr(random.normal(size=(count, dimension, dimension)))
    return np.asarray(q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None])


def _spread_out(sets: Floats, radii: Floats, weights: Floats) -> Floats:
    r"""Rotate each orthonormal set, its directions as rows, to minimize the kernel's mean squared error.

    For differences :math:`r \sim N(0, \sigma^2 I)` that error is, up to terms that do not depend on the rotation,
    :math:`\sum_{kl} c_k c_l e^{-\sigma^2 (|\omega_k|^2 + |\omega_l|^2)/2} \cosh(\sigma^2 \omega_k \cdot \omega_l)`.
    """
    count, dimension, _ = sets.shape
    if dimension == 1:
        return sets
    variance = 2 * _SPREAD / dimension
    damped = weights * np.exp(-variance * radii**2 / 2)
    damped /= dimension * damped.sum()
    pairs, inner = (np.outer(x, x)[..., None, None] for x in (damped, variance**0.5 * radii))
    rows, columns = np.tril_indices(dimension, -1)
    identity = np.eye(dimension)

    def turn(angles: Floats) -> tuple[Floats, Floats]:
        """Return the sets rotated by Cayley transforms, `2 (I + A)^-1 - I` with antisymmetric `A`, and the inverses."""
        lower = np.zeros(sets.shape)
        lower[:, rows, columns] = angles.reshape(count, -1)
        inverse = np.asarray(np.linalg.inv(identity + lower - lower.swapaxes(1, 2)), np.float64)
        return (2 * inverse - identity) @ sets, inverse

    def error(angles: Floats) -> tuple[float, Floats]:
        turned, inverse = turn(angles)
        # Products of small matrices only: the result of a large one can depend on the number of threads.
        up = np.exp(inner * (turned[:, None] @ turned.swapaxes(1, 2)))
        down = 1 / up
        by_turned = 2 * ((pairs * inner * (up - down)) @ turned).sum(1)
        back = inverse.swapaxes(1, 2)
        by_matrix = -2 * back @ (by_turned @ sets.swapaxes(1, 2)) @ back
        return float((pairs * (up + down)).sum()), (by_matrix - by_matrix.swapaxes(1, 2))[:, rows, columns].ravel()

    # With many directions each step takes longer, and fewer steps suffice.
    steps = max(_STEPS // 3, min(_STEPS, _STEPS * 200 // (count * dimension)))
    found, *_ = fmin_l_bfgs_b(error, np.zeros(count * len(rows)), maxiter=steps, factr=10.0, pgtol=1e-14)
    return turn(np.asarray(found))[0]
