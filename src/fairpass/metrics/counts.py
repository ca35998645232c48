"""The metrics of hard predictions as functions of counts, for many predictors at once.

Cut points, bootstrap resamples and the members of a population differ only in how many nodes of each group
and label they select. From these counts every metric is a few tensor operations, where scikit-learn and
fairlearn take tens of milliseconds for each predictor. `evaluate` uses those libraries; the tests hold the
two ways against each other.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from fairpass.metrics.inputs import classes_of


def cells(y: Tensor, sens: Tensor, num_classes: int, num_groups: int) -> Tensor:
    """Return for each class a one-hot row for each node: its group by whether it is of the class.

    The last group takes the nodes of unknown group. Shape `[C', N, (G + 1) * 2]`, float32, with C' = 1 for a
    binary problem and C otherwise.
    """
    group = torch.where(sens < 0, num_groups, sens)
    codes = torch.stack([2 * group + (y == c) for c in classes_of(num_classes)])
    return torch.nn.functional.one_hot(codes, 2 * (num_groups + 1)).float()


@dataclass(frozen=True)
class Counts:
    """How many nodes there are, and how many each predictor selects.

    Both are indexed by class, group (the last one unknown), and whether the node is of the class:
    `selected` has shape `[..., C', G + 1, 2]`, `total` has shape `[C', G + 1, 2]`. A ratio over no nodes
    is nan.
    """

    selected: Tensor
    total: Tensor

    @classmethod
    def from_cells(cls, selected: Tensor, total: Tensor) -> "Counts":
        """Take counts over the columns of `cells`: `[..., C', (G + 1) * 2]` and `[C', (G + 1) * 2]`."""
        return cls(selected.reshape(*selected.shape[:-1], -1, 2), total.reshape(len(total), -1, 2))

    @property
    def _binary(self) -> bool:
        return len(self.total) == 1

    def accuracy(self) -> Tensor:
        """Share predicted right."""
        right = self.selected[..., 1].sum((-1, -2))
        if self._binary:
            right = right + (self.total - self.selected)[..., 0].sum((-1, -2))
        return right / self.total[0].sum()

    def balanced_accuracy(self) -> Tensor:
        """Mean over classes of the share recognised."""
        false_positives, true_positives = (self.selected.sum(-2) / self.total.sum(-2)).unbind(-1)
        recognised = (true_positives + 1 - false_positives) / 2 if self._binary else true_positives
        return recognised.mean(-1)

    def f1(self) -> Tensor:
        """F1 of the positive class, or its mean over classes."""
        true_positives, selected = self.selected[..., 1].sum(-1), self.selected.sum((-1, -2))
        return (2 * true_positives / (selected + self.total[..., 1].sum(-1))).mean(-1)

    def delta_dp(self) -> Tensor:
        """Widest difference of selection rates."""
        return _widest(self.selected[..., :-1, :].sum(-1) / self.total[..., :-1, :].sum(-1))

    def delta_eo(self) -> Tensor:
        """Widest difference of true positive rates."""
        return _widest(self.selected[..., :-1, 1] / self.total[..., :-1, 1])

    def equalized_odds(self) -> Tensor:
        """Widest difference of true or of false positive rates."""
        false_positives = _widest(self.selected[..., :-1, 0] / self.total[..., :-1, 0])
        return torch.maximum(self.delta_eo(), false_positives)


def _widest(rates: Tensor) -> Tensor:
    """Reduce `[..., C', G]` over pairs of groups, then over classes; one group alone has no pair."""
    if rates.shape[-1] < 2:
        return rates.new_full(rates.shape[:-2], torch.nan)
    low, high = torch.aminmax(rates, dim=-1)
    return (high - low).amax(-1)
