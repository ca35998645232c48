"""`make fuzz`: a failure ends it, and a round that the time cuts off is no success."""

import sys
from pathlib import Path

import pytest
from scripts import fuzz

pytestmark = pytest.mark.usefixtures("reachable")

FAILS = """
import time
from hypothesis import given, strategies

@given(strategies.just(1))
def test_a_failure(one):
    assert one == 2
"""
ENDLESS = """
import time
from hypothesis import given, settings, strategies

@settings(deadline=None)
@given(strategies.just(1))
def test_it_has_no_end(one):
    time.sleep(3600)
"""


def fuzzed(script: str, minutes: float, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    planted = folder / "test_planted.py"
    planted.write_text(script)
    monkeypatch.setattr(sys, "argv", ["fuzz", "--minutes", str(minutes), "--seed", "7", str(planted)])
    return fuzz.main()


def test_a_failure_ends_the_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fuzzed(FAILS + ENDLESS, 10, tmp_path, monkeypatch) == 1
    printed = capsys.readouterr().out
    assert "assert 1 == 2" in printed
    assert printed.endswith("failed; again with: make fuzz SEED=7\n")


def test_a_round_that_was_cut_off_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz, "GRACE", 5.0)  # an interruption within an import may be lost
    assert fuzzed(ENDLESS, 0.02, tmp_path, monkeypatch) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("no failure in 0.02 minutes: 0 whole rounds, from seed 7; the round of seed 7 was cut off")
