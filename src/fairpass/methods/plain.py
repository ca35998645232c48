"""The networks without fairness, and their decisions with one threshold per group."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from fairpass.methods import networks
from fairpass.methods.base import NodeClassifier
from fairpass.nn import Encoder
from fairpass.nn.convolution import EncoderKind
from fairpass.parameters import Choice, parameter
from fairpass.training import Program, Task, Training
from fairpass.training.settings import Postprocess

Base = Literal["logistic", "mlp", "gcn", "gin", "gat", "sage"]
_BASES = Choice("logistic", "mlp", "gcn", "sage")


class GCN(NodeClassifier):
    """Graph convolutional network (Kipf and Welling 2017), trained with cross-entropy."""

    num_layers: int = networks.num_layers()
    hidden: int = networks.hidden()
    dropout: float = networks.dropout(grid=Choice(0.0, 0.5))

    name = "gcn"
    summary = "graph convolutional network, no fairness"
    takes_edge_weights = True
    trains_in_parts = True
    backbone: ClassVar[EncoderKind] = "gcn"

    @property
    def trains_alone(self) -> bool:
        return self.backbone == "gat"

    def build(self, task: Task) -> Program:
        return networks.Network(Encoder(self.backbone, networks.widths(self, task), self.dropout))


class GIN(GCN):
    """Graph isomorphism network (Xu et al. 2019)."""

    name = "gin"
    summary = "graph isomorphism network, no fairness"
    backbone = "gin"


class GAT(GCN):
    """Graph attention network with one head (Velickovic et al. 2018)."""

    name = "gat"
    summary = "graph attention network, no fairness"
    takes_edge_weights = False  # attention learns its own
    trains_in_parts = False
    backbone = "gat"


class SAGE(GCN):
    """GraphSAGE with the mean aggregator (Hamilton et al. 2017).

    Unlike the other networks it has separate weights for a node's own features, so it can ignore uninformative edges.
    """

    name = "sage"
    summary = "GraphSAGE, no fairness"
    backbone = "sage"


class MLPClassifier(GCN):
    """Multi-layer perceptron on the features, without the edges; with `num_layers=1`, logistic regression."""

    name = "mlp"
    summary = "multi-layer perceptron on the features, no graph, no fairness"
    backbone = "mlp"


class Thresholds(NodeClassifier):
    """A plain method with thresholds per group (Hardt et al. 2016, found by fairlearn).

    The scores are those of the base method. The decisions meet `training.constraint` on the validation nodes, as with
    `postprocess="thresholds"` of any other method.

    **This treats people of different groups by different standards**, which is unlawful in places (in the United
    States, for example, as disparate treatment in credit and hiring), and every node's group must be known at
    prediction. See `fairpass.metrics.GroupThresholds`.
    """

    base: Base = parameter("logistic", "the plain method, with its default parameters and training", _BASES, _BASES)
    per_group: bool = parameter(True, "whether each group has its own threshold, or all have the same", before=True)

    name = "thresholds"
    summary = "a plain method with a threshold for each group, which must be known to predict"
    stage = "post-processing"
    needs_groups = "prediction"
    takes_edge_weights = True  # if its base does
    switched_off: ClassVar[Mapping[str, Any]] = {"per_group": False}
    recommended_training = Training(epochs=1)  # of the default base

    def check_parameters(self) -> None:
        if self.training is None:
            self.training = self._plain.training

    @property
    def postprocess(self) -> Postprocess:
        return "thresholds" if self.per_group else self.training.postprocess

    @property
    def trains_alone(self) -> bool:
        return self._plain.trains_alone

    def build(self, task: Task) -> Program:
        return self._plain.build(task)

    def _check_weights(self, task: Task) -> None:
        self._plain._check_weights(task)

    @property
    def _plain(self) -> NodeClassifier:
        from fairpass.methods.registry import method

        return method(self.base)()
