"""Arrays on disk, written block by block and read in pieces."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fairpass.files import atomic_path


@contextmanager
def new_npy(path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Yield a function that adds a block of rows to a new `.npy` file.

    The file is not mapped into memory: a process that writes to a mapped file is killed if the disk is full.
    """
    kind = np.dtype(dtype)
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()

        def add(block: NDArray[Any]) -> None:
            file.write(np.ascontiguousarray(block, dtype=kind).view(np.uint8).data)

        yield add
        if file.tell() - start != math.prod(shape) * kind.itemsize:
            raise AssertionError(f"the blocks of '{path}' must have the shape {shape} together")


def write_npy(path: Path, shape: tuple[int, ...], dtype: DTypeLike, blocks: Iterable[NDArray[Any]]) -> None:
    with new_npy(path, shape, dtype) as add:
        for block in blocks:
            add(block)


def read_rows(path: Path, low: int, high: int) -> NDArray[Any]:
    """Return some rows of an array on disk, in memory."""
    return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[low:high])
