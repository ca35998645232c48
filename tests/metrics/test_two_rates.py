"""Exact tests of two rates: their size is never above the level, and their bounds are near those for large samples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fairpass.metrics import two_rates
from fairpass.metrics.two_rates import Tally, largest_difference, p_value_below, smallest_ratio


@pytest.mark.parametrize(
    ("n1", "n0", "shift", "slope"),
    [(12, 17, 0.1, 1), (25, 9, 0.2, 1), (10, 30, -0.1, 1), (15, 15, 0, 1.25), (8, 40, 0, 0.8), (30, 30, 0.05, 1)],
)
def test_the_error_is_never_more_likely_than_stated(n1: int, n0: int, shift: float, slope: float) -> None:
    """Every outcome of small samples is enumerated, for rates on the line and above it."""
    found = [
        [p_value_below(Tally(a, n1), Tally(b, n0), shift=shift, slope=slope) for b in range(n0 + 1)]
        for a in range(n1 + 1)
    ]
    for level in (0.01, 0.05, 0.2):
        rejected, sizes = np.array(found) <= level, []
        for p0 in np.linspace(0, 1, 201):
            for above in (0.0, 0.02, 0.2):
                p1 = max(shift + slope * p0, 0) + above
                if p1 <= 1:
                    first, second = (stats.binom.pmf(np.arange(n + 1), n, p) for n, p in ((n1, p1), (n0, p0)))
                    sizes.append(first @ rejected @ second)
        assert max(sizes) <= level
    assert (np.array(found) <= 0.05).any()


@given(st.integers(1, 400), st.integers(1, 400), st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 0.3))
def test_a_wider_line_is_easier_to_be_below(n1: int, n0: int, share1: float, share0: float, shift: float) -> None:
    first, second = Tally(round(share1 * n1), n1), Tally(round(share0 * n0), n0)
    assert p_value_below(first, second, shift=2 * shift) <= p_value_below(first, second, shift=shift) + 2e-3


def test_a_finer_grid_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    samples = []
    for _ in range(20):
        n1, n0 = (int(n) for n in generator.integers(20, 2000, 2))
        samples.append((Tally(int(generator.binomial(n1, 0.3)), n1), Tally(int(generator.binomial(n0, 0.3)), n0)))
    coarse = [p_value_below(*each, shift=0.04) for each in samples]
    monkeypatch.setattr(two_rates, "_GRID", 10 * two_rates._GRID)
    monkeypatch.setattr(two_rates, "_FINEST", 10 * two_rates._FINEST)
    assert coarse == pytest.approx([p_value_below(*each, shift=0.04) for each in samples], abs=1e-4)


@pytest.mark.parametrize(("n1", "n0"), [(5_000, 3_000), (40_000, 60_000)])
def test_bounds_of_large_samples_are_those_of_the_normal_distribution(n1: int, n0: int) -> None:
    first, second = Tally(3 * n1 // 10, n1), Tally(n0 // 4, n0)
    deviation = math.sqrt(0.3 * 0.7 / n1 + 0.25 * 0.75 / n0)
    assert largest_difference(first, second, 0.05) == pytest.approx(
        0.05 + 1.645 * deviation, abs=0.03 * deviation + 1e-4
    )
    relative = math.sqrt(0.7 / (0.3 * n1) + 0.75 / (0.25 * n0))
    expected = 0.25 / 0.3 * math.exp(-1.645 * relative)
    assert smallest_ratio(second, first, 0.05) == pytest.approx(expected, abs=0.05 * relative + 1e-3)


def test_bounds_belong_to_the_tests() -> None:
    first, second = Tally(40, 130), Tally(70, 200)
    bound = largest_difference(first, second, 0.05)
    assert p_value_below(first, second, shift=bound) <= 0.05 < p_value_below(first, second, shift=bound - 2e-4)
    ratio = smallest_ratio(first, second, 0.05)
    assert (
        p_value_below(second, first, slope=1 / ratio) <= 0.05 < p_value_below(second, first, slope=1 / (ratio + 2e-4))
    )


def test_nobody_shows_nothing() -> None:
    assert p_value_below(Tally(0, 0), Tally(3, 9), shift=0.5) == 1
    assert largest_difference(Tally(2, 4), Tally(0, 0), 0.05) == 1
    assert smallest_ratio(Tally(2, 4), Tally(0, 0), 0.05) == pytest.approx(0, abs=1e-5)
    assert math.isnan(Tally(0, 0).rate)
