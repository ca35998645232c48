"""Percentile bootstrap intervals of all metrics at once.

Nodes are drawn with replacement within each group and label, so no resample lacks a group or a label, and
the group sizes and base rates of the sample are taken as given. A resample is a row of weights: how often
each node was drawn. All rows go through the same few tensor operations (`counts`): a thousand resamples of
5,000 nodes take a quarter of a second, where scikit-learn and fairlearn would take a minute.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairpass.errors import DataError
from fairpass.metrics.counts import Counts, cells
from fairpass.metrics.inputs import (
    Floats,
    Integers,
    Values,
    as_decisions,
    as_groups,
    as_labels,
    as_names,
    as_scores,
    classes_of,
    names_of_scored,
    predict,
)

# Weights held at one time (float64); bounds memory, whatever the number of resamples.
_CHUNK = 2_000_000


@dataclass(frozen=True)
class Interval:
    """A confidence interval of one metric, as fractions."""

    low: float
    high: float
    level: float = 0.95


def bootstrap_intervals(
    y: Values,
    scores: Values,
    *,
    sens: Values,
    threshold: float = 0.5,
    decisions: Values | None = None,
    group_names: Sequence[str] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Interval]:
    """Return an interval for each metric of `Evaluation`, by its name there; nan where it is undefined.

    An interval always holds its estimate. For absolute differences near zero the plain percentiles would
    not: resampling only moves them up, so there the lower end is the estimate itself.
    """
    if resamples < 1:
        raise DataError(f"'resamples' must be positive (got {resamples})")
    if not 0 < level < 1:
        raise DataError(f"'level' must lie between 0 and 1 (got {level})")
    labels = as_labels(y)
    values = as_scores(scores, labels.size)
    groups = as_groups(sens, labels.size)
    num_groups = len(as_names(group_names, "group_names", groups))
    if decisions is None:
        decided = predict(values, threshold)
    else:
        decided = as_decisions(decisions, labels.size, len(names_of_scored(None, labels, values)))
    sample = _Sample(labels, values, decided, groups, num_groups)

    estimate = sample.metrics(torch.ones(1, labels.size, dtype=torch.float64))
    strata = labels * (groups.max() + 2) + np.maximum(groups, -1) + 1
    parts = [sample.metrics(weights) for weights in _weights(strata, resamples, seed)]
    tails = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    intervals = {}
    for name, point in estimate.items():
        low, high = torch.quantile(torch.cat([part[name] for part in parts]), tails)
        intervals[name] = Interval(float(torch.minimum(low, point)), float(torch.maximum(high, point)), level)
    return intervals


def _weights(strata: Integers, resamples: int, seed: int) -> Iterator[Tensor]:
    """Yield the weights `[b, N]` of the resamples, some at a time."""
    _, stratum, sizes = np.unique(strata, return_inverse=True, return_counts=True)
    order = torch.from_numpy(np.argsort(stratum, kind="stable"))
    size = torch.from_numpy(sizes[stratum])
    start = torch.from_numpy((np.cumsum(sizes) - sizes)[stratum])
    generator = torch.Generator().manual_seed(seed)
    rows = max(1, _CHUNK // strata.size)
    for done in range(0, resamples, rows):
        uniform = torch.rand(min(rows, resamples - done), strata.size, generator=generator, dtype=torch.float64)
        # Each node is replaced by one of its own stratum, drawn uniformly.
        drawn = order[start + (uniform * size).long()]
        yield torch.zeros_like(uniform).scatter_add_(1, drawn, torch.ones_like(uniform))


class _Sample:
    """One sample of nodes, ready to be weighted."""

    def __init__(self, y: Integers, scores: Floats, pred: Integers, sens: Integers, num_groups: int) -> None:
        num_classes = len(names_of_scored(None, y, scores))
        # Copies, for torch takes neither a read-only array (pandas) nor a reversed one.
        labels, groups, decided, values = (torch.from_numpy(a.copy()) for a in (y, sens, pred, scores))
        self.cells = cells(labels, groups, num_classes, num_groups).double()
        self.selected = torch.stack([decided == c for c in classes_of(num_classes)]).unsqueeze(-1) * self.cells
        columns = values.reshape(len(y), -1).unbind(1)
        self.rankings = [_Ranking(s, labels == c) for s, c in zip(columns, classes_of(num_classes), strict=True)]

    def metrics(self, weights: Tensor) -> dict[str, Tensor]:
        """Return every metric `[b]` of the sample under weights `[b, N]`."""
        selected = torch.einsum("bn,cnk->bck", weights, self.selected)
        counts = Counts.from_cells(selected, self.cells.sum(1))
        return {
            "auc": torch.stack([ranking.auc(weights) for ranking in self.rankings]).mean(0),
            "f1": counts.f1(),
            "acc": counts.accuracy(),
            "balanced_acc": counts.balanced_accuracy(),
            "delta_dp": counts.delta_dp(),
            "delta_eo": counts.delta_eo(),
            "equalized_odds": counts.equalized_odds(),
        }


class _Ranking:
    """The order of positive and negative scores: fixed, whatever the weights of the nodes."""

    def __init__(self, scores: Tensor, positive: Tensor) -> None:
        self.positives, negatives = torch.nonzero(positive).flatten(), torch.nonzero(~positive).flatten()
        ordered, order = scores[negatives].sort()
        self.negatives = negatives[order]
        of_class = scores[self.positives]
        self.below = torch.searchsorted(ordered, of_class)
        self.not_above = torch.searchsorted(ordered, of_class, right=True)

    def auc(self, weights: Tensor) -> Tensor:
        """Return the weighted share of pairs ranked right, a tie being half right."""
        positives = weights[:, self.positives]
        beaten = torch.nn.functional.pad(weights[:, self.negatives].cumsum(1), (1, 0))
        right = (positives * (beaten[:, self.below] + beaten[:, self.not_above])).sum(1) / 2
        return right / (positives.sum(1) * beaten[:, -1])
