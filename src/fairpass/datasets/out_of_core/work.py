"""Steps that are done once: each leaves its outcome in a file, and is not done again after an interruption."""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fairpass.files import atomic_path, write_text

ROWS = 1_000_000  # rows of nodes that are handled at once

Progress = Callable[[float, str], None]  # takes the finished share, and what is done now


class Work:
    """The directory of a partition that is under way."""

    def __init__(self, folder: Path, progress: Progress | None = None) -> None:
        self.folder, self._progress = folder, progress
        self.total = 1  # steps; set as soon as it is known
        self._done = 0

    def step(self, name: str, what: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the outcome of a step, a JSON document; `make` is called unless an earlier session has done it."""
        if self._progress is not None:
            self._progress(min(self._done / self.total, 1.0), what)
        path = self.folder / f"{name}.json"
        if path.exists():
            outcome: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        else:
            outcome = make()
            write_text(path, json.dumps(outcome))
        self._done += 1
        return outcome

    def path(self, name: str) -> Path:
        return self.folder / name


@contextmanager
def new_npy(path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Yield a function that adds a block of rows to a new array on disk.

    The array is not mapped into memory: if the disk is full, a process that writes to a mapped file is killed.
    """
    kind = np.dtype(dtype)
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        yield lambda block: np.ascontiguousarray(block, dtype=kind).tofile(file)
        if file.tell() - start != math.prod(shape) * kind.itemsize:
            raise AssertionError(f"'{path}' must have the shape {shape}")


def write_npy(path: Path, shape: tuple[int, ...], dtype: DTypeLike, blocks: Iterable[NDArray[Any]]) -> None:
    with new_npy(path, shape, dtype) as add:
        for block in blocks:
            add(block)


def read_rows(path: Path, low: int, high: int) -> NDArray[Any]:
    """Return some rows of an array on disk, in memory."""
    return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[low:high])


def spans(low: int, high: int, size: int = ROWS) -> Iterator[tuple[int, int]]:
    """Yield the spans of at most `size` rows between two rows."""
    yield from ((start, min(start + size, high)) for start in range(low, high, size))
