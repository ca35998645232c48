"""The reductions approach: fair classification as a sequence of weighted classifications, by fairlearn."""

import warnings
from typing import Any, ClassVar, get_args

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import check_at_least, check_choice, check_positive, check_two_labels
from fairpass.metrics.group_thresholds import Constraint, check_groups_have_both_labels
from fairpass.training import Program, Task, Training
from fairpass.training.program import cross_entropy

_MAX_ITERATIONS = 1000
# Logits must be finite; a probability this small is none in single precision.
_SMALLEST = 1e-12


class ExponentiatedGradient(NodeClassifier):
    r"""Exponentiated gradient (Agarwal et al. 2018, `arXiv:1803.02453 <https://arxiv.org/abs/1803.02453>`_).

    Fairness is a constraint on the rates of decisions. Its Lagrangian is a game: one player fits a logistic
    regression to labels whose weights depend on the multipliers, the other raises the multipliers of what is violated.
    The outcome is a mixture of regressions :math:`h_t` with weights :math:`q_t`,

    .. math:: s_i = \sum_t q_t\, [h_t(x_i) > 0].

    This score is the probability with which fairlearn's `ExponentiatedGradient` decides positive. Fairlearn draws the
    decision; here the score is compared with the threshold like every other method's. With the threshold 0.5 the
    decision is that of the weighted majority, so nothing is random, and the constraint holds only approximately.

    It sees the features of the training nodes whose group is known, and neither the edges nor, to predict, the
    group (unless that is a feature). The result does not depend on the seed, and there is only one epoch.

    Args:
        constraint: which rates shall be equal between groups: `"demographic_parity"`, `"true_positive_rate_parity"`
            or `"equalized_odds"`.
        eps: by how much they may differ from the average of all training nodes.
        C: inverse strength of the regressions' penalty.
        max_iter: number of rounds at most; each fits one regression or more.
        training: settings of the training loop, of which the optimizer's do not matter here.
    """

    name: ClassVar[str] = "exponentiated-gradient"
    summary: ClassVar[str] = "mixture of logistic regressions under a constraint on the groups' rates, no graph"

    def __init__(
        self,
        *,
        constraint: Constraint = "demographic_parity",
        eps: float = 0.01,
        C: float = 1.0,
        max_iter: int = 50,
        training: Training | None = None,
    ) -> None:
        super().__init__(training=training)
        check_choice(get_args(Constraint), constraint=constraint)
        check_positive(eps=eps, C=C)
        check_at_least(1, max_iter=max_iter)
        self.constraint, self.eps, self.C, self.max_iter = constraint, eps, C, max_iter

    @classmethod
    def default_training(cls) -> Training:
        """Return one epoch: all is found before it."""
        return Training(epochs=1)

    def build(self, task: Task) -> Program:
        """Return the mixture, still empty."""
        check_two_labels("the exponentiated gradient", task)
        return _Mixture(self)


class _Mixture(Program):
    """Buffers: `coefficients` `(T, d)`, `intercepts` `(T,)` and `weights` `(T,)` of the regressions.

    In double precision, as scikit-learn has them: a decision near zero must be the same.
    """

    coefficients: Tensor
    intercepts: Tensor
    weights: Tensor

    def __init__(self, settings: ExponentiatedGradient) -> None:
        super().__init__()
        self.settings = settings
        for name in ("coefficients", "intercepts", "weights"):
            self.register_buffer(name, None)

    @property
    def is_random(self) -> bool:
        return False

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

    def configure(self, training: Training) -> None:
        self.optimizers = {}

    def epoch(self, task: Task) -> dict[str, float]:
        return {"loss": float(cross_entropy(self(task), task))}

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
        warnings.simplefilter("ignore", ConvergenceWarning)  # a regression that is nearly the best is a good move, too
        for category in (DeprecationWarning, FutureWarning):  # of fairlearn's use of pandas, not ours
            warnings.simplefilter("ignore", category)
        return reduction.fit(x, y, sensitive_features=sens)


def _line(regression: Any, num_features: int) -> tuple[Tensor, Tensor]:
    """Return the coefficients and the intercept of a regression."""
    if isinstance(regression, LogisticRegression):
        return torch.from_numpy(regression.coef_[0]), torch.tensor(regression.intercept_[0], dtype=torch.float64)
    # Where all weighted labels are the same, fairlearn has a constant in its place.
    positive = float(regression.predict([[0.0] * num_features])[0])
    return torch.zeros(num_features, dtype=torch.float64), torch.tensor(2 * positive - 1, dtype=torch.float64)
