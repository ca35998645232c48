"""Files that are either whole or absent: written under a temporary name, then renamed. Plain values for JSON."""

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from fairpass.errors import DataError

T = TypeVar("T")


@contextmanager
def atomic_path(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `target`; rename it to `target` on success, remove it on any failure.

    Whoever reads `target` sees the old file or the whole new one, whatever happens in between
    (an exception, Ctrl-C, a full disk).
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files private (0600); a result should be as readable as any other new file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(target: str | os.PathLike[str], content: bytes) -> Path:
    """Write `content` to `target` atomically."""
    with atomic_path(target) as temporary:
        temporary.write_bytes(content)
    return Path(target)


def write_text(target: str | os.PathLike[str], content: str) -> Path:
    """Write `content` to `target` atomically, as UTF-8."""
    return write_bytes(target, content.encode())


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the hexadecimal SHA-256 of a file's content."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_document(path: str | os.PathLike[str], document: Mapping[str, Any]) -> Path:
    """Write a JSON file for people and programs to read; its entry `kind` should say what it is."""
    return write_text(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def finite(value: Any) -> Any:
    """Return nested plain values with lists for tuples, and None for numbers that JSON cannot hold."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_document(path: str | os.PathLike[str], kind: str, build: Callable[[dict[str, Any]], T]) -> T:
    """Return what `build` makes of a JSON file whose entry `kind` says that it is one, or raise `DataError`."""
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        if stored["kind"] != kind:
            raise ValueError(f"it is a {stored['kind']}")
        return build(stored)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"'{path}' must be a {kind} file (damaged or not one: {error})") from None
