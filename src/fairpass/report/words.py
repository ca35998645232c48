"""Numbers and lists as a reader wants them."""

import math
from collections.abc import Sequence

ABSENT = "–"
"""In the place of a number that is not defined."""


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction in percent, without the sign."""
    return ABSENT if value is None or math.isnan(value) else f"{100 * value:.{digits}f}"


def number(value: float | None) -> str:
    """Return a number with three significant digits, and thousands apart."""
    if value is None or math.isnan(value):
        return ABSENT
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def plural(count: int, thing: str) -> str:
    """Return "1 node" or "1,000 nodes"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
