"""FairGNN: an adversary guesses the sensitive attribute, which is known for only some of the nodes."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from fairpass.errors import DataError
from fairpass.methods import networks
from fairpass.nn import GNN
from fairpass.nn.convolution import Backbone
from fairpass.parameters import MOST_NODES, Choice, LogUniform, parameter
from fairpass.training import Program, Task, Training
from fairpass.training.program import adam, two_logits


class FairGNN(networks.Published):
    r"""FairGNN (Dai and Wang 2021, `arXiv:2009.01454 <https://arxiv.org/abs/2009.01454>`_).

    The sensitive attribute is known for some nodes only. A GCN :math:`E` is first trained to predict it there; then
    :math:`\hat s` is `s` where known and :math:`\sigma(E)` elsewhere. With :math:`h` = GNN, label logits
    :math:`y = \mathrm{linear}(h)` and an adversary :math:`a = \mathrm{linear}(h)`, an epoch takes one step of encoder
    and label classifier on

    .. math::
        \mathrm{BCE}(y, \text{labels})_{train} + \alpha\, |\mathrm{cov}(\hat s, \sigma(y))|
        - \beta\, \mathrm{BCE}(a, \hat s),

    the last two over all nodes, and then one of the adversary on :math:`\mathrm{BCE}(a, \hat s)`, `h` fixed.
    With more than two groups there is one estimator output and one adversary per group, and the covariances are summed.
    """

    alpha: float = parameter(
        4.0, "weight of the covariance", LogUniform(0.1, 100), Choice(4.0, 10.0, 50.0, 100.0), at_least=0
    )
    beta: float = parameter(0.01, "weight of the adversary", LogUniform(1e-3, 10), Choice(0.01, 1.0), at_least=0)
    num_known: int | None = parameter(
        200,
        "number of nodes outside validation and test whose sensitive attribute is used; None: all",
        at_least=2,
        limit=MOST_NODES,
    )
    backbone: Backbone = networks.backbone()
    num_layers: int = networks.num_layers()
    hidden: int = networks.hidden()
    dropout: float = networks.dropout()
    estimator_epochs: int = parameter(
        800, "epochs of the estimator, trained with the same settings; at most as many as the training has", at_least=0
    )

    name = "fairgnn"
    summary = "adversarial debiasing, with sensitive attributes known for only some nodes"
    takes_edge_weights = True
    stage = "in-processing"
    needs_groups = "training"
    switched_off: ClassVar[Mapping[str, Any]] = {"alpha": 0.0, "beta": 0.0}
    recommended_training = Training(epochs=1000, learning_rate=1e-3, weight_decay=1e-5)  # the authors'
    takes_two = ("labels",)
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "german": {"num_known": 100, "num_layers": 1},
        "bail": {"num_known": 100, "num_layers": 1},
        "credit": {"num_known": 6000, "num_layers": 1},
    }

    def build(self, task: Task) -> Program:
        return _Adversarial(task, self)


class _Adversarial(networks.SeveralOptimizers):
    draw: Tensor

    def __init__(self, task: Task, settings: FairGNN) -> None:
        super().__init__()
        self.settings = settings.with_params()
        features, hidden = task.num_features, settings.hidden
        # One logit is enough for two groups; more groups have one each.
        outputs = 1 if task.num_groups == 2 else task.num_groups
        self.estimator = GNN("gcn", (features, hidden, outputs), settings.dropout)
        self.encoder = GNN(settings.backbone, (features, *[hidden] * settings.num_layers), settings.dropout)
        self.adversary = nn.Linear(hidden, outputs)
        self.classifier = nn.Linear(hidden, 1)
        # The seed of the draw of known nodes, kept so that a resumed fit draws the same ones.
        self.register_buffer("draw", torch.randint(2**62, ()))

    def forward(self, task: Task) -> Tensor:
        return two_logits(self.classifier(networks.encode(self.encoder, task.x, task)))

    def configure(self, training: Training) -> None:
        self.optimizers = {
            "classifier": adam(nn.ModuleList([self.encoder, self.classifier]), training),
            "adversary": adam(self.adversary, training),
        }

    def prepare(self, task: Task, training: Training) -> None:
        known = self.known_nodes(task)
        targets = self._indicators(task.sens[known])
        optimizer = adam(self.estimator, training)
        self.estimator.train()
        # A short training must not be preceded by a long one: the budget of a search is spent on epochs.
        for _ in range(min(self.settings.estimator_epochs, training.epochs)):
            optimizer.zero_grad()
            torch.autograd.backward(bce(self.estimator(task.x, task.operator("gcn"))[known], targets))
            optimizer.step()
        task.cache.pop(self, None)

    def epoch(self, task: Task) -> dict[str, float]:
        sens = self.beliefs(task)
        hidden = networks.encode(self.encoder, task.x, task)
        logit = self.classifier(hidden)
        train = task.train_nodes
        by_label = bce(logit[train, 0], task.y[train].to(logit))
        covariance = _covariance(sens, logit.sigmoid())
        loss = by_label + self.settings.alpha * covariance - self.settings.beta * bce(self.adversary(hidden), sens)
        return {
            "loss": self.minimise(loss, "classifier"),
            "label": float(by_label.detach()),
            "covariance": float(covariance.detach()),
            "adversary": self.minimise(bce(self.adversary(hidden.detach()), sens), "adversary"),
        }

    @torch.no_grad()
    def beliefs(self, task: Task) -> Tensor:
        """Return the sensitive attribute, known or estimated: `(N, 1)`, or `(N, G)` for `G > 2` groups."""
        if self not in task.cache:
            self.estimator.eval()
            beliefs: Tensor = self.estimator(task.x, task.operator("gcn")).sigmoid()
            known = self.known_nodes(task)
            beliefs[known] = self._indicators(task.sens[known])
            task.cache[self] = beliefs
        found: Tensor = task.cache[self]
        return found

    def known_nodes(self, task: Task) -> Tensor:
        """Return the nodes whose sensitive attribute is used; never one of validation or test."""
        eligible = task.sens >= 0
        for split in task.masks.keys() - {"train"}:
            eligible = eligible & ~task.masks[split]
        nodes, count = eligible.nonzero().flatten(), self.settings.num_known
        if count is not None and count < len(nodes):
            generator = torch.Generator().manual_seed(int(self.draw))
            nodes = nodes[torch.randperm(len(nodes), generator=generator)[:count].to(nodes.device)]
        sizes = torch.bincount(task.sens[nodes], minlength=task.num_groups).tolist()
        if 0 in sizes:
            raise DataError(
                "'data.sens' and 'num_known' must give FairGNN nodes of every group that are not in "
                f"validation or test (got group sizes {sizes})"
            )
        return nodes

    def _indicators(self, sens: Tensor) -> Tensor:
        outputs = self.adversary.out_features
        groups = torch.arange(1, 2) if outputs == 1 else torch.arange(outputs)
        return (sens[:, None] == groups.to(sens.device)).to(self.adversary.weight.dtype)


def _covariance(sens: Tensor, score: Tensor) -> Tensor:
    return ((sens - sens.mean(0)) * (score - score.mean(0))).mean(0).abs().sum()
