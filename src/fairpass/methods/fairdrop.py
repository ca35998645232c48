"""FairDrop: training drops edges at random, those inside a group more often than those between groups."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from fairpass.methods import networks
from fairpass.methods.base import NodeClassifier
from fairpass.methods.edge_dropout import EdgeDropout
from fairpass.nn import GNN
from fairpass.nn.convolution import Backbone
from fairpass.parameters import Choice, Uniform, parameter
from fairpass.training import Program, Task


class FairDrop(NodeClassifier):
    r"""FairDrop (Spinelli et al. 2021, `arXiv:2104.14210 <https://arxiv.org/abs/2104.14210>`_).

    Each epoch trains the network on a subgraph. With :math:`m_{ij} = 1` if :math:`s_i \ne s_j` and 0 otherwise, an edge
    is kept according to the randomised response to :math:`m_{ij}`,

    .. math::
        P(\text{keep } ij) = \tfrac12 + \delta \text{ if } m_{ij} = 1, \qquad
        P(\text{keep } ij) = \tfrac12 - \delta \text{ if } m_{ij} = 0,

    both directions together, and the loss is cross-entropy. Predictions use the whole graph. With `delta=0` every edge
    is kept with probability 1/2; with `delta=0.5` exactly the edges between groups are kept. An edge with an end of
    unknown group is kept with probability 1/2.
    """

    delta: float = parameter(
        0.25,
        r":math:`\delta`, preference for edges between groups",
        Uniform(0.05, 0.5),
        Choice(0.1, 0.25, 0.5),
        at_least=0,
        at_most=0.5,
    )
    backbone: Backbone = networks.backbone()
    num_layers: int = networks.num_layers()
    hidden: int = networks.hidden()
    dropout: float = networks.dropout()

    name = "fairdrop"
    summary = "graph neural network on random subgraphs that favour edges between groups"
    stage = "pre-processing"
    needs_groups = "training"
    switched_off: ClassVar[Mapping[str, Any]] = {"delta": 0.0}

    def build(self, task: Task) -> Program:
        return _OnSubgraphs(GNN(self.backbone, networks.widths(self, task), self.dropout), self.delta)


class _OnSubgraphs(networks.Network):
    network: GNN

    def __init__(self, network: GNN, delta: float) -> None:
        super().__init__(network)
        self.delta = delta

    @property
    def is_random(self) -> bool:
        return True

    def forward(self, task: Task) -> Tensor:
        if not self.training:
            return super().forward(task)
        if self not in task.cache:
            task.cache[self] = biased_dropout(task, self.network.backbone, self.delta)
        logits: Tensor = self.network(task.x, task.cache[self].draw())
        return logits


def biased_dropout(task: Task, backbone: Backbone, delta: float) -> EdgeDropout:
    """Return what drops an edge inside a group with probability `1/2 + delta`, and between groups `1/2 - delta`."""

    def share(one: Tensor, other: Tensor) -> Tensor:
        one, other = task.sens[one], task.sens[other]
        mixing = torch.where(one == other, 1.0, -1.0)
        return 0.5 + delta * mixing.masked_fill((one < 0) | (other < 0), 0.0)

    return EdgeDropout(task, backbone, share)
