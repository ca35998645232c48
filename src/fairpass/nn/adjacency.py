"""Fixed sparse operators on the nodes, and their product with node features.

PyTorch's own backward of a CSR product transposes the matrix at every call, which on the Bail graph takes forty times
as long as the product. Here a symmetric operator is its own transpose, and any other keeps its transpose.
"""

import warnings
from typing import Any, Literal, get_args

import torch
from scipy.sparse import csr_array
from torch import Tensor

from fairpass.nn.assembly import Loops, assemble, normalise, transpose

Kind = Literal["gcn", "gin", "gin_mean", "mean"]

_LOOPS: dict[Kind, Loops] = {"gcn": "remaining", "gin": "added", "gin_mean": "added", "mean": "none"}


class Adjacency:
    r"""A sparse `N x N` operator that multiplies node features of shape `(..., N, c)`.

    Args:
        matrix: sparse CSR tensor.
        transpose: its transpose, also CSR; the very same tensor if it is symmetric.
    """

    def __init__(self, matrix: Tensor, transpose: Tensor) -> None:
        if matrix.layout != torch.sparse_csr or matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"'matrix' must be a square sparse CSR tensor (got {matrix.layout}, shape {tuple(matrix.shape)})"
            )
        self.matrix, self.transpose = matrix, transpose

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        kind: Kind = "gcn",
        *,
        edge_weight: Tensor | None = None,
        epsilon: float = 0.0,
        dtype: torch.dtype = torch.float32,
    ) -> "Adjacency":
        r"""Return the operator of a graph.

        Args:
            edge_index: `(2, E)`, in PyG's convention from source (row 0) to target (row 1).
            num_nodes: number of nodes `N`.
            kind: `"gcn"` is :math:`\hat D^{-1/2}(A + I)\hat D^{-1/2}`; `"gin"` is :math:`A + (1+\epsilon)I`, and
                `"gin_mean"` divides each of its rows by the row's sum; `"mean"` is the mean over the neighbours,
                :math:`D^{-1}A`.
            edge_weight: `(E,)`, all ones by default.
            epsilon: GIN's weight of a node itself.
            dtype: type of the operator's entries.
        """
        check_edge_index(edge_index, num_nodes)
        if kind not in get_args(Kind):
            raise ValueError(f"'kind' must be one of {get_args(Kind)} (got {kind!r})")
        assembled = assemble(
            edge_index, num_nodes, edge_weight, dtype, _LOOPS[kind], 1.0 if kind == "gcn" else 1.0 + epsilon
        )
        if kind != "gin":
            normalise(assembled, symmetrically=kind == "gcn")
        transposed = transpose(assembled)
        matrix = _csr(assembled, edge_index.device)
        return cls(matrix, matrix if transposed is assembled else _csr(transposed, edge_index.device))

    @property
    def is_symmetric(self) -> bool:
        """Return whether the operator is its own transpose."""
        return self.matrix is self.transpose

    @property
    def num_nodes(self) -> int:
        """Return `N`."""
        return int(self.matrix.shape[0])

    def to(self, device: torch.device | str) -> "Adjacency":
        """Return the operator on another device."""
        matrix = self.matrix.to(device)
        return Adjacency(matrix, matrix if self.is_symmetric else self.transpose.to(device))

    def __matmul__(self, x: Tensor) -> Tensor:
        """Return the product with `x` of shape `(..., N, c)`; leading axes are multiplied all at once."""
        if x.dim() < 2 or x.shape[-2] != self.num_nodes:
            raise ValueError(f"'x' must have {self.num_nodes} rows (got shape {tuple(x.shape)})")
        if x.dtype != self.matrix.dtype:
            raise ValueError(f"'x' must be {self.matrix.dtype} like the operator (got {x.dtype})")
        if x.dim() == 2:
            return _product(x, self.matrix, self.transpose)
        flat = x.flatten(0, -3).permute(1, 0, 2).flatten(1)
        out = _product(flat, self.matrix, self.transpose)
        return torch.unflatten(out, 1, (-1, x.shape[-1])).permute(1, 0, 2).reshape(x.shape)

    def __repr__(self) -> str:
        kind = "symmetric" if self.is_symmetric else "directed"
        return f"{type(self).__name__}({self.num_nodes} nodes, {self.matrix.values().numel()} entries, {kind})"


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


def _csr(matrix: csr_array, device: torch.device) -> Tensor:
    pointers, columns, values = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    return csr_tensor(pointers, columns, values, matrix.shape[0]).to(device)


def csr_tensor(pointers: Tensor, columns: Tensor, values: Tensor, num_nodes: int) -> Tensor:
    """Return a square sparse matrix from the parts of its CSR form."""
    with warnings.catch_warnings():
        # PyTorch says once a process that CSR is in beta; what we use of it is tested here.
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        return torch.sparse_csr_tensor(pointers, columns, values, (num_nodes, num_nodes))


def row_pointers(rows: Tensor, num_nodes: int) -> Tensor:
    """Return where each row starts among sorted row indices, `(N + 1,)`."""
    counts = torch.bincount(rows, minlength=num_nodes)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


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
