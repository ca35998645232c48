"""GMMD and GMMD-S: an encoder, then message passing that keeps the groups' representations alike."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from torch import nn

from fairpass.methods import networks
from fairpass.methods.base import NodeClassifier
from fairpass.methods.gmmd_program import Columns, Criterion, EncoderFactory, FairMessagePassing, check_labels
from fairpass.nn import Encoder, GMMDPropagation, GMMDSPropagation
from fairpass.nn.convolution import EncoderKind
from fairpass.nn.layers import FeatureScaler, InputScale
from fairpass.nn.propagation import GMMDOptions, weight_parameter
from fairpass.parameters import Choice, Dimension, LogUniform, parameter
from fairpass.training import Program, Task, Training

# The candidates of `encoder="auto"`, the simplest first.
AUTO: tuple[Mapping[str, Any], ...] = (
    {"encoder": "linear", "lambda_s": 0.0},
    {"encoder": "mlp", "lambda_s": 0.0},
    {"encoder": "mlp"},
    {"encoder": "gcn", "lambda_s": 0.0},
    {"encoder": "sage", "lambda_s": 0.0},
)


class GMMD(GMMDOptions, NodeClassifier):
    r"""Fairness-aware message passing (Zhu et al. 2023, `arXiv:2306.11132 <https://arxiv.org/abs/2306.11132>`_).

    :math:`X_{in} = \mathrm{encoder}(X, A)`, then `K` layers of :class:`~fairpass.nn.GMMDPropagation` to
    :math:`\hat Y = \mathrm{softmax}(F^{(K)})`, trained with cross-entropy. With the encoder `"mlp"` and
    `lambda_s > 0` it is the paper's model. Defaults that differ from the paper: all nodes, exactly, instead of a
    sample; steps that cannot overshoot; a kernel as wide as the spread of the representations, so that the network
    cannot escape it by scaling up; centred logits, so that the kernel sees `c - 1` columns. :meth:`paper` returns the
    paper's configuration.
    """

    encoder: Literal[EncoderKind, "auto"] | EncoderFactory = parameter(
        "mlp",
        'the network before the fair layers: `"mlp"`, `"linear"` (one layer), a network with message passing of '
        "its own, or a function `(in_channels, out_channels) -> module` whose module is called with `x` and "
        '`edge_index`. With `"auto"` validation chooses among linear, MLP, MLP with smoothing, GCN and GraphSAGE',
        Choice("linear", "mlp", "gcn", "sage"),
        Choice("mlp"),
        before="mlp",
    )
    criterion: Criterion = parameter(
        "dp",
        'which distributions are made equal: `"dp"`, the scores of all nodes of each group (demographic parity); '
        '`"eo"`, those of the positive nodes (equal opportunity; with more than two labels, of each label); `"odds"`, '
        "those of each label (equalised odds)",
        before="dp",
        grid=Choice("dp"),
    )
    lambda_f_scaling: Literal["none", "product"] = parameter(
        "none",
        '`"product"` multiplies `lambda_f` by '
        r":math:`|S_0'||S_1'|`, the sampled sizes, as the paper does",
        grid=Choice("product"),
    )
    columns: Columns = parameter(
        "centred", '`"centred"` logits, or `"all"` of them as in the paper', before="all", grid=Choice("all")
    )
    scale: InputScale = parameter(
        "given",
        'how the model scales the features first; `"given"` leaves them as they are',
        Choice("given", "minmax"),
        Choice("given"),
        before="given",
    )
    num_layers: int = networks.num_layers(grid=Choice(1, 2, 4, 6))
    hidden: int = networks.hidden(search=Choice(16, 32, 64), grid=Choice(16))
    dropout: float = networks.dropout(0.0, searched=False)
    norm: bool = parameter(False, "whether the encoder normalises its hidden units over the nodes", before=False)
    residual: bool = parameter(False, "whether the encoder's hidden layers have residual connections", before=False)

    name = "gmmd"
    summary = "message passing that minimises the discrepancy between groups, exact over all nodes"
    propagation: ClassVar[type[GMMDPropagation]] = GMMDPropagation
    joins_populations = True
    # Encoders of every kind converge, and few labels need a strong decay.
    recommended_training = Training(epochs=300, patience=50, learning_rate=0.03, weight_decay=0.01)
    grid_training: ClassVar[Mapping[str, Dimension]] = {
        "learning_rate": Choice(0.003, 0.001, 0.0001),
        "weight_decay": Choice(0.0, 0.4, 0.0001, 0.00001),
    }
    parameter_order = (
        *("encoder", "criterion", "K", "lambda_s", "weight", "lambda_f", "lambda_f_scaling"),
        *GMMDOptions.declared,
    )
    search_order = ("encoder", "hidden", "scale")

    def check_parameters(self) -> None:
        """Raise `ValueError` also if a criterion other than `"dp"` shall use a sample."""
        super().check_parameters()
        if self.sample is not None and self.criterion != "dp":
            raise ValueError(
                f"'sample' must be None for criterion {self.criterion!r}, which compares all nodes (got {self.sample})"
            )

    @classmethod
    def paper(cls, **options: Any) -> Self:
        """Return the paper's configuration: 100 sampled nodes, its step, fixed alpha, its scaling of `lambda_f = 1`.

        `P` has the sizes of the whole groups, and only `lambda_f` is multiplied by the sampled ones. `options` are
        the parameters over which the paper searches, such as `lambda_f`, `K` or `sample`, and `training`.
        """
        grid = {name: each.ends() for name, each in cls.space("grid").items()}
        fixed = {name: values[0] for name, values in grid.items() if len(values) == 1}
        return cls(**{"lambda_f": 1.0, **fixed, **options})

    @property
    def trains_alone(self) -> bool:
        """Return whether this classifier cannot be part of a population.

        Each member would sample other nodes; attention has no batch axis, and a user's module need not have one.
        """
        attends = self.encoder == "gat" or (self.backbone == "gat" and self.lambda_s > 0)
        return self.sample is not None or attends or callable(self.encoder) or self.encoder == "auto"

    def candidates(self, best: NodeClassifier | None, number: int) -> Sequence[NodeClassifier]:
        """Return the candidates of `encoder="auto"`: encoders and smoothing first, then another scale for the best."""
        if self.encoder != "auto" or number > 1:
            return ()
        if best is None:
            return [self.with_params(**changes) for changes in AUTO]
        return [best.with_params(scale="minmax")] if self.scale == "given" else ()

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters by name; a new `weight` replaces `lambda_f`, and vice versa."""
        for name, other in (("weight", "lambda_f"), ("lambda_f", "weight")):
            if params.get(name) is not None:
                params.setdefault(other, None)
        return super().set_params(**params)

    @classmethod
    def _read(cls, stored: Mapping[str, Any], code: Mapping[str, Any]) -> dict[str, Any]:
        """Return stored hyper-parameters as arguments; version 0.1 stored an unused weight next to `lambda_f`."""
        read = super()._read(stored, code)
        return {**read, "weight": None} if read["lambda_f"] is not None else read

    @classmethod
    def current_name(cls, name: str) -> str:
        """Return the current name of a stored tensor; in version 0.1 every encoder was an MLP."""
        return super().current_name(f"encoder.{name[4:]}" if name.startswith("mlp.") else name)

    def _propagation(self, channels: int, group_sizes: tuple[int, ...]) -> GMMDPropagation:
        options = {name: getattr(self, name) for name in GMMDOptions.declared}
        if self.lambda_f is not None and self.lambda_f_scaling == "product":
            for size in group_sizes:
                options["lambda_f"] *= size if self.sample is None else min(size, self.sample)
        return self.propagation(**options, channels=channels)

    def _check_task(self, task: Task) -> None:
        super()._check_task(task)
        check_labels(self.criterion, task)

    def build(self, task: Task) -> Program:
        channels = task.num_classes - (self.columns == "centred")
        parts = self._encoder(task), self._propagation(channels, task.group_sizes)
        return FairMessagePassing(
            FeatureScaler(self.scale, task.num_features), *parts, self.criterion, self.columns, task
        )

    def _encoder(self, task: Task) -> nn.Module:
        if callable(self.encoder):
            return self.encoder(task.num_features, task.num_classes)
        kind: Any = self.encoder
        return Encoder(kind, networks.widths(self, task), self.dropout, norm=self.norm, residual=self.residual)


class GMMDS(GMMD):
    """GMMD-S, the simplified message passing: it only raises the similarity between groups.

    Nothing keeps the nodes of a group apart, so that a large `weight` draws all of them together; it needs a smaller
    one than GMMD.
    """

    weight: float | None = weight_parameter(LogUniform(0.1, 100))

    name = "gmmd-s"
    summary = "the simplified message passing: raises the similarity between groups"
    propagation = GMMDSPropagation
    default_weight = GMMDSPropagation.default_weight
