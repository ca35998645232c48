"""One holder at a time, among threads and processes; a killed holder holds nothing."""

import logging
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.holding import HOLD, start
from tests.trial import Trial

from fairpass.locks import Locks, lock_file

COUNT = """
import sys
from pathlib import Path
from fairpass.locks import Locks
number = Path(sys.argv[2])
for _ in range(50):
    with Locks(sys.argv[1]).hold("count"):
        number.write_text(str(int(number.read_text()) + 1))
"""


def test_a_lock_is_held_once_and_the_file_goes_with_it(tmp_path: Path) -> None:
    locks = Locks(tmp_path / "new" / ".lock")
    assert locks.acquire("a")
    assert locks.acquire("a")
    assert locks.acquire("b")
    with ThreadPoolExecutor(1) as thread:
        assert not thread.submit(locks.acquire, "a").result()
        assert thread.submit(locks.is_free, "c").result()
    for name in ("a", "a", "b"):
        assert locks.path.exists()
        locks.release(name)
    assert not locks.path.exists()


def test_another_process_is_kept_out_by_name_until_it_is_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    locks = Locks(tmp_path / ".lock")
    with start(HOLD, locks.path, "a", "b") as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert not locks.acquire("a")
        assert locks.acquire("c")
        if sys.platform == "linux":
            assert locks.holder("a") == f"process {other.pid}"
        other.kill()
        other.wait(600)
        with locks.hold("a", "waiting for {}".format), locks.hold("b"):
            locks.release("c")
    assert not locks.path.exists()
    assert not caplog.records


def test_who_has_to_wait_is_told_for_whom(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    locks = Locks(tmp_path / ".lock")
    with start(HOLD, locks.path, "a") as other, ThreadPoolExecutor(1) as thread, caplog.at_level(logging.WARNING):
        assert other.stdout is not None
        other.stdout.readline()

        def wait() -> None:
            with locks.hold("a", "waiting for {}".format):
                pass

        waiting = thread.submit(wait)
        deadline = time.monotonic() + 600
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.01)
        other.communicate(timeout=600)
        waiting.result(600)
    assert [record.getMessage().startswith("waiting for ") for record in caplog.records] == [True]


def test_nothing_is_lost_between_four_processes(tmp_path: Path) -> None:
    number = tmp_path / "number"
    number.write_text("0")
    processes = [start(COUNT, tmp_path / ".lock", number) for _ in range(4)]
    assert [process.wait(600) for process in processes] == [0] * 4
    for process in processes:
        process.communicate()
    assert number.read_text() == "200"
    assert not (tmp_path / ".lock").exists()


def test_the_locks_of_a_file_are_beside_it(tmp_path: Path) -> None:
    assert lock_file("results/R.json") == Path("results/.R.json.lock").resolve()
    (tmp_path / "link").symlink_to(tmp_path / "R.json")
    assert lock_file(tmp_path / "link") == lock_file(tmp_path / "R.json")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_holds_nothing(tmp_path: Path) -> None:
    locks = Locks(tmp_path / ".lock")
    with locks.hold("a"), ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as forked:
        assert forked.submit(locks.acquire, "a").result(60) is False
        assert forked.submit(locks.acquire, "b").result(60) is True
        assert locks.holder("a") == f"process {os.getpid()}"


def be_another_user(path: Path) -> None:
    """Say whether another user gets a lock that root holds."""
    os.setgid(65534)
    os.setuid(65534)
    sys.stdout.write(f"{Locks(path).acquire('a')}\n")


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become another user")
def test_who_may_write_to_a_directory_is_kept_out_by_the_locks_of_another_user(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # that of pytest is for its user alone
        shared, locks = Path(name), Locks(Path(name) / ".lock")
        shared.chmod(0o777)
        assert locks.acquire("a")
        with Trial((locks.path,), tmp_path / "work", be_another_user) as trial:
            assert trial.outcome().stdout == "False\n"
        locks.path.chmod(0o600)
        with Trial((locks.path,), tmp_path / "work", be_another_user) as trial:
            assert "PermissionError" in trial.outcome().stderr
        locks.release("a")
        shared.chmod(0o755)  # nothing can be written there, so nobody writes at the same time
        with Trial((locks.path,), tmp_path / "work", be_another_user) as trial:
            assert trial.outcome().stdout == "True\n"
