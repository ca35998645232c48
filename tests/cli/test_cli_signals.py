"""A command that is terminated or killed: it says how to go on, and no worker outlives it."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from typer.testing import Result

from fairpass import datasets

Run = Callable[..., Result]
PATIENCE = 120  # seconds; about ten are needed


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


@contextmanager
def endless_comparison(out: Path) -> Iterator[tuple["subprocess.Popen[str]", list[psutil.Process]]]:
    """Start a comparison in two processes; yield it with its workers when they are training."""
    command = [sys.executable, "-m", "fairpass", "compare", "german", "--methods", "gcn", "--seeds", "2"]
    command += ["--epochs", "1000000", "--jobs", "2", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        workers: list[psutil.Process] = []
        try:
            # The constants are done at once, and what follows has no end.
            wait_until(lambda: process.poll() is not None or (out.exists() and json.loads(out.read_text())["runs"]))
            assert process.poll() is None
            workers += [each for each in psutil.Process(process.pid).children() if "spawn_main" in str(each.cmdline())]
            yield process, workers
        finally:
            for each in (process, *workers):
                with suppress(psutil.NoSuchProcess):
                    each.kill()


def is_gone(process: psutil.Process) -> bool:
    """Whether it has ended; who adopted it may not have noticed yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_do_not_outlive_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "results.json"
    with endless_comparison(out) as (process, workers):
        assert len(workers) == 2
        process.send_signal(number)
        wait_until(lambda: process.poll() is not None)
        wait_until(lambda: all(map(is_gone, workers)))
        assert process.stderr is not None
        said = process.stderr.read()
    if number == signal.SIGTERM:
        assert process.returncode == 143
        assert said == f"Finished work is in {out}: the same command continues from there\nTerminated\n"
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
