"""A command that is terminated or killed: it says how to go on, and no worker outlives it."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.trial import Trial, session
from typer.testing import Result

from fairpass import datasets

Run = Callable[..., Result]
PATIENCE = 600.0  # seconds; about ten are needed


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_do_not_outlive_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "results.json"
    command = ["compare", "german", "--methods", "gcn", "--seeds", "2", "--epochs", "1000000", "--jobs", "2"]
    with Trial([*command, "--out", str(out)], tmp_path / "work", limit=PATIENCE, grace=PATIENCE) as trial:
        # The constants are done at once, and what follows has no end.
        trial.wait_until(lambda: out.exists() and json.loads(out.read_text())["runs"])
        assert sum("spawn_main" in str(each.cmdline()) for each in session(trial.pid)) == 2
        trial.send(number)
        outcome = trial.outcome()
    assert outcome.faults() == []
    if number == signal.SIGTERM:
        said = f"Finished work is in {out}: the same command continues from there\nTerminated\n"
        assert (outcome.code, outcome.stderr) == (143, said)
    assert json.loads(out.read_text())["runs"]


def test_termination_ends_a_command_like_an_interruption(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def terminate() -> list[str]:
        assert signal.getsignal(signal.SIGTERM) not in (before, signal.SIG_DFL)  # otherwise it would be our end
        signal.raise_signal(signal.SIGTERM)
        return []

    monkeypatch.setattr(datasets, "names", terminate)
    result = run("datasets")
    assert (result.exit_code, result.stdout, result.stderr) == (143, "", "Terminated\n")
    assert signal.getsignal(signal.SIGTERM) == before
