"""How property tests draw their examples: the same ones every time, or random ones on request."""

import os

import pytest
from hypothesis import HealthCheck, settings

VARIABLE = "FAIRPASS_HYPOTHESIS"
_USUAL = 100  # examples of a test that does not say how many it needs


def load_profile() -> None:
    """Load the profile that the environment variable names: `fixed`, the default, or `explore`."""
    # No time limits: a busy machine must not fail a test. No database: one run must not depend on the one before.
    common = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("fixed", common, derandomize=True, max_examples=_USUAL)
    settings.register_profile("explore", common, derandomize=False, max_examples=5 * _USUAL, print_blob=True)
    name = os.environ.get(VARIABLE) or "fixed"
    if name not in ("fixed", "explore"):
        raise pytest.UsageError(f"{VARIABLE!r} must be 'fixed' or 'explore' (got {name!r})")
    settings.load_profile(name)


def examples(count: int) -> settings:
    """Return the settings of a test that needs `count` examples; the profile `explore` draws five times as many."""
    return settings(max_examples=count * settings().max_examples // _USUAL)
