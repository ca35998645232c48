"""FairVGNN: learnt masks hide the features that give the group away, and the encoder's weights follow them."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from fairpass.errors import DataError
from fairpass.methods.base import NodeClassifier
from fairpass.nn import Attention, Structure
from fairpass.nn.attention import weighted_product
from fairpass.nn.convolution import Backbone
from fairpass.training import Program, Task, Training
from fairpass.training.program import adam, two_logits

# The authors' scripts, (data set, backbone) -> what differs from the defaults, which are their choice for Bail.
_AUTHORS: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]] = {
    ("german", "gcn"): ({"g_epochs": 5, "c_epochs": 5, "clip": 0.1, "ratio": 0.5}, {"epochs": 400}),
    ("german", "gin"): ({"d_epochs": 10, "g_epochs": 5}, {"epochs": 200, "learning_rate": 0.01}),
    ("bail", "gcn"): ({}, {"epochs": 300}),
    ("credit", "gcn"): ({"c_epochs": 5, "ratio": 0.0}, {"epochs": 200, "learning_rate": 0.01}),
    ("credit", "gin"): ({"d_epochs": 10, "c_epochs": 5, "clip": 0.01}, {"epochs": 100, "learning_rate": 0.01}),
}


class FairVGNN(NodeClassifier):
    r"""FairVGNN (Wang et al. 2022, `arXiv:2206.03426 <https://arxiv.org/abs/2206.03426>`_), for two labels and two groups.

    Every epoch draws `K` masks of the features by Gumbel-softmax from a learnt :math:`\theta \in R^{d \times 2}`,
    :math:`m_k = \mathrm{softmax}((\theta + g_k)/\tau)_{\cdot 0}`. With the encoder `f`, the classifier `C` and the
    discriminator `D` (both linear, then the logistic function), it takes Adam steps on the means over masks and nodes of

    .. math::
        L_D &= \mathrm{BCE}\big(D(f(X \odot m_k)), s\big) & \text{`d\_epochs` steps of D and f, nodes of known group,} \\
        L_C &= \mathrm{BCE}\big(C(f(X \odot m_k)), y\big) & \text{`c\_epochs` steps of C and f, training nodes,} \\
        L_G &= \big(D(f(X \odot m_k)) - \tfrac12\big)^2 + \rho \, (m_k - 1)^2
            & \text{`g\_epochs` steps of } \theta \text{ and f, fresh masks each,}

    and then clamps the weights of feature `i` in the encoder to :math:`\pm \epsilon\, \bar m_i`, :math:`\bar m` being the mean
    of the epoch's masks. A prediction is the mean of the logits under `K` masks, always the same ones.

    The encoder is one layer: `"gcn"` :math:`\tilde A X W + b`; `"gin"` :math:`\mathrm{BN}((A + I) X W)`; `"gat"`
    :math:`A^{att} X W + b`. A mask scales columns and `A` mixes rows, so :math:`A (X \odot m) W = (A X \odot m) W`: `A X` is
    computed once for a fit. And nothing but an affine map stands between `A X` and a linear head, not even batch
    normalisation (its mean and variance follow from those of `A X`), so the logits under all masks are one product
    of `A X` with `K` vectors. Only attention needs a pass for each mask.

    What differs from the public code: groups are read from `sens`, not from a column of `X`, and may be unknown for
    some nodes; one self-loop for each node, not two; soft masks in prediction as in training (there 0 or 1, drawn anew
    at each evaluation); the running mean and variance of `"gin"` take one step for all masks, not one for each.
    On Credit the public code runs another algorithm (the encoder does not follow `D`, the classifier is
    clamped too); here it is the same one on every graph. The public code has no GAT.

    Args:
        K: number of masks.
        d_epochs: steps of discriminator and encoder in each epoch.
        c_epochs: steps of classifier and encoder in each epoch.
        g_epochs: steps of masks and encoder in each epoch.
        clip: :math:`\epsilon`, the bound of the encoder's weights for a feature that is never masked.
        ratio: :math:`\rho`, weight of keeping features.
        tau: temperature of the masks.
        classifier_rate: learning rate of the classifier; the encoder's is that of `training`.
        adversary_rate: learning rate of discriminator and masks.
        backbone: `"gcn"`, `"gin"` or `"gat"`.
        hidden: width of the encoder.
        training: settings of the training loop.
    """

    name: ClassVar[str] = "fairvgnn"
    summary: ClassVar[str] = "learnt feature masks against a discriminator, encoder weights clamped by them"

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
        self.K, self.d_epochs, self.c_epochs, self.g_epochs = K, d_epochs, c_epochs, g_epochs
        self.clip, self.ratio, self.tau = clip, ratio, tau
        self.classifier_rate, self.adversary_rate = classifier_rate, adversary_rate
        self.backbone, self.hidden = backbone, hidden
        for name in ("K", "c_epochs", "hidden"):
            if getattr(self, name) < 1:
                raise ValueError(f"'{name}' must be at least 1 (got {getattr(self, name)})")
        for name in ("d_epochs", "g_epochs", "ratio"):
            if getattr(self, name) < 0:
                raise ValueError(f"'{name}' must be at least 0 (got {getattr(self, name)})")
        for name in ("clip", "tau", "classifier_rate", "adversary_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"'{name}' must be positive (got {getattr(self, name)})")
        if backbone not in _ENCODERS:
            raise ValueError(f"'backbone' must be one of {tuple(_ENCODERS)} (got {backbone!r})")

    @classmethod
    def default_training(cls) -> Training:
        """Return the authors' settings for Bail."""
        return Training(epochs=300, learning_rate=0.001, weight_decay=0.0)

    @classmethod
    def authors(cls, data_set: str, *, backbone: Backbone = "gcn", **training: Any) -> "FairVGNN":
        """Return the method as the authors' scripts configure it for `"german"`, `"bail"` or `"credit"`.

        They have no script for GAT, nor for GIN on Bail; these get what GCN has. `training` changes settings of the loop.
        """
        if (data_set, "gcn") not in _AUTHORS:
            known = tuple(name for name, of in _AUTHORS if of == "gcn")
            raise ValueError(f"'data_set' must be one of {known} (got {data_set!r})")
        parameters, settings = _AUTHORS.get((data_set, backbone), _AUTHORS[data_set, "gcn"])
        return cls(**parameters, backbone=backbone, training=cls.default_training().but(**settings | training))

    def build(self, task: Task) -> Program:
        """Return encoder, classifier, discriminator and masks."""
        for what, count in (("labels", task.num_classes), ("groups", task.num_groups)):
            if count != 2:
                raise DataError(f"FairVGNN needs two {what} (got {count})")
        return _FairViews(self, task.num_features)


class _FairViews(Program):
    def __init__(self, method: FairVGNN, num_features: int) -> None:
        super().__init__()
        self.method = method
        self.encoder = _ENCODERS[method.backbone](num_features, method.hidden)
        self.classifier = nn.Linear(method.hidden, 1)
        self.discriminator = nn.Linear(method.hidden, 1)
        self.theta = nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_features, 2)))

    def configure(self, training: Training) -> None:
        of_classifier = training.but(learning_rate=self.method.classifier_rate)
        of_adversary = training.but(learning_rate=self.method.adversary_rate)
        self.optimizers = {
            "encoder": adam(self.encoder, training),
            "classifier": adam(self.classifier, of_classifier),
            "discriminator": adam(self.discriminator, of_adversary),
            "masks": adam(nn.ParameterList([self.theta]), of_adversary),
        }

    def masks(self, generator: torch.Generator | None = None) -> Tensor:
        """Return `K` masks `(K, d)`, with gradient to `theta`."""
        # Drawn on the CPU, whose random state is seeded and stored with a checkpoint, whatever the device.
        noise = -torch.empty(self.method.K, *self.theta.shape).exponential_(generator=generator).log()
        return ((self.theta + noise.to(self.theta)) / self.method.tau).softmax(-1)[..., 0]

    def logits(self, task: Task, nodes: "Nodes", masks: Tensor, head: nn.Linear) -> Tensor:
        """Return the logits of some nodes under each mask, `(K, n)`."""
        seen = _SEEN.setdefault(task, {})
        key = (self.method.backbone, nodes)
        if key not in seen:
            seen[key] = self.encoder.view(task, _indices(task, nodes))
        out: Tensor = self.encoder(seen[key], masks, head)
        return out

    def forward(self, task: Task) -> Tensor:
        masks = self.masks(torch.Generator().manual_seed(0))
        return two_logits(self.logits(task, "all", masks, self.classifier).mean(0)[:, None])

    def epoch(self, task: Task) -> dict[str, float]:
        masks = self.masks().detach()
        losses = {"loss": 0.0, "discriminator": 0.0, "generator": 0.0}
        for _ in range(self.method.d_epochs):
            losses["discriminator"] = self._step(self.discriminator_loss(task, masks), "discriminator", "encoder")
        for _ in range(self.method.c_epochs):
            losses["loss"] = self._step(self.classifier_loss(task, masks), "classifier", "encoder")
        for _ in range(self.method.g_epochs):
            losses["generator"] = self._step(self.generator_loss(task, self.masks()), "masks", "encoder")
        self.encoder.clamp(self.method.clip * masks.mean(0))
        return losses

    def discriminator_loss(self, task: Task, masks: Tensor) -> Tensor:
        """Return `L_D`."""
        logits = self.logits(task, "known", masks, self.discriminator)
        sens = task.sens[task.sens >= 0].to(logits)
        return binary_cross_entropy_with_logits(logits, sens.expand_as(logits))

    def classifier_loss(self, task: Task, masks: Tensor) -> Tensor:
        """Return `L_C`."""
        logits = self.logits(task, "train", masks, self.classifier)
        y = task.y[task.train_nodes].to(logits)
        return binary_cross_entropy_with_logits(logits, y.expand_as(logits))

    def generator_loss(self, task: Task, masks: Tensor) -> Tensor:
        """Return `L_G`."""
        guess = self.logits(task, "known", masks, self.discriminator).sigmoid()
        return (guess - 0.5).square().mean() + self.method.ratio * (masks - 1).square().mean()

    def _step(self, loss: Tensor, *parts: str) -> float:
        for part in parts:
            self.optimizers[part].zero_grad()
        loss.backward()
        for part in parts:
            self.optimizers[part].step()
        return float(loss.detach())


Nodes = Literal["all", "train", "known"]

# What a graph contributes to every pass over some of its nodes: made once for a task, gone with it.
_SEEN: WeakKeyDictionary[Task, dict[tuple[Backbone, Nodes], Any]] = WeakKeyDictionary()


def _indices(task: Task, nodes: Nodes) -> Tensor | None:
    """Return which nodes these are; None: all."""
    if nodes == "train":
        return task.train_nodes
    known = task.sens >= 0
    return None if nodes == "all" or bool(known.all()) else torch.nonzero(known).flatten()


class _Encoder(nn.Module):
    """One layer of a backbone and a linear head on top of it, under many masks of the features at once."""

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(num_features, hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))

    @abstractmethod
    def view(self, task: Task, nodes: Tensor | None) -> Any:
        """Return what `forward` needs to know of a graph for the logits of these nodes."""

    @torch.no_grad()
    def clamp(self, bound: Tensor) -> None:
        """Clamp the weights of each feature to `+- bound`, `(d,)`."""
        self.linear.weight.clamp_(-bound, bound)


class _GCNEncoder(_Encoder):
    def view(self, task: Task, nodes: Tensor | None) -> Tensor:
        propagated = task.adjacency("gcn") @ task.x
        return propagated if nodes is None else propagated[nodes]

    def forward(self, propagated: Tensor, masks: Tensor, head: nn.Linear) -> Tensor:
        directions = masks * (head.weight @ self.linear.weight)
        return directions @ propagated.T + head(self.bias)


class _Moments(NamedTuple):
    rows: Tensor
    mean: Tensor
    covariance: Tensor


class _GINEncoder(_Encoder):
    mean: Tensor
    variance: Tensor

    def __init__(self, num_features: int, hidden: int, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__(num_features, hidden)
        self.scale = nn.Parameter(torch.ones(hidden))
        self.momentum, self.epsilon = momentum, epsilon
        self.register_buffer("mean", torch.zeros(hidden))
        self.register_buffer("variance", torch.ones(hidden))

    def view(self, task: Task, nodes: Tensor | None) -> _Moments:
        propagated = task.adjacency("gin") @ task.x
        mean = propagated.mean(0)
        centred = propagated - mean
        return _Moments(propagated if nodes is None else propagated[nodes], mean, centred.T @ centred / len(centred))

    def forward(self, moments: _Moments, masks: Tensor, head: nn.Linear) -> Tensor:
        masked = masks[:, None, :] * self.linear.weight  # (K, hidden, d)
        mean, variance = self._statistics(masked, moments)
        scale = self.scale * (variance + self.epsilon).rsqrt()
        directions = ((scale * head.weight)[:, :, None] * masked).sum(1)
        return directions @ moments.rows.T + head(self.bias - scale * mean)

    def _statistics(self, masked: Tensor, moments: _Moments) -> tuple[Tensor, Tensor]:
        """Return mean and variance over the nodes of every hidden unit, `(K, hidden)` or, in evaluation, `(1, hidden)`."""
        if not self.training:
            return self.mean[None], self.variance[None]
        mean, variance = masked @ moments.mean, (masked @ moments.covariance * masked).sum(-1)
        with torch.no_grad():
            self.mean.lerp_(mean.mean(0), self.momentum)
            self.variance.lerp_(variance.mean(0), self.momentum)
        return mean, variance


class _Neighbourhoods(NamedTuple):
    x: Tensor
    structure: Structure
    nodes: Tensor | None


class _GATEncoder(_Encoder):
    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__(num_features, hidden)
        self.attention = Attention(hidden)

    def view(self, task: Task, nodes: Tensor | None) -> _Neighbourhoods:
        if nodes is None:
            return _Neighbourhoods(task.x, task.structure, None)
        # Only what points at these nodes is needed.
        wanted = torch.zeros(task.num_nodes, dtype=torch.bool, device=task.device)
        wanted[nodes] = True
        inwards = task.edge_index[:, wanted[task.edge_index[1]]]
        return _Neighbourhoods(task.x, Structure(inwards, task.num_nodes), nodes)

    def forward(self, graph: _Neighbourhoods, masks: Tensor, head: nn.Linear) -> Tensor:
        each: Sequence[Tensor] = [self._under(mask, graph, head) for mask in masks]
        return torch.stack(each) + head(self.bias)

    def _under(self, mask: Tensor, graph: _Neighbourhoods, head: nn.Linear) -> Tensor:
        hidden = self.linear(graph.x * mask)
        weights = self.attention.weights(hidden, graph.structure)
        # The head comes before the sum over neighbours: one column instead of all hidden ones.
        out = weighted_product(weights, hidden @ head.weight.T, graph.structure)[:, 0]
        return out if graph.nodes is None else out[graph.nodes]


_ENCODERS: dict[str, type[_Encoder]] = {"gcn": _GCNEncoder, "gin": _GINEncoder, "gat": _GATEncoder}
