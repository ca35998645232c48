"""What is killed, or runs out of space, leaves no damage, and the same call finishes it."""

import errno
import os
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from tests.trial import Outcome, Trial

from fairpass.datasets.out_of_core import partition as partition_module
from fairpass.datasets.out_of_core.engine import Engine, TooLittleMemoryError
from fairpass.datasets.out_of_core.partition import partition
from fairpass.datasets.parts import Manifest
from fairpass.errors import DataError
from fairpass.files import sha256

OPTIONS: dict[str, Any] = {"label": "hired", "sensitive": "sex", "parts": 2, "memory": "600MB"}


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    rows = range(600)
    people = {"age": rows, "pay": [f"${row}" for row in rows], "sex": ["f", "m", "m"] * 200, "hired": [0, 1] * 300}
    pd.DataFrame(people).to_csv(tmp_path / "nodes.csv", index=False)
    friends = {
        "a": [row for row in rows for _ in range(8)],
        "b": [(7 * row + k) % 600 for row in rows for k in range(8)],
    }
    pd.DataFrame(friends).to_parquet(tmp_path / "edges.parquet")
    return tmp_path / "nodes.csv", tmp_path / "edges.parquet"


def partition_badly(
    nodes: str, edges: str, out: str, dies_at: int, file_size: int, number: int = signal.SIGKILL
) -> None:
    """Die at a call of `os.fsync`, when a file is written but does not have its name yet; or write small files only."""
    import resource

    calls, fsync = 0, os.fsync

    def counted(file: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == dies_at:
            os.kill(os.getpid(), number)
        fsync(file)

    os.fsync = counted  # type: ignore[assignment] # for the rest of this process
    if file_size:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, resource.RLIM_INFINITY))
    partition(nodes, edges, out, **OPTIONS)


def run(tables: tuple[Path, Path], out: Path, *, dies_at: int = 0, file_size: int = 0) -> Outcome:
    return Trial([*map(str, tables), str(out), dies_at, file_size], out.parent / "work", partition_badly).outcome()


def files_of(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): sha256(path) for path in directory.rglob("*") if path.is_file()}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_partition_that_was_killed_goes_on_to_the_same_files(tables: tuple[Path, Path], tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    partition(*tables, whole, **OPTIONS)
    before = files_of(tmp_path)
    kept: dict[Path, int] = {}
    assert run(tables, killed, dies_at=1).code == -signal.SIGKILL  # before the directory says what it is for
    for dies_at in (9, 12, 20):  # files that are done are not written again: every session gets further
        assert run(tables, killed, dies_at=dies_at).code == -signal.SIGKILL
        assert not (killed / "manifest.json").exists()
        found = {path: path.stat().st_mtime_ns for path in killed.rglob("*.json")}
        assert kept.items() <= found.items()
        assert len(found) > len(kept)
        kept = found
    partition(*tables, killed, **OPTIONS)
    assert files_of(killed) == files_of(whole)
    assert before.items() <= files_of(tmp_path).items()


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system has no SIGSTOP")
def test_a_directory_that_another_process_fills_is_waited_for(tables: tuple[Path, Path], tmp_path: Path) -> None:
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    partition(*tables, whole, **OPTIONS)

    given = [*map(str, tables), str(shared)]
    with Trial([*given, 9, 0, signal.SIGSTOP], tmp_path / "first", partition_badly) as first:
        first.wait_until(lambda: psutil.Process(first.pid).status() == psutil.STATUS_STOPPED)
        with Trial([*given, 0, 0], tmp_path / "second", partition_badly) as second:
            second.wait_until((second.logs / "stderr").read_text)
            os.kill(first.pid, signal.SIGCONT)
            ended = first.outcome(), second.outcome()
    assert [(each.code, each.faults()) for each in ended] == [(0, []), (0, [])]
    assert [each.stderr for each in ended] == ["", f"process {first.pid} is using '{shared}': waiting for it to end\n"]
    assert files_of(shared) == files_of(whole)
    assert not list(tmp_path.glob(".*"))


def test_a_file_that_cannot_be_written_leaves_the_rest_whole(tables: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("resource")
    whole, failed = tmp_path / "whole", tmp_path / "failed"
    partition(*tables, whole, **OPTIONS)
    before = files_of(tmp_path)
    for file_size in (4_000, 12_000):  # an early and a later file are too large
        child = run(tables, failed, file_size=file_size)
        assert child.code == 1
        assert "Error" in child.stderr.splitlines()[-1]
        assert before.items() <= files_of(tmp_path).items()
        assert not (failed / "manifest.json").exists()
        assert not list(failed.rglob(".*.tmp"))
    partition(*tables, failed, **OPTIONS)
    assert files_of(failed) == files_of(whole)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no file that is always full")
def test_a_full_disk_is_called_so(tmp_path: Path) -> None:
    with Engine.open(tmp_path, 10**9) as engine, pytest.raises(OSError, match="No space left on device"):
        engine.rows("COPY (SELECT range FROM range(1000000)) TO '/dev/full' (FORMAT parquet, USE_TMP_FILE false)")


def test_a_finished_partition_is_not_made_again(tables: tuple[Path, Path], tmp_path: Path) -> None:
    manifest = partition(*tables, tmp_path / "parts", **OPTIONS)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("*")}
    assert partition(*tables, tmp_path / "parts", **OPTIONS | {"memory": "1GB"}) == manifest
    assert {
        path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("*") if path.is_file()
    }.items() <= before.items()


def test_a_directory_of_another_call_is_refused(tables: tuple[Path, Path], tmp_path: Path) -> None:
    partition(*tables, tmp_path / "parts", **OPTIONS)
    before = files_of(tmp_path / "parts")
    with pytest.raises(
        DataError, match=r"'out' must be a new directory, or that of the same command \(in .* 'parts' was"
    ):
        partition(*tables, tmp_path / "parts", **OPTIONS | {"parts": 3})
    with pytest.raises(DataError, match="'options' was different"):
        partition(*tables, tmp_path / "parts", **OPTIONS, drop=["age"])
    os.utime(tables[1], ns=(1, 1))
    with pytest.raises(DataError, match="'edges' was different"):
        partition(*tables, tmp_path / "parts", **OPTIONS)
    assert files_of(tmp_path / "parts") == before
    assert Manifest.read(tmp_path / "parts").parts == 2


def test_a_directory_with_other_files_is_refused(tables: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "note.txt").write_text("mine")
    with pytest.raises(DataError, match="'out' must be a new or empty directory"):
        partition(*tables, tmp_path / "notes", **OPTIONS)
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["note.txt"]


def test_an_interrupted_query_is_an_interruption(tmp_path: Path) -> None:
    with Engine.open(tmp_path, 10**9) as engine, pytest.raises(KeyboardInterrupt), engine._own_words():
        raise RuntimeError("Query interrupted")


def test_too_little_memory_or_space_keeps_the_work(
    tables: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lack_memory(*_: Any, **__: Any) -> None:
        raise TooLittleMemoryError("'memory' must be larger for these tables")

    def lack_space(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(partition_module, "write_pairs", lack_memory)
        with pytest.raises(TooLittleMemoryError):
            partition(*tables, tmp_path / "parts", **OPTIONS)
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("column-*")}
    assert done
    with monkeypatch.context() as patched:
        patched.setattr(partition_module, "write_part_edges", lack_space)
        with pytest.raises(OSError, match="No space left"):
            partition(*tables, tmp_path / "parts", **OPTIONS | {"memory": "1GB"})
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("column-*")} == done
    assert partition(*tables, tmp_path / "parts", **OPTIONS).num_nodes == 600


@pytest.mark.parametrize("name", ["nodes.json", "column-0001.json", "nodes/y.npy", "column-0001.npy", "pairs.parquet"])
def test_what_has_changed_since_an_earlier_session_is_refused(
    tables: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    def stop(share: float, what: str) -> None:
        if what == "Counting edges":
            raise KeyboardInterrupt

    out = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        partition(*tables, out, progress=stop, **OPTIONS)
    file = out / ".partition" / name
    content = file.read_bytes()
    place = content.rindex(b"1") if name.endswith(".json") else len(content) - 8
    file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(DataError, match=rf"{name}' must be .*; remove '.*parts' to start again"):
        partition(*tables, out, **OPTIONS)
    file.write_bytes(content)
    assert partition(*tables, out, **OPTIONS).parts == 2
