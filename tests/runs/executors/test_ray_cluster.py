"""Runs on Ray: a lost node loses no record, and nothing is heard of it on the terminal."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import torch
from tests.methods.ingredients import small_graph
from tests.runs.executors import on_ray
from typer.testing import CliRunner

from fairpass.cli.app import app
from fairpass.errors import DataError
from fairpass.runs import RayCluster, executor_for
from fairpass.runs.executors import ray_cluster

ROOT = Path(__file__).parents[3]
PATIENCE = 600  # seconds; about 30 are needed


@contextmanager
def session(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run Python in a session of its own, of which nothing is left at the end."""
    command = [sys.executable, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, cwd=ROOT, start_new_session=True) as process:  # type: ignore[call-overload] # pipes
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def members(leader: int) -> list[int]:
    """Return the processes of a session, apart from those that have ended and wait to be noticed."""
    found = []
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError, PermissionError):
            if process.info["status"] != psutil.STATUS_ZOMBIE and os.getsid(process.pid) == leader:
                found.append(process.pid)
    return found


@pytest.mark.slow
def test_a_lost_node_loses_no_record(tmp_path: Path) -> None:
    with session("-m", "tests.runs.executors.on_ray", str(tmp_path)) as process:
        out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    found = json.loads(out)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a task has, so that sums are added up alike
    try:
        expected = on_ray.records(str(tmp_path / "nowhere"))
    finally:
        torch.set_num_threads(threads)
    assert found["jobs"] == 3
    assert found["records"] == json.loads(json.dumps(expected))
    assert (tmp_path / "reached").exists()  # a task was on the node when it was lost
    assert found["error"] == "KeyError(7)"
    assert found["closed"] == [[0.0, 150, True]] * on_ray.CLOSED
    assert found["killed"] == [[0, 0], [1, None]]
    assert found["disconnected"]


@pytest.mark.slow
def test_a_command_on_ray_prints_its_result_and_nothing_else() -> None:
    compare = ("compare", "german", "--methods", "gcn", "--epochs", "2", "--seeds", "2", "--json")
    with session("-m", "fairpass", *compare, "--executor", "ray", "--jobs", "2") as process:
        out, errors = process.communicate(timeout=PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while members(process.pid) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert members(process.pid) == []
    assert (process.returncode, errors) == (0, "")
    here = json.loads(CliRunner().invoke(app, compare).stdout)
    expected, found = (
        {(run["method"], run["seed"]): run["evaluation"] for run in each["runs"]} for each in (here, json.loads(out))
    )
    assert found == expected
    assert len(found) == 4


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DataError, match=r"Ray must be installed .* pip install 'fairpass\[ray\]'"):
        executor_for(executor="ray")


def test_a_cluster_that_is_not_there_is_an_error() -> None:
    executor = executor_for(executor="ray://127.0.0.1:1")
    with pytest.raises(
        DataError, match=r"'executor' must be a Ray cluster that can be reached \(got 'ray://127.0.0.1:1'"
    ):
        list(executor.map(on_ray.fail, small_graph(), [1]))
    executor.close()


def test_nothing_to_do_needs_no_cluster() -> None:
    executor = RayCluster(2, "ray://127.0.0.1:1")
    assert executor.jobs == 2
    assert list(executor.map(on_ray.fail, small_graph(), [])) == []


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "__version__", "9.9.9")
    with pytest.raises(DataError, match=r"every machine .* must have fairpass 1.0 \(one has 9.9.9\)"):
        ray_cluster._call("1.0", on_ray.fail, small_graph(), 1)
