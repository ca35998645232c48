"""Which backend is cheapest for a Gaussian sum: a model of the cost, not a rule by size alone.

With a fixed alpha and unscaled points the spectral box can need thousands of modes, so the choice weighs
`N M` pairs against `N m^d` modes against slabs that hold few of either.
"""

import math
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from fairpass.kernels.spectral import MAX_DIMENSION, Box, Expansion, fit_box
from fairpass.kernels.split import HALO, MIN_TARGETS, WIDTH, reach

Backend = Literal["auto", "dense", "tiled", "spectral", "split"]

# Nanoseconds on two present-day cores; only the ratios matter. `python -m benchmarks kernels` measures them.
PAIR, PAIR_COLUMN = 4.0, 0.25
MODE_COLUMN, FEATURE = 0.05, 4.0
SPECTRAL_CALL, SLAB = 3e5, 5e5
# Below this many pairs the dense sum takes less time than looking at the points' extent.
FEW_PAIRS = 1 << 16


@dataclass(frozen=True)
class Plan:
    """A chosen backend, and if it is spectral the targets and sources expanded in their box."""

    backend: Literal["dense", "tiled", "spectral", "split"]
    expansions: tuple[Expansion, Expansion] | None = None


def pairwise_cost(pairs: float, q: int) -> float:
    """Return the cost of visiting `pairs` pairs."""
    return pairs * (PAIR + PAIR_COLUMN * q)


def spectral_cost(points: float, q: int, sizes: tuple[int, ...]) -> float:
    """Return the cost of moments and evaluation over `points` points in all."""
    return SPECTRAL_CALL + points * (MODE_COLUMN * q * math.prod(sizes) + FEATURE * sum(sizes))


def split_cost(n: int, m: int, q: int, alpha: float, eps: float, span: float, box: Box) -> float:
    """Return the cost after one cut along the widest axis, for points spread evenly over it."""
    r = reach(alpha, eps)
    count = max(1.0, min(span / (WIDTH * r), n / MIN_TARGETS))
    seen = max((WIDTH + HALO) * r / span, 1 / count)
    narrow = tuple(min(size, 2 * math.ceil((WIDTH + HALO + 1) * math.log(1 / eps) / math.pi) + 1) for size in box.sizes)
    per_slab = min(
        pairwise_cost(n / count * m * seen, q), spectral_cost(n / count + m * seen, q, narrow)
    )
    return count * (SLAB + per_slab)


def choose(t: Tensor, s: Tensor, q: int, alpha: Tensor, backend: Backend, eps: float) -> Plan:
    """Return the cheapest plan for `(B, N, d)` targets and `(B, M, d)` sources, or the one asked for."""
    batch, n, dimension = t.shape
    m = s.shape[1]
    if backend in ("dense", "tiled", "split"):
        return Plan(backend)
    if backend == "auto" and (batch * n * m <= FEW_PAIRS or dimension > MAX_DIMENSION):
        return Plan("tiled")
    points = t.mT.contiguous()
    others = points if t is s else s.mT.contiguous()
    box = fit_box((points,) if t is s else (points, others), alpha, eps)
    by_pairs = pairwise_cost(batch * n * m, q)
    by_modes = spectral_cost(batch * (n + m), q, box.sizes)
    if backend == "auto":
        # Slabs can only help where the box is many reaches long; then see if they have fewer pairs and modes.
        spans = [(a, side - reach(a, eps)) for a, side in zip(alpha.tolist(), box.side.amax(1).tolist(), strict=True)]
        if all(span > 2 * (WIDTH + HALO) * reach(a, eps) for a, span in spans):
            in_slabs = sum(split_cost(n, m, q, a, eps, span, box) for a, span in spans)
            if in_slabs < min(by_pairs, by_modes):
                return Plan("split")
        if by_pairs < by_modes:
            return Plan("tiled")
    targets = Expansion(box, points)
    return Plan("spectral", (targets, targets if t is s else Expansion(box, others)))
