"""FairGB: training nodes are mixed across labels and groups, and all labels of all groups count alike in the loss."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fairpass.methods import networks
from fairpass.nn import GNN, SparseOperator
from fairpass.nn.convolution import Backbone
from fairpass.parameters import Choice, Uniform, parameter
from fairpass.training import Program, Task, Training

_SMALLEST = 1e-12  # contribution of a cell whose nodes are all learnt


class FairGB(networks.Published):
    r"""FairGB (Li et al. 2024, `arXiv:2407.11624 <https://arxiv.org/abs/2407.11624>`_).

    The first `warmup` epochs are plain cross-entropy. Then every training node `i` gets a partner `j`: with probability
    :math:`\eta` a training node of another label and the same group, otherwise one of the same label and another group
    (if there is none, one of the other kind). A new node `m` mixes their features with
    :math:`\lambda \sim \mathrm{Beta}(2, 2)`. It receives messages from a sample :math:`N_m` of the neighbours of `i`,
    as many as a random node of the graph has if `i` has so many, and sends none. The loss is a mean over the new nodes,

    .. math::
        x_m = \lambda x_i + (1 - \lambda) x_j, \qquad
        L = \lambda\, w_{y_i s_i} \ell_i + (1 - \lambda)\, w_{y_j s_j} \ell_j, \qquad
        \ell_k = -\log \hat Y_{m y_k}.

    The contribution of label `y` in group `s` is the size of its gradients,
    :math:`c_{ys} = \sum \lambda (1 - e^{-\ell_i}) + \sum (1 - \lambda)(1 - e^{-\ell_j})` over the terms of nodes with
    this label and group. With :math:`w_{ys} = \min(c) / c_{ys}` all contribute the same.

    A node of unknown group is not mixed: its `m` is a copy of it, with the mean of the others' weights. Without `mix`
    the training nodes stay as they are, without `align` all weights are 1; without both it is the plain network, bit by
    bit.
    """

    eta: float = parameter(
        0.5,
        r":math:`\eta`, share of partners with another label",
        Uniform(0, 1),
        Choice(0.3, 0.5, 0.7),
        at_least=0,
        at_most=1,
    )
    warmup: int = parameter(5, "epochs of plain training before the first mixing", at_least=0)
    mix: bool = parameter(True, "whether nodes are mixed with those of other labels and groups")
    align: bool = parameter(True, "whether all labels of all groups contribute the same to the loss")
    backbone: Backbone = networks.backbone()
    num_layers: int = networks.num_layers()
    hidden: int = networks.hidden()
    dropout: float = networks.dropout()

    name = "fairgb"
    summary = "nodes mixed across labels and groups, which all contribute the same to the loss"
    stage = "in-processing"
    needs_groups = "training"
    switched_off: ClassVar[Mapping[str, Any]] = {"mix": False, "align": False}
    recommended_training = Training(epochs=1500, learning_rate=1e-2, weight_decay=0.0)  # the authors'
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "german": {"eta": 0.7},
        "bail": {},
        "credit": {"epochs": 2000, "weight_decay": 1e-4},
    }

    def build(self, task: Task) -> Program:
        return _Rebalanced(GNN(self.backbone, networks.widths(self, task), self.dropout), self)


class _Rebalanced(networks.SeveralOptimizers):
    age: Tensor

    def __init__(self, network: GNN, settings: FairGB) -> None:
        super().__init__()
        self.network, self.settings = network, settings.with_params()
        self.register_buffer("age", torch.zeros((), dtype=torch.long))  # epochs so far, for the warm-up

    def forward(self, task: Task) -> Tensor:
        return networks.encode(self.network, task.x, task)

    def epoch(self, task: Task) -> dict[str, float]:
        is_fair = (self.settings.mix or self.settings.align) and int(self.age) >= self.settings.warmup
        loss = self.rebalanced_loss(task) if is_fair else self.loss(self(task), task)
        self.age += 1
        return {"loss": self.minimise(loss, "all")}

    def rebalanced_loss(self, task: Task) -> Tensor:
        if self not in task.cache:
            task.cache[self] = Mixing(task, self.network.backbone, self.settings.eta), Cells(task)
        mixing, cells = task.cache[self]
        nodes = task.train_nodes
        if self.settings.mix:
            mixed: Mixed = mixing.draw()
            logits = self.network(mixed.x, mixed.operator)[task.num_nodes :]
            partner, own_share = mixed.partner, mixed.own_share
        else:
            logits = self(task)[nodes]
            partner, own_share = torch.arange(len(nodes), device=nodes.device), logits.new_ones(len(nodes))
        labels, shares = task.train_labels, torch.stack([own_share, 1 - own_share])
        losses = torch.stack([cross_entropy(logits, y, reduction="none") for y in (labels, labels[partner])])
        weights = shares
        if self.settings.align:
            cell = torch.stack([cells.of_node, cells.of_node[partner]])
            weights = shares * alignment(losses.detach(), shares, cell, cells.count)
        return (weights * losses).sum() / len(nodes)


class Cells:
    """The labels of the groups that there are training nodes of, numbered; -1 for nodes of unknown group."""

    def __init__(self, task: Task) -> None:
        sens = task.sens[task.train_nodes]
        known = sens >= 0
        found, number = torch.unique((task.train_labels * task.num_groups + sens)[known], return_inverse=True)
        self.count, self.of_node = len(found), torch.full_like(sens, -1)
        self.of_node[known] = number


def alignment(losses: Tensor, shares: Tensor, cell: Tensor, count: int) -> Tensor:
    """Return the weights of terms of the loss, with which each of `count` cells contributes the same.

    A term of no cell, -1, has the mean weight of the others.
    """
    contributions = -torch.expm1(-losses) * shares
    known = cell >= 0
    by_cell = contributions.new_zeros(count).index_add_(0, cell[known], contributions[known]).clamp_(min=_SMALLEST)
    weights = (by_cell.min() / by_cell)[cell.clamp(min=0)]
    mean = (weights * shares)[known].sum() / shares[known].sum()
    return torch.where(known, weights, mean)


class Mixed(NamedTuple):
    """A graph with one new node for each training node: its features and operator, and what was mixed."""

    x: Tensor
    operator: SparseOperator
    partner: Tensor  # number among the training nodes
    own_share: Tensor


class Mixing:
    """Draws graphs to which mixtures of training nodes are added."""

    def __init__(self, task: Task, backbone: Backbone, eta: float) -> None:
        self.x, self.nodes, self.edge_index = task.x, task.train_nodes, task.edge_index
        self.backbone, self.eta = backbone, eta
        sens = task.sens[self.nodes]
        self.known = torch.nonzero(sens >= 0).flatten()
        labels, sens = task.train_labels[self.known], sens[self.known]
        self.other_label, self.other_group = Partners(sens, labels), Partners(labels, sens)
        self.neighbours = NeighbourSample(task.operator("sage"), self.nodes)

    def draw(self) -> Mixed:
        partner = self.draw_partners()
        share = torch.distributions.Beta(*self.x.new_full((2, len(partner)), 2.0)).sample()
        features, weight = self.x[self.nodes], share[:, None]
        x = torch.cat([self.x, weight * features + (1 - weight) * features[partner]])
        source, number = self.neighbours.draw()
        edges = torch.cat([self.edge_index, torch.stack([source, len(self.x) + number])], 1)
        operator = SparseOperator.from_edge_index(edges, len(x), self.backbone, dtype=x.dtype)
        return Mixed(x, operator, partner, share)

    def draw_partners(self) -> Tensor:
        """Return a partner for each training node, as its number among them; a node without one is its own."""
        known = self.known
        is_label = torch.rand(len(known), device=known.device) < self.eta
        by_label, by_group = self.other_label.draw(), self.other_group.draw()
        first, second = torch.where(is_label, by_label, by_group), torch.where(is_label, by_group, by_label)
        partner = torch.arange(len(self.nodes), device=known.device)
        partner[known] = known[torch.where(first == partner[: len(known)], second, first)]
        return partner


class Partners:
    """Draws for each node another, uniformly among those that agree in one attribute and differ in a second.

    A node without any gets itself.
    """

    def __init__(self, same: Tensor, different: Tensor) -> None:
        # Nodes are sorted by both attributes: those that agree in the first are a block, those in both a part of it.
        both = same * (int(different.max()) + 1) + different
        self.order = torch.argsort(both, stable=True)
        self.block, block_size = _extent(same, self.order)
        self.part, self.part_size = _extent(both, self.order)
        self.free = block_size - self.part_size

    def draw(self) -> Tensor:
        number = torch.randint(1 << 62, self.free.shape, device=self.free.device) % self.free.clamp(min=1)
        place = self.block + number
        place = place + self.part_size * (place >= self.part)
        own = torch.arange(len(place), device=place.device)
        return torch.where(self.free > 0, self.order[place % len(place)], own)


def _extent(values: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each node where the nodes of its value begin in the order, and how many they are."""
    ordered = values[order]
    start = torch.searchsorted(ordered, values)
    return start, torch.searchsorted(ordered, values, right=True) - start


class NeighbourSample:
    """Draws some of the neighbours of each of some nodes, without replacement.

    They are as many as a random node of the graph has, or all if these are fewer.
    """

    def __init__(self, graph: SparseOperator, nodes: Tensor) -> None:
        start = graph.matrix.crow_indices().long()
        self.degrees = start.diff()
        self.own_degrees = self.degrees[nodes]
        self.number = torch.arange(len(nodes), device=nodes.device).repeat_interleave(self.own_degrees)
        first = self.own_degrees.cumsum(0) - self.own_degrees
        self.rank = torch.arange(len(self.number), device=nodes.device) - first[self.number]
        self.neighbour = graph.col[start[nodes][self.number] + self.rank]

    def draw(self) -> tuple[Tensor, Tensor]:
        """Return the drawn neighbours, and for each the number of its node among the nodes."""
        picked = torch.randint(len(self.degrees), self.own_degrees.shape, device=self.number.device)
        wanted = torch.minimum(self.degrees[picked], self.own_degrees)
        # Every node's neighbours in random order, of which the first are taken.
        shuffled = torch.argsort(self.number + torch.rand(len(self.number), dtype=torch.float64, device=picked.device))
        kept = shuffled[self.rank < wanted[self.number]]
        return self.neighbour[kept], self.number[kept]
