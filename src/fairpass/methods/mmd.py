"""MMD: a graph neural network with the discrepancy between the groups' predictions in its loss."""

from torch import Tensor

from fairpass.kernels import Discrepancy
from fairpass.methods.base import NodeClassifier
from fairpass.methods.networks import (
    Network,
    backbone_parameter,
    dropout_parameter,
    hidden_parameter,
    num_layers_parameter,
    widths,
)
from fairpass.nn import GNN
from fairpass.nn.convolution import Backbone
from fairpass.nn.members import as_kernel_argument
from fairpass.parameters import Choice, LogUniform, parameter
from fairpass.training import Program, Task
from fairpass.training.program import cross_entropy


class MMD(NodeClassifier):
    r"""Maximum mean discrepancy as a regulariser (Gretton et al. 2006; for fairness Louizos et al. 2016).

    A GNN with predictions :math:`\hat Y = \mathrm{softmax}(\mathrm{GNN}(X, A))` minimises

    .. math::
        -\frac{1}{|V_{train}|} \sum_{i \in V_{train}} \log \hat Y_{i y_i} + w\, \mathrm{MMD}^2(\hat Y), \qquad
        \mathrm{MMD}^2 = u^\top K u, \quad K_{ij} = e^{-\alpha \|\hat Y_i - \hat Y_j\|^2},

    with :math:`u_i = 1/N_0` on the first group and :math:`-1/N_1` on the second, summed over all pairs of more than two
    groups. Nodes of unknown group are left out. With `weight=0` it is the plain network, bit by bit.

    There is no public code of this baseline. The paper adds the term "at the prediction level"; here these are the
    probabilities of all nodes. On logits, a network could bring every kernel value to 0 by scaling them up.
    """

    weight: float = parameter(
        1.0,
        "weight `w` of the discrepancy",
        LogUniform(0.1, 100),
        Choice(0.1, 1.0, 10.0, 100.0),
        at_least=0,
        per_member=True,
    )
    alpha: float = parameter(
        1.0,
        r"parameter :math:`\alpha` of the Gaussian kernel between predictions",
        LogUniform(0.1, 30),
        above=0,
        per_member=True,
    )
    backbone: Backbone = backbone_parameter()
    num_layers: int = num_layers_parameter()
    hidden: int = hidden_parameter()
    dropout: float = dropout_parameter()

    name = "mmd"
    summary = "graph neural network, with the discrepancy between groups' predictions in its loss"
    joins_populations = True

    @property
    def trains_alone(self) -> bool:
        return self.backbone == "gat"

    def build(self, task: Task) -> Program:
        return _Regularised(GNN(self.backbone, widths(self, task), self.dropout), self.weight, self.alpha)


class _Regularised(Network):
    per_member = MMD.per_member

    def __init__(self, network: GNN, weight: float, alpha: float) -> None:
        super().__init__(network)
        self.weight: float | Tensor = weight
        self.alpha: float | Tensor = alpha

    def loss(self, logits: Tensor, task: Task) -> Tensor:
        loss = cross_entropy(logits, task)
        if not isinstance(self.weight, Tensor) and not self.weight:
            return loss
        return loss + as_kernel_argument(self.weight) * self.discrepancy(logits, task)

    def discrepancy(self, logits: Tensor, task: Task) -> Tensor:
        """Return the squared discrepancy between the groups' predictions."""
        return Discrepancy(task.groups).value(logits.softmax(-1), as_kernel_argument(self.alpha))
