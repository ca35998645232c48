"""Files that are either whole or absent: written under a temporary name, then renamed. Plain values for JSON."""

import errno
import hashlib
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from fairpass.lifetime import indivisible

try:
    import fcntl
except ImportError:  # a platform without locks: temporary files of killed processes stay
    fcntl = None  # type: ignore[assignment] # a module elsewhere

PathLike = str | os.PathLike[str]

LARGEST_WHOLE = 2**63  # whole numbers in JSON files are smaller

_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{32}\.tmp", re.DOTALL)
_SCRATCH = "fairpass"  # with which the names of scratch directories begin
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def atomic_path(target: PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `target`; rename it to `target` on success, remove it on any failure.

    After a power failure, too, there is the old file or the new one. Temporary files that a killed process has
    left in the directory are removed. A link stays, and the file that it leads to is written. Anything but a regular
    file, such as a device, is never replaced.
    """
    place = resolved(target)
    place.parent.mkdir(parents=True, exist_ok=True)
    _check_replaceable(place, target)
    remove_left_over(place.parent)
    with _named(target, place), _temporary(place) as temporary:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(place)
        _sync_directory(place.parent)


def resolved(path: PathLike) -> Path:
    """Return the path that all links lead to. (`Path.resolve` raises what is no `OSError` if they lead in a circle.)"""
    return Path(os.path.realpath(path))


def _check_replaceable(place: Path, target: PathLike) -> None:
    with suppress(FileNotFoundError):
        mode = place.stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(target))


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Yield a new directory among the system's temporary ones, and remove it.

    If this process is killed, the next one that makes such a directory removes it.
    """
    place = Path(tempfile.gettempdir()) / _SCRATCH
    remove_left_over(place.parent, directories=True)
    with _temporary(place, _new_directory) as temporary:
        yield temporary


def _new_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)


def _new_directory(path: Path) -> int:
    while True:
        path.mkdir(0o700)
        with suppress(FileNotFoundError):  # another process has removed it as abandoned
            return os.open(os.devnull if fcntl is None else path, os.O_RDONLY)  # Windows opens no directory


@contextmanager
@indivisible  # up to `yield`, and from there on: otherwise the file could be left behind
def _temporary(target: Path, make: Callable[[Path], int] = _new_file) -> Iterator[Path]:
    """Yield a new empty file or directory that is locked as long as this process uses it."""
    while True:
        temporary = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
        descriptor = make(temporary)
        if fcntl is None:
            os.close(descriptor)  # Windows neither renames nor removes open files
            break
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if temporary.exists():
            break
        os.close(descriptor)  # another process has removed it as abandoned before it was locked
    try:
        yield temporary
    finally:
        _remove(temporary)
        if fcntl is not None:
            os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_left_over(directory: Path, *, directories: bool = False) -> None:
    """Remove the temporary files, or the scratch directories, that no living process holds."""
    if fcntl is None:
        return
    found = []
    with suppress(PermissionError), os.scandir(directory) as entries:
        found = [entry for entry in entries if _TEMPORARY.fullmatch(entry.name)]
    for entry in found:
        if entry.is_dir(follow_symlinks=False) != directories:
            continue
        if directories and not entry.name.startswith(f".{_SCRATCH}."):
            continue  # of another program
        with suppress(OSError):  # in use, or removed by another process
            kind = os.O_RDONLY if directories else os.O_RDWR
            descriptor = os.open(entry, kind | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(Path(entry))
            finally:
                os.close(descriptor)


def _sync_directory(directory: Path) -> None:
    """Make a rename last; where directories cannot be opened, the system does it in its own time."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _named(target: PathLike, place: Path) -> Iterator[None]:
    """Let an error about a full disk, or about the temporary file, name the file that could not be written."""
    try:
        yield
    except OSError as error:
        is_temporary = str(error.filename).startswith(str(place.with_name(f".{place.name}.")))
        if error.errno in _FULL or is_temporary:
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise


def check_writable(target: PathLike) -> None:
    """Raise the `OSError` that writing a file would raise, before the work for it; nothing is left behind."""
    place = resolved(target)
    while not place.parent.exists():  # it would be made
        place = place.parent
    with _named(target, place), _temporary(place):
        pass


def write_bytes(target: PathLike, content: bytes) -> Path:
    with atomic_path(target) as temporary:
        temporary.write_bytes(content)
    return Path(target)


def write_text(target: PathLike, content: str) -> Path:
    return write_bytes(target, content.encode())


def sha256(path: PathLike) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def finite(value: Any) -> Any:
    """Return nested plain values with lists for tuples, and None for numbers that JSON cannot hold."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
