"""GMMD and GMMD-S: an MLP, then message passing that keeps the groups' representations alike."""

from typing import ClassVar

import torch
from torch import Tensor

from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import check_at_least, check_choice, check_fraction
from fairpass.nn import MLP, GMMDPropagation, GMMDSPropagation
from fairpass.nn.convolution import Backbone
from fairpass.nn.propagation import Bandwidth, Step
from fairpass.training import Program, Task, Training


class GMMD(NodeClassifier):
    r"""Fairness-aware message passing (Zhu et al. 2023, `arXiv:2306.11132 <https://arxiv.org/abs/2306.11132>`_).

    :math:`X_{in} = \mathrm{MLP}(X)`, then `K` layers of :class:`~fairpass.nn.GMMDPropagation` to
    :math:`\hat Y = \mathrm{softmax}(F^{(K)})`, trained with cross-entropy. What differs from the paper by
    default: all nodes, exactly, instead of a sample; steps that cannot overshoot; a kernel as wide as the
    representations are spread, so that the network cannot escape it by scaling up. :meth:`paper` gives the
    paper's own configuration.

    Args:
        K: layers of message passing.
        lambda_s: weight of smoothness.
        weight: weight of fairness without units, :math:`16\lambda_f\alpha/\min_a N_a`; 100 by default, for GMMD-S 1.
        lambda_f: weight of fairness in the paper's units, instead of `weight`.
        lambda_f_scaling: `"product"` multiplies `lambda_f` by :math:`|S_0'||S_1'|`, as the paper's search
            grid does; or `"none"`.
        alpha: parameter of the kernel.
        backbone: `"gcn"`, `"gin"` or `"gat"`.
        step: `"stable"` or `"paper"`.
        bandwidth: `"adaptive"` or `"fixed"`.
        fair_steps: kernel steps in each stable layer.
        sample: nodes drawn from each group at each epoch; None: all nodes.
        num_layers: `M`, layers of the MLP.
        hidden: width of the MLP.
        dropout: in the MLP.
        training: settings of the training loop.
    """

    name: ClassVar[str] = "gmmd"
    summary: ClassVar[str] = "message passing that minimises the discrepancy between groups, exact over all nodes"
    propagation: ClassVar[type[GMMDPropagation]] = GMMDPropagation
    per_member: ClassVar[tuple[str, ...] | None] = GMMDPropagation.per_member

    def __init__(
        self,
        *,
        K: int = 2,
        lambda_s: float = 1.0,
        weight: float | None = None,
        lambda_f: float | None = None,
        lambda_f_scaling: str = "none",
        alpha: float = 0.3,
        backbone: Backbone = "gcn",
        step: Step = "stable",
        bandwidth: Bandwidth = "adaptive",
        fair_steps: int = 4,
        sample: int | None = None,
        num_layers: int = 2,
        hidden: int = 16,
        dropout: float = 0.0,
        training: Training | None = None,
    ) -> None:
        super().__init__(training=training)
        self.K, self.lambda_s, self.alpha = K, lambda_s, alpha
        self.weight = self.propagation.default_weight if weight is None else weight
        self.lambda_f, self.lambda_f_scaling = lambda_f, lambda_f_scaling
        self.backbone, self.step, self.bandwidth = backbone, step, bandwidth
        self.fair_steps, self.sample = fair_steps, sample
        self.num_layers, self.hidden, self.dropout = num_layers, hidden, dropout
        check_at_least(1, num_layers=num_layers, hidden=hidden)
        check_fraction(dropout=dropout)
        check_choice(("none", "product"), lambda_f_scaling=lambda_f_scaling)
        with torch.device("meta"):  # a wrong parameter is an error here, not at fit; nothing is drawn
            self._propagation(2, (1, 1))

    @classmethod
    def default_training(cls) -> Training:
        """Return the settings we recommend: few labels want a strong weight decay."""
        return Training(epochs=200, weight_decay=0.01)

    @classmethod
    def paper(cls, *, lambda_f: float = 1.0, sample: int | None = 100, training: Training | None = None) -> "GMMD":
        """Return the paper's configuration: sampled nodes, its step, fixed alpha, its scaling of lambda_f."""
        return cls(
            lambda_f=lambda_f,
            lambda_f_scaling="product",
            step="paper",
            bandwidth="fixed",
            sample=sample,
            training=training,
        )

    @property
    def trains_alone(self) -> bool:
        """Return whether this classifier cannot be part of a population: each would sample other nodes."""
        return self.sample is not None or self.backbone == "gat"

    def _propagation(self, channels: int, group_sizes: tuple[int, ...]) -> GMMDPropagation:
        lambda_f = self.lambda_f
        if lambda_f is not None and self.lambda_f_scaling == "product":
            for size in group_sizes:
                lambda_f *= size if self.sample is None else min(size, self.sample)
        return self.propagation(
            K=self.K,
            lambda_s=self.lambda_s,
            lambda_f=lambda_f,
            alpha=self.alpha,
            weight=self.weight,
            backbone=self.backbone,
            step=self.step,
            bandwidth=self.bandwidth,
            fair_steps=self.fair_steps,
            sample=self.sample,
            channels=channels,
        )

    def build(self, task: Task) -> Program:
        """Return MLP and message passing."""
        mlp = MLP(task.num_features, task.num_classes, self.num_layers, self.hidden, self.dropout)
        return _MessagePassing(mlp, self._propagation(task.num_classes, task.group_sizes))


class GMMDS(GMMD):
    """GMMD-S, the simplified message passing: it only raises the similarity between groups; else as GMMD.

    Nothing holds the nodes of a group apart, so that a large `weight` draws all of them together, and less is better
    than for GMMD.
    """

    name: ClassVar[str] = "gmmd-s"
    summary: ClassVar[str] = "the simplified message passing: raises the similarity between groups"
    propagation: ClassVar[type[GMMDPropagation]] = GMMDSPropagation


class _MessagePassing(Program):
    def __init__(self, mlp: MLP, propagation: GMMDPropagation) -> None:
        super().__init__()
        self.mlp, self.propagation = mlp, propagation

    @property
    def is_random(self) -> bool:
        return self.mlp.dropout > 0 or self.propagation.sample is not None

    def forward(self, task: Task) -> Tensor:
        operator = task.operator(self.propagation.backbone)
        logits: Tensor = self.propagation(self.mlp(task.x), operator, task.groups)
        return logits
