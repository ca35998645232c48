"""The reductions approach: fair classification as a sequence of weighted classifications, by fairlearn."""

import warnings
from math import inf
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from fairpass.methods import networks
from fairpass.methods.base import NodeClassifier
from fairpass.metrics.group_thresholds import Constraint, check_groups_have_both_labels
from fairpass.parameters import Choice, LogUniform, parameter
from fairpass.training import Program, Task, Training

_MAX_ITERATIONS = 1000
# Logits must be finite; in single precision a probability this small is 0.
_SMALLEST = 1e-12


class ExponentiatedGradient(NodeClassifier):
    r"""Exponentiated gradient (Agarwal et al. 2018, `arXiv:1803.02453 <https://arxiv.org/abs/1803.02453>`_).

    Fairness is a constraint on the rates of decisions. Its Lagrangian is a game: one player fits a logistic
    regression to labels whose weights depend on the multipliers, the other raises the multipliers of violated
    constraints. The outcome is a mixture of regressions :math:`h_t` with weights :math:`q_t`,

    .. math:: s_i = \sum_t q_t\, [h_t(x_i) > 0].

    This score is the probability with which fairlearn's `ExponentiatedGradient` decides positive. Fairlearn draws the
    decision; here the score is compared with the threshold, as for every method. With the threshold 0.5 the decision
    is the weighted majority, so nothing is random, and the constraint holds only approximately.

    It sees the features of the training nodes of known group. It uses neither the edges nor, at prediction, the group
    (unless that is a feature). The result does not depend on the seed or the optimizer's settings, and there is only
    one epoch.
    """

    constraint: Constraint = parameter("demographic_parity", "which rates shall be equal between groups")
    eps: float = parameter(
        0.01,
        "allowed difference from the average of all training nodes",
        LogUniform(1e-3, 0.3),
        Choice(0.01, 0.05, 0.1),
        above=0,
        below=inf,
    )
    C: float = networks.penalty(0.1, 1.0, 10.0)
    max_iter: int = parameter(50, "maximum number of rounds, each of one regression or more", at_least=1)

    name = "exponentiated-gradient"
    summary = "mixture of logistic regressions under a constraint on the groups' rates, no graph"
    recommended_training = Training(epochs=1)
    learns_by_epochs = False
    takes_two = ("labels",)

    def build(self, task: Task) -> Program:
        return _Mixture(self)


class _Mixture(networks.ClosedForm):
    """Buffers: `coefficients` `(T, d)`, `intercepts` `(T,)` and `weights` `(T,)` of the regressions.

    They are in double precision as in scikit-learn, so that decisions near zero are the same.
    """

    coefficients: Tensor
    intercepts: Tensor
    weights: Tensor

    def __init__(self, settings: ExponentiatedGradient) -> None:
        super().__init__()
        self.settings = settings.with_params()
        for name in ("coefficients", "intercepts", "weights"):
            self.register_buffer(name, None)

    def prepare(self, task: Task, training: Training) -> None:
        nodes = task.train_nodes[task.sens[task.train_nodes] >= 0]
        x = task.x[nodes].double().cpu().numpy()
        y, sens = task.y[nodes].cpu().numpy(), task.sens[nodes].cpu().numpy()
        check_groups_have_both_labels(y, sens, task.group_names)
        found = fit_mixture(self.settings, x, y, sens)
        used = [(q, h) for q, h in zip(found.weights_.sort_index(), found.predictors_, strict=True) if q > 0]
        rows = [_line(regression, x.shape[1]) for _, regression in used]
        self.coefficients = torch.stack([w for w, _ in rows]).to(task.device)
        self.intercepts = torch.stack([b for _, b in rows]).to(task.device)
        self.weights = torch.tensor([q for q, _ in used], dtype=torch.float64, device=task.device)

    def forward(self, task: Task) -> Tensor:
        positive = task.x.double() @ self.coefficients.T + self.intercepts > 0
        score = positive.double() @ self.weights / self.weights.sum()
        return torch.stack([1 - score, score], -1).clamp(min=_SMALLEST).log().to(task.x.dtype)


def fit_mixture(settings: ExponentiatedGradient, x: Any, y: Any, sens: Any) -> Any:
    """Return fairlearn's fitted reduction for features `(n, d)`, labels and groups `(n,)`."""
    from fairlearn import reductions

    constraints = {
        "demographic_parity": reductions.DemographicParity,
        "true_positive_rate_parity": reductions.TruePositiveRateParity,
        "equalized_odds": reductions.EqualizedOdds,
    }
    reduction = reductions.ExponentiatedGradient(
        LogisticRegression(C=settings.C, max_iter=_MAX_ITERATIONS),
        constraints[settings.constraint](difference_bound=settings.eps),
        eps=settings.eps,
        max_iter=settings.max_iter,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a regression that is nearly optimal is good enough
        for category in (DeprecationWarning, FutureWarning):  # from fairlearn's use of pandas
            warnings.simplefilter("ignore", category)
        return reduction.fit(x, y, sensitive_features=sens)


def _line(regression: Any, num_features: int) -> tuple[Tensor, Tensor]:
    """Return the coefficients and the intercept of a regression."""
    if isinstance(regression, LogisticRegression):
        return torch.from_numpy(regression.coef_[0]), torch.tensor(regression.intercept_[0], dtype=torch.float64)
    # If all weighted labels are the same, fairlearn uses a constant classifier.
    positive = float(regression.predict([[0.0] * num_features])[0])
    return torch.zeros(num_features, dtype=torch.float64), torch.tensor(2 * positive - 1, dtype=torch.float64)
