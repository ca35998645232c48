"""The catalogue of metrics: what each is called, which way is better, and how it is computed.

Tables, figures, the front, the report, the command line and the documentation read this list. To add a metric, write
its function and one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import sub
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line reads the list without loading torch
    from torch import Tensor

    from fairpass.metrics.counts import Counts, Nodes, Rate


def roc_auc(counts: Counts) -> Tensor:
    """Share of pairs ranked correctly; the mean over classes."""
    return counts.ranked.mean(-1)


def f1(counts: Counts) -> Tensor:
    """`2 TP / (2 TP + FP + FN)` of the positive class; the mean over classes."""
    true_positives, selected = counts.selected[..., 1].sum(-1), counts.selected.sum((-1, -2))
    return (2 * true_positives / (selected + counts.total[..., 1].sum(-1))).mean(-1)


def accuracy(counts: Counts) -> Tensor:
    """Share predicted correctly."""
    return counts.correct().sum(-1) / counts.total[0].sum()


def balanced_accuracy(counts: Counts) -> Tensor:
    """Mean over classes of the share recognised."""
    recognised, total = counts.selected[..., 1].sum(-1), counts.total.sum(-2)
    if len(counts.total) > 1:
        return (recognised / total[:, 1]).mean(-1)
    rejected = (counts.total - counts.selected)[..., 0].sum(-1)
    return ((recognised / total[:, 1] + rejected / total[:, 0]) / 2).mean(-1)


@dataclass(frozen=True)
class Metric:
    """One number about a predictor, as a fraction."""

    key: str
    """Attribute of `Evaluation`, and the column of result tables."""
    label: str
    """Short name in records, histories and tables."""
    title: str
    """Full name, in the field's words."""
    function: Callable[[Counts], Tensor] | None = None
    """Maps the counts of many predictors `[...]` to their values `[...]`; by default the difference of `compares`."""
    higher_is_better: bool = True
    in_selection: bool = False
    """Whether validation selects epochs and configurations by it; see `Evaluation.selection`."""
    compares: tuple[Rate, ...] = ()
    """Rates of which it is the widest difference between two groups."""
    needs_all_labels: bool = False
    """Whether it is undefined if no node has one of the labels."""

    def __call__(self, counts: Counts) -> Tensor:
        """Return the metric of each predictor."""
        return counts.widest(*self.compares) if self.function is None else self.function(counts)

    def missing(self, nodes: Nodes) -> list[str]:
        """Return the reasons why it is undefined on some nodes."""
        if self.compares:
            return nodes.missing_rates(self.compares)
        return nodes.missing_labels() if self.needs_all_labels else []

    @property
    def symbol(self) -> str:
        """Name in running text and on axes: differences between groups have a Δ."""
        return self.label if self.higher_is_better else f"Δ{self.label}"

    @property
    def direction(self) -> str:
        """Which way is better, in words."""
        return "higher is better" if self.higher_is_better else "lower is fairer"


_TPR: Rate = "true_positive_rate"
METRICS = (
    Metric("auc", "AUC", "area under the ROC curve", roc_auc, in_selection=True, needs_all_labels=True),
    Metric("f1", "F1", "F1 score", f1, in_selection=True, needs_all_labels=True),
    Metric("acc", "ACC", "accuracy", accuracy, in_selection=True),
    Metric("balanced_acc", "BACC", "balanced accuracy", balanced_accuracy, needs_all_labels=True),
    Metric("delta_dp", "DP", "demographic parity difference", None, False, True, ("selection_rate",)),
    Metric("delta_eo", "EO", "equal opportunity difference", None, False, True, (_TPR,)),
    Metric("equalized_odds", "EOdds", "equalized odds difference", None, False, False, (_TPR, "false_positive_rate")),
)
UTILITY = tuple(metric for metric in METRICS if metric.in_selection and metric.higher_is_better)
UNFAIRNESS = tuple(metric for metric in METRICS if metric.in_selection and not metric.higher_is_better)
SELECTION = (*UTILITY, *UNFAIRNESS)
BY_LABEL = {metric.label: metric for metric in METRICS}


def selection_score(values: Sequence[Any]) -> Any:
    """Return `AUC + F1 + ACC - ΔDP - ΔEO` of numbers or tensors ordered as `SELECTION`."""
    return reduce(sub, values[len(UTILITY) :], sum(values[: len(UTILITY)]))
