"""Logistic regression: the plainest classifier of the features, and often hard to beat."""

import logging
import warnings

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from fairpass.methods.base import NodeClassifier
from fairpass.methods.networks import ClosedForm, penalty_parameter
from fairpass.parameters import Choice
from fairpass.training import Program, Task, Training
from fairpass.training.program import two_logits

logger = logging.getLogger(__name__)

# Standardised features need a few dozen.
_MAX_ITERATIONS = 1000


class Logistic(NodeClassifier):
    r"""Logistic regression on the features of the training nodes, by scikit-learn, without the edges.

    The coefficients :math:`w` and intercepts :math:`b` minimise

    .. math:: \frac12 \|w\|^2 + C \sum_{i \in V_{train}} -\log \mathrm{softmax}(w x_i + b)_{y_i}.

    The penalty treats all columns alike, so the features should be scaled. The result does not depend on the seed or
    the optimizer's settings, and there is only one epoch.
    """

    C: float = penalty_parameter(grid=Choice(0.01, 0.1, 1.0, 10.0))

    name = "logistic"
    summary = "logistic regression on the features, no graph, no fairness"
    recommended_training = Training(epochs=1)
    learns_by_epochs = False

    def build(self, task: Task) -> Program:
        """Return the regression, still without coefficients."""
        return _Regression(task.num_features, task.num_classes, self.C)


class _Regression(ClosedForm):
    """Buffers: `coefficients` `(R, d)` and `intercepts` `(R,)`; `R` is 1 for two classes, else their number."""

    coefficients: Tensor
    intercepts: Tensor

    def __init__(self, num_features: int, num_classes: int, C: float) -> None:
        super().__init__()
        self.C = C
        rows = 1 if num_classes == 2 else num_classes
        self.register_buffer("coefficients", torch.zeros(rows, num_features))
        self.register_buffer("intercepts", torch.zeros(rows))

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
