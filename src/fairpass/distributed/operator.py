"""The rows of a graph's operator that belong to one process."""

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from fairpass.datasets.parts import GraphPart
from fairpass.distributed.halo import Halo
from fairpass.errors import DataError
from fairpass.nn.operators import OperatorKind, SparseOperator

_AT_ONCE = 1 << 22  # entries that are checked at a time
_MIXED = 0x9E3779B97F4A7C15  # odd, so that multiples of it are spread over 64 bits


class PartOperator(SparseOperator):
    """The own rows of an `N x N` matrix, whose columns are the own nodes and the halo.

    The graph has every edge in both directions. So the transpose has its entries in the same places, and the gradient
    of a product is another product of the same kind, with an exchange of its own.
    """

    def __init__(self, part: GraphPart, halo: Halo, kind: OperatorKind, dtype: torch.dtype) -> None:
        if kind == "gat":
            raise DataError("'backbone' must not be 'gat' for a graph in parts: attention is not exchanged")
        self.halo, self.kind, self.num_nodes = halo, kind, part.num_nodes
        self.is_symmetric = kind in ("gcn", "gin")
        matrix = _entries(part, kind, torch.empty(0, dtype=dtype).numpy().dtype)
        totals = torch.from_numpy(matrix @ np.ones(matrix.shape[1], matrix.dtype))
        if kind == "gcn":
            scale = _all(halo, totals.pow(-0.5))
            self.matrix = self.transpose = _scaled(matrix, scale[: part.num_nodes], scale)
        elif kind == "gin":
            self.matrix = self.transpose = _scaled(matrix, None, None)
        else:
            scale = _all(halo, 1 / totals.clamp(min=1e-12))
            self.matrix, self.transpose = _scaled(matrix, scale[: part.num_nodes], None), _scaled(matrix, None, scale)

    def __matmul__(self, x: Tensor) -> Tensor:
        if x.dim() != 2 or len(x) != self.num_nodes:
            raise ValueError(f"'x' must have {self.num_nodes} rows and two axes (got shape {tuple(x.shape)})")
        return _product(x, self.matrix, self.transpose, self.halo)


def check_edges(part: GraphPart, halo: Halo, name: str) -> None:
    """Raise `DataError` on every process if the graph has self-loops, or edges with one direction only."""
    shared, own = halo.shared, part.num_nodes
    # r'(A - A')s = 0 for two vectors of integers, modulo 2^64: a graph with one-way edges is most unlikely to pass.
    numbers = torch.arange(shared.first_node, shared.first_node + own)
    r, s = (_all(halo, _mix(numbers + shift)).numpy() for shift in (1, 1 << 40))
    loops, difference = 0, np.zeros((), np.int64)
    # Some rows at a time: integers for all entries would take more memory than anything else.
    cuts = np.searchsorted(part.indptr, np.arange(0, len(part.indices), _AT_ONCE), side="right") - 1
    for first, last in pairwise([*np.unique(cuts).tolist(), own]):
        columns = part.indices[part.indptr[first] : part.indptr[last]]
        targets = np.repeat(np.arange(first, last), np.diff(part.indptr[first : last + 1]))
        loops += int((targets == columns).sum())
        difference += (r[targets] * s[columns] - s[targets] * r[columns]).sum(dtype=np.int64)
    if loops := shared.count(loops):
        raise DataError(f"'{name}' must have no self-loops (got {loops:,}); make the parts again")
    if int(shared.reduce(torch.tensor(int(difference)))):
        raise DataError(f"'{name}' must have every edge in both directions (some have one only); make the parts again")


def _mix(numbers: Tensor) -> Tensor:
    z = numbers * (_MIXED - (1 << 64))
    return (z ^ ((z >> 29) & ((1 << 35) - 1))) * (_MIXED - (1 << 64))


def _all(halo: Halo, own: Tensor) -> Tensor:
    """Return a number for each own node, followed by the numbers of the halo."""
    return halo.extend(own[:, None])[:, 0]


def _entries(part: GraphPart, kind: OperatorKind, dtype: np.dtype[Any]) -> csr_array:
    """Return `A` as `n x (n + halo)`, with ones for the nodes themselves unless the mean leaves them out."""
    own, columns = part.num_nodes, part.num_nodes + len(part.halo)
    weights: NDArray[Any] = np.ones(len(part.indices), dtype)
    if part.edge_weight is not None:
        weights = np.asarray(part.edge_weight, dtype)
    matrix = csr_array((weights, np.asarray(part.indices), np.asarray(part.indptr)), shape=(own, columns))
    if kind == "sage":
        return matrix
    itself = csr_array((np.ones(own, dtype), np.arange(own), np.arange(own + 1)), shape=(own, columns))
    return csr_array(matrix + itself)


def _scaled(matrix: csr_array, by_row: Tensor | None, by_column: Tensor | None) -> Tensor:
    values = matrix.data.copy()
    if by_row is not None and by_column is not None:
        values *= np.repeat(by_row.numpy(), np.diff(matrix.indptr)) * by_column.numpy()[matrix.indices]
    elif by_row is not None:
        values *= np.repeat(by_row.numpy(), np.diff(matrix.indptr))
    elif by_column is not None:
        values *= by_column.numpy()[matrix.indices]
    # The sparse library takes 32-bit indices; PyTorch would copy longer ones for every product.
    small = np.int32 if max(matrix.nnz, *matrix.shape) <= np.iinfo(np.int32).max else np.int64
    pointers, columns = (torch.from_numpy(index.astype(small)) for index in (matrix.indptr, matrix.indices))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        return torch.sparse_csr_tensor(pointers, columns, torch.from_numpy(values), matrix.shape)


def _product(x: Tensor, matrix: Tensor, transpose: Tensor, halo: Halo) -> Tensor:
    out: Tensor = _Product.apply(x, matrix, transpose, halo)  # type: ignore[no-untyped-call] # torch's own
    return out


class _Product(torch.autograd.Function):
    """`A x` for the own rows; its gradient `A' g` is a product of the same kind."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, transpose: Tensor, halo: Halo) -> Tensor:
        ctx.matrix, ctx.transpose, ctx.halo = matrix, transpose, halo
        columns = halo.extend(x)
        # With a vector the sparse library takes half to two thirds of the time it takes with a matrix of one column.
        return torch.mv(matrix, columns[:, 0])[:, None] if x.shape[1] == 1 else matrix @ columns

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return _product(grad, ctx.transpose, ctx.matrix, ctx.halo), None, None, None
