"""GMMD and GMMD-S: an encoder, then message passing that keeps the groups' representations alike."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, get_args

import torch
from torch import nn

from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import check_at_least, check_choice, check_dropout
from fairpass.methods.gmmd_program import Columns, Criterion, EncoderFactory, FairMessagePassing, check_labels
from fairpass.nn import Encoder, GMMDPropagation, GMMDSPropagation
from fairpass.nn.convolution import Backbone
from fairpass.nn.encoder import EncoderKind
from fairpass.nn.propagation import Bandwidth, Step
from fairpass.nn.scaling import FeatureScaler, InputScale
from fairpass.training import Program, Task, Training

# What `encoder="auto"` tries, the simplest first.
AUTO: tuple[Mapping[str, Any], ...] = (
    {"encoder": "linear", "lambda_s": 0.0},
    {"encoder": "mlp", "lambda_s": 0.0},
    {"encoder": "mlp"},
    {"encoder": "gcn", "lambda_s": 0.0},
    {"encoder": "sage", "lambda_s": 0.0},
)


class GMMD(NodeClassifier):
    r"""Fairness-aware message passing (Zhu et al. 2023, `arXiv:2306.11132 <https://arxiv.org/abs/2306.11132>`_).

    :math:`X_{in} = \mathrm{encoder}(X, A)`, then `K` layers of :class:`~fairpass.nn.GMMDPropagation` to
    :math:`\hat Y = \mathrm{softmax}(F^{(K)})`, trained with cross-entropy. With the encoder `"mlp"` and
    `lambda_s > 0` it is the paper's model. What differs from the paper by default: all nodes, exactly, instead of a
    sample; steps that cannot overshoot; a kernel as wide as the representations are spread, so that the network cannot
    escape it by scaling up; logits centred, so that the kernel sees `c - 1` columns. :meth:`paper` gives the paper's
    own configuration.

    Args:
        encoder: what comes before the fair layers: `"mlp"`, `"linear"` (one layer), a network with message passing of
            its own (`"gcn"`, `"sage"`, `"gat"`, `"gin"`), a function `(in_channels, out_channels) -> module` whose
            module is called with `x` and `edge_index`, or `"auto"`: validation chooses among linear, MLP, MLP with
            smoothing, GCN and GraphSAGE.
        criterion: which distributions are made equal: `"dp"`, the scores of all nodes of each group (demographic
            parity); `"eo"`, those of the positive nodes (equal opportunity; with more than two labels, of each label);
            `"odds"`, those of each label (equalised odds).
        K: layers of message passing.
        lambda_s: weight of smoothness; 0 for fairness alone, where `K` plays no part.
        weight: weight of fairness without units, :math:`16\lambda_f\alpha/\min_a N_a`; 100 by default, for GMMD-S 1.
        lambda_f: weight of fairness in the paper's units, instead of `weight`.
        lambda_f_scaling: `"product"` multiplies `lambda_f` by :math:`|S_0'||S_1'|`, the sampled sizes, as the paper's
            search grid does; or `"none"`.
        alpha: parameter of the kernel.
        backbone: the operator that smooths: `"gcn"`, `"sage"`, `"gin"` or `"gat"`.
        step: `"stable"` or `"paper"`.
        bandwidth: `"adaptive"` or `"fixed"`.
        fair_steps: kernel steps in each stable layer: the dial between accuracy and fairness.
        momentum: whether these are longer and have momentum, with which a few go as far as many.
        sample: nodes drawn from each group at each epoch; None: all nodes.
        columns: `"centred"` logits, or `"all"` of them as the paper has it.
        scale: what the model does to the features first: `"given"`, nothing; `"standard"`; or `"minmax"`.
        num_layers: `M`, layers of the encoder.
        hidden: width of the encoder.
        dropout: in the encoder.
        norm: whether the encoder normalises its hidden units over the nodes.
        residual: whether the encoder's hidden layers have residual connections.
        training: settings of the training loop.
    """

    name: ClassVar[str] = "gmmd"
    summary: ClassVar[str] = "message passing that minimises the discrepancy between groups, exact over all nodes"
    propagation: ClassVar[type[GMMDPropagation]] = GMMDPropagation
    per_member: ClassVar[tuple[str, ...] | None] = GMMDPropagation.per_member
    before: ClassVar[Mapping[str, Any]] = {
        "encoder": "mlp",
        "criterion": "dp",
        "columns": "all",
        "momentum": False,
        "scale": "given",
        "norm": False,
        "residual": False,
    }

    def __init__(
        self,
        *,
        encoder: str | EncoderFactory = "mlp",
        criterion: Criterion = "dp",
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
        momentum: bool = True,
        sample: int | None = None,
        columns: Columns = "centred",
        scale: InputScale = "given",
        num_layers: int = 2,
        hidden: int = 16,
        dropout: float = 0.0,
        norm: bool = False,
        residual: bool = False,
        training: Training | None = None,
    ) -> None:
        super().__init__(training=training)
        self.encoder, self.criterion, self.columns, self.scale = encoder, criterion, columns, scale
        self.K, self.lambda_s, self.alpha = K, lambda_s, alpha
        self.weight = self.propagation.default_weight if weight is None and lambda_f is None else weight
        self.lambda_f, self.lambda_f_scaling = lambda_f, lambda_f_scaling
        self.backbone, self.step, self.bandwidth = backbone, step, bandwidth
        self.fair_steps, self.momentum, self.sample = fair_steps, momentum, sample
        self.num_layers, self.hidden, self.dropout = num_layers, hidden, dropout
        self.norm, self.residual = norm, residual
        if not callable(encoder):
            check_choice((*get_args(EncoderKind), "auto"), encoder=encoder)
        check_choice(get_args(Criterion), criterion=criterion)
        check_choice(get_args(Columns), columns=columns)
        check_choice(get_args(InputScale), scale=scale)
        check_choice(("none", "product"), lambda_f_scaling=lambda_f_scaling)
        check_at_least(1, num_layers=num_layers, hidden=hidden)
        check_dropout(dropout)
        if sample is not None and criterion != "dp":
            raise ValueError(
                f"'sample' must be None for criterion {criterion!r}, which compares all nodes (got {sample})"
            )
        with torch.device("meta"):  # a wrong parameter is an error here, not at fit; nothing is drawn
            self._propagation(2, (1, 1))

    @classmethod
    def default_training(cls) -> Training:
        """Return the settings we recommend: encoders of every kind converge, and few labels want a strong decay."""
        return Training(epochs=300, patience=50, learning_rate=0.03, weight_decay=0.01)

    @classmethod
    def paper(
        cls, *, lambda_f: float = 1.0, sample: int | None = 100, training: Training | None = None, **options: Any
    ) -> "GMMD":
        """Return the paper's configuration: sampled nodes, its step, fixed alpha, its scaling of lambda_f.

        `P` has the sizes of the whole groups, and only `lambda_f` is multiplied by the sampled ones. `options` are
        `K`, `lambda_s`, `alpha`, `num_layers` and whatever else the paper searches over.
        """
        fixed: dict[str, Any] = {
            "lambda_f": lambda_f,
            "lambda_f_scaling": "product",
            "step": "paper",
            "bandwidth": "fixed",
            "columns": "all",
            "sample": sample,
        }
        return cls(**{**fixed, **options}, training=training)

    @property
    def trains_alone(self) -> bool:
        """Return whether this classifier cannot be part of a population.

        Each member would sample other nodes; attention has no batch axis, and a user's module need not have one.
        """
        attends = self.encoder == "gat" or (self.backbone == "gat" and self.lambda_s > 0)
        return self.sample is not None or attends or callable(self.encoder) or self.encoder == "auto"

    def candidates(self, best: NodeClassifier | None, number: int) -> Sequence[NodeClassifier]:
        """Return what `encoder="auto"` tries: encoders and smoothing first, then another scale for the best of them."""
        if self.encoder != "auto" or number > 1:
            return ()
        if best is None:
            return [type(self)(**{**self.get_params(deep=False), **changes}) for changes in AUTO]
        return [type(self)(**{**best.get_params(deep=False), "scale": "minmax"})] if self.scale == "given" else ()

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters by name; of `weight` and `lambda_f` the new one replaces the other."""
        for name, other in (("weight", "lambda_f"), ("lambda_f", "weight")):
            if params.get(name) is not None:
                params.setdefault(other, None)
        return super().set_params(**params)

    @classmethod
    def _read(cls, stored: Mapping[str, Any], code: Mapping[str, Any]) -> dict[str, Any]:
        """Return stored hyper-parameters as arguments; version 0.1 also stored a weight that played no part."""
        read = super()._read(stored, code)
        return {**read, "weight": None} if read["lambda_f"] is not None else read

    @classmethod
    def current_name(cls, name: str) -> str:
        """Return what a tensor of a stored model is called now; in version 0.1 every encoder was an MLP."""
        return super().current_name(f"encoder.{name[4:]}" if name.startswith("mlp.") else name)

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
            momentum=self.momentum,
            sample=self.sample,
            channels=channels,
        )

    def _check_task(self, task: Task) -> None:
        """Raise `DataError` also if the criterion lacks labels."""
        super()._check_task(task)
        check_labels(self.criterion, task)

    def build(self, task: Task) -> Program:
        """Return encoder and message passing."""
        channels = task.num_classes - (self.columns == "centred")
        return FairMessagePassing(
            FeatureScaler(self.scale, task.num_features),
            self._encoder(task.num_features, task.num_classes),
            self._propagation(channels, task.group_sizes),
            self.criterion,
            self.columns,
            task,
        )

    def _encoder(self, in_channels: int, out_channels: int) -> nn.Module:
        if callable(self.encoder):
            return self.encoder(in_channels, out_channels)
        widths = (in_channels, *[self.hidden] * (self.num_layers - 1), out_channels)
        kind: Any = self.encoder
        return Encoder(kind, widths, self.dropout, norm=self.norm, residual=self.residual)


class GMMDS(GMMD):
    """GMMD-S, the simplified message passing: it only raises the similarity between groups; else as GMMD.

    Nothing holds the nodes of a group apart, so that a large `weight` draws all of them together, and less is better
    than for GMMD.
    """

    name: ClassVar[str] = "gmmd-s"
    summary: ClassVar[str] = "the simplified message passing: raises the similarity between groups"
    propagation: ClassVar[type[GMMDPropagation]] = GMMDSPropagation
