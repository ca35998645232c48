"""The baselines without fairness: a constant, logistic regression, and networks with and without the graph."""

import logging
import warnings
from typing import ClassVar

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from fairpass.methods import networks
from fairpass.methods.base import NodeClassifier
from fairpass.nn import Encoder
from fairpass.nn.convolution import EncoderKind
from fairpass.parameters import Choice
from fairpass.training import Program, Task, Training
from fairpass.training.program import two_logits

logger = logging.getLogger(__name__)

# Of logistic regression; standardised features need a few dozen.
_MAX_ITERATIONS = 1000


class Constant(NodeClassifier):
    """Predicts the same for every node: the frequencies of the labels among training and validation nodes."""

    name = "constant"
    summary = "the most frequent label for every node; its group differences are 0"
    recommended_training = Training(epochs=1)
    learns_by_epochs = False

    def build(self, task: Task) -> Program:
        return _Frequencies(task.num_classes)


class _Frequencies(networks.ClosedForm):
    logits: Tensor

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("logits", torch.zeros(num_classes))

    def epoch(self, task: Task) -> dict[str, float]:
        # Validation is included because the benchmarks' training labels are balanced by design.
        seen = task.y[(task.masks["train"] | task.masks["val"]) & (task.y >= 0)]
        counts = torch.bincount(seen, minlength=len(self.logits)).to(self.logits)
        self.logits.copy_((counts / counts.sum()).clamp(min=1e-6).log())
        return {"loss": float(-self.logits[seen].mean())}

    def forward(self, task: Task) -> Tensor:
        return self.logits.expand(task.num_nodes, -1)


class Logistic(NodeClassifier):
    r"""Logistic regression on the features of the training nodes, by scikit-learn, without the edges.

    The coefficients :math:`w` and intercepts :math:`b` minimise

    .. math:: \frac12 \|w\|^2 + C \sum_{i \in V_{train}} -\log \mathrm{softmax}(w x_i + b)_{y_i}.

    The penalty treats all columns alike, so the features should be scaled. The result does not depend on the seed or
    the optimizer's settings, and there is only one epoch.
    """

    C: float = networks.penalty(0.01, 0.1, 1.0, 10.0)

    name = "logistic"
    summary = "logistic regression on the features, no graph, no fairness"
    recommended_training = Training(epochs=1)
    learns_by_epochs = False

    def build(self, task: Task) -> Program:
        return _Regression(task.num_features, task.num_classes, self.C)


class _Regression(networks.ClosedForm):
    """Buffers: `coefficients` `(R, d)` and `intercepts` `(R,)`; `R` is 1 for two classes, else their number."""

    coefficients: Tensor
    intercepts: Tensor

    def __init__(self, num_features: int, num_classes: int, C: float) -> None:
        super().__init__()
        self.C = C
        rows = 1 if num_classes == 2 else num_classes
        self.register_buffer("coefficients", torch.zeros(rows, num_features))
        self.register_buffer("intercepts", torch.zeros(rows))

    def prepare(self, task: Task, training: Training) -> None:
        nodes = task.train_nodes
        found = LogisticRegression(C=self.C, max_iter=_MAX_ITERATIONS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the message below says what helps
            found.fit(task.x[nodes].double().cpu().numpy(), task.y[nodes].cpu().numpy())
        if max(found.n_iter_) >= _MAX_ITERATIONS:
            logger.warning(
                "logistic regression did not converge within %s iterations (scaled features or a smaller 'C' help)",
                f"{_MAX_ITERATIONS:,}",
            )
        self.coefficients.copy_(torch.from_numpy(found.coef_))
        self.intercepts.copy_(torch.from_numpy(found.intercept_))

    def forward(self, task: Task) -> Tensor:
        logits = task.x @ self.coefficients.T + self.intercepts
        return two_logits(logits) if logits.shape[-1] == 1 else logits


class GCN(NodeClassifier):
    """Graph convolutional network (Kipf and Welling 2017), trained with cross-entropy."""

    num_layers: int = networks.num_layers()
    hidden: int = networks.hidden()
    dropout: float = networks.dropout(grid=Choice(0.0, 0.5))

    name = "gcn"
    summary = "graph convolutional network, no fairness"
    backbone: ClassVar[EncoderKind] = "gcn"
    joins_populations = True

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
