"""An estimate of the group of a node whose group is not known, from its features alone."""

import warnings

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from torch import Tensor

from fairpass.nn.validation import LateBuffers, check_buffers

# More nodes than this add nothing to a linear model of some dozens of features.
_MOST_NODES = 20_000
# Score of a group without a node in the sample.
_NEVER = -30.0


class GroupEstimator(LateBuffers):
    """Logistic regression of the group on the features, its probabilities calibrated by one temperature.

    Empty until :meth:`fit`.
    """

    weight: Tensor | None
    bias: Tensor | None

    def __init__(self) -> None:
        super().__init__("weight", "bias")

    def fit(self, x: Tensor, sens: Tensor, held_out: Tensor, num_groups: int, sens_column: int | None = None) -> None:
        """Estimate from the nodes of known group.

        Args:
            held_out: mask of the nodes that only the temperature is fitted on.
            sens_column: column of `x` that holds the sensitive attribute itself; it is left out.
        """
        from sklearn.linear_model import LogisticRegression

        features, groups = x.detach().double().cpu().numpy(), sens.cpu().numpy()
        apart = held_out.cpu().numpy()
        if sens_column is not None:
            features[:, sens_column] = 0.0
        chosen = np.flatnonzero((groups >= 0) & ~apart)
        chosen = chosen[:: -(-len(chosen) // _MOST_NODES) or 1]
        mean, spread = features[chosen].mean(0), features[chosen].std(0)
        factor = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1.0), 0.0)
        weight, bias = np.zeros((num_groups, features.shape[1])), np.full(num_groups, _NEVER)
        present = np.unique(groups[chosen])
        bias[present] = 0.0
        if len(present) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an estimate that has not quite converged is good enough
                model = LogisticRegression(max_iter=500).fit((features[chosen] - mean) * factor, groups[chosen])
            # For two classes there is one row, that of the second.
            rows = present[1:] if len(present) == 2 else present
            weight[rows], bias[rows] = model.coef_, model.intercept_
        weight = weight * factor
        bias = bias - weight @ mean
        known = np.flatnonzero((groups >= 0) & apart)
        cold = _inverse_temperature(features[known] @ weight.T + bias, groups[known])
        self.weight, self.bias = (torch.from_numpy(cold * part).to(x) for part in (weight, bias))

    def forward(self, x: Tensor) -> Tensor:
        """Return the probability of each group, `(N, G)`."""
        if self.weight is None or self.bias is None:
            raise ValueError("a group estimator must be fitted before it is used")
        return (x @ self.weight.T + self.bias).softmax(-1)

    def take(self, other: "GroupEstimator") -> None:
        """Take over another's estimate."""
        self.weight, self.bias = other.weight, other.bias

    def check(self, num_groups: int, num_features: int) -> None:
        """Raise `ValueError` unless the buffers, if there are any, fit this many groups and features."""
        check_buffers(self, {"weight": (num_groups, num_features), "bias": (num_groups,)})


def _inverse_temperature(scores: np.ndarray, groups: np.ndarray) -> float:
    """Return the factor of the scores that makes the groups most likely; 1 if fewer than two groups occur."""
    if len(np.unique(groups)) < 2:
        return 1.0

    def loss(exponent: float) -> float:
        likely = log_softmax(np.exp(exponent) * scores, axis=1)[np.arange(len(groups)), groups]
        return -float(likely.mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded").x))
