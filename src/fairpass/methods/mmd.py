"""MMD: a graph neural network with the discrepancy between the groups' predictions in its loss."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from fairpass.kernels import Discrepancy
from fairpass.methods import networks
from fairpass.methods.base import NodeClassifier
from fairpass.nn import GNN
from fairpass.nn.convolution import Backbone
from fairpass.nn.layers import as_kernel_argument
from fairpass.parameters import Choice, LogUniform, parameter
from fairpass.training import Program, Task
from fairpass.training.program import cross_entropy


class MMD(NodeClassifier):
    r"""Maximum mean discrepancy as a regulariser (Gretton et al. 2006; for fairness Louizos et al. 2016).

    A GNN with predictions :math:`\hat Y = \mathrm{softmax}(\mathrm{GNN}(X, A))` minimises

    .. math::
        -\frac{1}{|V_{train}|} \sum_{i \in V_{train}} \log \hat Y_{i y_i} + w\, \mathrm{MMD}^2(\hat Y), \qquad
        \mathrm{MMD}^2 = u^\top K u, \quad K_{ij} = e^{-\alpha \|\hat Y_i - \hat Y_j\|^2},

    with :math:`u_i = 1/N_0` on the first group, :math:`-1/N_1` on the second and 0 where the group is unknown; for more
    than two groups, summed over their pairs. With `weight=0` it is the plain network, bit by bit.
    """

    weight: float = parameter(
        1.0,
        "weight of the discrepancy",
        LogUniform(0.1, 100),
        Choice(0.1, 1.0, 10.0, 100.0),
        at_least=0,
        per_member=True,
    )
    alpha: float = parameter(
        1.0, r":math:`\alpha` of the kernel between predictions", LogUniform(0.1, 30), above=0, per_member=True
    )
    backbone: Backbone = networks.backbone()
    num_layers: int = networks.num_layers()
    hidden: int = networks.hidden()
    dropout: float = networks.dropout()

    name = "mmd"
    summary = "graph neural network, with the discrepancy between groups' predictions in its loss"
    takes_edge_weights = True
    trains_in_parts = True
    stage = "in-processing"
    needs_groups = "training"
    switched_off: ClassVar[Mapping[str, Any]] = {"weight": 0.0}

    @property
    def trains_alone(self) -> bool:
        return self.backbone == "gat"

    def build(self, task: Task) -> Program:
        return _Regularised(GNN(self.backbone, networks.widths(self, task), self.dropout), self.weight, self.alpha)


class _Regularised(networks.Network):
    per_member = MMD.per_member

    def __init__(self, network: GNN, weight: float, alpha: float) -> None:
        super().__init__(network)
        self.weight: float | Tensor = weight
        self.alpha: float | Tensor = alpha

    def loss(self, logits: Tensor, task: Task) -> Tensor:
        loss = cross_entropy(logits, task)
        if not isinstance(self.weight, Tensor) and not self.weight:
            return loss
        squared = Discrepancy(task.groups).value(logits.softmax(-1), as_kernel_argument(self.alpha))
        return loss + as_kernel_argument(self.weight) * squared
