"""`fairpass train` on a graph in parts: one process for each, killed ones, and mistakes."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import torch
from tests.distributed import cases
from tests.distributed.crew import crew
from typer.testing import Result

from fairpass.datasets import load_arrays
from fairpass.datasets.parts import write_parts
from fairpass.training.tensors import read_tensors

Run = Callable[..., Result]

TIMEOUT = 300  # seconds, for machines that are busy with other things
EPOCHS = 60


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("german") / "parts"
    write_parts(load_arrays("german"), folder, 2)
    return folder


@contextmanager
def started(*arguments: object) -> Iterator["subprocess.Popen[str]"]:
    """Start a command in a group of processes of its own, none of which is left afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fairpass", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        for each in workers(process.pid):
            each.kill()
        process.kill()
        process.communicate()


def workers(pid: int) -> list[psutil.Process]:
    try:
        found = psutil.Process(pid).children()
        return [each for each in found if "fairpass" in " ".join(each.cmdline())]
    except psutil.Error:
        return []


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT
    while not holds():
        assert time.monotonic() < end, f"waited {TIMEOUT} s for {what}"
        time.sleep(0.05)


@pytest.mark.slow
def test_killed_workers_are_started_again_to_the_same_result(parts: Path, tmp_path: Path) -> None:
    undisturbed, killed, draw = tmp_path / "model.safetensors", tmp_path / "killed", random.Random(7)
    crew(2, cases.fit_as_the_command_does, parts, undisturbed, EPOCHS, 8)
    with started("train", parts, "--epochs", EPOCHS, "--set", "hidden=8", "--out", killed) as process:
        checkpoint = killed / "checkpoint.safetensors"
        wait_for("a checkpoint", lambda: checkpoint.exists() or process.poll() is not None)
        time.sleep(draw.uniform(0, 2))
        if victims := workers(process.pid):
            draw.choice(victims).kill()
        out, err = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, err
        assert "Traceback" not in err
        assert "validation chose epoch" in out
    (ours, header), (theirs, expected) = (
        read_tensors(each, "fairpass model") for each in (killed / "model.safetensors", undisturbed)
    )
    assert header == expected
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name
    assert sorted(each.name for each in killed.iterdir()) == ["evaluation.json", "history.json", "model.safetensors"]


@pytest.mark.slow
@pytest.mark.parametrize("early", [False, True])
def test_workers_end_with_the_process_that_started_them(parts: Path, tmp_path: Path, early: bool) -> None:
    """Also if it is killed while they are importing."""
    with started("train", parts, "--epochs", 100_000, "--out", tmp_path) as process:
        if not early:
            wait_for("a checkpoint", (tmp_path / "checkpoint.safetensors").exists)
        wait_for("the workers", lambda: len(workers(process.pid)) == 2)
        left = workers(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        try:
            wait_for("the workers' end", lambda: not any(each.is_running() and _is_alive(each) for each in left))
        finally:
            for each in left:
                with suppress(psutil.NoSuchProcess):
                    each.kill()


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
def test_a_damaged_part_is_one_sentence_and_no_restart(parts: Path, tmp_path: Path) -> None:
    write_parts(load_arrays("german"), tmp_path, 2)
    (tmp_path / "part-0001" / "y.npy").unlink()
    with started("train", tmp_path) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    said = [line for line in err.splitlines() if line.startswith("Error:")]
    assert said == [f"Error: '{tmp_path}' must have all of its parts ('part-0001/y.npy' is missing)"]
    assert (process.returncode, out) == (1, "")
    assert "Traceback" not in err


def test_mistakes_are_said_before_any_process_is_started(run: Run, parts: Path, tmp_path: Path) -> None:
    mistakes = {
        ("train", parts, "--workers", "3"): "--workers must be the number of parts in",
        ("train", parts, "--method", "nifty"): "--method must be one of gcn, gin, sage, mlp, mmd, fmp, gmmd, gmmd-s",
        ("train", parts, "--set", "encoder=auto"): "must be one of mlp, linear, gcn, sage for a graph in parts",
        ("train", parts, "--set", "sample=100"): "must be None for a graph in parts",
        ("train", parts, "--track", "tensorboard:x"): "--track cannot be used with a graph in parts",
        ("train", "german", "--workers", "2"): "--workers is for a graph in parts",
        ("train", tmp_path): "must be a directory of parts",
    }
    for arguments, expected in mistakes.items():
        result = run(*arguments)
        assert result.exit_code != 0, arguments
        assert expected in " ".join(result.output.replace("│", " ").split()), arguments


def test_other_commands_join_the_parts(run: Run, parts: Path) -> None:
    result = run("audit", parts)
    assert result.exit_code == 0, result.output
    assert "German" in result.output
