"""The time that a Gaussian sum takes with each backend, in nanoseconds.

With a fixed alpha and unscaled points a Fourier series can need thousands of modes, so `N M` pairs are weighed against
`N m^d` modes. Only the ratios matter; `python -m benchmarks dispatch` measures them.
"""

import math

# Per pair of points, and per pair and column of the strengths.
PAIR, PAIR_COLUMN = 2.5, 0.05
# Per mode, point and column, and per feature and point.
MODE_COLUMN, FEATURE = 0.03, 4.0
# Per frequency and point: its waves, moments and evaluation. A point that is a target and a source counts twice.
SLICE = 3.0
# Fixed overhead per spectral sum and per split piece.
SPECTRAL_CALL, PIECE = 5e5, 5e5
# Per point: to decide on which side of a cut it is and which targets it reaches.
CUT = 40.0


def pairwise_cost(pairs: float, q: int) -> float:
    return pairs * (PAIR + PAIR_COLUMN * q)


def spectral_cost(targets: float, sources: float, q: int, sizes: tuple[int, ...], *, same: bool) -> float:
    # Points that are both targets and sources are expanded once.
    expanded = targets if same else targets + sources
    by_modes = MODE_COLUMN * q * math.prod(sizes) * (targets + sources)
    return SPECTRAL_CALL + by_modes + FEATURE * sum(sizes) * expanded


def sliced_cost(points: float, directions: int) -> float:
    return SPECTRAL_CALL + SLICE * directions * points
