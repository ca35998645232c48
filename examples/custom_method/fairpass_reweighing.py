"""Reweighing: a graph neural network whose loss gives each pair of group and label its fair share."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fairpass.methods import NodeClassifier
from fairpass.nn import GNN
from fairpass.nn.convolution import Backbone
from fairpass.parameters import Uniform, parameter
from fairpass.training import Program, Task, Training


class Reweighing(NodeClassifier):
    r"""A GNN with reweighing (Kamiran and Calders 2012, `doi:10.1007/s10115-011-0463-8
    <https://doi.org/10.1007/s10115-011-0463-8>`_).

    A training node of group `s` with label `y` counts in the cross-entropy as

    .. math:: w_{sy} = \left(\frac{P(s)\, P(y)}{P(s, y)}\right)^{\text{strength}}

    with frequencies among the training nodes: in the weighted sample the label does not depend on the group. Nodes of
    unknown group count as 1. It needs groups in training only and costs nothing, and it cannot undo what features and
    edges tell about the group.
    """

    strength: float = parameter(1.0, "0 is the plain network, 1 is reweighing as published", Uniform(0, 2), at_least=0)
    backbone: Backbone = parameter("gcn", "convolution of the network")
    num_layers: int = parameter(2, "number of convolutions", at_least=1)
    hidden: int = parameter(16, "width of the hidden layers", at_least=1)
    dropout: float = parameter(0.5, "probability of dropping a hidden unit", at_least=0, below=1)

    name = "reweighing"
    summary = "graph neural network, with weights in its loss that part label from group"
    stage = "pre-processing"
    needs_groups = "training"
    switched_off: ClassVar[Mapping[str, Any]] = {"strength": 0.0}

    def build(self, task: Task) -> Program:
        """Return the network and its loss."""
        widths = (task.num_features, *[self.hidden] * (self.num_layers - 1), task.num_classes)
        return _Weighted(GNN(self.backbone, widths, self.dropout), self.strength)


class _Weighted(Program):
    weights: Tensor

    def __init__(self, network: GNN, strength: float) -> None:
        super().__init__()
        self.network, self.strength = network, strength
        # A buffer, so that an interrupted fit continues with the same weights.
        self.register_buffer("weights", None)

    def prepare(self, task: Task, training: Training) -> None:
        """Compute the weights, once."""
        nodes = task.train_nodes
        self.weights = group_label_weights(task.sens[nodes], task.y[nodes]) ** self.strength

    def forward(self, task: Task) -> Tensor:
        logits: Tensor = self.network(task.x, task.operator(self.network.backbone))
        return logits

    def loss(self, logits: Tensor, task: Task) -> Tensor:
        """Return the weighted cross-entropy on the training nodes."""
        nodes = task.train_nodes
        losses = cross_entropy(logits[nodes], task.y[nodes], reduction="none")
        return (self.weights * losses).sum() / self.weights.sum()


def group_label_weights(sens: Tensor, y: Tensor) -> Tensor:
    """Return `P(s) P(y) / P(s, y)` of each node among those of known group, and 1 for the others."""
    known = sens >= 0
    counts = torch.zeros(int(sens.max()) + 1, int(y.max()) + 1, device=y.device)
    counts.index_put_((sens[known], y[known]), torch.ones(int(known.sum()), device=y.device), accumulate=True)
    expected = counts.sum(1, keepdim=True) * counts.sum(0, keepdim=True) / counts.sum()
    weights = torch.ones(len(y), device=y.device)
    weights[known] = (expected / counts)[sens[known], y[known]]
    return weights
