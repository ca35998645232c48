"""Locks between processes, in a file next to what they guard.

The kernel releases them when a process ends, however it ends.
"""

import errno
import hashlib
import logging
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fairpass.files import PathLike, resolved
from fairpass.lifetime import indivisible

try:
    import fcntl
except ImportError:  # a platform without POSIX locks: only threads are kept apart there
    fcntl = None  # type: ignore[assignment] # a module elsewhere

logger = logging.getLogger(__name__)

_POLL = 0.1  # seconds
_FLOCK = "hhqqi4x"  # `struct flock` of Linux: type, whence, start, length, pid

ACROSS_PROCESSES = fcntl is not None
"""Whether this platform has locks between processes."""

# POSIX locks belong to a process, and closing any descriptor of a file drops all locks on it. So this process opens a
# file once for all its locks, and keeps its own threads apart.
_guard = threading.RLock()
_descriptors: dict[Path, int] = {}
_held: dict[tuple[Path, str], list[int]] = {}  # by file and name: the thread, and how often it holds the lock


def _forget() -> None:
    """Forget all locks in a forked process: it holds none of the locks of its parent's threads."""
    global _guard  # noqa: PLW0603 # a thread that is not here may have held it
    _guard = threading.RLock()
    for descriptor in _descriptors.values():
        os.close(descriptor)
    _descriptors.clear()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Locks:
    """Locks by name in one file, which is made when it is needed and removed by the last to leave.

    A thread may take a lock several times, and must release it as often.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)

    @indivisible
    def acquire(self, name: str) -> bool:
        """Take a lock, unless it is held elsewhere; return whether it is ours now."""
        path, me = self._place(), threading.get_ident()
        with _guard:
            if (path, name) in _held:
                if _held[path, name][0] != me:
                    return False
                _held[path, name][1] += 1
                return True
            if not _lock(path, _offset(name)):
                return False
            _held[path, name] = [me, 1]
            return True

    @indivisible
    def release(self, name: str) -> None:
        path = self._place()
        with _guard:
            _held[path, name][1] -= 1
            if not _held[path, name][1]:
                del _held[path, name]
                _unlock(path, _offset(name))

    def is_free(self, name: str) -> bool:
        """Return whether the lock could be taken now."""
        if not self.acquire(name):
            return False
        self.release(name)
        return True

    def is_held(self, name: str) -> bool:
        """Return whether any thread of any process holds the lock, this thread included."""
        with _guard:
            return (self._place(), name) in _held or not self.is_free(name)

    def holder(self, name: str) -> str:
        """Return who holds a lock, in words."""
        path = self._place()
        with _guard:
            descriptor = _descriptors.get(path)
            if (path, name) in _held:
                return f"process {os.getpid()}"
            if fcntl is None or sys.platform != "linux" or descriptor is None:
                return "another process"
            asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _offset(name), 1, 0)
            kind, *_, process = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        return "another process" if kind == fcntl.F_UNLCK or process <= 0 else f"process {process}"

    @contextmanager
    def hold(self, name: str, waiting: Callable[[str], str] | None = None, *, patience: float = 0.0) -> Iterator[None]:
        """Hold a lock, after waiting for it.

        Args:
            waiting: makes a note of who holds the lock, which is logged once.
            patience: seconds to wait before that note.
        """
        start = time.monotonic()
        while not self.acquire(name):
            if waiting is not None and time.monotonic() - start >= patience:
                logger.warning("%s", waiting(self.holder(name)))
                waiting = None
            time.sleep(_POLL)
        try:
            yield
        finally:
            self.release(name)

    def _place(self) -> Path:
        return resolved(self.path.parent) / self.path.name


@contextmanager
def in_use(directory: PathLike) -> Iterator[None]:
    """Keep other processes out of a directory, which need not exist; a note says for whom this one waits."""
    with Locks(lock_file(directory)).hold("use", lambda who: f"{who} is using '{directory}': waiting for it to end"):
        yield


def lock_file(path: PathLike) -> Path:
    """Return where the locks of a file or directory are: beside what links lead to, as it may have several names."""
    place = resolved(path)
    return place.with_name(f".{place.name}.lock")


def _offset(name: str) -> int:
    """Return the byte of the file that stands for a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")


def _lock(path: Path, offset: int) -> bool:
    if fcntl is None:
        return True
    while True:
        if path not in _descriptors:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                _descriptors[path] = _open(path)
            except FileNotFoundError:
                if path.parent.is_dir():
                    raise
                continue  # another process has removed the directory, which it had made for itself
            except OSError as error:
                if error.errno == errno.EROFS or (error.errno == errno.EACCES and not path.exists()):
                    return True  # where nothing can be written, no lock is needed
                raise
        descriptor = _descriptors[path]
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
        except (BlockingIOError, PermissionError):
            return False
        if _is_at(path, descriptor):
            return True
        # Its last user has removed the file in the meantime; others will lock a new one.
        os.close(_descriptors.pop(path))


def _open(path: Path) -> int:
    """Open a file of locks, or make one for all who may write to its directory."""
    with suppress(FileNotFoundError):
        return os.open(path, os.O_RDWR)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with suppress(PermissionError):  # another user has made it in the meantime
        os.fchmod(descriptor, path.parent.stat().st_mode & 0o666)
    return descriptor


def _unlock(path: Path, offset: int) -> None:
    descriptor = _descriptors.get(path)
    if fcntl is None or descriptor is None:
        return
    fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, offset)
    if any(each == path for each, _ in _held):
        return
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the whole file: nobody else holds a lock
        if _is_at(path, descriptor):
            path.unlink()
    except OSError:  # it is in use, or may not be removed: an empty file stays
        pass
    os.close(_descriptors.pop(path))


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
