"""Files are whole or absent, name themselves when the disk is full, and leave nothing behind."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairpass.errors import DataError
from fairpass.files import atomic_path, scratch_directory, write_bytes, write_text

KILLED_WHILE_WRITING = """
import os, signal, sys
from fairpass.files import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    temporary.write_bytes(b"half")
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_left_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    target = tmp_path / "file"
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, target, "kill"], timeout=600, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    assert not target.exists()
    write_text(tmp_path / "other", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_what_a_living_process_writes_is_left_alone(tmp_path: Path) -> None:
    target, command = tmp_path / "file", [sys.executable, "-c", KILLED_WHILE_WRITING]
    with subprocess.Popen([*command, target, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        write_text(tmp_path / "other", "whole")
        process.communicate(timeout=600)
    assert process.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "other"]
    assert target.read_bytes() == b"half"


KILLED_AT_WORK = """
import os, signal, sys
from fairpass.files import scratch_directory
with scratch_directory() as directory:
    (directory / "file").write_text("half")
    if sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    print("working", flush=True)
    sys.stdin.read()
    assert (directory / "file").exists()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def test_a_scratch_directory_goes_at_the_end_or_with_the_next_one(temporary: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED_AT_WORK, "kill"], timeout=600, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in temporary.glob("*/*")] == ["file"]
    with scratch_directory() as directory:
        assert list(temporary.iterdir()) == [directory]
        (directory / "inner").mkdir()
    assert list(temporary.iterdir()) == []


def test_the_scratch_directory_of_a_living_process_stays(temporary: Path) -> None:
    command = [sys.executable, "-c", KILLED_AT_WORK, "wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"working\n"
        with scratch_directory() as first, scratch_directory() as second:
            assert len({first, second, *temporary.iterdir()}) == 3
        process.communicate(timeout=600)
    assert process.returncode == 0
    assert list(temporary.iterdir()) == []


def test_a_scratch_directory_that_is_taken_for_left_over_is_made_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made = Path.mkdir, []

    def remove_first(self: Path, mode: int) -> None:
        make(self, mode)
        made.append(self)
        if len(made) == 1:
            self.rmdir()

    monkeypatch.setattr(Path, "mkdir", remove_first)
    with scratch_directory() as directory:
        assert list(temporary.iterdir()) == [directory]
    assert len(made) == 2


def test_what_other_programs_left_stays(temporary: Path) -> None:
    directory, file = (temporary / f".other.{mark * 32}.tmp" for mark in "ab")
    directory.mkdir()
    file.touch()
    with scratch_directory():
        pass
    assert (directory.exists(), file.exists()) == (True, True)
    write_text(temporary / "file", "")
    assert directory.exists()


def test_a_link_among_temporary_files_leads_nobody_astray(
    temporary: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    precious = tmp_path_factory.mktemp("precious")
    (precious / "file").write_text("stays")
    (temporary / f".fairpass.{'a' * 32}.tmp").symlink_to(precious)
    with scratch_directory():
        pass
    assert (precious / "file").exists()


def test_nested_writing_into_one_directory(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "a") as first, atomic_path(tmp_path / "b") as second:
        write_text(tmp_path / "c", "c")
        first.write_text("a")
        second.write_text("b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


def test_the_directory_is_synced_after_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, bool]] = []

    def note(descriptor: int) -> None:
        synced.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), (tmp_path / "file").exists()))

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc")
    monkeypatch.setattr(os, "fsync", note)
    write_text(tmp_path / "file", "x")
    assert [exists for _, exists in synced] == [False, True]
    assert synced[1][0] == str(tmp_path.resolve())


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as if the disk were full. Not a fixture: pytest may write to a file, too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_leaves_the_old_file_and_names_it(tmp_path: Path) -> None:
    target = write_text(tmp_path / "file", "old")
    with pytest.raises(OSError, match=r"File too large: '.*/file'"), largest_file(10_000):
        write_bytes(target, bytes(10_001))
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_errors_of_others_pass_unchanged(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="odd"), atomic_path(tmp_path / "file"):
        raise DataError("odd")
    assert not list(tmp_path.iterdir())


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    for name in ("file", "missing"):
        link, target = tmp_path / f"link to {name}", tmp_path / "real" / name
        link.symlink_to(target)
        write_text(target.parent / "file", "old")
        write_text(link, "new")
        assert link.is_symlink()
        assert target.read_text() == "new"


@pytest.mark.parametrize("kind", ["directory", "pipe", "circle"])
def test_what_is_no_file_is_never_replaced(tmp_path: Path, kind: str) -> None:
    target = tmp_path / kind
    if kind == "circle":
        target.symlink_to(target)
    else:
        (os.mkfifo if kind == "pipe" else os.mkdir)(target)
    before = target.lstat()
    with pytest.raises(OSError, match=f"{tmp_path}/{kind}'"):
        write_text(target, "x")
    assert target.lstat().st_ino == before.st_ino
    assert list(tmp_path.iterdir()) == [target]


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"^[^']*'[^']*/file'$"), atomic_path(tmp_path / "file"):
        (tmp_path / "file").mkdir()  # in the meantime
