"""The nodes of a split, and the counts of predictors on them, from which every metric follows.

Epochs, thresholds, resamples and the members of a population differ only in how many nodes of each group and label they
select, and in how they rank them. From these counts a metric is a few tensor operations: microseconds, where
scikit-learn and fairlearn take tens of milliseconds. The tests check that both agree.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

Rate = Literal["selection_rate", "true_positive_rate", "false_positive_rate"]
RATES: tuple[Rate, ...] = get_args(Rate)


class Nodes:
    """Labels `[N]` and groups `[N]` (negative for unknown) of a fixed set of nodes, prepared for counting.

    C' is 1 for a binary problem, where only the positive class is compared with the rest, and else the number of
    classes. The totals that ratios divide by are computed once, since predictors are counted at every epoch.
    """

    def __init__(
        self,
        y: Tensor,
        sens: Tensor,
        labels: Sequence[str],
        groups: Sequence[str] = (),
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.count, self.labels = y.numel(), labels
        self.groups = groups or [str(group) for group in range(int(sens.max()) + 1)]
        self.classes = [1] if len(labels) == 2 else list(range(len(labels)))
        self._column = torch.tensor(self.classes, device=y.device)[:, None]
        codes = torch.stack([2 * torch.where(sens < 0, len(self.groups), sens) + (y == c) for c in self.classes])
        # One-hot rows `[C', N, (G + 1) * 2]`: the group of a node by whether it is of the class.
        self.cells = torch.nn.functional.one_hot(codes, 2 * (len(self.groups) + 1)).to(dtype)
        self.total = self.cells.sum(1).reshape(len(self.classes), -1, 2)
        self.negatives, self.positives = self.total.sum(1).unbind(-1)
        false, true = self.total[:, :-1].unbind(-1)
        self.sizes: dict[Rate, Tensor] = dict(zip(RATES, (false + true, true, false), strict=True))
        # For each class the indices of its nodes, and of the others.
        self.members = [(torch.nonzero(y == c).flatten(), torch.nonzero(y != c).flatten()) for c in self.classes]

    def counts(self, pred: Tensor, scores: Tensor, weights: Tensor | None = None) -> "Counts":
        """Count predicted classes `[..., N]` and scores `[..., N]` or `[..., N, C]`, which may be empty.

        For one predictor, weights `[b, N]` say how often each node counts; they must keep the size of each group and
        label.
        """
        decided, binary = (pred.unsqueeze(-2) == self._column).to(self.cells.dtype), len(self.classes) == 1
        if weights is not None:
            selected = torch.einsum("bn,cnk->bck", weights, decided.unsqueeze(-1) * self.cells)
        else:
            selected = decided @ self.cells[0] if binary else (decided.unsqueeze(-2) @ self.cells).squeeze(-2)
        if not scores.numel():
            return Counts(self, selected, torch.full_like(self.positives, torch.nan))
        columns = zip([scores] if binary else scores.unbind(-1), self.members, strict=True)
        ranked = [self._ranked(column, weights, *members) for column, members in columns]
        return Counts(self, selected, torch.stack(ranked, -1))

    def _ranked(self, scores: Tensor, weights: Tensor | None, of_class: Tensor, of_rest: Tensor) -> Tensor:
        ordered, order = scores.index_select(-1, of_rest).sort(dim=-1)
        found = scores.index_select(-1, of_class)
        # How many of the others score below a node of the class, and how many do not score above it.
        below, not_above = torch.searchsorted(ordered, found), torch.searchsorted(ordered, found, right=True)
        if weights is None:
            return (below + not_above).sum(-1).to(self.total.dtype) / (2 * of_class.numel() * of_rest.numel())
        positives = weights[:, of_class]
        beaten = torch.nn.functional.pad(weights[:, of_rest[order]].cumsum(1), (1, 0))
        right = (positives * (beaten[:, below] + beaten[:, not_above])).sum(1) / 2
        return right / (positives.sum(1) * beaten[:, -1])

    def missing_labels(self) -> list[str]:
        """Return a reason why metrics are undefined for each class that no node has."""
        counts = [self.negatives[0], self.positives[0]] if len(self.classes) == 1 else self.positives
        return [f"no node has label '{name}'" for name, count in zip(self.labels, counts, strict=True) if not count]

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


class Counts:
    """How many nodes each predictor selects, and how well it ranks them; a ratio over no nodes is nan.

    Attributes:
        selected: Nodes predicted to be of the class `[..., C', G + 1, 2]`, by group (the last one unknown) and by
            whether they are of it; `total` has all nodes, `[C', G + 1, 2]`.
        false, true: Of all groups: nodes wrongly and rightly predicted to be of the class `[..., C']`.
        ranked: Share of pairs (node of the class, other node) ranked correctly `[..., C']`; a tie counts half.
    """

    def __init__(self, nodes: Nodes, selected: Tensor, ranked: Tensor) -> None:
        self.nodes, self.total, self.ranked = nodes, nodes.total, ranked
        self.selected = selected.reshape(*selected.shape[:-1], -1, 2)
        self.false, self.true = self.selected.sum(-2).unbind(-1)

    def correct(self) -> Tensor:
        """Nodes predicted correctly `[..., G + 1]`."""
        if len(self.total) > 1:
            return self.selected[..., 1].sum(-2)
        return self.selected[..., 0, :, 1] + (self.total[0, :, 0] - self.selected[..., 0, :, 0])

    def rates(self, rate: Rate) -> Tensor:
        """A rate in each known group `[..., C', G]`."""
        known = self.selected[..., :-1, :]
        selected = known.sum(-1) if rate == "selection_rate" else known[..., int(rate == "true_positive_rate")]
        return selected / self.nodes.sizes[rate]

    def widest(self, *rates: Rate) -> Tensor:
        """Widest difference `[...]` of the rates between two groups, over all classes."""
        found = self.rates(rates[0]) if len(rates) == 1 else torch.cat([self.rates(rate) for rate in rates], -2)
        if found.shape[-1] < 2:
            return found.new_full(found.shape[:-2], torch.nan)
        low, high = torch.aminmax(found, dim=-1)
        return (high - low).amax(-1)
