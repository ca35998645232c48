"""EDITS: debias features and edges first, then train a GNN on the result."""

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from fairpass.errors import DataError
from fairpass.methods import networks
from fairpass.methods.edits_debias import debias
from fairpass.nn import GNN, SparseOperator
from fairpass.nn.convolution import Backbone
from fairpass.parameters import Choice, Integers, LogUniform, parameter
from fairpass.training import Program, Task, Training

logger = logging.getLogger(__name__)


class EDITS(networks.Published):
    r"""EDITS (Dong et al. 2022, `arXiv:2108.05233 <https://arxiv.org/abs/2108.05233>`_).

    With `X` normalised column by column, it learns column scales `t` in [0, 1], :math:`\tilde X = X
    \mathrm{diag}(t)`, and an adjacency :math:`\tilde A` with weights in [0, 1]; they start as 1 and `A + I`. A linear
    critic estimates the Wasserstein distance between the groups

    .. math::
        W = \max_f\; \mathrm{mean}_{s=0} f(z) - \mathrm{mean}_{s=1} f(z), \qquad
        z = [\tilde X, \tilde A \tilde X, \tilde A^2 \tilde X]

    over all nodes of known group. Each round takes eight steps of the critic, one of `t` on
    :math:`\alpha \|\tilde X - X\|_F + \beta W` and one of :math:`\tilde A` on
    :math:`\|\tilde A - A\|_F^2 + \gamma W`, each followed by the proximal step of the L1 norm. Then the `drop` columns
    of smallest `t` are set to zero. Pairs whose weight grew by more than :math:`\tau` times the largest growth become
    edges, and edges whose weight fell by more than :math:`\tau` times the largest fall are removed. A GNN is trained
    with cross-entropy on the result. A graph with another `edge_index` than the fitted one keeps its own edges.
    """

    alpha: float = parameter(0.03, "weight of staying close to the features", LogUniform(0.01, 1), at_least=0)
    beta: float = parameter(
        1.0, "weight of the groups' distance for the columns", LogUniform(0.05, 5), Choice(0.1, 0.8, 1.0), at_least=0
    )
    gamma: float = parameter(15.0, "weight of the groups' distance for the edges", LogUniform(1, 100), at_least=0)
    tau: float = parameter(
        0.015, "share of the largest change", LogUniform(0.005, 0.5), Choice(0.015, 0.02, 0.29), at_least=0, at_most=1
    )
    drop: int = parameter(4, "number of columns set to zero", Integers(0, 8), at_least=0)
    debias_epochs: int = parameter(100, "rounds of debiasing; at most as many as the training has epochs", at_least=1)
    budget: float = parameter(0.25, "largest share of the edges that is removed; at most as many are added", at_least=0)
    backbone: Backbone = networks.backbone()
    num_layers: int = networks.num_layers()
    hidden: int = networks.hidden()
    dropout: float = networks.dropout(0.05)

    name = "edits"
    summary = "debiases features and edges before it trains a network on them"
    stage = "pre-processing"
    needs_groups = "training"
    switched_off: ClassVar[Mapping[str, Any]] = {"drop": 0, "budget": 0.0}
    recommended_training = Training(epochs=1000, learning_rate=1e-3, weight_decay=1e-5)  # the authors'
    takes_two = ("labels", "groups")
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "german": {"alpha": 0.3, "beta": 0.8, "tau": 0.29, "debias_epochs": 500},
        "bail": {"alpha": 0.03, "beta": 1.0, "tau": 0.015, "debias_epochs": 100},
        "credit": {"alpha": 0.05, "beta": 0.1, "tau": 0.02, "debias_epochs": 500},
    }

    def build(self, task: Task) -> Program:
        if self.drop >= task.num_features:
            # Without quotes: on the command line, --drop is an option of tables.
            raise ValueError(
                f"EDITS must keep some of the {task.num_features} features (its parameter drop is {self.drop})"
            )
        return _Debiased(GNN(self.backbone, networks.widths(self, task), self.dropout), self)


class _Debiased(networks.Network):
    fitted_edges: Tensor  # the graph's own
    edges: Tensor  # the debiased ones
    scales: Tensor  # `t`
    kept: Tensor  # 0 for the columns that are set to zero, 1 for the others
    wasserstein: Tensor  # the estimate at every round of debiasing
    network: GNN

    def __init__(self, network: GNN, settings: EDITS) -> None:
        super().__init__(network)
        self.settings = settings.with_params()
        for name in ("edges", "fitted_edges", "scales", "kept", "wasserstein"):
            self.register_buffer(name, None)

    def check_state(self) -> None:
        super().check_state()
        for name in ("edges", "fitted_edges"):
            value: Tensor | None = getattr(self, name)
            if value is None or value.dtype != torch.long or value.dim() != 2 or len(value) != 2:
                raise ValueError(f"'{name}' must be whole numbers of shape (2, E)")
            if value.numel() and int(value.min()) < 0:
                raise ValueError(f"'{name}' must be numbers of nodes")

    def prepare(self, task: Task, training: Training) -> None:
        contrast = _contrast(task)
        # A short training must not be preceded by a long one: the budget of a search is spent on epochs.
        rounds = min(self.settings.debias_epochs, training.epochs)
        found = debias(task.x, task.edge_index, contrast, self.settings.with_params(debias_epochs=rounds))
        self.edges, self.fitted_edges = found.edge_index, task.edge_index
        self.scales, self.wasserstein = found.scales, found.wasserstein
        gap = (contrast @ task.x).abs() / task.x.norm(dim=0).clamp(min=torch.finfo(task.x.dtype).tiny)
        by_gap = gap.argsort(descending=True, stable=True)
        dropped = by_gap[found.scales[by_gap].argsort(stable=True)[: self.settings.drop]]
        self.kept = torch.ones_like(found.scales).index_fill_(0, dropped, 0)
        task.cache.pop(self, None)

    def forward(self, task: Task) -> Tensor:
        if self not in task.cache:
            edges = self.edges
            if not torch.equal(task.edge_index, self.fitted_edges):
                logger.warning("EDITS debiased the edges of the fitted graph; these are different and used unchanged")
                edges = task.edge_index
            elif edges.numel() and int(edges.max()) >= task.num_nodes:
                raise DataError(f"the model must name nodes of its own graph only (damaged: there is no {edges.max()})")
            backbone = self.network.backbone
            task.cache[self] = SparseOperator.from_edge_index(edges, task.num_nodes, backbone, dtype=task.x.dtype)
        logits: Tensor = self.network(task.x * self.kept, task.cache[self])
        return logits


def _contrast(task: Task) -> Tensor:
    """Return `q`, whose product with a column is the difference of the groups' means."""
    return task.groups.membership[:, 0] - task.groups.membership[:, 1]
