"""Calibrated probabilities of the labels, separately for each group.

A network's own probabilities carry the bias that they are to measure: it may be as sure of one group's positives as of
another group's, and wrong about one of them. So the probability of a label is fitted in each group, on labelled nodes
that the network was not trained on, as an increasing function of the score (isotonic regression), which unlike a
sigmoid assumes no shape. The function is kept as a table of `KNOTS` points, linear between them and constant beyond.
"""

import numpy as np
import torch
from scipy.optimize import isotonic_regression
from torch import Tensor

KNOTS = 64


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
    """Return the log-odds of each label against the rest; for two labels, of the second alone."""
    if logits.shape[-1] == 2:
        return logits[..., 1:] - logits[..., :1]
    probabilities = logits.log_softmax(-1)
    return probabilities - torch.log1p(-probabilities.exp().clamp(max=1 - torch.finfo(logits.dtype).eps))


def _table(scores: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Return knots and probabilities `(2, KNOTS)` of the isotonic regression of `positive` on `scores`."""
    # Among equal scores the positives come first, so that the regression has to pool them.
    order = np.lexsort((~positive, scores))
    fitted = isotonic_regression(positive[order].astype(float)).x
    at = np.linspace(0, len(order) - 1, KNOTS).round().astype(int)
    return np.stack([scores[order][at], fitted[at]])


def _interpolate(at: Tensor, knots: Tensor, values: Tensor) -> Tensor:
    """Return the piecewise linear function through `(knots, values)`, both `(..., K)`, at `(..., N)`."""
    knots, values = (table.expand(*at.shape[:-1], -1).contiguous() for table in (knots, values))
    above = torch.searchsorted(knots, at).clamp(1, knots.shape[-1] - 1)
    x0, x1 = knots.gather(-1, above - 1), knots.gather(-1, above)
    y0, y1 = values.gather(-1, above - 1), values.gather(-1, above)
    share = ((at - x0) / (x1 - x0).clamp(min=torch.finfo(at.dtype).tiny)).clamp(0, 1)
    return y0 + (y1 - y0) * share
