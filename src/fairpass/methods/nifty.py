"""NIFTY: representations that do not change when the sensitive attribute is flipped, the graph disturbed."""

from typing import Any, ClassVar, get_args
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cosine_similarity
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import spectral_norm

from fairpass.errors import DataError
from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import check_at_least, check_choice, check_fraction, check_two_groups, check_two_labels
from fairpass.nn import SparseOperator
from fairpass.nn.convolution import Backbone, convolution
from fairpass.training import Program, Task, Training
from fairpass.training.program import adam, two_logits

View = tuple[Tensor, SparseOperator]

# The authors' scripts: parameters and settings other than the defaults.
_AUTHORS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "german": ({"similarity": 0.6, "drop_edges": 0.001}, {"epochs": 1000}),
    "bail": ({}, {}),
    "credit": ({}, {}),
}


class NIFTY(NodeClassifier):
    r"""NIFTY (Agarwal et al. 2021, `arXiv:2102.13186 <https://arxiv.org/abs/2102.13186>`_).

    At each epoch two views of the graph are drawn. Both lose edges at random, and in both one random number
    is added to randomly picked columns, never the sensitive one; in the second the sensitive column is
    flipped. The encoder's output for view :math:`v` goes through the projector to :math:`p_v`, and on through
    the predictor to :math:`q_v`. With :math:`D(q, p) = -\cos(q, p)` averaged over the training nodes, and no
    gradient through `p`, these three networks take a step on

    .. math:: L_s = \lambda \tfrac12 \big(D(q_1, p_2) + D(q_2, p_1)\big),

    and then, the same views encoded again, encoder and classifier one on

    .. math:: L_c = (1 - \lambda) \tfrac12 \big(\mathrm{BCE}_1 + \mathrm{BCE}_2\big).

    The encoder is one convolution; the weights of all layers are divided by their spectral norm. Predictions
    are made from the undisturbed graph.

    What differs from the public code: the gradients of :math:`L_s` are cleared before the step on
    :math:`L_c`; an undirected edge is dropped as a whole, so that a view is undirected too; the epoch is
    selected like every other method's, not by the validation loss. GIN's layers have no batch normalisation.

    The sensitive attribute must be a column of `x` with two values; one is flipped to the other, `s -> 1 - s`
    if they are 0 and 1. Nodes of unknown group keep theirs, and are left out of :math:`L_s`.

    Args:
        similarity: :math:`\lambda`, weight of similarity against labels.
        drop_edges: share of edges dropped.
        noise: probability with which a column is picked for noise.
        backbone: `"gcn"`, `"gin"`, `"gat"` or `"sage"`.
        hidden: width.
        training: settings of the training loop.
    """

    name: ClassVar[str] = "nifty"
    summary: ClassVar[str] = "representations that do not change when the sensitive attribute is flipped"

    def __init__(
        self,
        *,
        similarity: float = 0.5,
        drop_edges: float = 0.1,
        noise: float = 0.1,
        backbone: Backbone = "gcn",
        hidden: int = 16,
        training: Training | None = None,
    ) -> None:
        super().__init__(training=training)
        check_fraction(similarity=similarity, drop_edges=drop_edges, noise=noise)
        check_choice(get_args(Backbone), backbone=backbone)
        check_at_least(1, hidden=hidden)
        self.similarity, self.drop_edges, self.noise = similarity, drop_edges, noise
        self.backbone, self.hidden = backbone, hidden

    @classmethod
    def default_training(cls) -> Training:
        """Return the authors' settings."""
        return Training(epochs=300, learning_rate=1e-3, weight_decay=1e-5)

    @classmethod
    def authors(cls, data_set: str, *, backbone: Backbone = "gcn", **training: Any) -> "NIFTY":
        """Return the method as the authors configure it.

        Args:
            data_set: `"german"`, `"bail"` or `"credit"`.
            backbone: `"gcn"`, `"gin"`, `"gat"` or `"sage"`.
            training: settings of the training loop that are to be others than the authors', e.g. `seed=1`.
        """
        check_choice(tuple(_AUTHORS), data_set=data_set)
        parameters, settings = _AUTHORS[data_set]
        loop = cls.default_training().but(**{**settings, **training})
        return cls(**parameters, backbone=backbone, training=loop)

    def build(self, task: Task) -> Program:
        """Return encoder, projector, predictor and classifier."""
        check_two_labels("NIFTY", task)
        check_two_groups("NIFTY", task)
        if task.sens_column is None:
            raise DataError(
                "'data.sens_column' must be the column of 'data.x' that NIFTY flips (got None: the sensitive "
                "attribute is not among the features)"
            )
        return _Contrastive(task.num_features, self)


class _Contrastive(Program):
    def __init__(self, num_features: int, settings: NIFTY) -> None:
        super().__init__()
        width = settings.hidden
        self.encoder = convolution(settings.backbone, num_features, width)
        self.projector = nn.Sequential(
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width), nn.BatchNorm1d(width)
        )
        self.predictor = nn.Sequential(
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width)
        )
        self.classifier = nn.Linear(width, 1)
        for part in (self.projector, self.predictor, self.classifier):
            part.apply(_draw_weights)
        _normalise_weights(self)
        self.backbone, self.similarity = settings.backbone, settings.similarity
        self.drop_edges, self.noise = settings.drop_edges, settings.noise
        # Gone as soon as the graph is, so that a fitted model does not hold on to it.
        self._views: WeakKeyDictionary[Task, Views] = WeakKeyDictionary()

    def forward(self, task: Task) -> Tensor:
        return two_logits(self.classifier(self.encoder(task.x, task.operator(self.backbone))))

    def configure(self, training: Training) -> None:
        self.optimizers = {
            "similarity": adam(nn.ModuleList([self.encoder, self.projector, self.predictor]), training),
            "label": adam(nn.ModuleList([self.encoder, self.classifier]), training),
        }

    def epoch(self, task: Task) -> dict[str, float]:
        if task not in self._views:
            self._views[task] = Views(task, self.backbone, drop_edges=self.drop_edges, noise=self.noise)
        first, second = self._views[task].draw()
        weight = self.similarity
        # Each use of a weight iterates its spectral norm again; cached, both views have the same.
        with parametrize.cached():
            similarity = self._similarity_loss(first, second, task)
            self._step("similarity", weight * similarity)
        with parametrize.cached():
            by_label = self._label_loss(first, second, task)
            self._step("label", (1 - weight) * by_label)
        s, c = float(similarity.detach()), float(by_label.detach())
        return {"loss": weight * s + (1 - weight) * c, "similarity": s, "label": c}

    def _similarity_loss(self, first: View, second: View, task: Task) -> Tensor:
        nodes = task.train_nodes[task.sens[task.train_nodes] >= 0]
        projected = [self.projector(self.encoder(*view)) for view in (first, second)]
        # Both go through batch normalisation whole: its statistics are those of all nodes.
        p1, p2 = (p[nodes].detach() for p in projected)
        q1, q2 = (self.predictor(p)[nodes] for p in projected)
        return -(cosine_similarity(q1, p2).mean() + cosine_similarity(q2, p1).mean()) / 2

    def _label_loss(self, first: View, second: View, task: Task) -> Tensor:
        nodes = task.train_nodes
        logits = [self.classifier(self.encoder(*view)[nodes])[:, 0] for view in (first, second)]
        labels = task.y[nodes].to(logits[0])
        return (bce(logits[0], labels) + bce(logits[1], labels)) / 2

    def _step(self, name: str, loss: Tensor) -> None:
        self.zero_grad()
        torch.autograd.backward(loss)
        self.optimizers[name].step()


class Views:
    """Draws the two disturbed views of a graph, in the second of which the sensitive column is flipped.

    Args:
        task: the graph.
        backbone: whose operator a view has.
        drop_edges: share of edges a view lacks.
        noise: probability with which a column is picked for noise.
    """

    def __init__(self, task: Task, backbone: Backbone, *, drop_edges: float, noise: float) -> None:
        self.x, self.column, self.noise = task.x, task.sens_column, noise
        column = task.x[:, self.column]
        known = task.sens >= 0
        values = torch.unique(column[known])
        if len(values) != 2:
            raise DataError(
                f"'data.x' must have two values in its sensitive column {self.column} for NIFTY to flip "
                f"(got {len(values)})"
            )
        self._flipped = torch.where(known, values.sum() - column, column)
        self._edges = EdgeDropout(task, backbone, drop_edges)

    def draw(self) -> tuple[View, View]:
        """Return features and operator of both views."""
        first, second = self._noisy(), self._noisy()
        second[:, self.column] = self._flipped
        return (first, self._edges.draw()), (second, self._edges.draw())

    def _noisy(self) -> Tensor:
        picked = torch.rand(self.x.shape[1], device=self.x.device) < self.noise
        picked[self.column] = False
        return self.x + picked * torch.randn(1, device=self.x.device)


class EdgeDropout:
    """Draws a backbone's operator of the graph without some of its edges.

    The places of the entries are found once; a draw sets those of dropped edges to zero and normalises again,
    which takes as long as a few products. Only attention, which knows no zeros, needs new places each time.
    """

    def __init__(self, task: Task, backbone: Backbone, share: float) -> None:
        self.whole, self.backbone, self.share = task.operator(backbone), backbone, share
        self.structure = structure = task.operator("gat")
        self.loop = structure.row == structure.col
        # Every node has an entry for itself here; only those with a loop in the graph are their own neighbours.
        source, target = task.edge_index
        self.neighbour = ~self.loop | torch.isin(structure.row, source[source == target])
        low, high = torch.minimum(structure.row, structure.col), torch.maximum(structure.row, structure.col)
        # Both directions of an edge have one number, and so one fate.
        pairs, self.pair = torch.unique(low * structure.num_nodes + high, return_inverse=True)
        self.num_pairs, self.dtype = len(pairs), task.x.dtype

    def draw(self) -> SparseOperator:
        """Return the operator of one random subgraph."""
        if self.share == 0:
            return self.whole
        structure = self.structure
        kept = torch.rand(self.num_pairs, device=self.pair.device) >= self.share
        kept = kept[self.pair] | self.loop
        if self.backbone == "gat":
            edges = torch.stack([structure.col, structure.row])[:, kept]
            return SparseOperator.from_edge_index(edges, structure.num_nodes, "gat", dtype=self.dtype)
        values = kept.to(self.dtype)
        if self.backbone == "sage":
            values = values * self.neighbour
            degree = structure.with_values(values) @ values.new_ones((structure.num_nodes, 1))
            values = values / degree[structure.row, 0].clamp(min=1)
            return SparseOperator(structure.with_values(values), structure.transposed_with_values(values))
        if self.backbone == "gcn":
            degree = structure.with_values(values) @ values.new_ones((structure.num_nodes, 1))
            scale = degree[:, 0].rsqrt()
            values = values * scale[structure.row] * scale[structure.col]
        matrix = structure.with_values(values)
        transpose = matrix if structure.is_symmetric else structure.transposed_with_values(values)
        return SparseOperator(matrix, transpose)


def _draw_weights(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)


def _normalise_weights(module: nn.Module) -> None:
    """Divide every weight matrix by its spectral norm from now on."""
    for part in list(module.modules()):
        weight = getattr(part, "weight", None)
        if isinstance(weight, nn.Parameter) and weight.dim() == 2:
            spectral_norm(part)
