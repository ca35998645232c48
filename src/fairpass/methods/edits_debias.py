r"""EDITS' debiasing of a graph, without a dense adjacency.

The critic is linear, so all it needs of `[X~, A~X~, A~^2 X~]` are the differences of the groups' means. With
:math:`q` = 1/N_0 on group 0, -1/N_1 on group 1 and 0 elsewhere, and critic weights :math:`w_0, w_1, w_2`,

.. math::
    W = q^\top \tilde X w_0 + q^\top \tilde A \tilde X w_1 + q^\top \tilde A^2 \tilde X w_2, \qquad
    \frac{\partial W}{\partial \tilde A} = q\,(\tilde X w_1 + \tilde A \tilde X w_2)^\top
    + (\tilde A^\top q)(\tilde X w_2)^\top:

a few products of `A~` with vectors give `W`, and its gradient has rank two. An entry of the gradient costs two
multiplications, and its largest entries can be found without computing all of it. Only the pairs of these and the
existing edges are stored.
"""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softshrink
from torch.optim import RMSprop
from torch_geometric.utils import remove_self_loops, to_undirected

from fairpass.methods.edits_pairs import LowRank, strongest_pairs
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

    It stores the graph's own edges, which start with weight 1, and candidates for new ones, which start with weight 0;
    both directions of each, as their gradients differ. `budget` is the number of candidates, and of edges that can be
    removed, as a share of the edges.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, budget: float) -> None:
        self.edges: Tensor = to_undirected(remove_self_loops(edge_index)[0], num_nodes=num_nodes)
        self.budget = round(budget * self.edges.shape[1] / 2)
        self.structure = SparseOperator.from_edge_index(self.edges, num_nodes, "gat")
        self.weights = torch.ones(self.structure.row.shape, device=edge_index.device)
        self.original = self.weights.clone()
        self.velocity = torch.zeros_like(self.weights)
        self.idle = Idle()

    def __matmul__(self, vector: Tensor) -> Tensor:
        """Return the product with a vector `(N,)`."""
        return (self.structure.with_values(self.weights) @ vector[:, None])[:, 0]

    def renew(self, gradient: LowRank) -> None:
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

    def descend(self, gradient: LowRank, gamma: float, rate: float) -> None:
        """Take one step of proximal gradient descent with momentum on the distance to the edges + gamma W."""
        slope = gamma * gradient.entries(self.structure.row, self.structure.col)
        slope += 2 * (self.weights - self.original)
        self.velocity = _MOMENTUM * self.velocity + slope
        moved = softshrink(self.weights - rate * self.velocity, rate * _SPARSITY_OF_EDGES).clamp(0, 1)
        self.weights = (moved + moved[self.structure.order]) / 2
        self.idle.descend(rate)

    def binary(self, tau: float) -> Tensor:
        """Return the edges after the larger changes only."""
        row, col = self.structure.row, self.structure.col
        change, existing = self.weights - self.original * self.idle.weight, self.original > 0
        added = ~existing & (change > tau * change.max())
        removed = existing & (row != col) & (change < tau * change.min())
        # Both directions of an edge changed alike. Within the budget, those that fell most are removed.
        falls = change[removed].sort().values
        if len(falls) > 2 * self.budget:
            removed &= change < falls[2 * self.budget]
        return torch.stack([row, col])[:, (added | existing & ~removed) & (row != col)]


class Idle:
    """An edge without gradient from the critic, which only the L1 norm lowers.

    Where the gradient is small, as on large graphs, this is most of an edge's change, and no reason to remove it.
    """

    def __init__(self) -> None:
        self.weight, self.velocity = 1.0, 0.0

    def descend(self, rate: float) -> None:
        """Take the step of `WeightedGraph`."""
        self.velocity = _MOMENTUM * self.velocity + 2 * (self.weight - 1)
        self.weight = min(self.weight - rate * self.velocity - rate * _SPARSITY_OF_EDGES, 1.0)
