"""How long to search."""

import re

import pytest

from fairpass.tuning import Budget
from fairpass.tuning.budget import parse_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("1.5h", 5400), (" 1H5S ", 3605), ("0.5s", 0.5)],
)
def test_times(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds
    assert Budget.of(text) == Budget(seconds=seconds)


@pytest.mark.parametrize("text", ["", "10", "m", "10 minutes", "-5m", "0s", "5m1h", "1e3s", "ten"])
def test_no_times(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"such as '90s', '10m' or '1h30m' (got {text!r})")):
        Budget.of(text)


def test_trials() -> None:
    both = Budget(trials=3, seconds=5)
    assert Budget.of(20) == Budget(trials=20)
    assert Budget.of(both) is both


@pytest.mark.parametrize("trials", [0, -1, True])
def test_no_trials(trials: int) -> None:
    with pytest.raises(ValueError, match=r"'budget' must be (at least 1|a number of trials)"):
        Budget.of(trials)
    with pytest.raises(ValueError, match=r"'trials' must be (at least 1|a whole number) \(got"):
        Budget(trials=trials)


def test_too_many_trials() -> None:
    with pytest.raises(ValueError, match=r"'budget' must be at most 1,000,000 \(got 1000001\)"):
        Budget.of(1_000_001)
    with pytest.raises(ValueError, match=r"'trials' must be at most 1,000,000 \(got 1000001\)"):
        Budget(trials=1_000_001)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_no_seconds(seconds: float) -> None:
    with pytest.raises(ValueError, match="'seconds' must be positive and finite"):
        Budget(seconds=seconds)


def test_nobody_waits_for_ever() -> None:
    assert Budget.of("8784h").seconds == 366 * 24 * 3600
    with pytest.raises(ValueError, match=r"'budget' must be at most 87,840h \(got '87841h'\)"):
        Budget.of("87841h")
    with pytest.raises(ValueError, match=r"'budget' must be at most 87,840h \(got '10{19}\.\.\.'\)"):
        Budget.of("1" + "0" * 400 + "h")
    with pytest.raises(ValueError, match=r"'seconds' must be at most 316,224,000 \(got 1e\+30\)"):
        Budget(seconds=1e30)


def test_a_budget_limits_something() -> None:
    with pytest.raises(ValueError, match="'budget' must limit the trials or the time"):
        Budget()
    with pytest.raises(ValueError, match="'budget' must be a number of trials or a time"):
        Budget.of(2.5)  # type: ignore[arg-type] # the mistake under test
