"""FairVGNN: masks learn to hide the features that reveal the group, and the encoder's weights follow."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from fairpass.methods import networks
from fairpass.methods.fairvgnn_encoders import ENCODERS
from fairpass.nn.convolution import Backbone
from fairpass.parameters import Choice, LogUniform, Uniform, parameter
from fairpass.training import Program, Task, Training
from fairpass.training.program import adam, two_logits

_STEPS = Choice(5, 10)


class FairVGNN(networks.Published):
    r"""FairVGNN (Wang et al. 2022, `arXiv:2206.03426 <https://arxiv.org/abs/2206.03426>`_).

    Masks of the features are drawn by Gumbel-softmax from a learnt :math:`\theta \in R^{d \times 2}`, `K` at
    a time: :math:`m_k = \mathrm{softmax}((\theta + g_k)/\tau)_{\cdot 0}`. With an encoder `f`, a linear
    classifier `C` and a linear discriminator `D`, an epoch takes steps of Adam on the means, over masks and nodes, of

    .. math::
        L_D &= \mathrm{BCE}\big(D(f(X \odot m_k)), s\big), & \text{D and f, on the nodes of known group,} \\
        L_C &= \mathrm{BCE}\big(C(f(X \odot m_k)), y\big), & \text{C and f, on the training nodes,} \\
        L_G &= \big(\sigma(D(f(X \odot m_k))) - \tfrac12\big)^2 + \rho\,(m_k - 1)^2,
            & \theta \text{ and f, with fresh masks at each step.}

    Then it clamps the encoder's weights of feature `i` to :math:`\pm\epsilon\,\bar m_i`, where :math:`\bar m` is the
    mean of the epoch's masks. A prediction is the mean of the logits under `K` fixed masks. The encoder is one layer.
    """

    K: int = parameter(10, "number of masks", at_least=1)
    d_epochs: int = parameter(5, "steps of discriminator and encoder in an epoch", _STEPS, at_least=0)
    c_epochs: int = parameter(10, "steps of classifier and encoder in an epoch", _STEPS, at_least=1)
    g_epochs: int = parameter(10, "steps of masks and encoder in an epoch", _STEPS, at_least=0)
    clip: float = parameter(
        1.0, r":math:`\epsilon`, bound of the weights", LogUniform(0.01, 10), Choice(0.01, 0.1, 1.0), at_least=0
    )
    ratio: float = parameter(
        1.0, r":math:`\rho`, weight of keeping the features", Uniform(0, 2), Choice(0.0, 0.5, 1.0), at_least=0
    )
    tau: float = parameter(1.0, r"temperature :math:`\tau` of the masks", above=0)
    classifier_rate: float = parameter(0.01, "learning rate of the classifier", above=0)
    adversary_rate: float = parameter(0.001, "learning rate of discriminator and masks", above=0)
    backbone: Backbone = networks.backbone()
    hidden: int = networks.hidden()

    name = "fairvgnn"
    summary = "learns to mask the features that give the group away to a discriminator"
    recommended_training = Training(epochs=300, learning_rate=1e-3, weight_decay=0.0)  # the authors', for Bail
    search_order = ("clip", "ratio")
    takes_two = ("labels", "groups")
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "german": {"c_epochs": 5, "g_epochs": 5, "clip": 0.1, "ratio": 0.5, "epochs": 400},
        "german/gin": {"d_epochs": 10, "g_epochs": 5, "epochs": 200, "learning_rate": 0.01},
        "bail": {},
        "credit": {"c_epochs": 5, "ratio": 0.0, "epochs": 200, "learning_rate": 0.01},
        "credit/gin": {"d_epochs": 10, "c_epochs": 5, "clip": 0.01, "epochs": 100, "learning_rate": 0.01},
    }

    def build(self, task: Task) -> Program:
        return _FairViews(task.num_features, self)


class _FairViews(networks.SeveralOptimizers):
    def __init__(self, num_features: int, settings: FairVGNN) -> None:
        super().__init__()
        self.encoder = ENCODERS[settings.backbone](num_features, settings.hidden)
        self.classifier = nn.Linear(settings.hidden, 1)
        self.discriminator = nn.Linear(settings.hidden, 1)
        self.theta = nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_features, 2)))
        self.settings = settings.with_params()

    def forward(self, task: Task) -> Tensor:
        masks = self.masks(torch.Generator().manual_seed(0))
        return two_logits(self.logits(task, "all", masks, self.classifier).mean(0)[:, None])

    def configure(self, training: Training) -> None:
        adversary = training.but(learning_rate=self.settings.adversary_rate)
        self.optimizers = {
            "encoder": adam(self.encoder, training),
            "classifier": adam(self.classifier, training.but(learning_rate=self.settings.classifier_rate)),
            "discriminator": adam(self.discriminator, adversary),
            "masks": adam(nn.ParameterList([self.theta]), adversary),
        }

    def epoch(self, task: Task) -> dict[str, float]:
        masks = self.masks().detach()
        losses = {"loss": 0.0, "discriminator": 0.0, "generator": 0.0}
        for _ in range(self.settings.d_epochs):
            losses["discriminator"] = self.minimise(self.discriminator_loss(task, masks), "discriminator", "encoder")
        for _ in range(self.settings.c_epochs):
            losses["loss"] = self.minimise(self.classifier_loss(task, masks), "classifier", "encoder")
        for _ in range(self.settings.g_epochs):
            losses["generator"] = self.minimise(self.generator_loss(task, self.masks()), "masks", "encoder")
        self.encoder.clamp(self.settings.clip * masks.mean(0))
        return losses

    def masks(self, generator: torch.Generator | None = None) -> Tensor:
        # Drawn on the CPU, so that they are the same on every device.
        noise = -torch.empty(self.settings.K, *self.theta.shape).exponential_(generator=generator).log()
        return ((self.theta + noise.to(self.theta)) / self.settings.tau).softmax(-1)[..., 0]

    def logits(self, task: Task, nodes: Literal["all", "train", "known"], masks: Tensor, head: nn.Linear) -> Tensor:
        """Return the head's logits of some nodes under each mask, `(K, n)`."""
        key = (type(self.encoder), nodes)
        if key not in task.cache:
            known = task.sens >= 0
            if nodes == "all" or (nodes == "known" and bool(known.all())):
                chosen = None
            else:
                chosen = task.train_nodes if nodes == "train" else torch.nonzero(known).flatten()
            task.cache[key] = self.encoder.view(task, chosen)
        out: Tensor = self.encoder(task.cache[key], masks, head)
        return out

    def discriminator_loss(self, task: Task, masks: Tensor) -> Tensor:
        logits = self.logits(task, "known", masks, self.discriminator)
        return bce(logits, task.sens[task.sens >= 0].to(logits).expand_as(logits))

    def classifier_loss(self, task: Task, masks: Tensor) -> Tensor:
        logits = self.logits(task, "train", masks, self.classifier)
        return bce(logits, task.y[task.train_nodes].to(logits).expand_as(logits))

    def generator_loss(self, task: Task, masks: Tensor) -> Tensor:
        guess = self.logits(task, "known", masks, self.discriminator).sigmoid()
        return (guess - 0.5).square().mean() + self.settings.ratio * (masks - 1).square().mean()
