"""Calibrated probabilities: of the labels, separately for each group, and of the group of a node if it is not known.

A network's own probabilities carry the bias that they are to measure: it may be as sure of one group's positives as of
another group's, and wrong about one of them. So the probability of a label is fitted in each group, on labelled nodes
that the network was not trained on, as an increasing function of the score (isotonic regression), which unlike a
sigmoid assumes no shape. The function is kept as a table of `KNOTS` points, linear between them and constant beyond.
"""

import warnings

import numpy as np
import torch
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.special import log_softmax
from torch import Tensor

from fairpass.nn.validation import LateBuffers, check_buffers
from fairpass.world import world

KNOTS = 64
_MOST_NODES = 20_000  # more add nothing to a linear model of some dozens of features
_NEVER = -30.0  # score of a group without a node in the sample


@torch.no_grad()
def calibrate(logits: Tensor, y: Tensor, sens: Tensor, num_groups: int) -> Tensor:
    """Return the tables of each group and label, `(..., G, Y, 2, KNOTS)`: scores, and the probabilities there.

    The logits `(..., n, c)` are those of labelled nodes; each group must have one, and negative groups are left out.
    For two labels there is one table, that of the second; for more, one for each against the rest.
    """
    scores = _scores(logits).double()
    columns = scores.shape[-1]
    labels = [1] if columns == 1 else range(columns)
    known, groups = y.cpu().numpy(), sens.cpu().numpy()
    tables = [
        [_table(one[groups == a, k], known[groups == a] == label) for k, label in enumerate(labels)]
        for one in scores.reshape(-1, *scores.shape[-2:]).cpu().numpy()
        for a in range(num_groups)
    ]
    return torch.from_numpy(np.array(tables)).to(logits).reshape(*scores.shape[:-2], num_groups, columns, 2, KNOTS)


def calibrated(logits: Tensor, sens: Tensor, tables: Tensor) -> Tensor:
    """Return the calibrated probability of each label, `(..., N, c)`; for an unknown group, the mean over groups."""
    scores = _scores(logits).mT.contiguous()  # (..., Y, N)
    out = torch.zeros_like(scores)
    for a in range(tables.shape[-4]):
        share = torch.where(sens < 0, 1 / tables.shape[-4], (sens == a).to(scores))
        out += share * _interpolate(scores, *tables[..., a, :, :, :].unbind(-2))
    if out.shape[-2] == 1:
        return torch.cat([1 - out, out], -2).mT
    return (out / out.sum(-2, keepdim=True).clamp(min=torch.finfo(out.dtype).tiny)).mT


def _scores(logits: Tensor) -> Tensor:
    # The log-odds of each label against the rest; for two labels, of the second alone.
    if logits.shape[-1] == 2:
        return logits[..., 1:] - logits[..., :1]
    probabilities = logits.log_softmax(-1)
    return probabilities - torch.log1p(-probabilities.exp().clamp(max=1 - torch.finfo(logits.dtype).eps))


def _table(scores: np.ndarray, positive: np.ndarray) -> np.ndarray:
    # Among equal scores the positives come first, so that the regression has to pool them.
    order = np.lexsort((~positive, scores))
    fitted = isotonic_regression(positive[order].astype(float)).x
    at = np.linspace(0, len(order) - 1, KNOTS).round().astype(int)
    return np.stack([scores[order][at], fitted[at]])


def _interpolate(at: Tensor, knots: Tensor, values: Tensor) -> Tensor:
    knots, values = (table.expand(*at.shape[:-1], -1).contiguous() for table in (knots, values))
    above = torch.searchsorted(knots, at).clamp(1, knots.shape[-1] - 1)
    x0, x1 = knots.gather(-1, above - 1), knots.gather(-1, above)
    y0, y1 = values.gather(-1, above - 1), values.gather(-1, above)
    share = ((at - x0) / (x1 - x0).clamp(min=torch.finfo(at.dtype).tiny)).clamp(0, 1)
    return y0 + (y1 - y0) * share


class GroupEstimator(LateBuffers):
    """Logistic regression of the group on the features, its probabilities calibrated by one temperature."""

    weight: Tensor | None
    bias: Tensor | None

    def __init__(self) -> None:
        super().__init__("weight", "bias")

    def fit(self, x: Tensor, sens: Tensor, held_out: Tensor, num_groups: int, sens_column: int | None = None) -> None:
        """Fit on the nodes of known group; on those `held_out`, the temperature. Column `sens_column` is left out."""
        from sklearn.linear_model import LogisticRegression

        def features_of(index: Tensor) -> np.ndarray:
            found = x.detach()[index].double()
            if sens_column is not None:
                found[:, sens_column] = 0.0
            return found.cpu().numpy()

        sample = torch.nonzero((sens >= 0) & ~held_out).flatten()
        step = -(-world().count(len(sample)) // _MOST_NODES) or 1
        sample = sample[-world().before(len(sample)) % step :: step]  # every so many of the nodes of all processes
        features = world().gather(torch.from_numpy(features_of(sample))).numpy()
        groups = world().gather(sens[sample]).cpu().numpy()
        mean, spread = features.mean(0), features.std(0)
        factor = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1.0), 0.0)
        weight, bias = np.zeros((num_groups, features.shape[1])), np.full(num_groups, _NEVER)
        present = np.unique(groups)
        bias[present] = 0.0
        if len(present) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an estimate that has not quite converged is good enough
                model = LogisticRegression(max_iter=500).fit((features - mean) * factor, groups)
            # For two classes there is one row, that of the second.
            rows = present[1:] if len(present) == 2 else present
            weight[rows], bias[rows] = model.coef_, model.intercept_
        weight = weight * factor
        bias = bias - weight @ mean
        known = torch.nonzero((sens >= 0) & held_out).flatten()
        scores = world().gather(torch.from_numpy(features_of(known) @ weight.T + bias)).numpy()
        cold = _inverse_temperature(scores, world().gather(sens[known]).cpu().numpy())
        self.weight, self.bias = (torch.from_numpy(cold * part).to(x) for part in (weight, bias))

    def forward(self, x: Tensor) -> Tensor:
        """Return the probability of each group, `(N, G)`."""
        if self.weight is None or self.bias is None:
            raise ValueError("a group estimator must be fitted before it is used")
        return (x @ self.weight.T + self.bias).softmax(-1)

    def take(self, other: "GroupEstimator") -> None:
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
