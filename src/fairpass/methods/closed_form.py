"""Classifiers that need no optimizer: label frequencies, logistic regression, fairlearn's mixture of regressions."""

import logging
import warnings
from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from fairpass.methods.base import NodeClassifier
from fairpass.metrics.group_thresholds import Constraint, check_groups_have_both_labels
from fairpass.nn.validation import check_buffers
from fairpass.parameters import Choice, LogUniform, parameter
from fairpass.training import Program, Task, Training
from fairpass.training.program import cross_entropy, two_logits

logger = logging.getLogger(__name__)

# Of logistic regression; standardised features need a few dozen.
_MAX_ITERATIONS = 1000
# Logits must be finite; in single precision a probability this small is 0.
_SMALLEST = 1e-12


def _penalty(*grid: float) -> Any:
    search = LogUniform(1e-3, 100)  # for standardised features
    return parameter(1.0, "inverse strength of the regressions' penalty", search, Choice(*grid), above=0, below=inf)


class _ClosedForm(Program):
    """A model that `prepare` finds completely, so that there is nothing to train."""

    is_random = False

    def configure(self, training: Training) -> None:
        self.optimizers = {}

    def epoch(self, task: Task) -> dict[str, float]:
        return {"loss": float(cross_entropy(self(task), task))}


class Constant(NodeClassifier):
    """Predicts the same for every node: the frequencies of the labels among training and validation nodes."""

    name = "constant"
    summary = "the most frequent label for every node; its group differences are 0"
    takes_edge_weights = True
    recommended_training = Training(epochs=1)
    learns_by_epochs = False

    def build(self, task: Task) -> Program:
        return _Frequencies(task.num_classes)


class _Frequencies(_ClosedForm):
    logits: Tensor

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("logits", torch.zeros(num_classes))

    def epoch(self, task: Task) -> dict[str, float]:
        # Validation is included because the benchmarks' training labels are balanced by design.
        seen = task.y[(task.masks["train"] | task.masks["val"]) & (task.y >= 0)]
        counts = torch.bincount(seen, minlength=len(self.logits)).to(self.logits)
        self.logits.copy_((counts / counts.sum()).clamp(min=1e-6).log())
        return {"loss": float(-self.logits[seen].mean())}

    def forward(self, task: Task) -> Tensor:
        return self.logits.expand(task.num_nodes, -1)


class Logistic(NodeClassifier):
    r"""Logistic regression on the features of the training nodes, by scikit-learn, without the edges.

    The coefficients :math:`w` and intercepts :math:`b` minimise

    .. math:: \frac12 \|w\|^2 + C \sum_{i \in V_{train}} -\log \mathrm{softmax}(w x_i + b)_{y_i}.

    The penalty treats all columns alike, so the features should be scaled. The result does not depend on the seed or
    the optimizer's settings, and there is only one epoch.
    """

    C: float = _penalty(0.01, 0.1, 1.0, 10.0)

    name = "logistic"
    summary = "logistic regression on the features, no graph, no fairness"
    takes_edge_weights = True
    recommended_training = Training(epochs=1)
    learns_by_epochs = False

    def build(self, task: Task) -> Program:
        return _Regression(task.num_features, task.num_classes, self.C)


class _Regression(_ClosedForm):
    coefficients: Tensor  # (R, d), with one row for two classes, else one for each
    intercepts: Tensor  # (R,)

    def __init__(self, num_features: int, num_classes: int, C: float) -> None:
        super().__init__()
        self.C = C
        rows = 1 if num_classes == 2 else num_classes
        self.register_buffer("coefficients", torch.zeros(rows, num_features))
        self.register_buffer("intercepts", torch.zeros(rows))
        self._shapes = {"coefficients": (rows, num_features), "intercepts": (rows,)}

    def check_state(self) -> None:
        super().check_state()
        check_buffers(self, self._shapes)

    def prepare(self, task: Task, training: Training) -> None:
        nodes = task.train_nodes
        found = LogisticRegression(C=self.C, max_iter=_MAX_ITERATIONS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the message below says what helps
            found.fit(task.x[nodes].double().cpu().numpy(), task.y[nodes].cpu().numpy())
        if max(found.n_iter_) >= _MAX_ITERATIONS:
            logger.warning(
                "logistic regression did not converge within %s iterations (scaled features or a smaller 'C' help)",
                f"{_MAX_ITERATIONS:,}",
            )
        self.coefficients.copy_(torch.from_numpy(found.coef_))
        self.intercepts.copy_(torch.from_numpy(found.intercept_))

    def forward(self, task: Task) -> Tensor:
        logits = task.x @ self.coefficients.T + self.intercepts
        return two_logits(logits) if logits.shape[-1] == 1 else logits


class ExponentiatedGradient(NodeClassifier):
    r"""Exponentiated gradient (Agarwal et al. 2018, `arXiv:1803.02453 <https://arxiv.org/abs/1803.02453>`_).

    Fairness is a constraint on the rates of decisions. Its Lagrangian is a game: one player fits a logistic
    regression to labels whose weights depend on the multipliers, the other raises the multipliers of violated
    constraints. The outcome is a mixture of regressions :math:`h_t` with weights :math:`q_t`,

    .. math:: s_i = \sum_t q_t\, [h_t(x_i) > 0].

    Fairlearn draws a decision with this probability; here the score is compared with the threshold, as for every
    method. So nothing is random, and the constraint holds only approximately. The features of the training nodes of
    known group are used, neither the edges nor the seed, nor the group at prediction (unless it is a feature).
    """

    constraint: Constraint = parameter("demographic_parity", "which rates must be equal between groups")
    eps: float = parameter(
        0.01,
        "allowed difference from the overall rate",
        LogUniform(1e-3, 0.3),
        Choice(0.01, 0.05, 0.1),
        above=0,
        below=inf,
    )
    C: float = _penalty(0.1, 1.0, 10.0)
    max_iter: int = parameter(
        50, "maximum number of rounds, each of one regression or more; 0: one regression, no constraint", at_least=0
    )

    name = "exponentiated-gradient"
    summary = "mixture of logistic regressions under a constraint on the groups' rates, no graph"
    takes_edge_weights = True
    stage = "in-processing"
    needs_groups = "training"
    switched_off: ClassVar[Mapping[str, Any]] = {"max_iter": 0}
    recommended_training = Training(epochs=1)
    learns_by_epochs = False
    takes_two = ("labels",)

    def build(self, task: Task) -> Program:
        return _Mixture(self)


class _Mixture(_ClosedForm):
    # In double precision as in scikit-learn, so that decisions near zero are the same.
    coefficients: Tensor  # (T, d)
    intercepts: Tensor  # (T,)
    weights: Tensor  # (T,)

    def __init__(self, settings: ExponentiatedGradient) -> None:
        super().__init__()
        self.settings = settings.with_params()
        for name in ("coefficients", "intercepts", "weights"):
            self.register_buffer(name, None)

    def check_state(self) -> None:
        super().check_state()
        if self.coefficients is None or self.coefficients.dim() != 2:
            raise ValueError("'coefficients' must have two dimensions")
        lines = len(self.coefficients)
        check_buffers(self, {"intercepts": (lines,), "weights": (lines,)})

    def prepare(self, task: Task, training: Training) -> None:
        nodes = task.train_nodes[task.sens[task.train_nodes] >= 0]
        x = task.x[nodes].double().cpu().numpy()
        y, sens = task.y[nodes].cpu().numpy(), task.sens[nodes].cpu().numpy()
        check_groups_have_both_labels(y, sens, task.group_names)
        used = _fit_mixture(self.settings, x, y, sens)
        lines = zip(*(_line(regression, x.shape[1]) for _, regression in used), strict=True)
        self.coefficients, self.intercepts = (torch.stack(part).to(task.device) for part in lines)
        self.weights = torch.tensor([q for q, _ in used], dtype=torch.float64, device=task.device)

    def forward(self, task: Task) -> Tensor:
        positive = task.x.double() @ self.coefficients.T + self.intercepts > 0
        score = positive.double() @ self.weights / self.weights.sum()
        return torch.stack([1 - score, score], -1).clamp(min=_SMALLEST).log().to(task.x.dtype)


def _fit_mixture(settings: ExponentiatedGradient, x: Any, y: Any, sens: Any) -> list[tuple[float, Any]]:
    """Return the regressions of the mixture, each with its weight."""
    from fairlearn import reductions

    regression = LogisticRegression(C=settings.C, max_iter=_MAX_ITERATIONS)

    constraints = {
        "demographic_parity": reductions.DemographicParity,
        "true_positive_rate_parity": reductions.TruePositiveRateParity,
        "equalized_odds": reductions.EqualizedOdds,
    }
    reduction = reductions.ExponentiatedGradient(
        regression,
        constraints[settings.constraint](difference_bound=settings.eps),
        eps=settings.eps,
        max_iter=settings.max_iter,
    )
    with warnings.catch_warnings():
        # A regression that is nearly optimal is good enough; the others come from fairlearn's use of pandas.
        for category in (ConvergenceWarning, DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        if settings.max_iter == 0:
            return [(1.0, regression.fit(x, y))]
        found = reduction.fit(x, y, sensitive_features=sens)
    return [(q, h) for q, h in zip(found.weights_.sort_index(), found.predictors_, strict=True) if q > 0]


def _line(regression: Any, num_features: int) -> tuple[Tensor, Tensor]:
    """Return the coefficients and the intercept of a regression."""
    if isinstance(regression, LogisticRegression):
        return torch.from_numpy(regression.coef_[0]), torch.tensor(regression.intercept_[0], dtype=torch.float64)
    # If all weighted labels are the same, fairlearn uses a constant classifier.
    positive = float(regression.predict([[0.0] * num_features])[0])
    return torch.zeros(num_features, dtype=torch.float64), torch.tensor(2 * positive - 1, dtype=torch.float64)
