"""Subgraphs: the operator of a graph with only some of its edges, chosen by a method or dropped at random."""

from collections.abc import Callable

import torch
from torch import Tensor

from fairpass.nn import SparseOperator
from fairpass.nn.convolution import Backbone
from fairpass.training import Task

# The probability of dropping each of some edges, given their two ends.
ShareOfEdge = Callable[[Tensor, Tensor], Tensor]


class Subgraphs:
    """Builds a backbone's operator of a graph with only some of its edges.

    The others are set to zero in one pattern; only attention, which has no zeros, needs a new pattern each time.
    """

    def __init__(self, task: Task, backbone: Backbone) -> None:
        self.pattern, self.backbone, self.dtype = task.operator("gat"), backbone, task.x.dtype
        self.loop = self.pattern.row == self.pattern.col
        # The pattern has a loop at every node; only nodes with a loop in the graph are their own neighbours.
        source, target = task.edge_index
        self.is_own_neighbour = self.loop & torch.isin(self.pattern.row, source[source == target])

    def operator(self, kept: Tensor, *, both_ways: bool) -> SparseOperator:
        """Return the operator of a subgraph; loops stay as they are in the whole graph.

        Args:
            kept: which entries of the pattern are edges of the subgraph.
            both_ways: whether an edge is kept in both directions or in none.
        """
        pattern, backbone = self.pattern, self.backbone
        if backbone == "gat":
            edges = torch.stack([pattern.col, pattern.row])[:, kept | self.loop]
            return SparseOperator.from_edge_index(edges, pattern.num_nodes, "gat", dtype=self.dtype)
        entries = kept & ~self.loop | self.is_own_neighbour if backbone == "sage" else kept | self.loop
        values = entries.to(self.dtype)
        if backbone == "gin":
            values = values + self.is_own_neighbour.to(self.dtype)  # such a node counts itself twice
        else:
            degrees = (pattern.with_values(values) @ values.new_ones((pattern.num_nodes, 1)))[:, 0]
        if backbone == "sage":
            values = values / degrees[pattern.row].clamp(min=1)
        elif backbone == "gcn":
            scale = degrees.rsqrt()
            values = values * scale[pattern.row] * scale[pattern.col]
        matrix = pattern.with_values(values)
        is_symmetric = both_ways and pattern.is_symmetric and backbone != "sage"
        return SparseOperator(matrix, matrix if is_symmetric else pattern.transposed_with_values(values))


class EdgeDropout:
    """Draws a backbone's operator of the graph without some of its edges, each dropped in both directions or in none.

    Args:
        share: probability of dropping an edge, the same for all or a function of an edge's two ends.
    """

    def __init__(self, task: Task, backbone: Backbone, share: float | ShareOfEdge) -> None:
        self.whole, self.subgraphs = task.operator(backbone), Subgraphs(task, backbone)
        pattern = self.subgraphs.pattern
        low, high = torch.minimum(pattern.row, pattern.col), torch.maximum(pattern.row, pattern.col)
        # Both directions of an edge have the same number, so they are dropped together.
        pairs, self.pair = torch.unique(low * pattern.num_nodes + high, return_inverse=True)
        self.num_pairs = len(pairs)
        ends = pairs // pattern.num_nodes, pairs % pattern.num_nodes
        self.share: float | Tensor = share(*ends) if callable(share) else share

    def draw(self) -> SparseOperator:
        if not isinstance(self.share, Tensor) and self.share == 0:
            return self.whole
        kept = torch.rand(self.num_pairs, device=self.pair.device) >= self.share
        return self.subgraphs.operator(kept[self.pair], both_ways=True)
