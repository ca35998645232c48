"""EDITS: debias features and edges first, then train a GNN on what came out."""

import logging
from typing import Any, ClassVar, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import (
    check_at_least,
    check_choice,
    check_dropout,
    check_fraction,
    check_two_groups,
    check_two_labels,
)
from fairpass.methods.edits_debias import Debiasing, debias
from fairpass.nn import GNN, SparseOperator
from fairpass.nn.convolution import Backbone
from fairpass.training import Program, Task, Training

logger = logging.getLogger(__name__)

# What the authors use for each data set.
_AUTHORS: dict[str, dict[str, Any]] = {
    "german": {"alpha": 0.3, "beta": 0.8, "tau": 0.29, "debias_epochs": 500},
    "bail": {"alpha": 0.03, "beta": 1.0, "tau": 0.015, "debias_epochs": 100},
    "credit": {"alpha": 0.05, "beta": 0.1, "tau": 0.02, "debias_epochs": 500},
}


class EDITS(NodeClassifier):
    r"""EDITS (Dong et al. 2022, `arXiv:2108.05233 <https://arxiv.org/abs/2108.05233>`_).

    With `X` normalised column by column, it learns column scales `t` in [0, 1], :math:`\tilde X = X
    \mathrm{diag}(t)`, and an adjacency :math:`\tilde A` with weights in [0, 1], at first 1 and `A + I`. A linear
    critic, its weights clamped to :math:`\pm 0.02`, estimates the Wasserstein distance between the groups

    .. math::
        W = \max_f\; \mathrm{mean}_{s=0} f(z) - \mathrm{mean}_{s=1} f(z), \qquad
        z = [\tilde X, \tilde A \tilde X, \tilde A^2 \tilde X]

    over all nodes of known group. Each of `debias_epochs` rounds takes eight steps of the critic, one of
    `t` on :math:`\alpha \|\tilde X - X\|_F + \beta W` and one of :math:`\tilde A` on
    :math:`\|\tilde A - A\|_F^2 + \gamma W`; after each, small weights are cut (the proximal step of the L1 norm)
    and the rest clamped, :math:`\tilde A` made symmetric. Then the `drop` columns of smallest `t` are set to zero;
    a pair is joined if its weight grew by more than :math:`\tau` times the most that any grew, an edge removed if
    its weight fell by more than :math:`\tau` times the most that any fell. A GNN is trained with cross-entropy on
    the result.

    EDITS is transductive. On the fitted graph (the same `edge_index`) predictions are made with the debiased edges.
    Which edges to change cannot be told for another graph, nor for the fitted one with people added to it, so that is
    taken as it is, with the same columns set to zero: fairness that came from the edges is lost there.

    What differs from the public code: :math:`\tilde A` is never dense, only the edges and the most promising
    candidates are stored, see :mod:`~fairpass.methods.edits_debias`, so that memory grows with the edges. The
    groups are compared over all nodes, not over the training nodes. The critic is trained before its first use,
    and its output has no dropout. All is in single precision; in half precision, as there, a weight near 1 cannot
    change by less than 0.0005 at a time, which hides that the L1 norm lowers every edge alike: here an edge's fall
    counts from there. There is a budget for changes. Of columns with equal `t`, those that differ more between the
    groups are dropped first.

    Args:
        alpha: :math:`\alpha`.
        beta: :math:`\beta`.
        gamma: :math:`\gamma`.
        tau: :math:`\tau`.
        drop: number of columns set to zero.
        debias_epochs: rounds of debiasing.
        budget: at most this share of the edges is removed, and at most as many are added.
        backbone: of the GNN, `"gcn"`, `"gin"`, `"gat"` or `"sage"`.
        num_layers: of the GNN.
        hidden: width of the GNN.
        dropout: in the GNN.
        training: settings of the training loop.
    """

    name: ClassVar[str] = "edits"
    summary: ClassVar[str] = "debiases features and edges before it trains a network on them"

    def __init__(
        self,
        *,
        alpha: float = 0.03,
        beta: float = 1.0,
        gamma: float = 15.0,
        tau: float = 0.015,
        drop: int = 4,
        debias_epochs: int = 100,
        budget: float = 0.25,
        backbone: Backbone = "gcn",
        num_layers: int = 2,
        hidden: int = 16,
        dropout: float = 0.05,
        training: Training | None = None,
    ) -> None:
        super().__init__(training=training)
        check_at_least(0, alpha=alpha, beta=beta, gamma=gamma, drop=drop, budget=budget)
        check_at_least(1, debias_epochs=debias_epochs, num_layers=num_layers, hidden=hidden)
        check_fraction(tau=tau)
        check_dropout(dropout)
        check_choice(get_args(Backbone), backbone=backbone)
        self.alpha, self.beta, self.gamma, self.tau = alpha, beta, gamma, tau
        self.drop, self.debias_epochs, self.budget = drop, debias_epochs, budget
        self.backbone, self.num_layers, self.hidden, self.dropout = backbone, num_layers, hidden, dropout

    @classmethod
    def default_training(cls) -> Training:
        """Return the authors' settings."""
        return Training(epochs=1000, learning_rate=1e-3, weight_decay=1e-5)

    @classmethod
    def authors(cls, data_set: str, *, backbone: Backbone = "gcn", **training: Any) -> "EDITS":
        """Return the method as the authors configure it.

        Args:
            data_set: `"german"`, `"bail"` or `"credit"`.
            backbone: `"gcn"`, `"gin"`, `"gat"` or `"sage"`.
            training: settings of the training loop that are to be others than the authors', e.g. `seed=1`.
        """
        check_choice(tuple(_AUTHORS), data_set=data_set)
        return cls(**_AUTHORS[data_set], backbone=backbone, training=cls.default_training().but(**training))

    def build(self, task: Task) -> Program:
        """Return the debiasing, still to be done, and the network."""
        check_two_labels("EDITS", task)
        check_two_groups("EDITS", task)
        if self.drop >= task.num_features:
            raise ValueError(f"'drop' must leave some of the {task.num_features} features (got {self.drop})")
        widths = (task.num_features, *[self.hidden] * (self.num_layers - 1), task.num_classes)
        settings = Debiasing(self.alpha, self.beta, self.gamma, self.tau, self.debias_epochs, self.budget)
        return _Debiased(GNN(self.backbone, widths, self.dropout), settings, self.drop)


class _Debiased(Program):
    """A network on a debiased graph.

    Buffers: `edges`, the debiased edges of the graph whose `edge_index` was `fitted_edges`; `scales`, the learnt
    `t`; `kept`, 0 for the columns that are set to zero and 1 for the others; `wasserstein`, its estimate at every
    round of debiasing.
    """

    edges: Tensor
    fitted_edges: Tensor
    scales: Tensor
    kept: Tensor
    wasserstein: Tensor

    def __init__(self, network: GNN, settings: Debiasing, drop: int) -> None:
        super().__init__()
        self.network, self.settings, self.drop = network, settings, drop
        for name in ("edges", "fitted_edges", "scales", "kept", "wasserstein"):
            self.register_buffer(name, None)
        self._operator: SparseOperator | None = None

    def prepare(self, task: Task, training: Training) -> None:
        """Debias the graph."""
        contrast = _contrast(task)
        found = debias(task.x, task.edge_index, contrast, self.settings)
        self.edges, self.fitted_edges = found.edge_index, task.edge_index
        self.scales, self.wasserstein = found.scales, found.wasserstein
        gap = (contrast @ task.x).abs() / task.x.norm(dim=0).clamp(min=torch.finfo(task.x.dtype).tiny)
        by_gap = gap.argsort(descending=True, stable=True)
        dropped = by_gap[found.scales[by_gap].argsort(stable=True)[: self.drop]]
        self.kept = torch.ones_like(found.scales).index_fill_(0, dropped, 0)
        self._operator = None

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Put a state back, and forget the operator of the edges before."""
        self._operator = None
        return super().load_state_dict(*args, **kwargs)

    def forward(self, task: Task) -> Tensor:
        logits: Tensor = self.network(task.x * self.kept, self.operator(task))
        return logits

    def operator(self, task: Task) -> SparseOperator:
        """Return the operator of the debiased graph, if this is the one that was; else of this one."""
        if not torch.equal(task.edge_index, self.fitted_edges):
            logger.warning("EDITS debiased the edges of the fitted graph; these are other edges, taken as they are")
            return task.operator(self.network.backbone)
        if self._operator is None:
            debiased = Task(Data(x=task.x, edge_index=self.edges), task.device, need_masks=False)
            self._operator = debiased.operator(self.network.backbone)
        return self._operator


def _contrast(task: Task) -> Tensor:
    """Return `q`, whose product with a column is the difference of the groups' means."""
    contrast = torch.zeros(task.num_nodes, dtype=task.x.dtype, device=task.device)
    for group, sign in ((0, 1.0), (1, -1.0)):
        members = task.sens == group
        contrast[members] = sign / members.sum()
    return contrast
