r"""EDITS' debiasing of a graph, without a dense adjacency.

The critic is linear, so all it needs of `[X~, A~X~, A~^2 X~]` are the differences of the groups' means. With
:math:`q` = 1/N_0 on group 0, -1/N_1 on group 1 and 0 elsewhere, and critic weights :math:`w_0, w_1, w_2`,

.. math::
    W = q^\top \tilde X w_0 + q^\top \tilde A \tilde X w_1 + q^\top \tilde A^2 \tilde X w_2, \qquad
    \frac{\partial W}{\partial \tilde A} = q\,(\tilde X w_1 + \tilde A \tilde X w_2)^\top
    + (\tilde A^\top q)(\tilde X w_2)^\top:

a few products of `A~` with vectors give `W`, and the largest entries of its gradient, which has rank two, can be found
without computing all of it. Only these pairs and the existing edges are stored.
"""

from math import ceil, inf, log2, sqrt
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad, softshrink
from torch.optim import RMSprop
from torch_geometric.utils import remove_self_loops, to_undirected

from fairpass.nn import SparseOperator

if TYPE_CHECKING:
    from fairpass.methods.edits import EDITS

# The authors' constants, which their code does not vary.
_RATE, _LATE_RATE, _LATE = 0.003, 0.001, 400
_MOMENTUM = 0.9
_SPARSITY_OF_SCALES, _SPARSITY_OF_EDGES = 5e-6, 5e-4
_CRITIC_STEPS, _CRITIC_BOUND = 8, 0.02
# Rounds between two searches for promising pairs; the gradient changes slowly.
_RENEWED_EVERY = 10
# Nodes in a cell, unless there would be too many cells; and entries computed in one go.
_CELL, _MOST_HALVINGS = 64, 10
_ENTRIES_AT_ONCE = 2**20


class Debiased(NamedTuple):
    """The debiased edges (both directions, sorted, no self-loops), column scales, and the distance at every epoch."""

    edge_index: Tensor
    scales: Tensor
    wasserstein: Tensor


def debias(x: Tensor, edge_index: Tensor, contrast: Tensor, settings: "EDITS") -> Debiased:
    """Learn column scales and edges under which a critic finds the groups closer together; `contrast` is `q`."""
    graph = WeightedGraph(edge_index, len(x), settings.budget)
    norms = x.norm(dim=0)
    columns = x / norms.clamp(min=torch.finfo(x.dtype).tiny)
    length = (norms > 0).to(x)  # of the normalised columns
    scales = torch.ones_like(norms).requires_grad_()
    critic = torch.empty((3, x.shape[1]), dtype=x.dtype, device=x.device)
    critic.uniform_(-_CRITIC_BOUND, _CRITIC_BOUND).requires_grad_()
    optimizers = [RMSprop([part], lr=_RATE, eps=1e-4, foreach=False) for part in (critic, scales)]
    distances = []
    for epoch in range(settings.debias_epochs):
        rate = _RATE if epoch <= _LATE else _LATE_RATE
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = rate
        once = graph @ contrast
        gaps = torch.stack([contrast, once, graph @ once]) @ columns
        for _ in range(_CRITIC_STEPS):
            _step(optimizers[0], -(critic * gaps * scales.detach()).sum())
            critic.data.clamp_(-_CRITIC_BOUND, _CRITIC_BOUND)
        weights = critic.detach()
        distances.append(float((weights * gaps * scales.detach()).sum()))
        moved = ((scales - 1) * length).norm()
        _step(optimizers[1], settings.alpha * moved + settings.beta * (weights * gaps * scales).sum())
        scales.data.copy_(softshrink(scales.detach(), rate * _SPARSITY_OF_SCALES).clamp(0, 1))
        near, far = (columns @ (scales.detach() * weight) for weight in weights[1:])
        gradient = LowRank(torch.stack([contrast, once], 1), torch.stack([near + graph @ far, far], 1))
        if epoch % _RENEWED_EVERY == 0:
            graph.renew(gradient)
        graph.descend(gradient, settings.gamma, rate)
    return Debiased(graph.binary(settings.tau), scales.detach(), torch.tensor(distances))


def _step(optimizer: RMSprop, loss: Tensor) -> None:
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()


class WeightedGraph:
    """A symmetric adjacency with self-loops, of learnt weights in [0, 1].

    It stores both directions of the graph's own edges, which start with weight 1, and of candidates for new ones, which
    start with weight 0. As a share of the edges, `budget` bounds the number of candidates and of removed edges.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, budget: float) -> None:
        self.edges: Tensor = to_undirected(remove_self_loops(edge_index)[0], num_nodes=num_nodes)
        self.budget = round(budget * self.edges.shape[1] / 2)
        self.structure = SparseOperator.from_edge_index(self.edges, num_nodes, "gat")
        self.weights = torch.ones(self.structure.row.shape, device=edge_index.device)
        self.original = self.weights.clone()
        self.velocity = torch.zeros_like(self.weights)
        # The L1 norm alone lowers an edge that far. Where the gradient is small, as on large graphs, this is most of an
        # edge's change, and no reason to remove it.
        self.idle_weight, self.idle_velocity = 1.0, 0.0

    def __matmul__(self, vector: Tensor) -> Tensor:
        return (self.structure.with_values(self.weights) @ vector[:, None])[:, 0]

    def renew(self, gradient: "LowRank") -> None:
        """Replace the candidates by the pairs of nodes whose weight the gradient would raise most."""
        nodes = self.structure.num_nodes
        pairs = strongest_pairs(LowRank(-gradient.left, gradient.right), self.budget, self.edges)
        renewed = SparseOperator.from_edge_index(torch.cat([self.edges, pairs, pairs.flip(0)], 1), nodes, "gat")
        stored, wanted = (s.row * nodes + s.col for s in (self.structure, renewed))
        place = torch.searchsorted(stored, wanted).clamp(max=len(stored) - 1)
        known = stored[place] == wanted
        # New candidates start with weight 0.
        carried = (torch.where(known, old[place], 0.0) for old in (self.weights, self.original, self.velocity))
        self.weights, self.original, self.velocity = carried
        self.structure = renewed

    def descend(self, gradient: "LowRank", gamma: float, rate: float) -> None:
        slope = gamma * gradient.entries(self.structure.row, self.structure.col)
        slope += 2 * (self.weights - self.original)
        self.velocity = _MOMENTUM * self.velocity + slope
        moved = softshrink(self.weights - rate * self.velocity, rate * _SPARSITY_OF_EDGES).clamp(0, 1)
        self.weights = (moved + moved[self.structure.order]) / 2
        # The same step for an edge without gradient from the critic.
        self.idle_velocity = _MOMENTUM * self.idle_velocity + 2 * (self.idle_weight - 1)
        self.idle_weight = min(self.idle_weight - rate * self.idle_velocity - rate * _SPARSITY_OF_EDGES, 1.0)

    def binary(self, tau: float) -> Tensor:
        row, col = self.structure.row, self.structure.col
        change, existing = self.weights - self.original * self.idle_weight, self.original > 0
        added = ~existing & (change > tau * change.max())
        removed = existing & (row != col) & (change < tau * change.min())
        # Both directions of an edge changed alike. Within the budget, those that fell most are removed.
        falls = change[removed].sort().values
        if len(falls) > 2 * self.budget:
            removed &= change < falls[2 * self.budget]
        return torch.stack([row, col])[:, (added | existing & ~removed) & (row != col)]


class LowRank(NamedTuple):
    """The matrix `left right'`, both factors `(N, r)`."""

    left: Tensor
    right: Tensor

    def entries(self, row: Tensor, col: Tensor) -> Tensor:
        return (self.left[row] * self.right[col]).sum(-1)

    def halves(self) -> tuple[Tensor, Tensor]:
        """Return `P, Q` with `P Q'` the symmetric part, both of the same range."""
        ratio = self.right.abs().amax(0) / self.left.abs().amax(0)
        balance = torch.where((ratio > 0) & torch.isfinite(ratio), ratio, 1).sqrt()
        left, right = self.left * balance / sqrt(2), self.right / balance / sqrt(2)
        return torch.cat([left, right], 1), torch.cat([right, left], 1)


def strongest_pairs(matrix: LowRank, count: int, edges: Tensor) -> Tensor:
    """Return the pairs of different nodes with the largest mean of their two entries, edges left out, `(2, count)`.

    Nodes with similar rows are grouped into cells. The cells' ranges bound the entries between two cells, so pairs of
    cells are visited best first, until no other can hold anything better. `edges` has both directions.
    """
    if count == 0:
        return edges.new_empty((2, 0))
    ahead, behind = matrix.halves()
    nodes = len(ahead)
    # The last entry is larger than all that is searched for.
    taken = pad((edges[0] * nodes + edges[1]).sort().values, (0, 1), value=(nodes + 1) ** 2)
    cells = _cells(ahead)
    # Row `nodes` stands for the empty places of a cell.
    ahead, behind = (torch.cat([half, half[-1:]]) for half in (ahead, behind))
    first, second = torch.triu_indices(len(cells), len(cells), device=edges.device)
    bounds, order = _bounds(ahead[cells], behind[cells])[first, second].sort(descending=True)
    place = torch.arange(cells.shape[1], device=edges.device)
    values, pairs = ahead.new_empty(0), edges.new_empty((2, 0))
    at_once = max(1, _ENTRIES_AT_ONCE // cells.shape[1] ** 2)
    for some, bound in zip(torch.split(order, at_once), bounds[::at_once].tolist(), strict=True):
        least = float(values.min()) if len(values) == count else -inf
        if bound <= least:
            break
        one, other = cells[first[some]], cells[second[some]]
        products = ahead[one] @ behind[other].mT
        # In a cell with itself, every pair would occur twice.
        once = (first[some] != second[some])[:, None, None] | (place[:, None] < place)
        which, i, j = torch.nonzero(once & (products > least), as_tuple=True)
        found = torch.stack([one[which, i], other[which, j]])
        keys = found[0] * nodes + found[1]
        new = (found < nodes).all(0) & (taken[torch.searchsorted(taken, keys)] != keys)
        values = torch.cat([values, products[which, i, j][new]])
        values, best = values.topk(min(count, len(values)))
        pairs = torch.cat([pairs, found[:, new]], 1)[:, best]
    return pairs


def _cells(rows: Tensor) -> Tensor:
    """Return nodes in cells of equal size, split along their widest columns; empty places hold `N`."""
    levels = min(max(0, ceil(log2(len(rows) / _CELL))), _MOST_HALVINGS)
    size = ceil(len(rows) / 2**levels)
    cells = torch.arange(size * 2**levels, device=rows.device).clamp(max=len(rows))[None]
    rows = torch.cat([rows, rows[-1:]])
    for _ in range(levels):
        inside = rows[cells]
        widest = (inside.amax(1) - inside.amin(1)).argmax(-1)
        along = inside.gather(2, widest[:, None, None].expand(-1, inside.shape[1], 1))[:, :, 0]
        cells = cells.gather(1, along.argsort(1)).view(2 * len(cells), -1)
    return cells


def _bounds(ahead: Tensor, behind: Tensor) -> Tensor:
    """Return upper bounds of the product of a row in one cell with one in another, `(C, C)`."""
    ends = [(half.amin(1), half.amax(1)) for half in (ahead, behind)]
    corners = [a[:, None, :] * b[None, :, :] for a in ends[0] for b in ends[1]]
    return torch.stack(corners).amax(0).sum(-1)
