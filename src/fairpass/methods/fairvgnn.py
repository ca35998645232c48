"""FairVGNN: masks learn to hide the features that reveal the group, and the encoder's weights follow."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from fairpass.methods import networks
from fairpass.nn import Attention, SparseOperator
from fairpass.nn.convolution import Backbone
from fairpass.parameters import LARGEST_RATE, Choice, LogUniform, Uniform, parameter
from fairpass.training import Program, Task, Training
from fairpass.training.program import adam, two_logits

Nodes = Tensor | slice  # indices; slice(None) for all nodes

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

    K: int = parameter(10, "number of masks", at_least=1, limit=10_000)
    d_epochs: int = parameter(5, "steps of discriminator and encoder in an epoch", _STEPS, at_least=0, limit=1000)
    c_epochs: int = parameter(10, "steps of classifier and encoder in an epoch", _STEPS, at_least=1, limit=1000)
    g_epochs: int = parameter(10, "steps of masks and encoder in an epoch", _STEPS, at_least=0, limit=1000)
    clip: float = parameter(
        1.0, r":math:`\epsilon`, bound of the weights", LogUniform(0.01, 10), Choice(0.01, 0.1, 1.0), at_least=0
    )
    ratio: float = parameter(
        1.0, r":math:`\rho`, weight of keeping the features", Uniform(0, 2), Choice(0.0, 0.5, 1.0), at_least=0
    )
    tau: float = parameter(1.0, r"temperature :math:`\tau` of the masks", above=0)
    classifier_rate: float = parameter(0.01, "learning rate of the classifier", above=0, limit=LARGEST_RATE)
    adversary_rate: float = parameter(0.001, "learning rate of discriminator and masks", above=0, limit=LARGEST_RATE)
    backbone: Backbone = networks.backbone()
    hidden: int = networks.hidden()

    name = "fairvgnn"
    summary = "learns to mask the features that give the group away to a discriminator"
    takes_edge_weights = True
    stage = "in-processing"
    needs_groups = "training"
    # Masks are still drawn, and weights clipped by them, but neither learns anything about the groups.
    switched_off: ClassVar[Mapping[str, Any]] = {"d_epochs": 0, "g_epochs": 0}
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
        self.settings, self.rates = settings.with_params(), settings.learning_rates

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
            chosen: Nodes = task.train_nodes if nodes == "train" else slice(None)
            if nodes == "known" and bool((task.sens < 0).any()):
                chosen = torch.nonzero(task.sens >= 0).flatten()
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


class MaskedEncoder(nn.Module):
    r"""One layer of a backbone with a linear head :math:`v` on top, under many masks at once; this is the GCN's.

    A mask scales columns and `A` mixes rows, so :math:`A (X \odot m) W = (A X \odot m) W`, and `A X` is computed once.
    The rest is affine (batch normalisation follows from the mean and covariance of `A X`), so the logits under `K`
    masks are one product, :math:`(A X)(m_k \odot W v) + b^\top v`. Only attention needs a pass for each mask.
    """

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(num_features, hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))

    def view(self, task: Task, nodes: Nodes) -> Any:
        """Return what `forward` needs of a graph for the logits of these nodes."""
        return (task.operator("gcn") @ task.x)[nodes]

    def forward(self, view: Any, masks: Tensor, head: nn.Linear) -> Tensor:
        """Return the head's logits of the view's nodes under masks `(K, d)`, `(K, n)`."""
        directions = masks * (head.weight @ self.linear.weight)
        out: Tensor = directions @ view.T + head(self.bias)
        return out

    @torch.no_grad()
    def clamp(self, bound: Tensor) -> None:
        self.linear.weight.clamp_(-bound, bound)


class MaskedSAGE(MaskedEncoder):
    r""":math:`D^{-1} A (X \odot m) W + (X \odot m) R + b`; both `W` and `R` are clamped."""

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__(num_features, hidden)
        self.root = nn.Linear(num_features, hidden, bias=False)

    def view(self, task: Task, nodes: Nodes) -> Tensor:
        return torch.cat([task.operator("sage") @ task.x, task.x], -1)[nodes]

    def forward(self, view: Tensor, masks: Tensor, head: nn.Linear) -> Tensor:
        directions = masks.repeat(1, 2) * (head.weight @ torch.cat([self.linear.weight, self.root.weight], -1))
        out: Tensor = directions @ view.T + head(self.bias)
        return out

    @torch.no_grad()
    def clamp(self, bound: Tensor) -> None:
        super().clamp(bound)
        self.root.weight.clamp_(-bound, bound)


class MaskedGIN(MaskedEncoder):
    r""":math:`\mathrm{BN}\big((A + I)(X \odot m) W\big)`, each mask normalised by itself."""

    mean: Tensor
    variance: Tensor

    def __init__(self, num_features: int, hidden: int, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__(num_features, hidden)
        self.scale = nn.Parameter(torch.ones(hidden))
        self.momentum, self.epsilon = momentum, epsilon
        self.register_buffer("mean", torch.zeros(hidden))
        self.register_buffer("variance", torch.ones(hidden))

    def view(self, task: Task, nodes: Nodes) -> tuple[Tensor, Tensor, Tensor]:
        propagated = task.operator("gin") @ task.x
        mean = propagated.mean(0)
        centred = propagated - mean
        return propagated[nodes], mean, centred.T @ centred / len(centred)

    def forward(self, view: tuple[Tensor, Tensor, Tensor], masks: Tensor, head: nn.Linear) -> Tensor:
        masked = masks[:, None, :] * self.linear.weight  # (K, hidden, d)
        mean, variance = self.mean[None], self.variance[None]
        if self.training:
            mean, variance = masked @ view[1], (masked @ view[2] * masked).sum(-1)
            self.mean.lerp_(mean.detach().mean(0), self.momentum)
            self.variance.lerp_(variance.detach().mean(0), self.momentum)
        scale = self.scale * (variance + self.epsilon).rsqrt()
        directions = ((scale * head.weight)[:, :, None] * masked).sum(1)
        out: Tensor = directions @ view[0].T + head(self.bias - scale * mean)
        return out


class MaskedGAT(MaskedEncoder):
    r""":math:`A^{att} (X \odot m) W + b`, one head, attention from :math:`(X \odot m) W`."""

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__(num_features, hidden)
        self.attention = Attention(hidden)

    def view(self, task: Task, nodes: Nodes) -> tuple[Tensor, SparseOperator, Nodes]:
        if isinstance(nodes, slice):
            return task.x, task.operator("gat"), nodes
        inwards = task.edge_index[:, torch.isin(task.edge_index[1], nodes)]
        return task.x, SparseOperator.from_edge_index(inwards, task.num_nodes, "gat"), nodes

    def forward(self, view: tuple[Tensor, SparseOperator, Nodes], masks: Tensor, head: nn.Linear) -> Tensor:
        x, structure, nodes = view
        # Attention needs two products of `X W` with a vector, and the head a third.
        vectors = torch.cat([self.attention.b_target.T, self.attention.b_source.T, head.weight])
        products = (masks[:, None, :] * (vectors @ self.linear.weight)) @ x.T  # (K, 3, N)
        slope = self.attention.negative_slope
        means = torch.stack([attended(each[0], each[1], each[2], structure, slope) for each in products])
        out: Tensor = means[:, nodes] + head(self.bias)
        return out


def attended(target: Tensor, source: Tensor, value: Tensor, structure: SparseOperator, slope: float) -> Tensor:
    r"""Return :math:`\sum_j a_{ij} v_j`, :math:`a_{i\cdot}` the softmax over `j` of LeakyReLU(target_i + source_j).

    The gradient is written by hand: with autograd, an epoch on the Bail graph takes more than twice as long.
    """
    out: Tensor = _Attended.apply(target, source, value, structure, slope)  # type: ignore[no-untyped-call] # torch's own
    return out


class _Attended(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, target: Tensor, source: Tensor, value: Tensor, structure: SparseOperator, slope: float
    ) -> Tensor:
        row, col = structure.row, structure.col
        score = target.index_select(0, row) + source.index_select(0, col)
        raised = torch.nn.functional.leaky_relu(score, slope)
        exp = (raised - structure.row_max(raised).index_select(0, row)).exp_()
        sums = structure.with_values(exp) @ torch.stack([value, torch.ones_like(value)], 1)
        out = sums[:, 0] / sums[:, 1]
        ctx.structure, ctx.slope = structure, slope
        ctx.save_for_backward(score, exp, sums[:, 1], value, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        structure = ctx.structure
        score, exp, total, value, out = ctx.saved_tensors
        # With a_ij the attention and g the gradient: g_i a_ij by value j, times (v_j - out_i) by score.
        share = exp * (grad / total).index_select(0, structure.row)
        by_score = share * (value.index_select(0, structure.col) - out.index_select(0, structure.row))
        by_score = torch.where(score > 0, by_score, ctx.slope * by_score)
        by_target = (structure.with_values(by_score) @ torch.ones_like(grad)[:, None])[:, 0]
        by_source, by_value = (torch.zeros_like(grad).index_add_(0, structure.col, part) for part in (by_score, share))
        return by_target, by_source, by_value, None, None


ENCODERS: dict[Backbone, type[MaskedEncoder]] = {
    "gcn": MaskedEncoder,
    "gin": MaskedGIN,
    "gat": MaskedGAT,
    "sage": MaskedSAGE,
}
