"""GMMD and GMMD-S: an encoder, then message passing that keeps the groups' representations alike."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, Literal, Self

import torch
from scipy.linalg import helmert
from torch import Tensor, nn

from fairpass.errors import DataError
from fairpass.kernels import Groups
from fairpass.methods import networks
from fairpass.methods.base import NodeClassifier
from fairpass.nn import Encoder, GMMDPropagation, GMMDSPropagation, SparseOperator
from fairpass.nn.calibration import KNOTS, GroupEstimator, calibrate, calibrated
from fairpass.nn.convolution import EncoderKind
from fairpass.nn.layers import FeatureScaler, InputScale, norm_statistics
from fairpass.nn.propagation import GMMDOptions, weight_parameter
from fairpass.nn.validation import check_buffers
from fairpass.parameters import Choice, Dimension, LogUniform, parameter
from fairpass.training import Program, Task, Training
from fairpass.training.program import ReferenceName, UnknownGroup, group_shares
from fairpass.world import world

Criterion = Literal["dp", "eo", "odds"]
Columns = Literal["centred", "all"]
EncoderFactory = Callable[[int, int], nn.Module]

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
    :math:`\hat Y = \mathrm{softmax}(F^{(K)})`, trained with cross-entropy. Defaults that differ from the paper: all
    nodes, exactly, instead of a sample; steps that cannot overshoot; a kernel as wide as the spread of the
    representations, so that the network cannot escape it by scaling up; centred logits, so that the kernel sees
    `c - 1` columns. :meth:`paper` returns the paper's configuration.
    """

    encoder: Literal[EncoderKind, "auto"] | EncoderFactory = parameter(
        "mlp",
        "the network before the fair layers, or a function `(in_channels, out_channels) -> module` that makes it, "
        'called with `x` and `edge_index`. With `"auto"` validation chooses among linear, MLP, GCN and GraphSAGE',
        Choice("linear", "mlp", "gcn", "sage"),
        Choice("mlp"),
        before="mlp",
    )
    criterion: Criterion = parameter(
        "dp",
        'which distributions are made equal: `"dp"`, those of the groups (demographic parity); `"odds"`, of each label '
        'in each group (equalised odds); `"eo"`, of the positive label alone if there are two (equal opportunity)',
        before="dp",
        grid=Choice("dp"),
    )
    lambda_f_scaling: Literal["none", "product"] = parameter(
        "none",
        '`"product"` multiplies `lambda_f` by the sampled group sizes, as the paper does',
        grid=Choice("product"),
    )
    columns: Columns = parameter(
        "centred", '`"centred"` logits, or `"all"` of them as in the paper', before="all", grid=Choice("all")
    )
    scale: InputScale = parameter(
        "given", "how the features are scaled first", Choice("given", "minmax"), Choice("given"), before="given"
    )
    num_layers: int = networks.num_layers(grid=Choice(1, 2, 4, 6))
    hidden: int = networks.hidden(search=Choice(16, 32, 64), grid=Choice(16))
    dropout: float = networks.dropout(0.0, searched=False)
    norm: bool = parameter(False, "whether the encoder normalises its hidden units over the nodes", before=False)
    residual: bool = parameter(False, "whether the encoder's hidden layers have residual connections", before=False)

    name = "gmmd"
    summary = "message passing that minimises the discrepancy between groups, exact over all nodes"
    takes_edge_weights = True
    trains_in_parts = True
    stage = "in-processing"
    needs_groups = "prediction"
    # The stable step has kernel steps of its own, the paper's step only a weight.
    switched_off: ClassVar[Mapping[str, Any]] = {"fair_steps": 0, "weight": None, "lambda_f": 0.0}
    propagation: ClassVar[type[GMMDPropagation]] = GMMDPropagation
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
        super().check_parameters()
        if self.sample is not None and self.criterion != "dp":
            why = f"criterion {self.criterion!r}, which compares all nodes"
            raise ValueError(f"'sample' must be None for {why} (got {self.sample})")

    @classmethod
    def paper(cls, **options: Any) -> Self:
        """Return the paper's configuration: 100 sampled nodes, its step, fixed alpha, its scaling of `lambda_f = 1`.

        `options` are parameters over which the paper searches, such as `lambda_f`, `K` or `sample`, and `training`.
        """
        grid = {name: each.ends() for name, each in cls.space("grid").items()}
        fixed = {name: values[0] for name, values in grid.items() if len(values) == 1}
        return cls(**{"lambda_f": 1.0, **fixed, **options})

    @property
    def trains_alone(self) -> bool:
        # Each member would sample other nodes; attention has no batch axis, and a user's module need not have one.
        attends = self.encoder == "gat" or (self.backbone == "gat" and self.lambda_s > 0)
        return self.sample is not None or attends or callable(self.encoder) or self.encoder == "auto"

    def candidates(self, best: NodeClassifier | None, number: int) -> Sequence[NodeClassifier]:
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
        read = super()._read(stored, code)
        # Version 0.1 stored an unused weight next to `lambda_f`.
        return {**read, "weight": None} if read["lambda_f"] is not None else read

    @classmethod
    def current_name(cls, name: str) -> str:
        # In version 0.1 every encoder was an MLP.
        return super().current_name(f"encoder.{name[4:]}" if name.startswith("mlp.") else name)

    def _propagation(self, task: Task) -> GMMDPropagation:
        options = {name: getattr(self, name) for name in GMMDOptions.declared}
        if self.lambda_f is not None and self.lambda_f_scaling == "product":
            for size in task.group_sizes:
                options["lambda_f"] *= size if self.sample is None else min(size, self.sample)
        return self.propagation(**options, channels=task.num_classes - (self.columns == "centred"))

    def _check_weights(self, task: Task) -> None:
        super()._check_weights(task)
        if task.edge_weight is not None and callable(self.encoder):
            raise DataError(
                "'data.edge_weight' must be left out for an 'encoder' that is called with 'edge_index' alone"
            )

    def _check_task(self, task: Task) -> None:
        super()._check_task(task)
        if self.criterion == "dp":
            return
        nodes = task.nodes("val")
        for label, group in product(range(task.num_classes), range(task.num_groups)):
            if not world().count(int(((task.y[nodes] == label) & (task.sens[nodes] == group)).sum())):
                names = (task.label_names or range(label + 1))[label], (task.group_names or range(group + 1))[group]
                raise DataError(
                    f"'criterion' {self.criterion!r} needs a validation node of every label in every group "
                    f"(got none of label {names[0]!r} in group {names[1]!r})"
                )

    def build(self, task: Task) -> Program:
        return FairMessagePassing(task, self)

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


class FairMessagePassing(Program):
    """Features, scaled -> encoder -> centred logits -> fair layers -> logits."""

    basis: Tensor
    calibration: Tensor | None

    def __init__(self, task: Task, settings: GMMD) -> None:
        super().__init__()
        self.criterion, self.columns = settings.criterion, settings.columns
        self.num_groups, self.num_features = task.num_groups, task.num_features
        self.scaler = FeatureScaler(settings.scale, task.num_features)
        self.encoder, self.propagation = settings._encoder(task), settings._propagation(task)
        self.register_buffer("basis", contrasts(task.num_classes), persistent=False)
        self.register_buffer("calibration", None)
        # A sample is drawn from the nodes at hand, so nothing is kept.
        self.reference = self.propagation.empty_reference() if settings.sample is None else None
        self.estimator = GroupEstimator()

    @property
    def is_random(self) -> bool:
        samples = self.propagation.sample is not None
        return samples or not isinstance(self.encoder, Encoder) or self.encoder.dropout > 0

    def prepare(self, task: Task, training: Training) -> None:
        self.scaler.fit(task.x)

    def forward(self, task: Task) -> Tensor:
        logits = self.encode(task)
        moved: Tensor = self.propagation(self._points(logits), self._operator(task), self._groups(logits, task))
        return self._logits(moved)

    @property
    def keeps_reference(self) -> bool:
        return super().keeps_reference and self.reference is not None and not self.reference.is_empty

    def score(self, task: Task, reference: ReferenceName, unknown_group: UnknownGroup) -> Tensor:
        shares = group_shares(task, self.num_groups, unknown_group, self.estimator)
        if reference == "batch" or self.reference is None:
            return super().score(task, reference, unknown_group)
        with norm_statistics(self, "fitted"):
            logits = self.encode(task)
        probabilities = None
        if self.calibration is not None:
            probabilities = calibrated(logits, task.sens, self.calibration)[:, self.compared_labels]
        groups = self.reference.groups(shares, probabilities)
        moved: Tensor = self.propagation(self._points(logits), self._operator(task), groups, self.reference)
        return self._logits(moved)

    def _points(self, logits: Tensor) -> Tensor:
        return logits if self.columns == "all" else logits @ self.basis

    def _logits(self, moved: Tensor) -> Tensor:
        return moved if self.columns == "all" else moved @ self.basis.T

    def _operator(self, task: Task) -> SparseOperator:
        return task.operator(self.propagation.operator_kind)

    def encode(self, task: Task) -> Tensor:
        x = self.scaler(task.x)
        if isinstance(self.encoder, Encoder):
            return networks.encode(self.encoder, x, task)
        logits: Tensor = self.encoder(x, task.edge_index)
        expected = (len(x), len(self.basis))
        if logits.shape != expected:
            raise ValueError(f"'encoder' must return logits of shape {expected} (got {tuple(logits.shape)})")
        return logits

    @torch.no_grad()
    def finish(self, task: Task) -> None:
        with norm_statistics(self, "keep"):
            logits = self.encode(task)
        if self.criterion != "dp":
            self.calibration = self._calibrate(logits, task)
        self.estimator.take(task.group_estimator)
        if self.reference is not None:
            groups = self._groups(logits, task)
            self.propagation.record(self._points(logits), self._operator(task), groups, self.reference)

    def check_state(self) -> None:
        super().check_state()
        classes = len(self.basis)
        self.estimator.check(self.num_groups, self.num_features)
        check_buffers(self, {"calibration": (self.num_groups, 1 if classes == 2 else classes, 2, KNOTS)})
        if self.reference is not None:
            blocks = 1 if self.criterion == "dp" else len(range(classes)[self.compared_labels])
            self.reference.check(classes - (self.columns == "centred"), self.num_groups * blocks)

    @property
    def compared_labels(self) -> slice:
        return slice(1, 2) if self.criterion == "eo" and len(self.basis) == 2 else slice(None)

    def _groups(self, logits: Tensor, task: Task) -> Groups:
        """Return the groups, or the distributions of each among the nodes of each compared label."""
        if self.criterion == "dp":
            return task.groups
        # Most labels are unknown, and those of the training nodes are fitted more closely than new ones will be. So no
        # node's own label is used, but its probability, calibrated in each group on the validation nodes.
        logits = logits.detach()
        calibration = self._calibrate(logits, task) if self.calibration is None else self.calibration
        return task.groups.among(calibrated(logits, task.sens, calibration)[..., self.compared_labels])

    def _calibrate(self, logits: Tensor, task: Task) -> Tensor:
        nodes = task.nodes("val")
        known, y, sens = map(world().gather, (logits[..., nodes, :], task.y[nodes], task.sens[nodes]))
        return calibrate(known, y, sens, task.num_groups)


def contrasts(num_classes: int) -> Tensor:
    """Return an orthonormal basis `(c, c - 1)` of what is orthogonal to equal logits (Helmert's contrasts)."""
    return torch.tensor(-helmert(num_classes), dtype=torch.get_default_dtype()).T.contiguous()
