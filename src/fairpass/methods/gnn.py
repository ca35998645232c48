"""The plain networks, with and without the graph: what the fair methods are compared with."""

from typing import ClassVar

from torch import Tensor

from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import check_at_least, check_dropout
from fairpass.nn import Encoder
from fairpass.nn.encoder import EncoderKind
from fairpass.training import Program, Task, Training


class GCN(NodeClassifier):
    """Graph convolutional network (Kipf and Welling 2017), trained with cross-entropy.

    Args:
        num_layers: number of convolutions.
        hidden: width.
        dropout: between convolutions.
        training: settings of the training loop.
    """

    name: ClassVar[str] = "gcn"
    summary: ClassVar[str] = "graph convolutional network, no fairness"
    backbone: ClassVar[EncoderKind] = "gcn"
    per_member: ClassVar[tuple[str, ...] | None] = ()

    def __init__(
        self,
        *,
        num_layers: int = 2,
        hidden: int = 16,
        dropout: float = 0.5,
        training: Training | None = None,
    ) -> None:
        super().__init__(training=training)
        check_at_least(1, num_layers=num_layers, hidden=hidden)
        check_dropout(dropout)
        self.num_layers, self.hidden, self.dropout = num_layers, hidden, dropout

    def build(self, task: Task) -> Program:
        """Return the network."""
        widths = (task.num_features, *[self.hidden] * (self.num_layers - 1), task.num_classes)
        return _Network(Encoder(self.backbone, widths, self.dropout))


class GIN(GCN):
    """Graph isomorphism network (Xu et al. 2019). Arguments as for GCN."""

    name: ClassVar[str] = "gin"
    summary: ClassVar[str] = "graph isomorphism network, no fairness"
    backbone: ClassVar[EncoderKind] = "gin"


class GAT(GCN):
    """Graph attention network with one head (Velickovic et al. 2018). Arguments as for GCN."""

    name: ClassVar[str] = "gat"
    summary: ClassVar[str] = "graph attention network, no fairness"
    backbone: ClassVar[EncoderKind] = "gat"
    per_member: ClassVar[tuple[str, ...] | None] = None


class SAGE(GCN):
    """GraphSAGE with the mean aggregator (Hamilton et al. 2017). Arguments as for GCN.

    Unlike the other networks it weighs a node's own features apart from its neighbours', so it can do without edges
    that tell nothing.
    """

    name: ClassVar[str] = "sage"
    summary: ClassVar[str] = "GraphSAGE, no fairness"
    backbone: ClassVar[EncoderKind] = "sage"


class MLPClassifier(GCN):
    """Multi-layer perceptron on the features. It does not see the edges. Arguments as for GCN.

    The difference between the two is what the graph adds. With `num_layers=1` it is logistic regression.
    """

    name: ClassVar[str] = "mlp"
    summary: ClassVar[str] = "multi-layer perceptron on the features, no graph, no fairness"
    backbone: ClassVar[EncoderKind] = "mlp"


class _Network(Program):
    def __init__(self, network: Encoder) -> None:
        super().__init__()
        self.network = network

    @property
    def is_random(self) -> bool:
        return self.network.dropout > 0

    def forward(self, task: Task) -> Tensor:
        backbone = self.network.backbone
        logits: Tensor = self.network(task.x, None if backbone is None else task.operator(backbone))
        return logits
