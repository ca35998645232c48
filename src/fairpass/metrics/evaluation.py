"""Everything measured about one predictor on one set of nodes, as one frozen record; and single metrics."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import product
from operator import attrgetter, itemgetter
from typing import Annotated, Any

import torch
from pydantic import AfterValidator

from fairpass.documents import STRICT, Count, Fraction, validate
from fairpass.errors import DataError
from fairpass.files import finite
from fairpass.metrics import catalog
from fairpass.metrics.bootstrap import Interval, sample_intervals
from fairpass.metrics.counts import RATES, Rate
from fairpass.metrics.inputs import Names, Sample, Undefined, Values, check_number, check_seed, report_undefined

# A predictor is near constant if it puts nearly all nodes in one class although they do not belong there: its balanced
# accuracy is then hardly above the 1/C of a constant.
NEAR_CONSTANT_SHARE = 0.975
NEAR_CONSTANT_MARGIN = 0.1


@dataclass(frozen=True)
class GroupRates:
    """One group, seen from one class c (`label`) against the rest; a rate over no nodes is nan."""

    __pydantic_config__ = STRICT

    group: str
    label: str
    count: Count
    positives: Count  # nodes of the group that truly are of the class
    selection_rate: Fraction  # P(ŷ = c), the share predicted to be of the class
    true_positive_rate: Fraction  # P(ŷ = c | y = c)
    false_positive_rate: Fraction  # P(ŷ = c | y ≠ c)
    accuracy: Fraction  # over all classes


@dataclass(frozen=True)
class Pair:
    """The groups with the highest and the lowest rate for class `label`."""

    __pydantic_config__ = STRICT

    high: str
    low: str
    label: str


def _agreeing(rows: tuple[GroupRates, ...]) -> tuple[GroupRates, ...]:
    """Raise `ValueError` if stored rows contradict each other: tables and minimum detectable differences use them."""
    sizes = {row.group: row.count for row in rows}
    if len({(row.group, row.label) for row in rows}) < len(rows):
        raise ValueError("there must be one row for each group and label")
    if any(row.positives > row.count or row.count != sizes[row.group] for row in rows):
        raise ValueError("the rows of a group must have the same count, and no more positives than that")
    return rows


@dataclass(frozen=True, repr=False)
class Evaluation:
    """All metrics of one predictor, as fractions; nan where undefined (see `evaluate`).

    Each metric of the catalogue is an attribute: `auc`, `f1`, `acc`, `balanced_acc`, `delta_dp`, `delta_eo`,
    `equalized_odds`. A constant predictor treats all groups alike, so its differences are 0, and where one label is
    common its accuracy and F1 look good. Read them together with `balanced_acc` and `near_constant`.

    Attributes:
        metrics: The value of each metric by its key.
        groups: One record for each group; with more than two classes, for each class and group.
        worst_pair: For each difference between groups that is defined, such as "delta_dp": which two differ most.
        positive_rate: Share of nodes predicted positive; None with more than two classes.
        near_constant: Whether at least 97.5 % of the nodes are predicted to be of one class, and balanced accuracy is
            less than 0.1 above that of a constant, 1/C.
        threshold: A node is predicted positive above this. None with more than two classes, where the largest score
            decides, and where the decisions were given.
        n: Number of nodes.
        intervals: Bootstrap confidence intervals by metric, if asked for.
    """

    __pydantic_config__ = STRICT

    metrics: Mapping[str, Fraction] = field(hash=False)
    groups: Annotated[tuple[GroupRates, ...], AfterValidator(_agreeing)]
    worst_pair: Mapping[str, Pair] = field(hash=False)
    positive_rate: float | None
    near_constant: bool
    threshold: float | None
    n: Count
    intervals: Mapping[str, Interval] = field(default_factory=dict, hash=False)

    def __getattr__(self, name: str) -> float:
        try:
            value: float = self.__dict__["metrics"][name]
        except KeyError:
            raise AttributeError(f"'Evaluation' has no attribute or metric '{name}'") from None
        return value

    @property
    def selection(self) -> float:
        """`AUC + F1 + ACC - ΔDP - ΔEO`: validation selects epoch and configuration by this."""
        return float(catalog.selection_score([self.metrics[metric.key] for metric in catalog.SELECTION]))

    def percent(self) -> dict[str, float]:
        """Return the paper's five metrics, AUC, F1, ACC, DP and EO, in percent."""
        return {metric.label: 100 * self.metrics[metric.key] for metric in catalog.SELECTION}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold (nan becomes None); `from_dict` is the inverse."""
        values = asdict(self)
        plain: dict[str, Any] = finite({**values.pop("metrics"), **values})
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Evaluation":
        """Rebuild a record from `to_dict`; a metric that an older file lacks is nan."""
        keys = [metric.key for metric in catalog.METRICS]
        others = {f.name for f in fields(cls)} - {"metrics"}
        if not others <= set(values) <= others.union(keys):
            raise DataError(f"'values' must hold exactly {sorted(others.union(keys))} (got {sorted(values)})")
        try:
            metrics = {key: values.get(key) for key in keys}
            return validate({"metrics": metrics, **{name: values[name] for name in others}}, cls)
        except ValueError as error:
            raise DataError(f"'values' must be an evaluation ({error})") from None

    def __repr__(self) -> str:
        numbers = ", ".join(f"{metric.label}={100 * self.metrics[metric.key]:.2f}" for metric in catalog.METRICS)
        return f"Evaluation({numbers}, n={self.n}{', near constant' if self.near_constant else ''})"

    def __str__(self) -> str:
        numbers = "  ".join(f"{metric.symbol} {100 * self.metrics[metric.key]:.2f}" for metric in catalog.METRICS)
        constant = ["near constant: almost every node is predicted to be of one class"] if self.near_constant else []
        pairs = [
            f"{key} {100 * self.metrics[key]:.2f}: group '{pair.high}' above '{pair.low}' for label '{pair.label}'"
            for key, pair in self.worst_pair.items()
        ]
        groups = [
            f"group '{row.group}', label '{row.label}': {row.count} nodes, {row.positives} of the label, "
            f"selected {100 * row.selection_rate:.2f}, TPR {100 * row.true_positive_rate:.2f}, "
            f"FPR {100 * row.false_positive_rate:.2f}, accuracy {100 * row.accuracy:.2f}"
            for row in self.groups
        ]
        intervals = [
            f"{key} {100 * ends.level:g} % interval: {100 * ends.low:.2f} to {100 * ends.high:.2f}"
            for key, ends in self.intervals.items()
        ]
        return "\n".join([f"{numbers}  (n={self.n})", *constant, *pairs, *groups, *intervals])


def evaluate(
    y: Values,
    scores: Values,
    *,
    sens: Values,
    threshold: float = 0.5,
    decisions: Values | None = None,
    group_names: Names = None,
    label_names: Names = None,
    undefined: Undefined = "error",
    bootstrap: int = 0,
    seed: int = 0,
) -> Evaluation:
    """Measure scores against the truth, for all nodes and between groups.

    Args:
        y: Labels `[N]`, 0..C-1. Unlabelled nodes (-1) are refused: pass the labelled ones.
        scores: Scores of the positive class `[N]` or probabilities `[N, 2]`, predicted positive where above
            `threshold`; with more than two classes `[N, C]`, the largest decides.
        sens: Groups `[N]`, 0..G-1. Nodes of unknown group (negative) count for the utility metrics only.
        threshold: Where a binary score counts as positive; `best_threshold` finds one on validation scores.
        decisions: Predicted classes `[N]`, if they do not follow from one threshold (see `GroupThresholds`). Then only
            AUC comes from the scores, and `threshold` does not matter.
        group_names: Names of the G groups; one that has no nodes here is missing. Without names the groups are those up
            to the largest index in `sens`.
        undefined: What to do when a metric is undefined because a group or label is missing: "error" raises `DataError`
            and names it; "nan" warns (`sklearn.exceptions.UndefinedMetricWarning`) and goes on.
        bootstrap: Number of resamples for 95 % confidence intervals, drawn from `seed`; 0 for none.
    """
    check_number("bootstrap", bootstrap, 0)
    check_seed(seed)
    sample = Sample(y, decisions, sens, group_names, label_names, scores, threshold)
    sample.check_probabilities()
    nodes, table = sample.nodes, group_table(sample)
    report_undefined("part of the evaluation", nodes.missing_labels() + nodes.missing_rates(), undefined)
    metrics = {key: float(value) for key, value in sample.measure(sample.counts).items()}
    compared = {metric.key: metric.compares for metric in catalog.METRICS if metric.compares}
    binary = len(nodes.labels) == 2
    return Evaluation(
        metrics=metrics,
        groups=table,
        worst_pair={key: worst_pair(table, rates) for key, rates in compared.items() if not nodes.missing_rates(rates)},
        positive_rate=int(sample.pred.sum()) / nodes.count if binary else None,
        near_constant=is_near_constant(sample, metrics["balanced_acc"]),
        threshold=float(threshold) if binary and decisions is None else None,
        n=nodes.count,
        intervals=sample_intervals(sample, bootstrap, seed) if bootstrap else {},
    )


def is_near_constant(sample: Sample, balanced_acc: float | None = None) -> bool:
    """Return whether the predictions are near constant; see `Evaluation`."""
    if int(sample.pred.bincount().max()) / sample.nodes.count < NEAR_CONSTANT_SHARE:
        return False
    if balanced_acc is None:
        balanced_acc = float(sample.measure(sample.counts)["balanced_acc"])
    # "not at least" rather than "below": a balanced accuracy of nan does not excuse a constant.
    return not balanced_acc >= 1 / len(sample.nodes.labels) + NEAR_CONSTANT_MARGIN


def group_table(sample: Sample) -> tuple[GroupRates, ...]:
    nodes, counts = sample.nodes, sample.counts
    sizes, positives, _ = nodes.sizes.values()
    columns = torch.stack([sizes, positives, *(counts.rates(rate) for rate in RATES)], -1).tolist()
    accuracy = (counts.correct()[:-1] / sizes[0]).tolist()
    return tuple(
        GroupRates(group, nodes.labels[c], int(count), int(positives), selected, tpr, fpr, right)
        for c, rows in zip(nodes.classes, columns, strict=True)
        for group, (count, positives, selected, tpr, fpr), right in zip(nodes.groups, rows, accuracy, strict=True)
    )


def worst_pair(table: Sequence[GroupRates], rates: Sequence[Rate]) -> Pair:
    """Return the two groups between which the widest difference of the rates lies."""
    gaps = []
    for rate, label in product(rates, dict.fromkeys(row.label for row in table)):
        # Equal groups keep their order, so the first and the last are a pair even if all rates are equal.
        rows = sorted((row for row in table if row.label == label), key=attrgetter(rate), reverse=True)
        gap = getattr(rows[0], rate) - getattr(rows[-1], rate)
        gaps.append((gap, Pair(rows[0].group, rows[-1].group, label)))
    return max(gaps, key=itemgetter(0))[1]


def impact_ratio(table: Sequence[GroupRates]) -> float:
    """Return the smallest ratio of two groups' selection rates, over all labels; nan if nobody is selected."""
    smallest = math.inf
    for label in dict.fromkeys(row.label for row in table):
        rates_of = [row.selection_rate for row in table if row.label == label]
        ratio = min(rates_of) / max(rates_of) if max(rates_of) > 0 else math.nan
        if math.isnan(ratio):
            return math.nan
        smallest = min(smallest, ratio)
    return smallest


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
    sample = Sample(y, pred, sens, group_names, label_names)
    report_undefined("part of the table", sample.nodes.missing_rates(compare=False), undefined)
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
        """Return the metric of predicted classes `[N]`; see `evaluate` for the other arguments.

        Differences between groups need `sens`. Without `label_names` the number of classes follows from the arrays.
        """
        return _value(self.key, Sample(y, pred, sens, group_names, label_names), undefined)


def roc_auc(y: Values, scores: Values, *, label_names: Names = None, undefined: Undefined = "error") -> float:
    """Area under the ROC curve of scores, `[N]` or `[N, C]`, which need not be probabilities; the mean over classes.

    Hard predictions are refused: they do not rank nodes.
    """
    return _value("auc", Sample(y, None, None, label_names=label_names, scores=scores), undefined)


def _value(key: str, sample: Sample, undefined: Undefined) -> float:
    metric = next(metric for metric in catalog.METRICS if metric.key == key)
    report_undefined(metric.title, metric.missing(sample.nodes), undefined, level=4)
    return float(sample.measure(sample.counts)[key])


auc = roc_auc
f1 = MetricFunction("f1")
accuracy = MetricFunction("acc")
balanced_accuracy = MetricFunction("balanced_acc")
demographic_parity_difference = delta_dp = MetricFunction("delta_dp")
"""`|E[ŷ | s] - E[ŷ | s']|` of the widest pair of groups, over all classes."""
equal_opportunity_difference = delta_eo = MetricFunction("delta_eo")
"""`|E[ŷ | s, y = 1] - E[ŷ | s', y = 1]|` of the widest pair of groups, over all classes."""
equalized_odds_difference = MetricFunction("equalized_odds")
"""The larger of the widest differences of true and of false positive rates."""
