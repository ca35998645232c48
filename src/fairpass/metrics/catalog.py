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
    return (2 * counts.true / (counts.true + counts.false + counts.nodes.positives)).mean(-1)


def accuracy(counts: Counts) -> Tensor:
    nodes = counts.nodes
    correct = counts.true if len(nodes.classes) > 1 else counts.true + (nodes.negatives - counts.false)
    return correct.sum(-1) / nodes.count


def balanced_accuracy(counts: Counts) -> Tensor:
    """Mean over classes of the share recognised: 1/C for a constant classifier, for any base rates."""
    nodes, recognised = counts.nodes, counts.true / counts.nodes.positives
    if len(nodes.classes) == 1:
        recognised = (recognised + (nodes.negatives - counts.false) / nodes.negatives) / 2
    return recognised.mean(-1)


@dataclass(frozen=True)
class Metric:
    """One number about a predictor, as a fraction."""

    key: str  # attribute of `Evaluation`, and the column of result tables
    label: str  # short name in records, histories and tables
    title: str  # full name, in the field's words
    # Maps the counts of many predictors `[...]` to their values `[...]`; by default the difference of `compares`.
    function: Callable[[Counts], Tensor] | None = None
    higher_is_better: bool = True
    in_selection: bool = False  # validation selects epochs and configurations by it; see `Evaluation.selection`
    compares: tuple[Rate, ...] = ()  # rates whose widest difference between two groups it is
    needs_all_labels: bool = False  # undefined if no node has one of the labels

    def __call__(self, counts: Counts) -> Tensor:
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
