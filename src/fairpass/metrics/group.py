"""How differently a classifier treats groups: rates per group, and the widest difference between two.

For a class c and a group s, with ŷ the prediction taken as 0/1 for "is c":

* selection rate `E[ŷ | s]`; its difference is demographic parity, `delta_dp`
* true positive rate `E[ŷ | s, y = 1]`; its difference is equal opportunity, `delta_eo`
* the larger of the differences of true and false positive rate is `equalized_odds_difference`

Binary problems look at class 1, as the paper does. With more classes each is taken against the rest and the
widest difference counts; with more than two groups likewise the widest pair. Nodes of unknown group
(`sens < 0`) take no part here, though they do in the utility metrics.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import fairlearn.metrics as fl
from sklearn.metrics import accuracy_score

from fairpass.metrics.inputs import (
    Integers,
    Undefined,
    Values,
    as_groups,
    as_labels,
    as_names,
    classes_of,
    is_defined,
    names_of_predicted,
)

Rate = Literal["selection_rate", "true_positive_rate", "false_positive_rate"]


RATES: tuple[Rate, ...] = ("selection_rate", "true_positive_rate", "false_positive_rate")

_METRICS = {
    "count": fl.count,
    "positives": lambda true, pred: true.sum(),
    "selection_rate": fl.selection_rate,
    "true_positive_rate": fl.true_positive_rate,
    "false_positive_rate": fl.false_positive_rate,
}


@dataclass(frozen=True)
class GroupRates:
    """One group, seen from one class (`label`) against the rest; a rate over no nodes is nan."""

    group: str
    label: str
    count: int
    """Nodes of the group."""
    positives: int
    """Of these, how many truly are of the class."""
    selection_rate: float
    """Share predicted to be of the class."""
    true_positive_rate: float
    """The same among those that are."""
    false_positive_rate: float
    """The same among those that are not."""
    accuracy: float
    """Share predicted right (all classes told apart)."""


@dataclass(frozen=True)
class Pair:
    """Two groups: the one whose rate for class `label` is highest, and the one whose rate is lowest."""

    high: str
    low: str
    label: str


@dataclass(frozen=True)
class Gap:
    """A widest difference and the two groups it lies between; nan and None where undefined."""

    value: float
    pair: Pair | None


GroupTable = tuple[GroupRates, ...]


def rates(
    y: Values,
    pred: Values,
    *,
    sens: Values,
    group_names: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    undefined: Undefined = "error",
) -> GroupTable:
    """Return one record for each group; with more than two classes, one for each class and group."""
    table = group_table(y, pred, sens, group_names, label_names)
    is_defined("part of the table", rate_reasons(table, *RATES), undefined)
    return table


def delta_dp(
    y: Values,
    pred: Values,
    *,
    sens: Values,
    group_names: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    undefined: Undefined = "error",
) -> float:
    """Demographic parity: `|E[ŷ | s] - E[ŷ | s']|` of the widest pair of groups."""
    table = group_table(y, pred, sens, group_names, label_names)
    is_defined("Delta_DP", gap_reasons(table, "selection_rate"), undefined)
    return demographic_parity_gap(table).value


def delta_eo(
    y: Values,
    pred: Values,
    *,
    sens: Values,
    group_names: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    undefined: Undefined = "error",
) -> float:
    """Equal opportunity: `|E[ŷ | s, y = 1] - E[ŷ | s', y = 1]|` of the widest pair of groups."""
    table = group_table(y, pred, sens, group_names, label_names)
    is_defined("Delta_EO", gap_reasons(table, "true_positive_rate"), undefined)
    return equal_opportunity_gap(table).value


def equalized_odds_difference(
    y: Values,
    pred: Values,
    *,
    sens: Values,
    group_names: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    undefined: Undefined = "error",
) -> float:
    """Equalised odds: the larger of the widest differences of true and of false positive rate."""
    table = group_table(y, pred, sens, group_names, label_names)
    is_defined("equalised odds", gap_reasons(table, "true_positive_rate", "false_positive_rate"), undefined)
    return equalized_odds_gap(table).value


def demographic_parity_gap(table: GroupTable) -> Gap:
    """Read `delta_dp`, and the pair it lies between, off a table of `rates`."""
    return _gap(table, "selection_rate")


def equal_opportunity_gap(table: GroupTable) -> Gap:
    """Read `delta_eo`, and the pair it lies between, off a table of `rates`."""
    return _gap(table, "true_positive_rate")


def equalized_odds_gap(table: GroupTable) -> Gap:
    """Read `equalized_odds_difference`, and the pair it lies between, off a table of `rates`."""
    gaps = [_gap(table, "true_positive_rate"), _gap(table, "false_positive_rate")]
    return next((gap for gap in gaps if gap.pair is None), max(gaps, key=lambda gap: gap.value))


def _gap(table: GroupTable, rate: Rate) -> Gap:
    if gap_reasons(table, rate):
        return Gap(math.nan, None)
    gaps = []
    for label in dict.fromkeys(row.label for row in table):
        # Groups that tie keep their order, so the first and the last are a pair even where all are equal.
        rows = sorted((r for r in table if r.label == label), key=lambda r: getattr(r, rate), reverse=True)
        high, low = rows[0], rows[-1]
        gaps.append(Gap(getattr(high, rate) - getattr(low, rate), Pair(high.group, low.group, label)))
    return max(gaps, key=lambda gap: gap.value)


def gap_reasons(table: GroupTable, *rates: Rate) -> list[str]:
    """Say why a difference between groups does not exist, if so."""
    groups = {row.group for row in table}
    alone = [] if len(groups) > 1 else [f"it takes two groups or more (got {len(groups)} in 'sens')"]
    return alone + rate_reasons(table, *rates)


def rate_reasons(table: GroupTable, *rates: Rate) -> list[str]:
    """Say for which groups a rate does not exist, and why."""
    reasons = []
    for row in table:
        if not row.count:
            reasons.append(f"group '{row.group}' has no nodes")
        elif "true_positive_rate" in rates and not row.positives:
            reasons.append(f"group '{row.group}' has no node of label '{row.label}'")
        elif "false_positive_rate" in rates and row.positives == row.count:
            reasons.append(f"group '{row.group}' has no node of a label other than '{row.label}'")
    return list(dict.fromkeys(reasons))


def group_table(
    y: Values,
    pred: Values,
    sens: Values,
    group_names: Sequence[str] | None,
    label_names: Sequence[str] | None,
) -> GroupTable:
    """Return what `rates` does, in silence about what is undefined."""
    labels = as_labels(y)
    decided = as_labels(pred, "pred", labels.size)
    groups = as_groups(sens, labels.size)
    label_names = names_of_predicted(label_names, labels, decided)
    group_names = as_names(group_names, "group_names", groups)
    known = groups >= 0
    labels, decided, groups = labels[known], decided[known], groups[known]

    right = _by_group({"accuracy": accuracy_score}, labels, decided, groups)
    table = []
    for label in classes_of(len(label_names)):
        cells = _by_group(_METRICS, (labels == label).astype(int), (decided == label).astype(int), groups)
        for index, group in enumerate(group_names):
            # An absent group has no cell at all; where nobody is positive fairlearn's rate is 0, ours nan.
            cell = cells.get(index, {"count": 0, "positives": 0, "selection_rate": math.nan})
            count, positives = int(cell["count"]), int(cell["positives"])
            table.append(
                GroupRates(
                    group=group,
                    label=label_names[label],
                    count=count,
                    positives=positives,
                    selection_rate=cell["selection_rate"],
                    true_positive_rate=cell["true_positive_rate"] if positives else math.nan,
                    false_positive_rate=cell["false_positive_rate"] if positives < count else math.nan,
                    accuracy=right[index]["accuracy"] if count else math.nan,
                )
            )
    return tuple(table)


def _by_group(metrics: dict[str, Any], y: Integers, pred: Integers, sens: Integers) -> dict[int, dict[str, float]]:
    if not sens.size:
        return {}
    frame = fl.MetricFrame(metrics=metrics, y_true=y, y_pred=pred, sensitive_features=sens)
    cells: dict[int, dict[str, float]] = frame.by_group.to_dict("index")
    return cells
