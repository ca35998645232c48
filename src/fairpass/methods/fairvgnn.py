"""FairVGNN: masks learn to hide the features that give the group away, and the encoder's weights follow."""

from typing import Any, ClassVar, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import check_at_least, check_choice, check_two_groups, check_two_labels
from fairpass.methods.fairvgnn_encoders import ENCODERS
from fairpass.nn.convolution import Backbone
from fairpass.training import Program, Task, Training
from fairpass.training.program import adam, two_logits

# The authors' scripts, for (data set, backbone): parameters and settings other than the defaults.
_AUTHORS: dict[tuple[str, Backbone], tuple[dict[str, Any], dict[str, Any]]] = {
    ("german", "gcn"): ({"c_epochs": 5, "g_epochs": 5, "clip": 0.1, "ratio": 0.5}, {"epochs": 400}),
    ("german", "gin"): ({"d_epochs": 10, "g_epochs": 5}, {"epochs": 200, "learning_rate": 0.01}),
    ("bail", "gcn"): ({}, {}),
    ("credit", "gcn"): ({"c_epochs": 5, "ratio": 0.0}, {"epochs": 200, "learning_rate": 0.01}),
    ("credit", "gin"): (
        {"d_epochs": 10, "c_epochs": 5, "clip": 0.01},
        {"epochs": 100, "learning_rate": 0.01},
    ),
}


class FairVGNN(NodeClassifier):
    r"""FairVGNN (Wang et al. 2022, `arXiv:2206.03426 <https://arxiv.org/abs/2206.03426>`_).

    Masks of the features are drawn by Gumbel-softmax from a learnt :math:`\theta \in R^{d \times 2}`, `K` at
    a time: :math:`m_k = \mathrm{softmax}((\theta + g_k)/\tau)_{\cdot 0}`. With an encoder `f`, a linear
    classifier `C` and a linear discriminator `D`, an epoch draws masks and takes steps of Adam on the means,
    over masks and nodes, of

    .. math::
        L_D &= \mathrm{BCE}\big(D(f(X \odot m_k)), s\big),
            & \text{D and f, on the nodes of known group,} \\
        L_C &= \mathrm{BCE}\big(C(f(X \odot m_k)), y\big),
            & \text{C and f, on the training nodes,} \\
        L_G &= \big(\sigma(D(f(X \odot m_k))) - \tfrac12\big)^2 + \rho\,(m_k - 1)^2,
            & \theta \text{ and f, with fresh masks at each step,}

    `d_epochs`, `c_epochs` and `g_epochs` of them; then it clamps the encoder's weights of feature `i` to
    :math:`\pm\epsilon\,\bar m_i`, :math:`\bar m` being the mean of the epoch's masks. A prediction is the
    mean of the logits under `K` masks, always the same ones.

    The encoder is one layer: `"gcn"` :math:`\tilde A X W + b`, `"gin"` :math:`\mathrm{BN}((A + I) X W)`,
    `"gat"` :math:`A^{att} X W + b`. :mod:`~fairpass.methods.fairvgnn_encoders` tells how the masks share work.

    What differs from the public code: the groups are read from `sens`, not from a column of `x`, and need not
    be known for all nodes; every node has one self-loop, not two; predictions are made with soft masks, as
    in training (there they are 0 or 1 and drawn again at each evaluation); the running statistics of `"gin"`
    are updated once for all masks. For Credit the public code has another algorithm, in which the encoder
    does not follow the discriminator and the classifier is clamped too; here there is one. It has no GAT.

    Args:
        K: number of masks.
        d_epochs: steps of discriminator and encoder in an epoch.
        c_epochs: steps of classifier and encoder in an epoch.
        g_epochs: steps of masks and encoder in an epoch.
        clip: :math:`\epsilon`, bound of the encoder's weights of a feature that is never masked.
        ratio: :math:`\rho`, weight of keeping the features.
        tau: :math:`\tau`, temperature of the masks.
        classifier_rate: learning rate of the classifier.
        adversary_rate: learning rate of discriminator and masks.
        backbone: `"gcn"`, `"gin"`, `"gat"` or `"sage"`.
        hidden: width of the encoder.
        training: settings of the training loop; the learning rate is the encoder's.
    """

    name: ClassVar[str] = "fairvgnn"
    summary: ClassVar[str] = "learns to mask the features that give the group away to a discriminator"

    def __init__(
        self,
        *,
        K: int = 10,
        d_epochs: int = 5,
        c_epochs: int = 10,
        g_epochs: int = 10,
        clip: float = 1.0,
        ratio: float = 1.0,
        tau: float = 1.0,
        classifier_rate: float = 0.01,
        adversary_rate: float = 0.001,
        backbone: Backbone = "gcn",
        hidden: int = 16,
        training: Training | None = None,
    ) -> None:
        super().__init__(training=training)
        check_at_least(1, K=K, c_epochs=c_epochs, hidden=hidden)
        check_at_least(0, d_epochs=d_epochs, g_epochs=g_epochs, clip=clip, ratio=ratio)
        check_choice(tuple(ENCODERS), backbone=backbone)
        rates = {"classifier_rate": classifier_rate, "adversary_rate": adversary_rate}
        for name, value in {"tau": tau, **rates}.items():
            if not value > 0:
                raise ValueError(f"'{name}' must be positive (got {value})")
        self.K, self.d_epochs, self.c_epochs, self.g_epochs = K, d_epochs, c_epochs, g_epochs
        self.clip, self.ratio, self.tau = clip, ratio, tau
        self.classifier_rate, self.adversary_rate = classifier_rate, adversary_rate
        self.backbone, self.hidden = backbone, hidden

    @classmethod
    def default_training(cls) -> Training:
        """Return the authors' settings for Bail."""
        return Training(epochs=300, learning_rate=1e-3, weight_decay=0.0)

    @classmethod
    def authors(cls, data_set: str, *, backbone: Backbone = "gcn", **training: Any) -> "FairVGNN":
        """Return the method as the authors' scripts configure it.

        Args:
            data_set: `"german"`, `"bail"` or `"credit"`.
            backbone: `"gcn"`, `"gin"`, `"gat"` or `"sage"`; where they have no script, the parameters of `"gcn"`.
            training: settings of the training loop that are to be others than the authors', e.g. `seed=1`.
        """
        check_choice([name for name, of in _AUTHORS if of == "gcn"], data_set=data_set)
        parameters, settings = _AUTHORS.get((data_set, backbone), _AUTHORS[data_set, "gcn"])
        loop = cls.default_training().but(**{**settings, **training})
        return cls(**parameters, backbone=backbone, training=loop)

    def build(self, task: Task) -> Program:
        """Return encoder, classifier, discriminator and masks."""
        check_two_labels("FairVGNN", task)
        check_two_groups("FairVGNN", task)
        return _FairViews(task.num_features, self)


Nodes = Literal["all", "train", "known"]


class _FairViews(Program):
    def __init__(self, num_features: int, settings: FairVGNN) -> None:
        super().__init__()
        self.encoder = ENCODERS[settings.backbone](num_features, settings.hidden)
        self.classifier = nn.Linear(settings.hidden, 1)
        self.discriminator = nn.Linear(settings.hidden, 1)
        self.theta = nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_features, 2)))
        self.K, self.clip, self.ratio, self.tau = settings.K, settings.clip, settings.ratio, settings.tau
        self.steps = (settings.d_epochs, settings.c_epochs, settings.g_epochs)
        self.rates = (settings.classifier_rate, settings.adversary_rate)

    def forward(self, task: Task) -> Tensor:
        masks = self.masks(torch.Generator().manual_seed(0))
        return two_logits(self.logits(task, "all", masks, self.classifier).mean(0)[:, None])

    def configure(self, training: Training) -> None:
        classifier, adversary = (training.but(learning_rate=rate) for rate in self.rates)
        self.optimizers = {
            "encoder": adam(self.encoder, training),
            "classifier": adam(self.classifier, classifier),
            "discriminator": adam(self.discriminator, adversary),
            "masks": adam(nn.ParameterList([self.theta]), adversary),
        }

    def epoch(self, task: Task) -> dict[str, float]:
        masks = self.masks().detach()
        losses = {"loss": 0.0, "discriminator": 0.0, "generator": 0.0}
        d_epochs, c_epochs, g_epochs = self.steps
        for _ in range(d_epochs):
            losses["discriminator"] = self._step(self.discriminator_loss(task, masks), "discriminator")
        for _ in range(c_epochs):
            losses["loss"] = self._step(self.classifier_loss(task, masks), "classifier")
        for _ in range(g_epochs):
            losses["generator"] = self._step(self.generator_loss(task, self.masks()), "masks")
        self.encoder.clamp(self.clip * masks.mean(0))
        return losses

    def masks(self, generator: torch.Generator | None = None) -> Tensor:
        """Return `K` masks `(K, d)`, drawn from the global generator or from a given one."""
        # Drawn on the CPU, so that they are the same on every device.
        noise = -torch.empty(self.K, *self.theta.shape).exponential_(generator=generator).log()
        return ((self.theta + noise.to(self.theta)) / self.tau).softmax(-1)[..., 0]

    def logits(self, task: Task, nodes: Nodes, masks: Tensor, head: nn.Linear) -> Tensor:
        """Return the head's logits of some nodes under each mask, `(K, n)`."""
        views = _VIEWS.setdefault(task, {})
        key = (type(self.encoder), nodes)
        if key not in views:
            views[key] = self.encoder.view(task, _indices(task, nodes))
        out: Tensor = self.encoder(views[key], masks, head)
        return out

    def discriminator_loss(self, task: Task, masks: Tensor) -> Tensor:
        """Return `L_D`."""
        logits = self.logits(task, "known", masks, self.discriminator)
        return bce(logits, task.sens[task.sens >= 0].to(logits).expand_as(logits))

    def classifier_loss(self, task: Task, masks: Tensor) -> Tensor:
        """Return `L_C`."""
        logits = self.logits(task, "train", masks, self.classifier)
        return bce(logits, task.y[task.train_nodes].to(logits).expand_as(logits))

    def generator_loss(self, task: Task, masks: Tensor) -> Tensor:
        """Return `L_G`."""
        guess = self.logits(task, "known", masks, self.discriminator).sigmoid()
        return (guess - 0.5).square().mean() + self.ratio * (masks - 1).square().mean()

    def _step(self, loss: Tensor, part: str) -> float:
        """Step one part, and the encoder with it."""
        self.zero_grad()  # of all parts: each loss also reaches one that it must not move
        torch.autograd.backward(loss)
        for name in (part, "encoder"):
            self.optimizers[name].step()
        return float(loss.detach())


# What graphs contribute to every pass over some of their nodes: made once for a task, gone with it.
_VIEWS: WeakKeyDictionary[Task, dict[tuple[type[nn.Module], Nodes], Any]] = WeakKeyDictionary()


def _indices(task: Task, nodes: Nodes) -> Tensor | None:
    """Return which nodes these are; None: all of them."""
    if nodes == "train":
        return task.train_nodes
    known = task.sens >= 0
    return None if nodes == "all" or bool(known.all()) else torch.nonzero(known).flatten()
