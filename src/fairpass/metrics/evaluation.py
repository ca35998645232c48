"""One frozen record of everything that is measured about one predictor on one set of nodes."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from fairpass.errors import DataError
from fairpass.metrics import catalog
from fairpass.metrics.bootstrap import Interval, sample_intervals
from fairpass.metrics.groups import GroupRates, Pair, group_table, worst_pair
from fairpass.metrics.inputs import Names, Sample, Undefined, Values, report_undefined

# A predictor is near constant if it puts nearly all nodes in one class although they do not belong there: its balanced
# accuracy is then hardly above the 1/C of a constant.
NEAR_CONSTANT_SHARE = 0.975
NEAR_CONSTANT_MARGIN = 0.1


@dataclass(frozen=True, repr=False)
class Evaluation:
    """All metrics of one predictor, as fractions; nan where undefined (see `evaluate`).

    Each metric of the catalogue is an attribute: `auc`, `f1`, `acc`, `balanced_acc`, `delta_dp`, `delta_eo`,
    `equalized_odds`. A constant predictor treats all groups alike, so its differences are 0, and where one label is
    common its accuracy and F1 look good. Read them together with `balanced_acc` and `near_constant`.
    """

    metrics: Mapping[str, float] = field(hash=False)
    """The value of each metric by its key."""
    groups: tuple[GroupRates, ...]
    """One record for each group; with more than two classes, for each class and group."""
    worst_pair: Mapping[str, Pair] = field(hash=False)
    """For each difference between groups that is defined, such as "delta_dp": which two groups differ most."""
    positive_rate: float | None
    """Share of nodes predicted positive; None with more than two classes."""
    near_constant: bool
    """At least 97.5 % of the nodes are predicted to be of one class, and balanced accuracy is less than
    0.1 above that of a constant, 1/C."""
    threshold: float | None
    """A node is predicted positive above this. None with more than two classes, where the largest score decides,
    and where the decisions were given."""
    n: int
    """Number of nodes."""
    intervals: Mapping[str, Interval] = field(default_factory=dict, hash=False)
    """Bootstrap confidence intervals by metric, if asked for."""

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
        plain: dict[str, Any] = _without_nan({**values.pop("metrics"), **values})
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Evaluation":
        """Rebuild a record from `to_dict`; a metric that an older file lacks is nan."""
        keys = {metric.key for metric in catalog.METRICS}
        others = {f.name for f in fields(cls)} - {"metrics"}
        if not others <= set(values) <= others | keys:
            raise DataError(f"'values' must hold exactly {sorted(others | keys)} (got {sorted(values)})")
        return cls(
            metrics=_with_nan({metric.key: values.get(metric.key) for metric in catalog.METRICS}),
            groups=tuple(GroupRates(**_with_nan(row)) for row in values["groups"]),
            worst_pair={name: Pair(**pair) for name, pair in values["worst_pair"].items()},
            intervals={name: Interval(**_with_nan(ends)) for name, ends in values["intervals"].items()},
            **{name: values[name] for name in others - {"groups", "worst_pair", "intervals"}},
        )

    def __repr__(self) -> str:
        numbers = ", ".join(f"{metric.label}={100 * self.metrics[metric.key]:.2f}" for metric in catalog.METRICS)
        return f"Evaluation({numbers}, n={self.n}{', near constant' if self.near_constant else ''})"

    def __str__(self) -> str:
        """Return a few lines for a reader, in percent."""
        numbers = "  ".join(f"{metric.symbol} {100 * self.metrics[metric.key]:.2f}" for metric in catalog.METRICS)
        lines = [f"{numbers}  (n={self.n})"]
        if self.near_constant:
            lines.append("near constant: almost every node is predicted to be of one class")
        for name, pair in self.worst_pair.items():
            where = f"group '{pair.high}' above '{pair.low}' for label '{pair.label}'"
            lines.append(f"{name} {100 * self.metrics[name]:.2f}: {where}")
        for row in self.groups:
            lines.append(
                f"group '{row.group}', label '{row.label}': {row.count} nodes, {row.positives} of the label, "
                f"selected {100 * row.selection_rate:.2f}, TPR {100 * row.true_positive_rate:.2f}, "
                f"FPR {100 * row.false_positive_rate:.2f}, accuracy {100 * row.accuracy:.2f}"
            )
        for name, ends in self.intervals.items():
            lines.append(f"{name} {100 * ends.level:g} % interval: {100 * ends.low:.2f} to {100 * ends.high:.2f}")
        return "\n".join(lines)


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
        label_names: Names of the C labels.
        undefined: What to do when a metric is undefined because a group or label is missing: "error" raises `DataError`
            and names it; "nan" warns (`sklearn.exceptions.UndefinedMetricWarning`) and goes on.
        bootstrap: Number of resamples for 95 % confidence intervals; 0 for none.
        seed: Seed of the resamples.

    """
    if bootstrap < 0:
        raise DataError(f"'bootstrap' must not be negative (got {bootstrap})")
    sample = Sample.scored(y, scores, sens, group_names, label_names, threshold, decisions)
    nodes = sample.nodes
    report_undefined("part of the evaluation", nodes.missing_labels() + nodes.missing_differences(), undefined)
    metrics = {key: float(value) for key, value in sample.measure(sample.counts).items()}
    table = group_table(sample)
    compared = [metric for metric in catalog.METRICS if metric.compares and not metric.missing(nodes)]
    num_classes, n = len(nodes.label_names), len(sample.y)
    share = int(sample.pred.bincount().max()) / n
    # "not above" rather than "below": a balanced accuracy of nan does not excuse a constant.
    useless = not metrics["balanced_acc"] >= 1 / num_classes + NEAR_CONSTANT_MARGIN
    return Evaluation(
        metrics=metrics,
        groups=table,
        worst_pair={metric.key: worst_pair(table, metric.compares) for metric in compared},
        positive_rate=int(sample.pred.sum()) / n if num_classes == 2 else None,
        near_constant=share >= NEAR_CONSTANT_SHARE and useless,
        threshold=float(threshold) if num_classes == 2 and decisions is None else None,
        n=n,
        intervals=sample_intervals(sample, bootstrap, seed) if bootstrap else {},
    )


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _with_nan(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: math.nan if item is None else item for key, item in values.items()}
