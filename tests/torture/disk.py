"""A disk that is full, or has no more inodes: one sentence says so, and with more space the same command finishes."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.torture.kills import SCENARIOS, finished, prepare, undisturbed
from tests.torture.reporting import Report, Setting
from tests.trial import run

_NAMES = (
    "train",
    "train gcn",
    "compare",
    "tune",
    "grid",
    "partition",
    "run",
    "benchmark",
    "reproduce",
    "attribute",
    "parts",
)
FULL = ("the disk is full", "No space left on device", "database or disk is full")


class CannotMountError(RuntimeError):
    """No small disk can be made here."""


def trial(setting: Setting) -> Report:
    random = setting.random
    name = random.choice(_NAMES)
    if random.random() < 0.25:
        return on(name, setting, inodes=random.randint(0, 12))
    return on(name, setting, random.choice((0, 1, 4, 8, 16, 32, 64, 128, 256)) * 1024)


def on(name: str, setting: Setting, free: int | None = None, inodes: int | None = None) -> Report:
    """Run a command on a disk with so many free bytes or inodes, and again with enough of them."""
    report = Report()
    expected, _ = undisturbed(name, setting.shared)
    try:
        with small_disk(setting.folder) as folder:
            prepare(name, folder)
            if inodes is not None:
                remount(folder, f"size=200M,nr_inodes={used_inodes(folder) + inodes}")
            if free is not None:
                fill(folder, free)
            outcome = report.add(run(SCENARIOS[name].arguments, folder))
            report.counts["full disks"] += outcome.code != 0
            if outcome.code not in (0, 1):
                report.faults.append(f"on a full disk it ends with {outcome.code}")
            elif outcome.code == 1 and not any(words in outcome.stderr for words in FULL):
                report.faults.append("it does not say that the disk is full")
            (folder / "filling").unlink(missing_ok=True)
            remount(folder, "size=200M,nr_inodes=100000")
            return finished(name, report, Setting(setting.random, folder, setting.shared), expected)
    except CannotMountError as error:
        return Report(skipped=str(error))


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a file system in memory, and unmount it again."""
    place = folder / "disk"
    place.mkdir(parents=True)
    if not shutil.which("mount") or os.geteuid() != 0:
        raise CannotMountError("only root can mount a small disk")
    _call("mount", "-t", "tmpfs", "-o", "size=3M", "tmpfs", str(place))
    try:
        yield place
    finally:
        _call("umount", "-l", str(place))


def remount(folder: Path, options: str) -> None:
    _call("mount", "-o", f"remount,{options}", str(folder))


def used_inodes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_files - found.f_ffree


def fill(folder: Path, free: int) -> None:
    """Fill a disk up to so many bytes."""
    with (folder / "filling").open("wb") as file:
        found = os.statvfs(folder)
        os.posix_fallocate(file.fileno(), 0, max(1, found.f_bavail * found.f_bsize - free))


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMountError(f"{' '.join(command[:1])}: {done.stderr.strip()}")
