"""The smallest difference between groups that a set of test nodes can show."""

import math
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

from fairpass.metrics.inputs import Values, as_indices

if TYPE_CHECKING:
    from fairpass.metrics.evaluation import Evaluation

LEVEL = 0.95
# Among the nodes of a label a useful predictor recognises most.
_RECOGNISED = 0.8


class Detectable(NamedTuple):
    """The number of test nodes, and the smallest differences that they can show, as fractions."""

    nodes: int
    delta_dp: float
    delta_eo: float

    @property
    def sentence(self) -> str:
        return self.in_words("test")

    def in_words(self, split: str) -> str:
        """Return a sentence about the nodes of a split."""
        known = {"ΔDP": self.delta_dp, "ΔEO": self.delta_eo}
        parts = [f"a {name} below {100 * value:.1f}" for name, value in known.items() if not math.isnan(value)]
        if not parts:
            return f"The {self.nodes:,} {split} nodes are too few to show any difference between groups."
        start = f"Minimum detectable difference: with {self.nodes:,} {split} nodes"
        return f"{start}, {' or '.join(parts)} points on one split can be chance alone."


def detectable(y: Values, sens: Values, *, level: float = LEVEL) -> Detectable:
    """Return the smallest differences that test nodes with these labels and groups can show.

    They are those of a predictor that selects as often as labels are positive, and recognises four of five. With more
    than two labels or groups it is the largest over labels and pairs of groups. Unknown labels and groups (negative) do
    not count.
    """
    labels = as_indices(y, "y")
    groups = as_indices(sens, "sens", labels.size)
    known = (labels >= 0) & (groups >= 0)
    labels, groups = labels[known], groups[known]
    classes = [1] if labels.size and labels.max() <= 1 else np.unique(labels).tolist()
    sizes = np.bincount(groups).tolist()
    positives = [np.bincount(groups[labels == c], minlength=len(sizes)).tolist() for c in classes]
    return _largest(sizes, positives, level)


def detectable_by(evaluation: "Evaluation") -> Detectable:
    """Return the same for the nodes of an evaluation."""
    positives: dict[str, list[int]] = {}
    sizes: dict[str, int] = {}
    for row in evaluation.groups:
        positives.setdefault(row.label, []).append(row.positives)
        sizes[row.group] = row.count
    return _largest([*sizes.values()], [*positives.values()], LEVEL)


def _largest(sizes: list[int], positives: list[list[int]], level: float) -> Detectable:
    """Return the largest differences over labels, given the groups' sizes and those among the nodes of each label."""
    nodes = sum(sizes)
    dp = [detectable_difference(sizes, sum(each) / nodes, level=level) for each in positives if nodes]
    eo = [detectable_difference(each, _RECOGNISED, level=level) for each in positives]
    known = ([value for value in values if not math.isnan(value)] for values in (dp, eo))
    return Detectable(nodes, *(max(values, default=math.nan) for values in known))


def detectable_difference(sizes: list[int], rate: float, *, level: float = LEVEL) -> float:
    r"""Return the smallest difference between two groups' rates that cannot be chance alone.

    It is :math:`z \sqrt{r (1 - r) (1/n_0 + 1/n_1)}`: a predictor that selects both groups at the same rate `r` stays
    below it in 95 % of all samples. With more groups it is the largest over their pairs, which the widest of
    several differences exceeds more often; nan if a group is empty.
    """
    if len(sizes) < 2 or min(sizes) <= 0:
        return math.nan
    z = float(stats.norm.ppf((1 + level) / 2))
    return max(z * math.sqrt(rate * (1 - rate) * (1 / a + 1 / b)) for a, b in combinations(sizes, 2))
