"""The nodes of a split, and the counts of predictors on them, from which every metric follows.

Epochs, thresholds, bootstrap resamples and the members of a population differ only in how many nodes of each group and
label they select, and in how they rank them. From these counts a metric is a few tensor operations: microseconds, where
scikit-learn and fairlearn take tens of milliseconds per predictor and a second to import. The tests check that both
agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Rate = Literal["selection_rate", "true_positive_rate", "false_positive_rate"]
RATES: tuple[Rate, ...] = ("selection_rate", "true_positive_rate", "false_positive_rate")


@dataclass(frozen=True)
class Counts:
    """How many nodes there are, how many each predictor selects, and how well it ranks them.

    C' is 1 for a binary problem, where only the positive class is compared with the rest, and else the number of
    classes. A ratio over no nodes is nan.
    """

    selected: Tensor
    """Nodes predicted to be of the class `[..., C', G + 1, 2]`, by group (the last one unknown) and true membership."""
    total: Tensor
    """All nodes `[C', G + 1, 2]`."""
    ranked: Tensor
    """Share of pairs (node of the class, other node) that the scores rank correctly `[..., C']`; a tie counts half."""

    def correct(self) -> Tensor:
        """Nodes predicted correctly `[..., G + 1]`."""
        if len(self.total) > 1:
            return self.selected[..., 1].sum(-2)
        return self.selected[..., 0, :, 1] + (self.total[0, :, 0] - self.selected[..., 0, :, 0])

    def rates(self, rate: Rate) -> Tensor:
        """A rate in each known group `[..., C', G]`."""
        selected, total = self.selected[..., :-1, :], self.total[..., :-1, :]
        if rate == "selection_rate":
            return selected.sum(-1) / total.sum(-1)
        of_class = int(rate == "true_positive_rate")
        return selected[..., of_class] / total[..., of_class]

    def widest(self, *rates: Rate) -> Tensor:
        """Widest difference `[...]` of the rates between two groups, over all classes."""
        found = self.rates(rates[0]) if len(rates) == 1 else torch.cat([self.rates(rate) for rate in rates], -2)
        if found.shape[-1] < 2:
            return found.new_full(found.shape[:-2], torch.nan)
        low, high = torch.aminmax(found, dim=-1)
        return (high - low).amax(-1)


class Nodes:
    """Labels `[N]` and groups `[N]` (negative for unknown) of a fixed set of nodes, prepared for counting."""

    def __init__(
        self, y: Tensor, sens: Tensor, labels: Sequence[str], groups: Sequence[str], dtype: torch.dtype = torch.float64
    ) -> None:
        self.labels, self.groups = labels, groups
        self.classes = [1] if len(labels) == 2 else list(range(len(labels)))
        self._column = torch.tensor(self.classes, device=y.device)[:, None]
        codes = torch.stack([2 * torch.where(sens < 0, len(groups), sens) + (y == c) for c in self.classes])
        self.cells = torch.nn.functional.one_hot(codes, 2 * (len(groups) + 1)).to(dtype)
        """One-hot rows `[C', N, (G + 1) * 2]`: the group of a node by whether it is of the class."""
        self.total = self.cells.sum(1).reshape(len(self.classes), -1, 2)
        self.members = [(torch.nonzero(y == c).flatten(), torch.nonzero(y != c).flatten()) for c in self.classes]
        """For each class the indices of its nodes, and of the others."""

    def decided(self, pred: Tensor) -> Tensor:
        """Return whether predicted classes `[..., N]` are each of the classes, `[..., C', N]`."""
        return (pred.unsqueeze(-2) == self._column).to(self.cells.dtype)

    def counts(self, pred: Tensor, scores: Tensor) -> Counts:
        """Count predicted classes `[..., N]` and scores `[..., N]` or `[..., N, C]`, which may be empty."""
        decided, binary = self.decided(pred), len(self.classes) == 1
        selected = decided @ self.cells[0] if binary else (decided.unsqueeze(-2) @ self.cells).squeeze(-2)
        ranked = self.total.new_full((len(self.classes),), torch.nan)
        if scores.numel():
            columns = [scores] if binary else scores.unbind(-1)
            ranked = torch.stack([self._ranked(*each) for each in zip(columns, self.members, strict=True)], -1)
        return self.from_cells(selected, ranked)

    def from_cells(self, selected: Tensor, ranked: Tensor) -> Counts:
        """Take sums over the rows of `cells`, `[..., C', (G + 1) * 2]`."""
        return Counts(selected.reshape(*selected.shape[:-1], -1, 2), self.total, ranked)

    def _ranked(self, scores: Tensor, members: tuple[Tensor, Tensor]) -> Tensor:
        _, below, not_above = places(scores, *members)
        return (below + not_above).sum(-1).to(self.total.dtype) / (2 * members[0].numel() * members[1].numel())

    def missing_labels(self) -> list[str]:
        """Return a reason why metrics are undefined for each class that no node has."""
        of_rest, of_class = self.total.sum(1).unbind(-1)
        counts = [*of_rest.tolist(), *of_class.tolist()] if len(self.classes) == 1 else of_class.tolist()
        named = zip(self.labels, counts, strict=True)
        return [f"no node has label '{name}'" for name, count in named if not count]

    def missing_rates(self, rates: Sequence[Rate] = RATES, *, compare: bool = True) -> list[str]:
        """Return the reasons why groups lack one of the rates, or why it cannot be compared between them."""
        count = len(self.groups)
        reasons = [f"it takes two groups or more (got {count} in 'sens')"] if compare and count < 2 else []
        for c, rows in zip(self.classes, self.total.tolist(), strict=True):
            for group, (others, positives) in zip(self.groups, rows[:-1], strict=True):
                if not positives + others:
                    reasons.append(f"group '{group}' has no nodes")
                elif "true_positive_rate" in rates and not positives:
                    reasons.append(f"group '{group}' has no node of label '{self.labels[c]}'")
                elif "false_positive_rate" in rates and not others:
                    reasons.append(f"group '{group}' has no node of a label other than '{self.labels[c]}'")
        return reasons


def places(scores: Tensor, of_class: Tensor, of_rest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rank the nodes of a class among the others by scores `[..., N]`.

    Returns the order of the others, and for each node of the class how many of them score below it and how many do
    not score above it.
    """
    ordered, order = scores.index_select(-1, of_rest).sort(dim=-1)
    found = scores.index_select(-1, of_class)
    return order, torch.searchsorted(ordered, found), torch.searchsorted(ordered, found, right=True)
