"""Files that are either whole or absent: written under a temporary name, then renamed. Plain values for JSON."""

import errno
import hashlib
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

try:
    import fcntl
except ImportError:  # a platform without locks: temporary files of killed processes stay
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]

_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{32}\.tmp", re.DOTALL)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def atomic_path(target: PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `target`; rename it to `target` on success, remove it on any failure.

    After a failure of the power, too, there is the old file or the new one. Temporary files that a killed process has
    left in the directory are removed.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_over(target.parent)
    with _named(target), _temporary(target) as temporary:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(target)
        _sync_directory(target.parent)


@contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """Yield a new empty file that is locked as long as this process writes it."""
    while True:
        temporary = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)  # another process has taken it for left over before it was locked
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        os.close(descriptor)


def _remove_left_over(directory: Path) -> None:
    """Remove the temporary files that no living process holds."""
    if fcntl is None:
        return
    found = []
    with suppress(PermissionError), os.scandir(directory) as entries:
        found = [Path(entry.path) for entry in entries if _TEMPORARY.fullmatch(entry.name)]
    for path in found:
        with suppress(OSError):  # in use, or removed by another process
            descriptor = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
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
def _named(target: Path) -> Iterator[None]:
    """Let an error about a full disk name the file that could not be written."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise OSError(error.errno, os.strerror(error.errno), str(target)) from error
        raise


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
