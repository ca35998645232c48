"""The catalogue of metrics: what each is called, which way is better, and how it is computed.

Tables, figures, the front, the report, the command line and the documentation read this list. To add a metric, write
its function and one entry.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One number about a predictor, as a fraction."""

    key: str
    """Attribute of `Evaluation`, and the column of result tables."""
    label: str
    """Short name in records, histories and tables."""
    title: str
    """Full name, in the field's words."""
    higher_is_better: bool
    in_selection: bool = False
    """Whether validation selects epochs and configurations by it; see `Evaluation.selection`."""

    @property
    def symbol(self) -> str:
        """Name in running text and on axes: differences between groups have a Δ."""
        return self.label if self.higher_is_better else f"Δ{self.label}"


METRICS = (
    Metric("auc", "AUC", "area under the ROC curve", True, in_selection=True),
    Metric("f1", "F1", "F1 score", True, in_selection=True),
    Metric("acc", "ACC", "accuracy", True, in_selection=True),
    Metric("delta_dp", "DP", "demographic parity difference", False, in_selection=True),
    Metric("delta_eo", "EO", "equal opportunity difference", False, in_selection=True),
    Metric("balanced_acc", "BACC", "balanced accuracy", True),
    Metric("equalized_odds", "EOdds", "equalized odds difference", False),
)
SELECTION = tuple(metric for metric in METRICS if metric.in_selection)
UTILITY = tuple(metric for metric in SELECTION if metric.higher_is_better)
UNFAIRNESS = tuple(metric for metric in SELECTION if not metric.higher_is_better)
BY_LABEL = {metric.label: metric for metric in METRICS}
