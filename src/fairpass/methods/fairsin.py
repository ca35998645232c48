"""FairSIN: features are neutralised with an estimate of what the neighbours of other groups look like."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy as classification_loss
from torch.nn.functional import mse_loss

from fairpass.errors import DataError
from fairpass.methods import networks
from fairpass.methods.base import NodeClassifier
from fairpass.nn import GNN, Encoder
from fairpass.nn.convolution import Backbone
from fairpass.parameters import Choice, LogUniform, parameter
from fairpass.training import Program, Task, Training
from fairpass.training.program import adam, cross_entropy


class FairSIN(NodeClassifier):
    r"""FairSIN (Yang et al. 2024, `arXiv:2403.12474 <https://arxiv.org/abs/2403.12474>`_).

    An estimator :math:`\phi`, a perceptron with three layers, learns to tell from a node's features the mean features
    of its neighbours in other groups, :math:`N'(i)`. The network sees the node's own features with the estimate added:

    .. math::
        \min_\phi \sum_{i:\, N'(i) \neq \emptyset} \Big\| \phi(x_i) - \frac{1}{|N'(i)|} \sum_{j \in N'(i)} x_j \Big\|^2,
        \qquad \tilde x_i = x_i + \delta\, \phi(x_i), \qquad h = \mathrm{GNN}(\tilde X, A).

    Each epoch takes `estimator_steps` steps of :math:`\phi`, then one step of the network and its label classifier
    :math:`y = \mathrm{linear}(h)` on

    .. math::
        \mathrm{CE}(y, \text{labels})_{train} - w\, \mathrm{CE}(d, s), \qquad d = \mathrm{linear}(h),

    with :math:`\delta` = `delta` and `w` = `adversary`, and one of the discriminator `d` on :math:`\mathrm{CE}(d, s)`
    with `h` fixed. The discriminator sees all nodes of known group `s`; nodes of unknown group are neither targets nor
    neighbours for :math:`\phi`. Predictions need the features only. With `delta=0` and `adversary=0` it is the plain
    network, bit by bit.
    """

    delta: float = parameter(
        1.0,
        r":math:`\delta`, weight of the estimated features",
        LogUniform(0.05, 10),
        Choice(0.1, 0.5, 1.0, 2.0, 5.0, 10.0),
        at_least=0,
    )
    adversary: float = parameter(
        1.0, "`w`, weight of the discriminator", LogUniform(0.01, 10), Choice(0.0, 1.0), at_least=0
    )
    estimator_steps: int = parameter(2, "steps of the estimator in each epoch", at_least=1, limit=1000)
    backbone: Backbone = networks.backbone()
    num_layers: int = networks.num_layers()
    hidden: int = networks.hidden()
    dropout: float = networks.dropout()

    name = "fairsin"
    summary = "adds to each node's features what its neighbours of other groups are expected to look like"
    stage = "in-processing"
    needs_groups = "training"
    switched_off: ClassVar[Mapping[str, Any]] = {"delta": 0.0, "adversary": 0.0}

    def build(self, task: Task) -> Program:
        return _Neutralised(task, self)


class _Neutralised(networks.SeveralOptimizers):
    def __init__(self, task: Task, settings: FairSIN) -> None:
        super().__init__()
        self.settings = settings.with_params()
        features, hidden = task.num_features, settings.hidden
        self.encoder = GNN(settings.backbone, (features, *[hidden] * settings.num_layers), settings.dropout)
        self.classifier = nn.Linear(hidden, task.num_classes)
        self.estimator = Encoder("mlp", (features, hidden, hidden, features))
        self.discriminator = nn.Linear(hidden, task.num_groups)

    def forward(self, task: Task) -> Tensor:
        logits: Tensor = self.classifier(self.represent(task))
        return logits

    def represent(self, task: Task) -> Tensor:
        return networks.encode(self.encoder, self.neutralise(task.x), task)

    def neutralise(self, x: Tensor) -> Tensor:
        """Return the features that the network sees; only its own loss trains the estimator."""
        if not self.settings.delta:
            return x
        with torch.no_grad():
            estimate: Tensor = self.estimator(x)
        return x + self.settings.delta * estimate

    def configure(self, training: Training) -> None:
        self.optimizers = {
            "estimator": adam(self.estimator, training),
            "classifier": adam(nn.ModuleList([self.encoder, self.classifier]), training),
            "discriminator": adam(self.discriminator, training),
        }

    def prepare(self, task: Task, training: Training) -> None:
        if self.settings.delta and not len(self._targets(task)[0]):
            raise DataError("'data.edge_index' must connect nodes of different groups for FairSIN (got no such edge)")

    def epoch(self, task: Task) -> dict[str, float]:
        losses = {}
        if self.settings.delta:
            features, means = self._targets(task)
            for _ in range(self.settings.estimator_steps):
                losses["estimator"] = self.minimise(mse_loss(self.estimator(features), means), "estimator")
        hidden = self.represent(task)
        by_label = loss = cross_entropy(self.classifier(hidden), task)
        if self.settings.adversary:
            loss = by_label - self.settings.adversary * self._discrimination(hidden, task)
        main = {"loss": self.minimise(loss, "classifier"), "label": float(by_label.detach())}
        if self.settings.adversary:
            losses["discriminator"] = self.discriminate(hidden, task)
        return main | losses

    def discriminate(self, hidden: Tensor, task: Task) -> float:
        """Take a step of the discriminator on fixed representations."""
        return self.minimise(self._discrimination(hidden.detach(), task), "discriminator")

    def _discrimination(self, hidden: Tensor, task: Task) -> Tensor:
        known = task.sens >= 0
        return classification_loss(self.discriminator(hidden[known]), task.sens[known])

    def _targets(self, task: Task) -> tuple[Tensor, Tensor]:
        """Return the features that the estimator gets, and what it should make of them."""
        if self not in task.cache:
            nodes, means = other_group_means(task)
            task.cache[self] = task.x[nodes], means
        found: tuple[Tensor, Tensor] = task.cache[self]
        return found


def other_group_means(task: Task) -> tuple[Tensor, Tensor]:
    """Return the nodes with neighbours in another group, and the mean features of these neighbours."""
    pattern, sens = task.operator("gat"), task.sens
    own, others = sens[pattern.row], sens[pattern.col]
    matrix = pattern.with_values(((own != others) & (own >= 0) & (others >= 0)).to(task.x))
    counts = matrix @ task.x.new_ones((task.num_nodes, 1))
    nodes = counts[:, 0].nonzero().flatten()
    return nodes, (matrix @ task.x)[nodes] / counts[nodes]
