"""The rates of each group, and the pair of groups that differ most.

For a class c and a group s, with ŷ the prediction taken as 0/1 for "is c", the selection rate is `E[ŷ | s]`, the true
positive rate `E[ŷ | s, y = 1]` and the false positive rate `E[ŷ | s, y = 0]`. Nodes of unknown group are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter

import torch

from fairpass.metrics.counts import RATES, Rate
from fairpass.metrics.inputs import Sample


@dataclass(frozen=True)
class GroupRates:
    """One group, seen from one class (`label`) against the rest; a rate over no nodes is nan."""

    group: str
    label: str
    count: int
    """Nodes of the group."""
    positives: int
    """Nodes of the group that truly are of the class."""
    selection_rate: float
    """Share predicted to be of the class."""
    true_positive_rate: float
    """The same among those that are."""
    false_positive_rate: float
    """The same among those that are not."""
    accuracy: float
    """Share predicted correctly (over all classes)."""


@dataclass(frozen=True)
class Pair:
    """The groups with the highest and the lowest rate for class `label`."""

    high: str
    low: str
    label: str


def group_table(sample: Sample) -> tuple[GroupRates, ...]:
    """Return one record for each class and group."""
    nodes, counts = sample.nodes, sample.counts
    total = nodes.total[:, :-1]
    columns = torch.stack([total.sum(-1), total[..., 1], *(counts.rates(rate) for rate in RATES)], -1).tolist()
    accuracy = (counts.correct()[:-1] / total[0].sum(-1)).tolist()
    return tuple(
        GroupRates(group, nodes.label_names[c], int(count), int(positives), selected, tpr, fpr, right)
        for c, rows in zip(nodes.classes, columns, strict=True)
        for group, (count, positives, selected, tpr, fpr), right in zip(nodes.group_names, rows, accuracy, strict=True)
    )


def worst_pair(table: Sequence[GroupRates], rates: Sequence[Rate]) -> Pair:
    """Return the two groups between which the widest difference of the rates lies."""
    gaps = []
    for rate in rates:
        for label in dict.fromkeys(row.label for row in table):
            # Equal groups keep their order, so the first and the last are a pair even if all rates are equal.
            rows = sorted((row for row in table if row.label == label), key=attrgetter(rate), reverse=True)
            gap = getattr(rows[0], rate) - getattr(rows[-1], rate)
            gaps.append((gap, Pair(rows[0].group, rows[-1].group, label)))
    return max(gaps, key=itemgetter(0))[1]
