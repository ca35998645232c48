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

from fairpass.nn.validation import check_choice

OperatorKind = Literal["gcn", "gin", "gin_mean", "sage", "gat"]

# Entries that are compared at once.
_CHUNK = 1 << 22


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
            edge_weight: `(E,)`, all ones by default.
            epsilon: GIN's weight of a node itself.
        """
        check_edge_index(edge_index, num_nodes)
        check_choice("kind", kind, OperatorKind)
        assembled = _assemble(edge_index, num_nodes, kind, edge_weight, epsilon, dtype)
        if kind not in ("gin", "gat"):
            _normalise(assembled, symmetrically=kind == "gcn")
        transposed = _transpose(assembled)
        matrix = _to_tensor(assembled, edge_index.device)
        return cls(matrix, matrix if transposed is assembled else _to_tensor(transposed, edge_index.device), kind)

    def to(self, device: torch.device | str) -> "SparseOperator":
        """Return the operator on another device."""
        matrix = self.matrix.to(device)
        return SparseOperator(matrix, matrix if self.is_symmetric else self.transpose.to(device), self.kind)

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
        """Return the row of each entry; entries are sorted by row, then by column."""
        counts = self.matrix.crow_indices().diff().long()
        return torch.arange(self.num_nodes, device=counts.device).repeat_interleave(counts)

    @cached_property
    def col(self) -> Tensor:
        """Return the column of each entry."""
        return self.matrix.col_indices().long()

    @cached_property
    def order(self) -> Tensor:
        """Return which entry of the matrix is entry `k` of the transpose."""
        return (self.col * self.num_nodes + self.row).argsort()

    def with_values(self, values: Tensor) -> Tensor:
        """Return the CSR matrix with other entries in the same places."""
        return _csr_tensor(self.matrix.crow_indices(), self.matrix.col_indices(), values)

    def transposed_with_values(self, values: Tensor) -> Tensor:
        """Return the transpose of `with_values(values)`."""
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
    if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point():
        raise ValueError(
            f"'edge_index' must be an integer tensor of shape (2, E) "
            f"(got shape {tuple(edge_index.shape)}, {edge_index.dtype})"
        )
    if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= num_nodes):
        raise ValueError(
            f"'edge_index' must name nodes from 0 to {num_nodes - 1} "
            f"(got {int(edge_index.min())} to {int(edge_index.max())})"
        )


def _assemble(
    edge_index: Tensor,
    num_nodes: int,
    kind: OperatorKind,
    edge_weight: Tensor | None,
    epsilon: float,
    dtype: torch.dtype,
) -> csr_array:
    """Return the matrix whose rows are the targets of the edges; columns are sorted, repeated edges added up.

    SciPy counts the entries of each row and puts them in their places. Sorting all edges, as PyG's `coalesce` does,
    takes several times as long and as much memory.
    """
    edges = edge_index.shape[1]
    entries = edges if kind == "sage" else edges + num_nodes
    # The sparse library takes 32-bit indices; PyTorch would copy longer ones for every product.
    index_type = np.int32 if max(entries, num_nodes) <= np.iinfo(np.int32).max else np.int64
    ends = np.empty((2, entries), index_type)
    ends[:, :edges] = edge_index.cpu().numpy()
    ends[:, edges:] = np.arange(entries - edges)
    weights = np.ones(entries, torch.empty(0, dtype=dtype).numpy().dtype)
    if edge_weight is not None:
        weights[:edges] = edge_weight.detach().cpu().numpy()
    if kind == "gcn":
        # As in PyG: a self-loop of the graph replaces the added one; of several the last counts.
        own = np.flatnonzero(ends[0, :edges] == ends[1, :edges])
        weights[edges + ends[0, own]] = weights[own]
        weights[own] = 0
    else:
        weights[edges:] = 1.0 + epsilon
    matrix = coo_array((weights, (ends[1], ends[0])), shape=(num_nodes, num_nodes)).tocsr()
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


def _transpose(matrix: csr_array) -> csr_array:
    """Return the transpose; the same object if the matrix is symmetric up to the last digits of its entries."""
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


def _to_tensor(matrix: csr_array, device: torch.device) -> Tensor:
    return _csr_tensor(*map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data))).to(device)


def _csr_tensor(pointers: Tensor, columns: Tensor, values: Tensor) -> Tensor:
    with warnings.catch_warnings():
        # PyTorch warns once per process that CSR is in beta; what we use of it is tested here.
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        return torch.sparse_csr_tensor(pointers, columns, values, (len(pointers) - 1,) * 2)


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
