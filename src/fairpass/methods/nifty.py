"""NIFTY: representations that do not change when the sensitive attribute is flipped and the graph is perturbed."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cosine_similarity
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import spectral_norm

from fairpass.errors import DataError
from fairpass.methods import networks
from fairpass.methods.edge_dropout import EdgeDropout
from fairpass.nn import SparseOperator
from fairpass.nn.convolution import Backbone, convolution
from fairpass.parameters import Choice, LogUniform, Uniform, parameter
from fairpass.training import Program, Task, Training
from fairpass.training.program import adam, two_logits

View = tuple[Tensor, SparseOperator]


class NIFTY(networks.Published):
    r"""NIFTY (Agarwal et al. 2021, `arXiv:2102.13186 <https://arxiv.org/abs/2102.13186>`_).

    Each epoch draws two views of the graph. Both lose random edges, and one random number is added to random columns;
    in the second view the sensitive column is flipped. An encoder and a projector turn view :math:`v` into
    :math:`p_v`, and a predictor that into :math:`q_v`. They take a step on :math:`L_s`, with
    :math:`D(q, p) = -\cos(q, p)` averaged over the training nodes and no gradient through `p`; then encoder and
    classifier take one on :math:`L_c`:

    .. math::
        L_s = \lambda \tfrac12 \big(D(q_1, p_2) + D(q_2, p_1)\big), \qquad
        L_c = (1 - \lambda) \tfrac12 \big(\mathrm{BCE}_1 + \mathrm{BCE}_2\big).

    The encoder is one convolution; all weights are divided by their spectral norm. The sensitive attribute must be a
    column of `x` with two values. Nodes of unknown group keep theirs and are left out of :math:`L_s`.
    """

    similarity: float = parameter(
        0.5, r":math:`\lambda`, weight of similarity", Uniform(0.1, 0.9), Choice(0.4, 0.6, 0.8), at_least=0, at_most=1
    )
    drop_edges: float = parameter(
        0.1, "share of dropped edges", LogUniform(1e-3, 0.5), Choice(0.001, 0.1), at_least=0, at_most=1
    )
    noise: float = parameter(0.1, "probability of adding noise to a column", Uniform(0, 0.5), at_least=0, at_most=1)
    flip: bool = parameter(True, "whether the sensitive column is flipped in the second view", before=True)
    backbone: Backbone = networks.backbone()
    hidden: int = networks.hidden()

    name = "nifty"
    summary = "representations that do not change when the sensitive attribute is flipped"
    stage = "in-processing"
    needs_groups = "training"
    switched_off: ClassVar[Mapping[str, Any]] = {"similarity": 0.0, "flip": False}
    recommended_training = Training(epochs=300, learning_rate=1e-3, weight_decay=1e-5)  # the authors'
    takes_two = ("labels", "groups")
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "german": {"similarity": 0.6, "drop_edges": 0.001, "epochs": 1000},
        "bail": {},
        "credit": {},
    }

    def build(self, task: Task) -> Program:
        if task.sens_column is None:
            given = "None: the sensitive attribute is not among the features"
            raise DataError(f"'data.sens_column' must be the column of 'data.x' that NIFTY flips (got {given})")
        return _Contrastive(task.num_features, self)


class _Contrastive(networks.SeveralOptimizers):
    def __init__(self, num_features: int, settings: NIFTY) -> None:
        super().__init__()
        self.settings, width = settings.with_params(), settings.hidden
        self.encoder = convolution(settings.backbone, num_features, width)
        linear, norm = partial(nn.Linear, width, width), partial(nn.BatchNorm1d, width)
        self.projector = nn.Sequential(linear(), norm(), nn.ReLU(), linear(), norm())
        self.predictor = nn.Sequential(linear(), norm(), nn.ReLU(), linear())
        self.classifier = nn.Linear(width, 1)
        for part in (self.projector, self.predictor, self.classifier):
            part.apply(_draw_weights)
        for module in list(self.modules()):
            weight = getattr(module, "weight", None)
            if isinstance(weight, nn.Parameter) and weight.dim() == 2:
                spectral_norm(module)  # divides the weights at each use

    def forward(self, task: Task) -> Tensor:
        return two_logits(self.classifier(self.encoder(task.x, task.operator(self.settings.backbone))))

    def configure(self, training: Training) -> None:
        self.optimizers = {
            "similarity": adam(nn.ModuleList([self.encoder, self.projector, self.predictor]), training),
            "label": adam(nn.ModuleList([self.encoder, self.classifier]), training),
        }

    def epoch(self, task: Task) -> dict[str, float]:
        if self not in task.cache:
            task.cache[self] = Views(task, self.settings)
        views, weight = task.cache[self].draw(), self.settings.similarity
        # Each use of a weight iterates its spectral norm again; with the cache both views have the same.
        with parametrize.cached():
            similarity = self._similarity_loss(views, task)
            self.minimise(weight * similarity, "similarity")
        with parametrize.cached():
            by_label = self._label_loss(views, task)
            self.minimise((1 - weight) * by_label, "label")
        s, c = float(similarity.detach()), float(by_label.detach())
        return {"loss": weight * s + (1 - weight) * c, "similarity": s, "label": c}

    def _similarity_loss(self, views: tuple[View, View], task: Task) -> Tensor:
        nodes = task.train_nodes[task.sens[task.train_nodes] >= 0]
        projected = [self.projector(self.encoder(*view)) for view in views]
        # All nodes go through the predictor, because batch normalisation needs the statistics of all.
        p1, p2 = (p[nodes].detach() for p in projected)
        q1, q2 = (self.predictor(p)[nodes] for p in projected)
        return -(cosine_similarity(q1, p2).mean() + cosine_similarity(q2, p1).mean()) / 2

    def _label_loss(self, views: tuple[View, View], task: Task) -> Tensor:
        nodes = task.train_nodes
        logits = [self.classifier(self.encoder(*view)[nodes])[:, 0] for view in views]
        labels = task.y[nodes].to(logits[0])
        return (bce(logits[0], labels) + bce(logits[1], labels)) / 2


class Views:
    """Draws two perturbed views of a graph, the second with the sensitive column flipped."""

    def __init__(self, task: Task, settings: NIFTY) -> None:
        self.x, self.column, self.noise = task.x, task.sens_column, settings.noise
        column = task.x[:, self.column]
        known = task.sens >= 0
        values = torch.unique(column[known])
        if len(values) != 2:
            where = f"its sensitive column {self.column}"
            raise DataError(f"'data.x' must have two values in {where} for NIFTY to flip (got {len(values)})")
        self._flipped = torch.where(known, values.sum() - column, column) if settings.flip else column
        self._edges = EdgeDropout(task, settings.backbone, settings.drop_edges)

    def draw(self) -> tuple[View, View]:
        first, second = self._noisy(), self._noisy()
        second[:, self.column] = self._flipped
        return (first, self._edges.draw()), (second, self._edges.draw())

    def _noisy(self) -> Tensor:
        picked = torch.rand(self.x.shape[1], device=self.x.device) < self.noise
        picked[self.column] = False
        return self.x + picked * torch.randn(1, device=self.x.device)


def _draw_weights(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
