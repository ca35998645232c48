"""Sparse operators on the nodes of a graph, and their products with node features.

PyTorch's backward of a CSR product transposes the matrix at every call, which on the Bail graph takes forty times as
long as the product. Here a symmetric operator is its own transpose, and any other keeps its transpose.
"""

import warnings
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from scipy.sparse import coo_array, csr_array
from torch import Tensor

from fairpass.kernels.backend import described
from fairpass.kernels.mmd import INTEGERS
from fairpass.nn.validation import check_choice
from fairpass.parameters import LARGEST, MOST_NODES, SMALLEST, check_count

OperatorKind = Literal["gcn", "gin", "gin_mean", "sage", "gat"]

_CHUNK = 1 << 22  # entries that are compared at once


class SparseOperator:
    """A sparse `N x N` matrix: `operator @ x` uses its entries, `weighted_product` learnt ones in the same places.

    Args:
        matrix: sparse CSR tensor.
        transpose: its transpose, also CSR; the same tensor object if the matrix is symmetric.
        kind: what :meth:`from_edge_index` built; None for any other matrix.
    """

    def __init__(self, matrix: Tensor, transpose: Tensor, kind: OperatorKind | None = None) -> None:
        if matrix.layout != torch.sparse_csr or matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"'matrix' must be a square sparse CSR tensor (got {matrix.layout}, shape {tuple(matrix.shape)})"
            )
        self.matrix, self.transpose, self.kind = matrix, transpose, kind
        self.num_nodes, self.is_symmetric = len(matrix), matrix is transpose

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        kind: OperatorKind = "gcn",
        *,
        edge_weight: Tensor | None = None,
        epsilon: float = 0.0,
        dtype: torch.dtype = torch.float32,
    ) -> "SparseOperator":
        r"""Return the operator of a graph whose `edge_index` `(2, E)` goes from sources to targets.

        Args:
            kind: `"gcn"` is :math:`\hat D^{-1/2}(A + I)\hat D^{-1/2}`; `"gin"` is :math:`A + (1+\epsilon)I`, and
                `"gin_mean"` divides each of its rows by the row's sum; `"sage"` is the mean over the neighbours,
                :math:`D^{-1}A`; `"gat"` has an entry 1 for each neighbour and for the node itself, the places of
                attention weights.
            edge_weight: `(E,)`, the entries of :math:`A`, all ones by default: sums and means over neighbours become
                weighted ones. A node itself counts like an edge of weight 1. `"gat"` has no use for them.
            epsilon: GIN's weight of a node itself.
        """
        check_count("num_nodes", num_nodes, 0, MOST_NODES)
        check_edge_index(edge_index, num_nodes)
        check_choice("kind", kind, OperatorKind)
        if edge_weight is not None:
            size = edge_weight.abs()
            usable = (size == 0) | ((size >= SMALLEST) & (size <= LARGEST))  # sums of others may overflow or vanish
            if bad := int((~usable).sum()):
                limits = f"0, or between {SMALLEST:g} and {LARGEST:g} in absolute value"
                raise ValueError(f"'edge_weight' must be {limits} (got {bad} others)")
        matrix = _assemble(edge_index, num_nodes, kind, edge_weight, epsilon, dtype)
        if kind not in ("gin", "gat"):
            _normalise(matrix, symmetrically=kind == "gcn")
        transpose = matrix.T.tocsr()
        tensors = [
            _csr_tensor(*map(torch.from_numpy, (each.indptr, each.indices, each.data))).to(edge_index.device)
            for each in ([matrix] if _are_close(matrix, transpose) else [matrix, transpose])
        ]
        return cls(tensors[0], tensors[-1], kind)

    def __matmul__(self, x: Tensor) -> Tensor:
        """Return the product with `x` `(..., N, c)`; leading axes are multiplied all at once."""
        if self.kind == "gat":
            raise ValueError("'operator' must have entries of its own (got kind 'gat', whose entries are learnt)")
        if x.dim() < 2 or x.shape[-2] != self.num_nodes:
            raise ValueError(f"'x' must have {self.num_nodes} rows (got shape {tuple(x.shape)})")
        if x.dtype != self.matrix.dtype:
            raise ValueError(f"'x' must be {self.matrix.dtype} like the operator (got {x.dtype})")
        if x.dim() == 2:
            return _product(x, self.matrix, self.transpose)
        flat = x.flatten(0, -3).permute(1, 0, 2).flatten(1)
        out = _product(flat, self.matrix, self.transpose)
        return torch.unflatten(out, 1, (-1, x.shape[-1])).permute(1, 0, 2).reshape(x.shape)

    @cached_property
    def row(self) -> Tensor:
        """The row of each entry; entries are sorted by row, then by column."""
        counts = self.matrix.crow_indices().diff().long()
        return torch.arange(self.num_nodes, device=counts.device).repeat_interleave(counts)

    @cached_property
    def col(self) -> Tensor:
        return self.matrix.col_indices().long()

    @cached_property
    def order(self) -> Tensor:
        """Which entry of the matrix is entry `k` of the transpose."""
        return (self.col * self.num_nodes + self.row).argsort()

    def with_values(self, values: Tensor) -> Tensor:
        """Return the CSR matrix with other entries in the same places."""
        return _csr_tensor(self.matrix.crow_indices(), self.matrix.col_indices(), values)

    def transposed_with_values(self, values: Tensor) -> Tensor:
        reordered = values.index_select(0, self.order)
        return _csr_tensor(self.transpose.crow_indices(), self.transpose.col_indices(), reordered)

    def weighted_product(self, values: Tensor, x: Tensor) -> Tensor:
        """Return `with_values(values) @ x` for `x` `(N, c)`, differentiable in both."""
        out: Tensor = _WeightedProduct.apply(values, x, self)  # type: ignore[no-untyped-call] # torch's own
        return out

    def row_max(self, values: Tensor) -> Tensor:
        """Return the largest of the values in each row, without gradient."""
        out = values.new_full((self.num_nodes,), -torch.inf)
        return out.scatter_reduce_(0, self.row, values.detach(), "amax")

    def __repr__(self) -> str:
        symmetry = "symmetric" if self.is_symmetric else "directed"
        return f"{type(self).__name__}({self.num_nodes} nodes, {self.matrix.values().numel()} entries, {symmetry})"


def check_edge_index(edge_index: Tensor, num_nodes: int) -> None:
    """Raise `ValueError` unless `edge_index` is `(2, E)`, integer, and names nodes that exist."""
    is_pairs = isinstance(edge_index, Tensor) and edge_index.dim() == 2 and edge_index.shape[0] == 2
    if not is_pairs or edge_index.dtype not in INTEGERS or edge_index.layout != torch.strided:
        raise ValueError(f"'edge_index' must be an integer tensor of shape (2, E) (got {described(edge_index)})")
    low, high = map(int, edge_index.aminmax()) if edge_index.numel() else (0, -1)
    if low < 0 or high >= num_nodes:
        raise ValueError(f"'edge_index' must name nodes from 0 to {num_nodes - 1} (got {low} to {high})")


def _assemble(
    edge_index: Tensor, size: int, kind: OperatorKind, edge_weight: Tensor | None, epsilon: float, dtype: torch.dtype
) -> csr_array:
    # SciPy counts the entries of each row and puts them in their places. Sorting all edges, as PyG's `coalesce` does,
    # takes several times as long and as much memory.
    edges = edge_index.shape[1]
    entries = edges if kind == "sage" else edges + size
    # The sparse library takes 32-bit indices; PyTorch would copy longer ones for every product.
    index_type = np.int32 if max(entries, size) <= np.iinfo(np.int32).max else np.int64
    ends = np.empty((2, entries), index_type)
    ends[:, :edges] = edge_index.cpu().numpy()
    ends[:, edges:] = np.arange(entries - edges)
    weights = np.ones(entries, torch.empty(0, dtype=dtype, device="cpu").numpy().dtype)
    if edge_weight is not None:
        weights[:edges] = edge_weight.detach().cpu().numpy()
    if kind == "gcn":
        # As in PyG: a self-loop of the graph replaces the added one; of several the last counts.
        own = np.flatnonzero(ends[0, :edges] == ends[1, :edges])
        weights[edges + ends[0, own]] = weights[own]
        weights[own] = 0
    else:
        weights[edges:] = 1.0 + epsilon
    matrix = coo_array((weights, (ends[1], ends[0])), shape=(size, size)).tocsr()
    if kind == "gat":
        matrix.data[:] = 1
    return matrix


def _normalise(matrix: csr_array, *, symmetrically: bool) -> None:
    r"""Change `A` in place to :math:`D^{-1/2} A D^{-1/2}`, or to :math:`D^{-1} A`, with the sums of its rows as `D`."""
    totals = matrix @ np.ones(matrix.shape[0], matrix.dtype)
    if symmetrically:
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = totals**-0.5
        scale[np.isinf(scale)] = 0
    else:
        scale = 1 / np.maximum(totals, 1e-12).astype(matrix.dtype)
    factor = np.repeat(scale, np.diff(matrix.indptr))
    if symmetrically:
        factor *= scale[matrix.indices]
    matrix.data *= factor


def _are_close(one: csr_array, other: csr_array) -> bool:
    # An edge's two directions are normalised in different orders: weighted ones may differ in the last digit.
    closeness = 4 * np.finfo(one.dtype).eps
    if not (np.array_equal(one.indptr, other.indptr) and np.array_equal(one.indices, other.indices)):
        return False
    parts = (slice(start, start + _CHUNK) for start in range(0, one.nnz, _CHUNK))
    return all(np.allclose(one.data[part], other.data[part], closeness, 0) for part in parts)


def _csr_tensor(pointers: Tensor, columns: Tensor, values: Tensor) -> Tensor:
    with warnings.catch_warnings():
        # PyTorch warns once per process that CSR is in beta; what we use of it is tested here.
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        return torch.sparse_csr_tensor(pointers, columns, values, (len(pointers) - 1,) * 2, device=values.device)


def _product(x: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
    out: Tensor = _Product.apply(x, matrix, transpose)  # type: ignore[no-untyped-call] # torch's own
    return out


class _Product(torch.autograd.Function):
    """`A x`, whose gradient is `A' g`; differentiable any number of times."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.matrix, ctx.transpose = matrix, transpose
        # With a vector the sparse library takes half to two thirds of the time it takes with a matrix of one column.
        return torch.mv(matrix, x[:, 0])[:, None] if x.shape[1] == 1 else matrix @ x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _product(grad, ctx.transpose, ctx.matrix), None, None


class _WeightedProduct(torch.autograd.Function):
    """`A x` with entries of `A` that carry gradient: `dA_ij = g_i . x_j` on the entries that exist."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, x: Tensor, operator: SparseOperator) -> Tensor:
        ctx.operator = operator
        ctx.save_for_backward(values, x)
        return operator.with_values(values) @ x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        values, x = ctx.saved_tensors
        operator = ctx.operator
        by_value = (grad.index_select(0, operator.row) * x.index_select(0, operator.col)).sum(-1)
        return by_value, operator.transposed_with_values(values) @ grad, None
