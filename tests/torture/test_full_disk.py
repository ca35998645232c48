"""A file system that is full: one sentence that names the file, exit code 1, and nothing half-written."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fairpass.cli.app import app
from fairpass.runs import Comparison
from fairpass.training.tensors import read_tensors

Mount = Callable[[str], Path]
TRAIN = ("train", "german", "--method", "gcn", "--epochs", "2")


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mount a small file system in memory; skip the test where that is not allowed."""
    made: list[Path] = []

    def small(options: str) -> Path:
        place = tmp_path / f"disk{len(made)}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("a small file system cannot be mounted here")
        made.append(place)
        return place

    yield small
    for place in made:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("options", ["size=12k", "size=10M,nr_inodes=2"])
def test_a_full_disk_while_a_model_is_trained(options: str, mount: Mount) -> None:
    disk = mount(options)
    done = run(*TRAIN, "--out", disk / "run")
    assert done.exit_code == 1
    assert done.stderr.startswith(f"Error: the disk is full: '{disk}/run/")
    assert len(done.stderr.splitlines()) == 1
    for file in (disk / "run").iterdir():  # what was written before is whole
        read_tensors(file, "fairpass checkpoint")


def test_a_full_disk_while_a_study_is_kept(mount: Mount) -> None:
    disk = mount("size=100k")
    (disk / "ballast").write_bytes(bytes(90_000))
    done = run("tune", "german", "--method", "gcn", "--epochs", "2", "--trials", "1", "--out", disk / "tuned")
    assert done.exit_code == 1
    assert "disk is full" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_while_results_are_written(mount: Mount) -> None:
    disk = mount("size=4k")
    done = run("compare", "german", "--methods", "gcn", "--seeds", "1", "--epochs", "2", "--out", disk / "R.json")
    assert done.exit_code == 1
    assert done.stderr == f"Error: the disk is full: '{disk}/R.json'\n"
    assert Comparison.load(disk / "R.json").runs == []  # as it was before the first run
    assert list(disk.iterdir()) == [disk / "R.json"]
