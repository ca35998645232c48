"""Single metrics of labels, predictions and groups, as fractions."""

from dataclasses import dataclass

from fairpass.metrics import catalog
from fairpass.metrics.groups import GroupRates, group_table
from fairpass.metrics.inputs import Names, Sample, Undefined, Values, report_undefined


def rates(
    y: Values,
    pred: Values,
    *,
    sens: Values,
    group_names: Names = None,
    label_names: Names = None,
    undefined: Undefined = "error",
) -> tuple[GroupRates, ...]:
    """Return one record for each group; with more than two classes, one for each class and group."""
    sample = Sample.predicted(y, pred, sens, group_names, label_names)
    report_undefined("part of the table", sample.nodes.missing_rates(), undefined)
    return group_table(sample)


@dataclass(frozen=True)
class MetricFunction:
    """A metric of the catalogue as a function of arrays."""

    key: str

    def __call__(
        self,
        y: Values,
        pred: Values,
        *,
        sens: Values | None = None,
        group_names: Names = None,
        label_names: Names = None,
        undefined: Undefined = "error",
    ) -> float:
        """Return the metric.

        Args:
            y: Labels `[N]`, 0..C-1.
            pred: Predicted classes `[N]`.
            sens: Groups `[N]`, negative for unknown; needed by differences between groups.
            group_names: Names of the groups; one that has no nodes makes a difference undefined.
            label_names: Names of the classes; without them the number of classes follows from the arrays.
            undefined: Where the metric is undefined, "error" raises `DataError`, "nan" warns and returns nan.

        """
        return _value(self.key, Sample.predicted(y, pred, sens, group_names, label_names), undefined)


def roc_auc(y: Values, scores: Values, *, label_names: Names = None, undefined: Undefined = "error") -> float:
    """Area under the ROC curve of scores, `[N]` or `[N, C]`, which need not be probabilities; the mean over classes.

    Hard predictions are refused: they do not rank nodes.
    """
    return _value("auc", Sample.scored(y, scores, labels=label_names), undefined)


def _value(key: str, sample: Sample, undefined: Undefined) -> float:
    metric = next(metric for metric in catalog.METRICS if metric.key == key)
    report_undefined(metric.title, metric.missing(sample.nodes), undefined, stacklevel=4)
    return float(sample.measure(sample.counts)[key])


auc = roc_auc
f1 = MetricFunction("f1")
"""F1 score of the positive class, `2 TP / (2 TP + FP + FN)`, or its mean over classes."""
accuracy = MetricFunction("acc")
"""Share of nodes whose predicted class is the true one."""
balanced_accuracy = MetricFunction("balanced_acc")
"""Mean over classes of the share recognised: 1/C for a constant classifier, for any base rates."""
demographic_parity_difference = delta_dp = MetricFunction("delta_dp")
"""`|E[ŷ | s] - E[ŷ | s']|` of the widest pair of groups, over all classes."""
equal_opportunity_difference = delta_eo = MetricFunction("delta_eo")
"""`|E[ŷ | s, y = 1] - E[ŷ | s', y = 1]|` of the widest pair of groups, over all classes."""
equalized_odds_difference = MetricFunction("equalized_odds")
"""The larger of the widest differences of true and of false positive rates."""
