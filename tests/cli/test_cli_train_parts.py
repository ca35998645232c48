"""`fairpass train` on a graph in parts: one process for each, killed ones, and mistakes."""

import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch
from tests.distributed import cases
from tests.distributed.crew import crew
from tests.trial import Trial, command
from typer.testing import Result

from fairpass.datasets import load_arrays
from fairpass.datasets.parts import write_parts
from fairpass.training.tensors import read_tensors

Run = Callable[..., Result]

PATIENCE = 600.0  # seconds, for machines that are busy with other things
EPOCHS = 60
# A training that goes on for hours: GCN never stops early.
ENDLESS = ("--method", "gcn", "--epochs", 10**7)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("german") / "parts"
    write_parts(load_arrays("german"), folder, 2)
    return folder


def started(*arguments: object, work: Path) -> Trial:
    return Trial([str(each) for each in arguments], work, limit=PATIENCE)


def workers(trial: Trial) -> list[psutil.Process]:
    """Return the processes that train; each leads a session of its own."""
    return [each for each in psutil.Process(trial.pid).children() if "fairpass" in each.cmdline()]


def survivors(left: list[psutil.Process]) -> list[psutil.Process]:
    """Return those that do not end, and end them."""
    _, alive = psutil.wait_procs(left, PATIENCE)
    for each in alive:
        each.kill()
    return list(alive)


@pytest.mark.slow
def test_killed_workers_are_started_again_to_the_same_result(parts: Path, tmp_path: Path) -> None:
    undisturbed, killed = tmp_path / "model.safetensors", tmp_path / "killed"
    crew(2, cases.fit_as_the_command_does, parts, undisturbed, EPOCHS, 8)
    train = ("train", parts, "--epochs", EPOCHS, "--set", "hidden=8", "--out", killed)
    with started(*train, work=tmp_path / "work") as trial:
        trial.wait_until((killed / "checkpoint.safetensors").exists)
        workers(trial)[-1].kill()
        outcome = trial.outcome()
    assert outcome.code == 0, outcome.describe()
    assert outcome.faults() == []
    assert "validation chose epoch" in outcome.stdout
    (ours, header), (theirs, expected) = (
        read_tensors(each, "fairpass model") for each in (killed / "model.safetensors", undisturbed)
    )
    assert header == expected
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name
    assert sorted(each.name for each in killed.iterdir()) == ["evaluation.json", "history.json", "model.safetensors"]


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them(parts: Path, tmp_path: Path) -> None:
    train = ("train", parts, *ENDLESS, "--out", tmp_path)
    with started(*train, work=tmp_path / "work") as trial:
        trial.wait_until((tmp_path / "checkpoint.safetensors").exists)
        left = workers(trial)
        assert len(left) == 2
        trial.send(signal.SIGKILL)
        assert survivors(left) == []
    assert not (tmp_path / "model.safetensors").exists()  # they did not end because they were done


@pytest.mark.slow
def test_workers_that_are_terminated_leave_the_words_to_the_command(parts: Path, tmp_path: Path) -> None:
    train = ("train", parts, *ENDLESS, "--out", tmp_path)
    with started(*train, work=tmp_path / "work") as trial:
        trial.wait_until((tmp_path / "checkpoint.safetensors").exists)
        trial.send(signal.SIGTERM)
        outcome = trial.outcome()
    begun = f"Starting 2 processes, one for each part of {parts}\n"
    said = f"{begun}Finished work is in {tmp_path}: the same command continues from there\nTerminated\n"
    assert (outcome.code, outcome.stderr, outcome.faults()) == (143, said, [])


@pytest.mark.slow
def test_a_worker_that_has_just_been_started_ends_with_it_too(tmp_path: Path) -> None:
    write_parts(load_arrays("german"), tmp_path / "parts", 1)
    train = ("train", tmp_path / "parts", *ENDLESS, "--out", tmp_path)
    with started(*train, work=tmp_path / "work") as trial:
        trial.wait_until(lambda: workers(trial))
        left = workers(trial)
        trial.send(signal.SIGKILL)
        assert survivors(left) == []
    assert not (tmp_path / "model.safetensors").exists()  # they did not end because they were done


def command_with_nohup(*arguments: str) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    command(*arguments)


@pytest.mark.slow
def test_with_nohup_the_end_of_the_terminal_changes_nothing(parts: Path, tmp_path: Path) -> None:
    train = ("train", parts, "--epochs", EPOCHS, "--set", "hidden=8", "--out", tmp_path)
    with Trial([str(each) for each in train], tmp_path / "work", command_with_nohup, PATIENCE) as trial:
        trial.wait_until((tmp_path / "checkpoint.safetensors").exists)
        trial.send(signal.SIGHUP)
        outcome = trial.outcome()
    assert (outcome.code, outcome.faults()) == (0, []), outcome.describe()
    assert (tmp_path / "model.safetensors").exists()


@pytest.mark.slow
def test_a_damaged_part_is_one_sentence_and_no_restart(parts: Path, tmp_path: Path) -> None:
    write_parts(load_arrays("german"), tmp_path, 2)
    (tmp_path / "part-0001" / "y.npy").unlink()
    outcome = started("train", tmp_path, work=tmp_path / "work").outcome()
    said = [line for line in outcome.stderr.splitlines() if line.startswith("Error:")]
    assert said == [f"Error: '{tmp_path}' must have all of its parts ('part-0001/y.npy' is missing)"]
    assert (outcome.code, outcome.stdout, outcome.faults()) == (1, "", [])


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
