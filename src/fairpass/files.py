"""Files that are either whole or absent: written under a temporary name, then renamed. Plain values for JSON."""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from fairpass.errors import DataError

PathLike = str | os.PathLike[str]
T = TypeVar("T")


@contextmanager
def atomic_path(target: PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `target`; rename it to `target` on success, remove it on any failure."""
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
    temporary.touch(exist_ok=False)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


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


def write_document(path: PathLike, document: Mapping[str, Any]) -> Path:
    """Write a JSON file for people and programs to read; its entry `kind` should say what it is."""
    return write_text(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def read_document(path: PathLike, kind: str, build: Callable[[dict[str, Any]], T]) -> T:
    """Return what `build` makes of a JSON file whose entry `kind` says that it is one, or raise `DataError`."""
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        if stored["kind"] != kind:
            raise ValueError(f"it is a {stored['kind']}")
        return build(stored)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"'{path}' must be a {kind} file (damaged or not one: {error})") from None
