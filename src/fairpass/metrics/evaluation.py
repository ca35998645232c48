"""One frozen record of everything that is measured about one predictor on one set of nodes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from fairpass.errors import DataError
from fairpass.metrics import group, utility
from fairpass.metrics.bootstrap import Interval, bootstrap_intervals
from fairpass.metrics.group import GroupRates, Pair
from fairpass.metrics.inputs import (
    Undefined,
    Values,
    as_decisions,
    as_groups,
    as_labels,
    as_names,
    as_scores,
    is_defined,
    missing_labels,
    names_of_scored,
    predict,
)

# A predictor is near constant if it puts nearly all nodes in one class, and not because nearly all are there:
# its balanced accuracy is then hardly above the 1/C of a constant.
NEAR_CONSTANT_SHARE = 0.975
NEAR_CONSTANT_MARGIN = 0.1

_PAPER = {"AUC": "auc", "F1": "f1", "ACC": "acc", "DP": "delta_dp", "EO": "delta_eo"}


@dataclass(frozen=True, repr=False)
class Evaluation:
    """All metrics of one predictor, as fractions; nan where undefined (see `evaluate`).

    A constant predictor treats all groups alike, so its differences are 0, and where one label is common its
    accuracy and F1 look good. Read them together with `balanced_acc` and `near_constant`.
    """

    auc: float
    f1: float
    acc: float
    balanced_acc: float
    delta_dp: float
    delta_eo: float
    equalized_odds: float
    groups: tuple[GroupRates, ...]
    """One record for each group; with more than two classes, for each class and group."""
    worst_pair: Mapping[str, Pair] = field(hash=False)
    """For "delta_dp", "delta_eo" and "equalized_odds", where defined: which two groups differ most."""
    positive_rate: float | None
    """Share of nodes predicted positive; None with more than two classes."""
    near_constant: bool
    """At least 97.5 % of the nodes are predicted to be of one class, and balanced accuracy is less than
    0.1 above that of a constant, 1/C."""
    threshold: float | None
    """A node is predicted positive above this; None with more than two classes, where the largest
    score decides, and where the decisions were given."""
    n: int
    """Number of nodes."""
    intervals: Mapping[str, Interval] = field(default_factory=dict, hash=False)
    """Bootstrap confidence intervals by metric, if asked for."""

    @property
    def selection(self) -> float:
        """`AUC + F1 + ACC - Delta_DP - Delta_EO`: by this, validation chooses epoch and configuration."""
        return self.auc + self.f1 + self.acc - self.delta_dp - self.delta_eo

    def percent(self) -> dict[str, float]:
        """Return the paper's five metrics, AUC, F1, ACC, DP and EO, in percent."""
        return {name: 100 * float(getattr(self, attribute)) for name, attribute in _PAPER.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold (nan becomes None); `from_dict` is the inverse."""
        plain: dict[str, Any] = _without_nan(asdict(self))
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Evaluation":
        """Rebuild a record from `to_dict`."""
        names = {f.name for f in fields(cls)}
        if set(values) != names:
            raise DataError(f"'values' must hold exactly {sorted(names)} (got {sorted(values)})")
        rest = {name: values[name] for name in names - {"groups", "worst_pair", "intervals"}}
        return cls(
            groups=tuple(GroupRates(**_with_nan(row)) for row in values["groups"]),
            worst_pair={name: Pair(**pair) for name, pair in values["worst_pair"].items()},
            intervals={name: Interval(**_with_nan(ends)) for name, ends in values["intervals"].items()},
            **_with_nan(rest, keep={"threshold", "positive_rate"}),
        )

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value:.2f}" for name, value in self.percent().items())
        return f"Evaluation({numbers}, n={self.n}{', near constant' if self.near_constant else ''})"

    def __str__(self) -> str:
        """Return a few lines for a reader, in percent."""
        lines = ["  ".join(f"{name} {value:.2f}" for name, value in self.percent().items())]
        lines[0] += f"  (n={self.n}, balanced accuracy {100 * self.balanced_acc:.2f})"
        if self.near_constant:
            lines.append("near constant: almost every node is predicted to be of one class")
        for name, pair in self.worst_pair.items():
            lines.append(
                f"{name} {100 * getattr(self, name):.2f}: "
                f"group '{pair.high}' above '{pair.low}' for label '{pair.label}'"
            )
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
    group_names: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    undefined: Undefined = "error",
    bootstrap: int = 0,
    seed: int = 0,
) -> Evaluation:
    """Measure scores against the truth, for all nodes and between groups.

    Args:
        y: Labels `[N]`, 0..C-1. Unlabelled nodes (-1) are refused: pass the labelled ones.
        scores: Scores of the positive class `[N]` or probabilities `[N, 2]`, predicted positive where above
            `threshold`; with more than two classes `[N, C]`, the largest decides.
        sens: Groups `[N]`, 0..G-1. Nodes of unknown group (negative) take part in the utility metrics only.
        threshold: Where a binary score counts as positive; `best_threshold` finds one on validation scores.
        decisions: Predicted classes `[N]`, if they are made otherwise than by one threshold (see `GroupThresholds`).
            Then only AUC comes from the scores, and `threshold` does not matter.
        group_names: Names of the G groups; one that has no nodes here is missing. Without names the groups
            are those up to the largest index in `sens`.
        label_names: Names of the C labels.
        undefined: What to do when a group or label is missing, so that a metric does not exist: "error"
            raises `DataError` and names it; "nan" warns (`sklearn.exceptions.UndefinedMetricWarning`) and
            goes on.
        bootstrap: Number of resamples for 95 % confidence intervals; 0 for none.
        seed: Seed of the resamples.

    """
    labels = as_labels(y)
    values = as_scores(scores, labels.size)
    groups = as_groups(sens, labels.size)
    label_names = names_of_scored(label_names, labels, values)
    group_names = as_names(group_names, "group_names", groups)
    pred = predict(values, threshold) if decisions is None else as_decisions(decisions, labels.size, len(label_names))
    if bootstrap < 0:
        raise DataError(f"'bootstrap' must not be negative (got {bootstrap})")

    table = group.group_table(labels, pred, groups, group_names, label_names)
    missing = missing_labels(labels, label_names)
    is_defined("part of the evaluation", missing + group.gap_reasons(table, *group.RATES), undefined)
    gaps = {
        "delta_dp": group.demographic_parity_gap(table),
        "delta_eo": group.equal_opportunity_gap(table),
        "equalized_odds": group.equalized_odds_gap(table),
    }
    auc = f1 = balanced = math.nan
    if not missing:
        auc = utility.auc(labels, values, label_names=label_names)
        f1 = utility.f1(labels, pred, label_names=label_names)
        balanced = utility.balanced_accuracy(labels, pred, label_names=label_names)
    intervals = {}
    if bootstrap:
        intervals = bootstrap_intervals(
            labels,
            values,
            sens=groups,
            threshold=threshold,
            decisions=decisions,
            group_names=group_names,
            resamples=bootstrap,
            seed=seed,
        )
    binary = values.ndim == 1
    largest_share = np.bincount(pred).max() / labels.size
    chance = 1 / len(label_names)
    return Evaluation(
        auc=auc,
        f1=f1,
        acc=utility.accuracy(labels, pred),
        balanced_acc=balanced,
        delta_dp=gaps["delta_dp"].value,
        delta_eo=gaps["delta_eo"].value,
        equalized_odds=gaps["equalized_odds"].value,
        groups=table,
        worst_pair={name: gap.pair for name, gap in gaps.items() if gap.pair},
        positive_rate=float(pred.mean()) if binary else None,
        # "not above" rather than "below": a balanced accuracy of nan does not excuse a constant.
        near_constant=bool(largest_share >= NEAR_CONSTANT_SHARE and not balanced >= chance + NEAR_CONSTANT_MARGIN),
        threshold=float(threshold) if binary and decisions is None else None,
        n=labels.size,
        intervals=intervals,
    )


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _with_nan(values: Mapping[str, Any], keep: frozenset[str] | set[str] = frozenset()) -> dict[str, Any]:
    return {key: math.nan if item is None and key not in keep else item for key, item in values.items()}
