"""Random subgraphs: the operator of a graph without some of its edges."""

from collections.abc import Callable

import torch
from torch import Tensor

from fairpass.nn import SparseOperator
from fairpass.nn.convolution import Backbone
from fairpass.training import Task

# The probability of dropping each of some edges, given their two ends.
ShareOfEdge = Callable[[Tensor, Tensor], Tensor]


class EdgeDropout:
    """Draws a backbone's operator of the graph without some of its edges, each dropped in both directions or in none.

    Dropped entries of one pattern are set to zero; only attention, which has no zeros, needs a new pattern each time.
    Self-loops stay.

    Args:
        share: probability of dropping an edge, the same for all or a function of an edge's two ends.
    """

    def __init__(self, task: Task, backbone: Backbone, share: float | ShareOfEdge) -> None:
        self.whole, self.backbone = task.operator(backbone), backbone
        self.structure = structure = task.operator("gat")
        self.loop = structure.row == structure.col
        # The pattern has a loop at every node; only nodes with a loop in the graph are their own neighbours.
        source, target = task.edge_index
        self.neighbour = ~self.loop | torch.isin(structure.row, source[source == target])
        low, high = torch.minimum(structure.row, structure.col), torch.maximum(structure.row, structure.col)
        # Both directions of an edge have the same number, so they are dropped together.
        pairs, self.pair = torch.unique(low * structure.num_nodes + high, return_inverse=True)
        self.num_pairs, self.dtype = len(pairs), task.x.dtype
        ends = pairs // structure.num_nodes, pairs % structure.num_nodes
        self.share: float | Tensor = share(*ends) if callable(share) else share

    def draw(self) -> SparseOperator:
        if not isinstance(self.share, Tensor) and self.share == 0:
            return self.whole
        structure = self.structure
        kept = torch.rand(self.num_pairs, device=self.pair.device) >= self.share
        kept = kept[self.pair] | self.loop
        if self.backbone == "gat":
            edges = torch.stack([structure.col, structure.row])[:, kept]
            return SparseOperator.from_edge_index(edges, structure.num_nodes, "gat", dtype=self.dtype)
        values = (kept & self.neighbour if self.backbone == "sage" else kept).to(self.dtype)
        if self.backbone != "gin":
            degrees = (structure.with_values(values) @ values.new_ones((structure.num_nodes, 1)))[:, 0]
        if self.backbone == "sage":
            values = values / degrees[structure.row].clamp(min=1)
        elif self.backbone == "gcn":
            scale = degrees.rsqrt()
            values = values * scale[structure.row] * scale[structure.col]
        matrix, symmetric = structure.with_values(values), structure.is_symmetric and self.backbone != "sage"
        return SparseOperator(matrix, matrix if symmetric else structure.transposed_with_values(values))
