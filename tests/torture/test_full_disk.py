"""A file system that is full: one sentence that names the file, exit code 1, and nothing half-written."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

# In a mount namespace of its own, so that the small file systems are gone with the process, however it ends.
COMMANDS = """
import json, subprocess, sys
from pathlib import Path
from typer.testing import CliRunner
from fairpass.cli.app import app
from fairpass.tuning import storage

storage.PATIENCE = 600.0  # so that it does not say that it waits, however slow the machine is
TRAIN = ["train", "german", "--method", "gcn", "--epochs", "2", "--out"]
TUNE = ["tune", "german", "--method", "gcn", "--epochs", "2", "--trials", "1", "--out"]
TRACK = ["train", "german", "--method", "gcn", "--epochs", "50", "--track"]
COMPARE = ["compare", "german", "--methods", "gcn", "--seeds", "1", "--epochs", "2", "--out"]
found = {}
for name, options, command, ballast in (
    ("full", "size=12k", TRAIN, 0),
    ("inodes", "size=10M,nr_inodes=2", TRAIN, 0),
    ("study", "size=100k", TUNE, 90_000),
    ("study-inodes", "size=10M,nr_inodes=3", TUNE, 0),
    ("results", "size=4k", COMPARE, 0),
    ("events", "size=8k", TRACK, 0),
    ("events-inodes", "size=10M,nr_inodes=2", TRACK, 0),
):
    disk = Path(sys.argv[1]) / name
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], check=True)
    if ballast:
        (disk / "ballast").write_bytes(bytes(ballast))
    prefix, suffix = "tensorboard:" if command is TRACK else "", ".json" if command is COMPARE else ""
    done = CliRunner().invoke(app, [*command, f"{prefix}{disk / 'out'}{suffix}"])
    files = {str(path.relative_to(disk)): path.stat().st_size for path in disk.rglob("*") if path.is_file()}
    found[name] = {"code": done.exit_code, "error": done.stderr, "files": files}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What commands do on small file systems in memory."""
    private = ["unshare", "--mount", "--propagation", "private"]
    folder = tmp_path_factory.mktemp("disks")
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        pytest.skip("there are no commands to mount a file system with")
    probe = [*private, "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    if subprocess.run(probe, capture_output=True, check=False, timeout=600).returncode:
        pytest.skip("a file system cannot be mounted here")
    command = [*private, sys.executable, "-c", COMMANDS, str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found: Mapping[str, Any] = json.loads(done.stdout)
    return {**found, "folder": str(folder)}


@pytest.mark.parametrize("name", ["full", "inodes"])
def test_a_full_disk_while_a_model_is_trained(name: str, outcomes: Mapping[str, Any]) -> None:
    done = outcomes[name]
    assert done["code"] == 1
    assert done["error"].startswith(f"Error: the disk is full: '{outcomes['folder']}/{name}/out")
    assert len(done["error"].splitlines()) == 1
    assert set(done["files"]) <= {"out/checkpoint.safetensors"}
    assert all(done["files"].values())


@pytest.mark.parametrize("name", ["study", "study-inodes"])
def test_a_full_disk_while_a_study_is_kept(name: str, outcomes: Mapping[str, Any]) -> None:
    done = outcomes[name]
    assert done["code"] == 1
    assert done["error"].startswith(f"Error: the disk is full: '{outcomes['folder']}/{name}/out")
    assert len(done["error"].splitlines()) == 1


def test_a_full_disk_while_results_are_written(outcomes: Mapping[str, Any]) -> None:
    done = outcomes["results"]
    assert (done["code"], done["error"]) == (1, f"Error: the disk is full: '{outcomes['folder']}/results/out.json'\n")
    assert set(done["files"]) == {"out.json"}  # as it was before the first run


@pytest.mark.parametrize("name", ["events", "events-inodes"])
def test_a_full_disk_while_a_training_is_tracked(name: str, outcomes: Mapping[str, Any]) -> None:
    done, where = outcomes[name], f"{outcomes['folder']}/{name}/out"
    expected = f"Error: TensorBoard cannot write to '{where}': No space left on device\n"
    assert (done["code"], done["error"]) == (1, expected)


def test_nothing_stays_mounted(outcomes: Mapping[str, Any]) -> None:
    assert [Path(outcomes["folder"], name).exists() for name in ("full", "results")] == [True, True]
    assert not any(path.is_file() for path in Path(outcomes["folder"]).rglob("*"))
