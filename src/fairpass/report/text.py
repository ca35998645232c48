"""Numbers and lists as text, and the Jinja environment of the page's templates."""

import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from fairpass.metrics import catalog

ABSENT = "–"  # shown for a number that is undefined


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction in percent, without the sign."""
    return ABSENT if value is None or math.isnan(value) else f"{100 * value:.{digits}f}"


def ratio(value: float | None) -> str:
    """Return a ratio with two decimals."""
    return ABSENT if value is None or math.isnan(value) else f"{value:.2f}"


def points(value: float | None) -> str:
    """Return a difference of fractions in percentage points, with a real minus sign."""
    if value is None or math.isnan(value):
        return ABSENT
    return f"{100 * value:.1f}".replace("-", "−") if round(100 * value, 1) else "0.0"


def number(value: float | None) -> str:
    """Return a number with three significant digits, and a separator for thousands."""
    if value is None or math.isnan(value):
        return ABSENT
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:.3g}"


def listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def plural(count: int, thing: str, things: str = "") -> str:
    """Return "1 node" or "1,000 nodes"."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@cache
def environment() -> Environment:
    """Return the environment: everything is escaped, and an unknown name is an error."""
    loader = PackageLoader("fairpass.report")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"percent": percent, "points": points, "ratio": ratio, "number": number, "plain": _plain}
    made.globals |= {"plural": plural, "catalog": catalog}
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "sort_keys": False, "ensure_ascii": False}
    return made
