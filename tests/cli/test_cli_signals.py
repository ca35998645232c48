"""A command that is terminated or killed: it says how to go on, and no worker outlives it."""

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType

import psutil
import pytest
import typer
from tests.trial import Trial, is_worker
from torch_geometric.data import Data
from typer.testing import Result

from fairpass import datasets
from fairpass.cli.signals import interruptible
from fairpass.files import write_text
from fairpass.locks import Locks
from fairpass.runs.executors import Processes

Run = Callable[..., Result]
PATIENCE = 300.0  # seconds; about ten are needed
pytestmark = pytest.mark.usefixtures("reachable")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "to_group"), [(signal.SIGKILL, False), (signal.SIGTERM, False), (signal.SIGHUP, True)]
)
def test_workers_do_not_outlive_their_parent(tmp_path: Path, number: signal.Signals, to_group: bool) -> None:
    """Nor do they say anything, if the terminal is closed for all of them."""
    out = tmp_path / "results.json"
    command = ["compare", "german", "--methods", "gcn", "--seeds", "2", "--epochs", "1000000", "--jobs", "2"]
    with Trial([*command, "--out", str(out)], tmp_path / "work", limit=PATIENCE, grace=PATIENCE) as trial:
        # The constants are done at once, and what follows has no end.
        trial.wait_until(lambda: out.exists() and json.loads(out.read_text())["runs"])
        assert len(_workers(trial)) == 2
        trial.send(number, to_group=to_group)
        outcome = trial.outcome()
    assert outcome.faults() == []
    if number != signal.SIGKILL:
        said = f"Finished work is in {out}: the same command continues from there\nTerminated\n"
        assert (outcome.code, outcome.stderr) == (128 + number, said)
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


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_search_ends_when_asked_although_its_database_is_locked(
    run: Run, tmp_path: Path, number: signal.Signals
) -> None:
    tune = ["tune", "german", "--method", "gcn", "--seeds", "1", "--epochs", "2", "--out", str(tmp_path), "--trials"]
    assert run(*tune, "1").exit_code == 0
    database = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    with Trial([*tune, "2"], tmp_path / "work", limit=PATIENCE) as trial:
        trial.wait_until(lambda: "database has not answered" in (trial.logs / "stderr").read_text())
        trial.send(number)
        outcome = trial.outcome()
    assert (outcome.code, outcome.faults()) == (128 + number, [])
    database.close()
    assert run(*tune, "2").exit_code == 0


def interrupt_at(place: str, event: str, number: int = signal.SIGINT) -> None:
    """Send a signal to this process when it comes to a place where a lock is taken or released."""

    def interrupt(frame: FrameType, what: str, _: object) -> None:
        if (frame.f_code.co_qualname, what) == (place, event):
            sys.setprofile(None)
            signal.raise_signal(number)

    sys.setprofile(interrupt)


def end_like(command: Callable[[], None]) -> None:
    """Call a function as a command, and end this process as it ends."""
    try:
        interruptible(command)
    except typer.Exit as end:
        time.sleep(0.5)  # an interruption that was held back for too long would come now, as a traceback
        sys.exit(end.exit_code)


def wait_for_a_thread(place: str, event: str) -> None:
    """Do what a command does that waits for a thread and is interrupted."""

    def command() -> None:
        go_on = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(go_on.wait)
            threading.Timer(0.3, go_on.set).start()
            interrupt_at(place, event)
            wait([answer])
            answer.result()
            time.sleep(PATIENCE)  # the interruption comes now, at the latest

    end_like(command)


def terminate_without_interruptions() -> None:
    """Do what a command does that shells start in the background, and that is terminated while it takes a lock."""

    def command() -> None:
        condition = threading.Condition()
        interrupt_at("Condition.__exit__", "call", signal.SIGTERM)
        with condition:
            pass
        time.sleep(PATIENCE)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_like(command)


def sleep_in_workers(place: str, event: str, number: int) -> None:
    """Do what a command with `--jobs` does that is asked to end while it starts its workers."""

    def command() -> None:
        interrupt_at(place, event, number)
        for _ in Processes(2).map(_sleep, Data(), [1, 2]):
            pass

    end_like(command)


def write_files(place: str, event: str, folder: str) -> None:
    """Do what a command does that is interrupted while it takes a lock or writes a file."""

    def command() -> None:
        interrupt_at(place, event)
        with Locks(Path(folder) / ".lock").hold("a lock"):
            write_text(Path(folder) / "file.txt", "text")
            time.sleep(PATIENCE)

    end_like(command)


def hang_in_imports(folder: str) -> None:
    """Start workers for which the import of torch never ends."""
    (Path(folder) / "torch.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(3600)\n")
    sys.path.insert(0, folder)
    sleep_in_workers("nowhere", "call", signal.SIGINT)


def _sleep(_: Data, batch: int) -> None:
    time.sleep(PATIENCE * batch)


def end_at_an_interruption() -> None:
    """Do what a command does that has ended before an interruption which was held back."""

    def command() -> None:
        condition = threading.Condition()
        interrupt_at("Condition.__exit__", "call")
        with condition:
            pass

    end_like(command)


@pytest.mark.parametrize(
    ("place", "event"),
    [
        ("Condition.__enter__", "c_return"),
        ("Condition.__exit__", "call"),
        ("_AcquireFutures.__enter__", "c_return"),
        ("_AcquireFutures.__exit__", "call"),
        ("Condition._release_save", "c_return"),
    ],
)
def test_an_interruption_leaves_no_lock_for_which_another_thread_waits(place: str, event: str, tmp_path: Path) -> None:
    with Trial((place, event), tmp_path / "work", wait_for_a_thread, limit=60) as trial:
        outcome = trial.outcome()
    assert (outcome.code, outcome.stderr) == (130, "Interrupted\n")
    assert outcome.faults() == []


@pytest.mark.parametrize(
    ("place", "event"), [("_new_file", "return"), ("_temporary", "return"), ("Locks.acquire", "return")]
)
def test_an_interruption_leaves_neither_temporary_files_nor_locks(place: str, event: str, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    with Trial((place, event, str(folder)), tmp_path / "work", write_files, limit=60) as trial:
        outcome = trial.outcome()
    assert (outcome.code, outcome.stderr) == (130, "Interrupted\n")
    assert {each.name for each in folder.iterdir()} <= {"file.txt"}


@pytest.mark.slow
def test_workers_do_not_outlive_their_parent_while_they_import(tmp_path: Path) -> None:
    with Trial([str(tmp_path)], tmp_path / "work", hang_in_imports, limit=60) as trial:
        trial.wait_until(lambda: (trial.logs / "stdout").read_text().count("importing") == 2)
        trial.send(signal.SIGKILL)
        outcome = trial.outcome()
    assert outcome.faults() == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("place", "event"), [("BaseProcess.start", "call"), ("Popen._launch", "return")])
def test_an_interruption_leaves_no_worker_that_nobody_knows(
    place: str, event: str, number: signal.Signals, tmp_path: Path
) -> None:
    with Trial((place, event, number), tmp_path / "work", sleep_in_workers, limit=60) as trial:
        outcome = trial.outcome()
    assert (outcome.code, outcome.stderr) == (128 + number, "Terminated\n")
    assert outcome.faults() == []


def test_an_interruption_that_was_held_back_ends_with_the_command(tmp_path: Path) -> None:
    with Trial((), tmp_path / "work", end_at_an_interruption, limit=60) as trial:
        outcome = trial.outcome()
    assert (outcome.code, outcome.stderr) == (130, "Interrupted\n")


def test_a_command_that_ignores_interruptions_is_terminated(tmp_path: Path) -> None:
    with Trial((), tmp_path / "work", terminate_without_interruptions, limit=60) as trial:
        outcome = trial.outcome()
    assert (outcome.code, outcome.stderr) == (143, "Terminated\n")


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


class Interrupting:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_an_interruption_within_a_destructor_ends_what_comes_next(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    def wait() -> list[str]:
        Interrupting()
        waited.append(threading.Event().wait(300))
        return []

    monkeypatch.setattr(datasets, "names", wait)
    result = run("datasets")
    assert (result.exit_code, result.stderr, waited) == (130, "Interrupted\n", [])


def test_an_interruption_that_is_lost_in_another_thread_ends_what_comes_next() -> None:
    class Interrupted:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    def command() -> None:
        thread = threading.Thread(target=lambda lost: None, args=(Interrupted(),))
        thread.start()
        thread.join()
        time.sleep(PATIENCE)

    with pytest.raises(typer.Exit) as end:
        interruptible(command)
    assert end.value.exit_code == 130


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
    # On a fast machine the first epochs may be over by then.
    said = f"Finished work is in {tmp_path}: the same command continues from there\n"
    assert (ended.stderr.removeprefix(said) if late else ended.stderr) == "Interrupted\n"
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.slow
def test_workers_that_are_starting_are_interrupted_silently(tmp_path: Path) -> None:
    command = ["compare", "german", "--methods", "gcn", "--seeds", "2", "--epochs", "1000000", "--jobs", "2"]
    with Trial([*command, "--out", "R.json"], tmp_path / "work", limit=PATIENCE, grace=PATIENCE) as trial:
        trial.wait_until(lambda: len(_workers(trial)) == 2)  # they are starting, or import torch
        for each in _workers(trial):  # a terminal sends it to all
            each.send_signal(signal.SIGINT)
        trial.send(signal.SIGINT)
        outcome = trial.outcome()
    assert outcome.faults() == []
    said = "Finished work is in R.json: the same command continues from there\nInterrupted\n"
    assert (outcome.code, outcome.stderr) == (130, said)


def _workers(trial: Trial) -> list[psutil.Process]:
    return [each for each in trial.processes() if is_worker(each)]
