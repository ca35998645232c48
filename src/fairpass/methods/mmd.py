"""MMD: a graph neural network whose loss also has the discrepancy between the groups' predictions."""

from typing import ClassVar, get_args

from torch import Tensor

from fairpass.kernels import Discrepancy
from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import check_at_least, check_choice, check_dropout
from fairpass.methods.gnn import _Network
from fairpass.nn import GNN
from fairpass.nn.convolution import Backbone
from fairpass.nn.members import as_kernel_argument
from fairpass.training import Program, Task, Training
from fairpass.training.program import cross_entropy


class MMD(NodeClassifier):
    r"""Maximum mean discrepancy as a regulariser (Gretton et al. 2006; for fairness Louizos et al. 2016).

    A GNN with predictions :math:`\hat Y = \mathrm{softmax}(\mathrm{GNN}(X, A))` minimises

    .. math::
        -\frac{1}{|V_{train}|} \sum_{i \in V_{train}} \log \hat Y_{i y_i} + w\, \mathrm{MMD}^2(\hat Y), \qquad
        \mathrm{MMD}^2 = u^\top K u, \quad K_{ij} = e^{-\alpha \|\hat Y_i - \hat Y_j\|^2},

    with :math:`u_i = 1/N_0` on the first group and :math:`-1/N_1` on the second; more groups: the sum over
    all pairs. Nodes of unknown group take no part. With `w = 0` it is the plain network, bit by bit.

    This baseline has no public code to differ from: the paper adds the term "at the prediction level". Here
    that means probabilities, not logits, since a network can bring every kernel value between logits to 0 by
    scaling them up; and all nodes exactly, not a batch of them.

    Args:
        weight: `w`, weight of the discrepancy.
        alpha: parameter of the Gaussian kernel between predictions.
        backbone: `"gcn"`, `"gin"`, `"gat"` or `"sage"`.
        num_layers: number of convolutions.
        hidden: width.
        dropout: between convolutions.
        training: settings of the training loop.
    """

    name: ClassVar[str] = "mmd"
    per_member: ClassVar[tuple[str, ...] | None] = ("weight", "alpha")
    summary: ClassVar[str] = "graph neural network, with the discrepancy between groups' predictions in its loss"

    def __init__(
        self,
        *,
        weight: float = 1.0,
        alpha: float = 1.0,
        backbone: Backbone = "gcn",
        num_layers: int = 2,
        hidden: int = 16,
        dropout: float = 0.5,
        training: Training | None = None,
    ) -> None:
        super().__init__(training=training)
        check_at_least(0, weight=weight)
        if not alpha > 0:
            raise ValueError(f"'alpha' must be positive (got {alpha})")
        check_choice(get_args(Backbone), backbone=backbone)
        check_at_least(1, num_layers=num_layers, hidden=hidden)
        check_dropout(dropout)
        self.weight, self.alpha, self.backbone = weight, alpha, backbone
        self.num_layers, self.hidden, self.dropout = num_layers, hidden, dropout

    @property
    def trains_alone(self) -> bool:
        """Return whether this classifier cannot be part of a population: attention has no batch axis."""
        return self.backbone == "gat"

    def build(self, task: Task) -> Program:
        """Return the network and its loss."""
        widths = (task.num_features, *[self.hidden] * (self.num_layers - 1), task.num_classes)
        return _Regularised(GNN(self.backbone, widths, self.dropout), self.weight, self.alpha)


class _Regularised(_Network):
    per_member = ("weight", "alpha")

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
