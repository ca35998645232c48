"""A graph's edges as a sparse matrix, in memory of a few times the edges and no more.

SciPy counts the entries of each row and puts them in their places. To sort all edges, as PyG's `coalesce` does, takes
several times as long and as much memory: on a graph with 200 million entries that is what decides if it fits.
"""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from torch import Tensor

# What becomes of edges from a node to itself: they stay as they are; every node gets one more; every node that has
# none gets one, and of several the last counts.
Loops = Literal["none", "added", "remaining"]

# Entries that are worked on at once.
_CHUNK = 1 << 22


def assemble(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None, dtype: torch.dtype, loops: Loops, loop_weight: float
) -> csr_array:
    """Return the matrix whose rows are the targets of the edges and whose columns are their sources.

    Each row's columns are sorted, and the weights of repeated edges added up.
    """
    edges = edge_index.shape[1]
    entries = edges + (num_nodes if loops != "none" else 0)
    # What the sparse library wants; of longer indices PyTorch makes a short copy for every product.
    short = np.int32 if max(entries, num_nodes) <= np.iinfo(np.int32).max else np.int64
    ends = np.empty((2, entries), short)
    ends[:, :edges] = edge_index.cpu().numpy()
    weights = np.ones(entries, _numpy_type(dtype))
    if edge_weight is not None:
        weights[:edges] = edge_weight.detach().cpu().numpy()
    if loops != "none":
        ends[:, edges:] = np.arange(num_nodes)
        weights[edges:] = loop_weight
    if loops == "remaining":
        own = np.flatnonzero(ends[0, :edges] == ends[1, :edges])
        weights[edges + ends[0, own]] = weights[own]
        weights[own] = 0
    return coo_array((weights, (ends[1], ends[0])), shape=(num_nodes, num_nodes)).tocsr()


def _numpy_type(dtype: torch.dtype) -> Any:
    return torch.empty(0, dtype=dtype).numpy().dtype


def normalise(matrix: csr_array, *, symmetrically: bool) -> None:
    r"""Change `A` to :math:`D^{-1/2} A D^{-1/2}`, or to :math:`D^{-1} A`, with the sums of its rows as `D`."""
    totals = matrix @ np.ones(matrix.shape[0], matrix.dtype)
    if symmetrically:
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = totals**-0.5
        scale[np.isinf(scale)] = 0
    else:
        scale = 1 / np.maximum(totals, 1e-12).astype(matrix.dtype)
    for rows, entries in _blocks(matrix.indptr):
        factor = np.repeat(scale[rows], np.diff(matrix.indptr[rows.start : rows.stop + 1]))
        matrix.data[entries] *= factor * scale[matrix.indices[entries]] if symmetrically else factor


def _blocks(pointers: NDArray[Any]) -> Iterator[tuple[slice, slice]]:
    """Yield some rows after others, and which entries are theirs."""
    start, count = 0, len(pointers) - 1
    while start < count:
        stop = int(np.searchsorted(pointers, pointers[start] + _CHUNK, side="right")) - 1
        stop = min(max(stop, start + 1), count)
        yield slice(start, stop), slice(int(pointers[start]), int(pointers[stop]))
        start = stop


def transpose(matrix: csr_array) -> csr_array:
    """Return the transpose; the very same matrix if it is symmetric up to the last digits of its entries."""
    transposed = matrix.T.tocsr()
    # An edge's two directions are normalised in different orders: weighted ones may differ in the last digit.
    closeness = 4 * np.finfo(matrix.dtype).eps
    same = (
        np.array_equal(matrix.indptr, transposed.indptr)
        and np.array_equal(matrix.indices, transposed.indices)
        and all(
            np.allclose(matrix.data[i : i + _CHUNK], transposed.data[i : i + _CHUNK], closeness, 0)
            for i in range(0, matrix.nnz, _CHUNK)
        )
    )
    return matrix if same else transposed
