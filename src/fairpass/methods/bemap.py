"""BeMap: every epoch passes messages on a sampled graph in which the groups are balanced around each node."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from fairpass.methods import networks
from fairpass.methods.base import NodeClassifier
from fairpass.methods.edge_dropout import Subgraphs
from fairpass.nn import GNN, SparseOperator
from fairpass.nn.convolution import Backbone
from fairpass.parameters import Choice, Uniform, parameter
from fairpass.training import Program, Task


class BeMap(NodeClassifier):
    r"""BeMap (Lin et al. 2024, `arXiv:2306.04107 <https://arxiv.org/abs/2306.04107>`_).

    Let :math:`c_g(i)` be the number of nodes of group `g` among the neighbours of `i` and `i` itself. Each epoch, every
    node draws some of its neighbours, without replacement and `j` with a probability that is proportional to

    .. math::
        \frac{1}{\max_g c_g(j) - \min_g c_g(j) + 1}.

    It draws :math:`\min_{g:\, c_g(i) > 0} c_g(i)` neighbours from every group that occurs, and one less from its own
    group: counted with the node itself, the groups are then balanced. If the node and all its neighbours are of one
    group, it draws a share :math:`\beta` = `beta` of them, but at least `minimum`, or all if there are fewer. A network
    takes one step of cross-entropy on the sampled graph, which is normalised like any graph. Predictions use the whole
    graph and need no groups. Neighbours of unknown group are always kept and not counted.

    With `balanced=False` every node draws as many neighbours as before, but all with the same probability.
    """

    balanced: bool = parameter(True, "whether neighbours are drawn so that the groups are balanced")
    beta: float = parameter(
        0.25,
        r":math:`\beta`, share of the neighbours that a node draws if all are of its group",
        Uniform(0.1, 1),
        Choice(0.25, 0.5, 0.75),
        at_least=0,
        at_most=1,
    )
    minimum: int = parameter(4, "smallest number of neighbours that such a node draws", at_least=0)
    backbone: Backbone = networks.backbone()
    num_layers: int = networks.num_layers()
    hidden: int = networks.hidden()
    dropout: float = networks.dropout()

    name = "bemap"
    summary = "passes messages on sampled graphs in which the groups are balanced around each node"
    stage = "in-processing"
    needs_groups = "training"
    switched_off: ClassVar[Mapping[str, Any]] = {"balanced": False}

    def build(self, task: Task) -> Program:
        return _Sampled(GNN(self.backbone, networks.widths(self, task), self.dropout), self)


class _Sampled(networks.Network):
    network: GNN

    def __init__(self, network: GNN, settings: BeMap) -> None:
        super().__init__(network)
        self.settings = settings.with_params()

    @property
    def is_random(self) -> bool:
        return True

    def forward(self, task: Task) -> Tensor:
        if not self.training:
            return super().forward(task)
        if self not in task.cache:
            task.cache[self] = NeighbourSampler(task, self.settings)
        logits: Tensor = self.network(task.x, task.cache[self].draw())
        return logits


class NeighbourSampler:
    """Draws graphs in which every node has only some of its neighbours, and a backbone's operator on them."""

    def __init__(self, task: Task, settings: BeMap) -> None:
        self.subgraphs = Subgraphs(task, settings.backbone)
        self.pattern, self.loop = self.subgraphs.pattern, self.subgraphs.loop
        row, col = self.pattern.row, self.pattern.col
        groups = torch.arange(task.num_groups, device=task.device)
        member = (task.sens[:, None] == groups).to(task.x.dtype)
        neighbours = self.pattern.with_values((~self.loop).to(task.x.dtype)) @ member
        quotas = draws_per_group(neighbours.long(), member.long(), settings.beta, settings.minimum)
        is_known = task.sens[col] >= 0
        if settings.balanced:
            counts = neighbours + member
            imbalance = counts.amax(1) - counts.amin(1) + 1
            drawn_from, quotas = ~self.loop & is_known, quotas.flatten()
            urn = row * task.num_groups + task.sens[col]
        else:
            imbalance = member.new_ones(task.num_nodes)
            unknown = torch.bincount(row[~is_known & ~self.loop], minlength=task.num_nodes)
            drawn_from, quotas = ~self.loop, quotas.sum(1) + unknown
            urn = row
        self.always = ~self.loop & ~drawn_from
        self._fill_urns(drawn_from.nonzero().flatten(), urn[drawn_from], quotas, imbalance[col])

    def _fill_urns(self, entries: Tensor, urn: Tensor, quotas: Tensor, imbalance: Tensor) -> None:
        """Keep the entries in the order of their urns, and where in that order those stand that are drawn."""
        sizes = torch.bincount(urn, minlength=len(quotas))
        # An urn that is emptied leaves no choice, nor does one that is left alone: only the others are sorted.
        self.always[entries[(quotas == sizes)[urn]]] = True
        is_open = ((quotas > 0) & (quotas < sizes))[urn]
        entries, urn = entries[is_open], urn[is_open]
        self.urn, order = urn.sort(stable=True)
        self.entries = entries[order]
        self.imbalance = imbalance[self.entries]
        ends = sizes.where((quotas > 0) & (quotas < sizes), 0).cumsum(0)
        start = (ends - sizes)[self.urn]
        place = torch.arange(len(self.urn), device=urn.device) - start
        self.drawn = (place < quotas[self.urn]).nonzero().flatten()

    def draw(self) -> SparseOperator:
        return self.subgraphs.operator(self.draw_neighbours(), both_ways=False)

    def draw_neighbours(self) -> Tensor:
        """Return which entries of the pattern are drawn; a node itself is not among its neighbours.

        The smallest of exponential variables with rates `w` is the first with probability `w / sum(w)`, the next
        smallest is so among the rest, and so on: the first few in order are draws without replacement.
        """
        # Drawn for all entries, so that the numbers that follow are the same whatever is drawn from.
        uniform = torch.rand(len(self.loop), device=self.loop.device)[self.entries]
        times = -torch.log1p(-uniform) * self.imbalance
        # All urns are sorted at once: the whole part of a key is the urn, and its fraction grows with the time.
        keys = self.urn + (times / (1 + times)).double()
        drawn = self.always.clone()
        drawn[self.entries[keys.argsort()[self.drawn]]] = True
        return drawn


def draws_per_group(neighbours: Tensor, member: Tensor, beta: float, minimum: int) -> Tensor:
    """Return how many of its neighbours in each group every node draws, `(N, G)`.

    Args:
        neighbours: number of neighbours of each node in each group, `(N, G)`.
        member: 1 for a node's own group, else 0, `(N, G)`.
        beta: share that a node draws if it and its neighbours are all of one group.
        minimum: smallest number in that case.
    """
    counts = neighbours + member
    is_present = counts > 0
    smallest = counts.where(is_present, counts.max() + 1).amin(1, keepdim=True)
    balanced = (smallest - member).where(is_present, 0)
    share = (beta * neighbours.double() - 1e-9).ceil().long()  # 0.1 of 30 is 3, in spite of rounding
    alone = torch.minimum(share.clamp(min=minimum), neighbours)
    return torch.where(is_present.sum(1, keepdim=True) > 1, balanced, alone)
