r"""Attention over a node's neighbours and itself, as a sparse operator whose entries are learnt.

.. math::
    a_{ij} = \frac{\exp e_{ij}}{\sum_{j' \in N(i) \cup i} \exp e_{ij'}}, \qquad
    e_{ij} = \mathrm{LeakyReLU}\big(b_1^\top F_i + b_2^\top F_j\big).
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.utils import add_remaining_self_loops, coalesce

from fairpass.nn.adjacency import check_edge_index, csr_tensor, row_pointers
from fairpass.nn.precision import check_precision


class Structure:
    """Where the entries of a sparse matrix are, and where they are in its transpose; built once for a graph."""

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        check_edge_index(edge_index, num_nodes)
        looped, _ = add_remaining_self_loops(edge_index, num_nodes=num_nodes)
        self.num_nodes = num_nodes
        self.row, self.col = coalesce(looped.flip(0), num_nodes=num_nodes)
        self.pointers = row_pointers(self.row, num_nodes)
        # Entry `order[k]` of the matrix is entry `k` of the transpose.
        self.order = (self.col * num_nodes + self.row).argsort()
        self.transposed_pointers = row_pointers(self.col[self.order], num_nodes)
        self.transposed_col = self.row[self.order]

    def matrix(self, values: Tensor) -> Tensor:
        """Return the CSR matrix with these entries."""
        return csr_tensor(self.pointers, self.col, values, self.num_nodes)

    def transpose(self, values: Tensor) -> Tensor:
        """Return the CSR transpose of the matrix with these entries."""
        reordered = values.index_select(0, self.order)
        return csr_tensor(self.transposed_pointers, self.transposed_col, reordered, self.num_nodes)

    def row_max(self, values: Tensor) -> Tensor:
        """Return the largest entry of each row, without gradient."""
        out = values.new_full((self.num_nodes,), -torch.inf)
        return out.scatter_reduce_(0, self.row, values.detach(), "amax")


class _WeightedProduct(torch.autograd.Function):
    """`A x` with entries of `A` that carry gradient: `dA_ij = g_i . x_j` on the entries that exist."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, x: Tensor, structure: Structure) -> Tensor:
        ctx.structure = structure
        ctx.save_for_backward(values, x)
        return structure.matrix(values) @ x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        values, x = ctx.saved_tensors
        structure = ctx.structure
        by_value = (grad.index_select(0, structure.row) * x.index_select(0, structure.col)).sum(-1)
        return by_value, structure.transpose(values) @ grad, None


def weighted_product(values: Tensor, x: Tensor, structure: Structure) -> Tensor:
    """Return `A x` for the sparse matrix with the given entries, differentiable in both."""
    out: Tensor = _WeightedProduct.apply(values, x, structure)  # type: ignore[no-untyped-call] # torch's own
    return out


class Attention(nn.Module):
    r"""One head of graph attention over features of `channels` columns.

    Args:
        channels: number of columns `c` of `F`.
        negative_slope: of the LeakyReLU.

    Shapes:
        `F` `(N, c)` and a `Structure` -> `A^att F` `(N, c)`.
    """

    def __init__(self, channels: int, negative_slope: float = 0.2) -> None:
        super().__init__()
        self.channels, self.negative_slope = channels, negative_slope
        self.b_target = nn.Parameter(torch.empty(channels, 1))
        self.b_source = nn.Parameter(torch.empty(channels, 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw a new attention vector."""
        nn.init.xavier_uniform_(self.b_target)
        nn.init.xavier_uniform_(self.b_source)

    def weights(self, features: Tensor, structure: Structure) -> Tensor:
        """Return the attention `a_ij` of every entry of the structure."""
        check_precision("features", features)
        target, source = (features @ self.b_target)[:, 0], (features @ self.b_source)[:, 0]
        score = target.index_select(0, structure.row) + source.index_select(0, structure.col)
        e = nn.functional.leaky_relu(score, self.negative_slope)
        exp = torch.exp(e - structure.row_max(e).index_select(0, structure.row))
        total = weighted_product(exp, exp.new_ones((structure.num_nodes, 1)), structure)
        return exp / total[:, 0].index_select(0, structure.row)

    def forward(self, features: Tensor, structure: Structure) -> Tensor:
        """Return the attention-weighted mean over each node's neighbours and itself."""
        return weighted_product(self.weights(features, structure), features, structure)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels})"
