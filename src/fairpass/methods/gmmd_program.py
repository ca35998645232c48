"""What GMMD trains: an encoder, then message passing that keeps the groups' representations alike."""

from collections.abc import Callable
from itertools import product
from math import sqrt
from typing import Literal

import torch
from torch import Tensor, nn

from fairpass.errors import DataError
from fairpass.kernels import Groups
from fairpass.nn import Encoder, GMMDPropagation, SparseOperator
from fairpass.nn.calibration import KNOTS, GroupEstimator, calibrate, calibrated
from fairpass.nn.layers import FeatureScaler, norm_statistics
from fairpass.nn.validation import check_buffers
from fairpass.training import Program, Task, Training
from fairpass.training.program import ReferenceName, UnknownGroup, group_shares

Criterion = Literal["dp", "eo", "odds"]
Columns = Literal["centred", "all"]
EncoderFactory = Callable[[int, int], nn.Module]


class FairMessagePassing(Program):
    """Features, scaled -> encoder -> centred logits -> fair layers -> logits.

    `encoder` is an `Encoder` or any module that is called with `x` and `edge_index`. With `columns="centred"` the
    layers work on the `c - 1` columns that matter to the softmax. Only the sizes of `task` are used.
    """

    basis: Tensor
    calibration: Tensor | None

    def __init__(
        self,
        scaler: FeatureScaler,
        encoder: nn.Module,
        propagation: GMMDPropagation,
        criterion: Criterion,
        columns: Columns,
        task: Task,
    ) -> None:
        super().__init__()
        self.scaler, self.encoder, self.propagation = scaler, encoder, propagation
        self.criterion, self.columns = criterion, columns
        self.num_groups, self.num_features = task.num_groups, task.num_features
        self.register_buffer("basis", contrasts(task.num_classes), persistent=False)
        self.register_buffer("calibration", None)
        # A sample is drawn from the nodes at hand, so nothing is kept.
        self.reference = propagation.empty_reference() if propagation.sample is None else None
        self.estimator = GroupEstimator()

    @property
    def is_random(self) -> bool:
        if self.propagation.sample is not None or not isinstance(self.encoder, Encoder):
            return True
        return self.encoder.dropout > 0

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
        """Return the logits of nodes that move among those of the fitted graph, or among each other."""
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

    def _groups(self, logits: Tensor, task: Task) -> Groups:
        return task.groups if self.criterion == "dp" else self._compared(logits, task)

    def encode(self, task: Task) -> Tensor:
        """Return the encoder's logits, before the fair layers."""
        x = self.scaler(task.x)
        if not isinstance(self.encoder, Encoder):
            logits: Tensor = self.encoder(x, task.edge_index)
            expected = (len(x), len(self.basis))
            if logits.shape != expected:
                raise ValueError(f"'encoder' must return logits of shape {expected} (got {tuple(logits.shape)})")
            return logits
        backbone = self.encoder.backbone
        logits = self.encoder(x, None if backbone is None else task.operator(backbone))
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
        tables = (self.num_groups, 1 if classes == 2 else classes, 2, KNOTS)
        check_buffers(self, {"calibration": tables})
        if self.reference is not None:
            blocks = 1 if self.criterion == "dp" else len(range(classes)[self.compared_labels])
            self.reference.check(classes - (self.columns == "centred"), self.num_groups * blocks)

    @property
    def compared_labels(self) -> slice:
        """The labels among whose nodes the groups are compared; with two labels, "eo" means the second alone."""
        return slice(1, 2) if self.criterion == "eo" and len(self.basis) == 2 else slice(None)

    def _compared(self, logits: Tensor, task: Task) -> Groups:
        """Return the groups' distributions among the nodes of each compared label.

        Most labels are unknown, and those of the training nodes are fitted more closely than new ones will be. So no
        node's own label is used, but its probability, calibrated in each group on the validation nodes.
        """
        logits = logits.detach()
        calibration = self._calibrate(logits, task) if self.calibration is None else self.calibration
        probabilities = calibrated(logits, task.sens, calibration)
        return task.groups.among(probabilities[..., self.compared_labels])

    def _calibrate(self, logits: Tensor, task: Task) -> Tensor:
        nodes = task.nodes("val")
        return calibrate(logits[..., nodes, :], task.y[nodes], task.sens[nodes], task.num_groups)


def check_labels(criterion: Criterion, task: Task) -> None:
    """Raise `DataError` if the criterion lacks validation nodes to calibrate the probabilities of the labels on."""
    nodes = task.nodes("val")
    y, sens = task.y[nodes], task.sens[nodes]
    for label, group in product(range(task.num_classes), range(task.num_groups)):
        if criterion != "dp" and not bool(((y == label) & (sens == group)).any()):
            label_name = task.label_names[label] if task.label_names else label
            group_name = task.group_names[group] if task.group_names else group
            raise DataError(
                f"'criterion' {criterion!r} needs a validation node of every label in every group "
                f"(got none of label {label_name!r} in group {group_name!r})"
            )


def contrasts(num_classes: int) -> Tensor:
    """Return an orthonormal basis `(c, c - 1)` of what is orthogonal to equal logits (Helmert's contrasts)."""
    basis = torch.zeros(num_classes, num_classes - 1)
    for k in range(1, num_classes):
        basis[:k, k - 1] = -1 / sqrt(k * (k + 1))
        basis[k, k - 1] = k / sqrt(k * (k + 1))
    return basis
