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
PATIENCE = 300  # seconds; about ten are needed


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_termination_ends_a_command_like_an_interruption(
    run: Run, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    before = signal.getsignal(number)

    def terminate() -> list[str]:
        assert signal.getsignal(number) not in (before, signal.SIG_DFL)  # otherwise it would be our end
        signal.raise_signal(number)
        return []

    monkeypatch.setattr(datasets, "names", terminate)
    result = run("datasets")
    assert (result.exit_code, result.stdout, result.stderr) == (128 + number, "", "Terminated\n")
    assert signal.getsignal(number) == before


def test_what_a_library_makes_of_an_interruption_is_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def swallow() -> list[str]:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise RuntimeError("Query interrupted") from None  # as in DuckDB
        return []

    monkeypatch.setattr(datasets, "names", swallow)
    result = run("datasets")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "Interrupted\n")


@pytest.mark.parametrize("late", [False, True])
def test_an_interruption_within_an_import_is_one_word(tmp_path: Path, late: bool) -> None:
    """Before there is work to keep, the program ends at once; later, after the import."""
    script = """
import signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == "torch":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise RecursionError from None  # as in numpy
from fairpass.cli import main, output
sys.meta_path.insert(0, Finder())
output._begun = sys.argv.pop() == "True"
main()
"""
    command = [sys.executable, "-c", script, "train", "german", "--out", str(tmp_path), str(late)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 130
    assert ended.stderr.splitlines()[-1] == "Interrupted"
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.slow
def test_workers_that_are_starting_are_interrupted_silently(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fairpass", "compare", "german", "--methods", "gcn", "--seeds", "2"]
    command += ["--epochs", "1000000", "--jobs", "2", "--out", str(tmp_path / "R.json")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        parent = psutil.Process(process.pid)
        wait_until(lambda: sum("spawn_main" in str(each.cmdline()) for each in parent.children()) == 2)
        time.sleep(1)  # they import torch now
        for each in parent.children():  # a terminal sends it to all
            each.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130
    assert said.splitlines()[-1] == "Interrupted"
    assert "Traceback" not in said
