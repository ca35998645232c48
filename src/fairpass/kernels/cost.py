"""What a Gaussian sum costs by each way of computing it: a model of the time, not a rule by size alone.

With a fixed alpha and unscaled points the spectral box can need thousands of modes, so `N M` pairs are
weighed against `N m^d` modes. Only the ratios matter; `python -m benchmarks dispatch` measures them.
"""

import math

# Nanoseconds for one pair of points, and more for each column of the strengths.
PAIR, PAIR_COLUMN = 2.5, 0.05
# Nanoseconds for one mode of one point and column, and for computing one feature of one point.
MODE_COLUMN, FEATURE = 0.03, 4.0
# Nanoseconds for one frequency of one point, which counts as a target and as a source: its waves, moments, evaluation.
SLICE = 3.0
# Fixed overhead per spectral sum and per split piece, in ns.
SPECTRAL_CALL, PIECE = 5e5, 5e5
# Nanoseconds for deciding, for one point, on which side of a cut it is and whose reach it is in.
CUT = 40.0


def pairwise_cost(pairs: float, q: int) -> float:
    """Return the cost of visiting `pairs` pairs."""
    return pairs * (PAIR + PAIR_COLUMN * q)


def spectral_cost(targets: float, sources: float, q: int, sizes: tuple[int, ...], *, same: bool) -> float:
    """Return the cost of moments and evaluation; points that are both targets and sources are expanded once."""
    expanded = targets if same else targets + sources
    by_modes = MODE_COLUMN * q * math.prod(sizes) * (targets + sources)
    return SPECTRAL_CALL + by_modes + FEATURE * sum(sizes) * expanded


def sliced_cost(points: float, directions: int) -> float:
    """Return the cost of a sum by slices; neither columns nor dimensions count much."""
    return SPECTRAL_CALL + SLICE * directions * points
