"""The plain networks, with and without the graph: the baselines of the fair methods."""

from typing import ClassVar

from fairpass.methods.base import NodeClassifier
from fairpass.methods.networks import Network, dropout_parameter, hidden_parameter, num_layers_parameter
from fairpass.nn import Encoder
from fairpass.nn.encoder import EncoderKind
from fairpass.parameters import Choice
from fairpass.training import Program, Task


class GCN(NodeClassifier):
    """Graph convolutional network (Kipf and Welling 2017), trained with cross-entropy."""

    num_layers: int = num_layers_parameter()
    hidden: int = hidden_parameter()
    dropout: float = dropout_parameter(grid=Choice(0.0, 0.5))

    name = "gcn"
    summary = "graph convolutional network, no fairness"
    backbone: ClassVar[EncoderKind] = "gcn"
    joins_populations = True

    def build(self, task: Task) -> Program:
        """Return the network."""
        widths = (task.num_features, *[self.hidden] * (self.num_layers - 1), task.num_classes)
        return Network(Encoder(self.backbone, widths, self.dropout))


class GIN(GCN):
    """Graph isomorphism network (Xu et al. 2019)."""

    name = "gin"
    summary = "graph isomorphism network, no fairness"
    backbone = "gin"


class GAT(GCN):
    """Graph attention network with one head (Velickovic et al. 2018)."""

    name = "gat"
    summary = "graph attention network, no fairness"
    backbone = "gat"
    joins_populations = False


class SAGE(GCN):
    """GraphSAGE with the mean aggregator (Hamilton et al. 2017).

    Unlike the other networks it has separate weights for a node's own features, so it can ignore uninformative edges.
    """

    name = "sage"
    summary = "GraphSAGE, no fairness"
    backbone = "sage"


class MLPClassifier(GCN):
    """Multi-layer perceptron on the features, without the edges.

    Its difference to a GCN is what the graph adds. With `num_layers=1` it is logistic regression.
    """

    name = "mlp"
    summary = "multi-layer perceptron on the features, no graph, no fairness"
    backbone = "mlp"
