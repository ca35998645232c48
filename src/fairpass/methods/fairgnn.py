"""FairGNN: an adversary guesses the sensitive attribute, which is known for only some of the nodes."""

from typing import Any, ClassVar, get_args
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from fairpass.errors import DataError
from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import check_at_least, check_choice, check_dropout, check_two_labels
from fairpass.nn import GNN
from fairpass.nn.convolution import Backbone
from fairpass.training import Program, Task, Training
from fairpass.training.program import adam, two_logits

# Known nodes in the scripts that NIFTY's authors ran it with on the graphs they published.
_KNOWN = {"german": 100, "bail": 100, "credit": 6000}


class FairGNN(NodeClassifier):
    r"""FairGNN (Dai and Wang 2021, `arXiv:2009.01454 <https://arxiv.org/abs/2009.01454>`_).

    The sensitive attribute is known for some nodes only. A GCN :math:`E` is first trained to tell it, with
    binary cross-entropy :math:`\mathrm{BCE}(E, s)` on those nodes; then :math:`\hat s` is `s` where known and
    :math:`\sigma(E)` elsewhere. With :math:`h` = GNN, label logits :math:`y = \mathrm{linear}(h)` and an
    adversary :math:`a = \mathrm{linear}(h)`, each epoch takes one step of encoder and label classifier on

    .. math::
        \mathrm{BCE}(y, \text{labels})_{train} + \alpha\, |\mathrm{cov}(\hat s, \sigma(y))|
        - \beta\, \mathrm{BCE}(a, \hat s),

    the last two over all nodes, and then one of the adversary on :math:`\mathrm{BCE}(a, \hat s)`, `h` fixed.
    More than two groups: one estimator output and one adversary for each, the covariances summed.

    What differs from the public code: its estimator is the one with the best accuracy on the *test* nodes,
    ours the last; it is fixed once trained, so :math:`\hat s` is computed once and not at every epoch (the
    public code draws new dropout for it each time); and the epoch is selected like every other method's, not
    by the least unfairness above a floor for accuracy.

    Args:
        alpha: weight of the covariance (the authors' scripts: 10 to 100).
        beta: weight of the adversary (the authors' scripts: 1).
        num_known: number of nodes whose sensitive attribute is used, drawn among those outside validation and
            test where it is known; None: all of those.
        backbone: of the encoder, `"gcn"`, `"gin"`, `"gat"` or `"sage"`.
        num_layers: number of the encoder's convolutions.
        hidden: width.
        dropout: between convolutions.
        estimator_epochs: epochs of the estimator.
        training: settings of the training loop; learning rate and weight decay are the estimator's too.
    """

    name: ClassVar[str] = "fairgnn"
    summary: ClassVar[str] = "adversarial debiasing, with sensitive attributes known for only some nodes"

    def __init__(
        self,
        *,
        alpha: float = 4.0,
        beta: float = 0.01,
        num_known: int | None = 200,
        backbone: Backbone = "gcn",
        num_layers: int = 2,
        hidden: int = 16,
        dropout: float = 0.5,
        estimator_epochs: int = 800,
        training: Training | None = None,
    ) -> None:
        super().__init__(training=training)
        check_at_least(0, alpha=alpha, beta=beta, estimator_epochs=estimator_epochs)
        check_at_least(2, num_known=num_known)
        check_at_least(1, num_layers=num_layers, hidden=hidden)
        check_choice(get_args(Backbone), backbone=backbone)
        check_dropout(dropout)
        self.alpha, self.beta, self.num_known = alpha, beta, num_known
        self.backbone, self.num_layers, self.hidden, self.dropout = backbone, num_layers, hidden, dropout
        self.estimator_epochs = estimator_epochs

    @classmethod
    def default_training(cls) -> Training:
        """Return the authors' settings."""
        return Training(epochs=1000, learning_rate=1e-3, weight_decay=1e-5)

    @classmethod
    def authors(cls, data_set: str, *, backbone: Backbone = "gcn", **training: Any) -> "FairGNN":
        """Return the method as it was run on the benchmark graphs: one convolution, and fewer known nodes.

        Args:
            data_set: `"german"`, `"bail"` or `"credit"`.
            backbone: `"gcn"`, `"gin"`, `"gat"` or `"sage"`.
            training: settings of the training loop that are to be others than the default, e.g. `seed=1`.
        """
        check_choice(tuple(_KNOWN), data_set=data_set)
        loop = cls.default_training().but(**training)
        return cls(num_known=_KNOWN[data_set], num_layers=1, backbone=backbone, training=loop)

    def build(self, task: Task) -> Program:
        """Return estimator, encoder, classifier and adversary."""
        check_two_labels("FairGNN", task)
        # One logit tells two groups apart; more groups have one each.
        outputs = 1 if task.num_groups == 2 else task.num_groups
        estimator = GNN("gcn", (task.num_features, self.hidden, outputs), self.dropout)
        encoder = GNN(self.backbone, (task.num_features, *[self.hidden] * self.num_layers), self.dropout)
        adversary = nn.Linear(self.hidden, outputs)
        return _Adversarial(estimator, encoder, adversary, self)


class _Adversarial(Program):
    draw: Tensor

    def __init__(self, estimator: GNN, encoder: GNN, adversary: nn.Linear, settings: FairGNN) -> None:
        super().__init__()
        self.estimator, self.encoder, self.adversary = estimator, encoder, adversary
        self.classifier = nn.Linear(adversary.in_features, 1)
        self.alpha, self.beta = settings.alpha, settings.beta
        self.num_known, self.estimator_epochs = settings.num_known, settings.estimator_epochs
        # What the known nodes are drawn with: kept, so that a fit that is taken up again draws the same ones.
        self.register_buffer("draw", torch.randint(2**62, ()))
        # Gone as soon as the graph is, so that a fitted model does not hold on to it.
        self._beliefs: WeakKeyDictionary[Task, Tensor] = WeakKeyDictionary()

    def forward(self, task: Task) -> Tensor:
        return two_logits(self.classifier(self._encode(task)))

    def _encode(self, task: Task) -> Tensor:
        hidden: Tensor = self.encoder(task.x, task.operator(self.encoder.backbone))
        return hidden

    def configure(self, training: Training) -> None:
        self.optimizers = {
            "classifier": adam(nn.ModuleList([self.encoder, self.classifier]), training),
            "adversary": adam(self.adversary, training),
        }

    def prepare(self, task: Task, training: Training) -> None:
        """Train the estimator on the known nodes."""
        known = self.known_nodes(task)
        targets = self._indicators(task.sens[known])
        optimizer = adam(self.estimator, training)
        self.estimator.train()
        for _ in range(self.estimator_epochs):
            optimizer.zero_grad()
            torch.autograd.backward(bce(self.estimator(task.x, task.operator("gcn"))[known], targets))
            optimizer.step()
        self._beliefs.clear()

    def epoch(self, task: Task) -> dict[str, float]:
        sens = self.beliefs(task)
        hidden = self._encode(task)
        logit = self.classifier(hidden)
        train = task.train_nodes
        by_label = bce(logit[train, 0], task.y[train].to(logit))
        covariance = _covariance(sens, logit.sigmoid())
        loss = by_label + self.alpha * covariance - self.beta * bce(self.adversary(hidden), sens)
        self._step("classifier", loss)
        by_adversary = bce(self.adversary(hidden.detach()), sens)
        self._step("adversary", by_adversary)
        return {
            "loss": float(loss.detach()),
            "label": float(by_label.detach()),
            "covariance": float(covariance.detach()),
            "adversary": float(by_adversary.detach()),
        }

    def _step(self, name: str, loss: Tensor) -> None:
        self.zero_grad()  # of all networks: each loss also reaches one that it must not move
        torch.autograd.backward(loss)
        self.optimizers[name].step()

    @torch.no_grad()
    def beliefs(self, task: Task) -> Tensor:
        """Return the sensitive attribute, known or estimated: `(N, 1)`, or `(N, G)` for `G > 2` groups."""
        if task not in self._beliefs:
            self.estimator.eval()
            beliefs: Tensor = self.estimator(task.x, task.operator("gcn")).sigmoid()
            known = self.known_nodes(task)
            beliefs[known] = self._indicators(task.sens[known])
            self._beliefs[task] = beliefs
        return self._beliefs[task]

    def known_nodes(self, task: Task) -> Tensor:
        """Return the nodes whose sensitive attribute is used; never one of validation or test."""
        eligible = task.sens >= 0
        for split in ("val", "test"):
            if split in task.masks:
                eligible = eligible & ~task.masks[split]
        nodes = eligible.nonzero().flatten()
        if self.num_known is not None and self.num_known < len(nodes):
            generator = torch.Generator().manual_seed(int(self.draw))
            nodes = nodes[torch.randperm(len(nodes), generator=generator)[: self.num_known].to(nodes.device)]
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
    """Return the sum over the columns of `sens` of their absolute covariance with the score."""
    return ((sens - sens.mean(0)) * (score - score.mean(0))).mean(0).abs().sum()
