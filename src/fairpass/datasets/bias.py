"""Where bias can come from: sentences made from a graph's statistics."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fairpass.datasets.statistics import GraphStatistics

Severity = Literal["high", "medium", "low"]

_WORST_FIRST: tuple[Severity, ...] = ("high", "medium", "low")

# From which value on a check has medium and high severity; below which, if the first limit is the larger one.
# Rules of thumb, not standards: the correlations are Cohen's medium and large effect; among 100 nodes a rate
# is known to 10 percentage points, among 30 to 18.
_MEDIUM_AND_HIGH = {
    "sensitive_feature": (1, 1),
    "group_predictable": (0.6, 0.7),
    "leaking_features": (0.3, 0.5),
    "sensitive_homophily": (0.1, 0.3),
    "base_rates": (0.05, 0.1),
    "degrees": (0.2, 0.4),
    "group_sizes": (0.5, 0.2),
    "small_cells": (100, 30),
    "labelling": (0.05, 0.2),
    "unknown_groups": (0.05, 0.2),
}

# How many leaking features a sentence names.
_NAMED = 3

# The value of a check and a sentence about it; None if it does not apply.
_Checked = tuple[float, str] | None


@dataclass(frozen=True)
class BiasCheck:
    """One possible source of bias: its kind, the measured value, and a sentence about it.

    `severity` is "low" if there is little to worry about; it follows rules of thumb, not a standard.
    """

    kind: str
    severity: Severity
    value: float
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a plain dict, ready for JSON."""
        return asdict(self)


def find_bias(statistics: GraphStatistics) -> tuple[BiasCheck, ...]:
    """Check a graph's statistics for possible sources of bias before any training, the most severe first.

    Every check that applies is reported, also without a problem. The `value` of each kind:

    - `sensitive_feature`: 1 if the sensitive attribute is itself a feature, else 0.
    - `group_predictable`: the AUC of predicting the group from the other features, if `describe` measured it.
    - `leaking_features`: the largest absolute correlation of a feature with a group.
    - `sensitive_homophily`: the assortativity of the groups (0: edges mix them at random, 1: no edge crosses).
    - `base_rates`: the largest difference of `P(y = label | group)` between two groups.
    - `degrees`: the fraction of neighbours that the least connected group lacks, compared with the most connected one.
    - `group_sizes`: the size of the smallest group, relative to groups of equal size.
    - `small_cells`: the number of labelled nodes in the smallest pair of label and group.
    - `labelling`: the largest difference in the share of labelled nodes between two groups.
    - `unknown_groups`: the share of nodes of unknown group.
    """
    checked = {kind: check(statistics) for kind, check in _CHECKS.items()}
    found = [
        BiasCheck(kind, _severity(kind, result[0]), float(result[0]), result[1])
        for kind, result in checked.items()
        if result is not None
    ]
    return tuple(sorted(found, key=lambda check: _WORST_FIRST.index(check.severity)))


def _severity(kind: str, value: float) -> Severity:
    medium, high = _MEDIUM_AND_HIGH[kind]
    reached = [value < limit if medium > high else value >= limit for limit in (high, medium)]
    return _WORST_FIRST[[*reached, True].index(True)]


def _sensitive_feature(statistics: GraphStatistics) -> _Checked:
    name = statistics.leakage.sensitive_feature
    if name is None:
        return 0, "The sensitive attribute is not marked as a feature."
    return 1, f"The sensitive attribute is itself a feature ({name!r}): a model can use it directly."


def _group_predictable(statistics: GraphStatistics) -> _Checked:
    auc = statistics.leakage.auc
    if auc is None or math.isnan(auc):
        return None
    low = _severity("group_predictable", auc) == "low"
    consequence = (
        "a linear model can hardly use them for that" if low else "leaving the sensitive attribute out does not hide it"
    )
    others = "the features" if statistics.leakage.sensitive_feature is None else "the other features"
    return auc, f"The group can be predicted from {others} with an AUC of {auc:.2f}: {consequence}."


def _leaking_features(statistics: GraphStatistics) -> _Checked:
    correlations = statistics.leakage.correlations
    if not correlations:
        return None
    closest, strongest = next(iter(correlations.items()))
    limit, _ = _MEDIUM_AND_HIGH["leaking_features"]
    proxies = [f"{name!r} ({value:.2f})" for name, value in correlations.items() if value >= limit]
    if proxies:
        more = f" and {len(proxies) - _NAMED} more" if len(proxies) > _NAMED else ""
        named = ", ".join(proxies[:_NAMED]) + more
        return strongest, f"Features that reveal the group, with their correlation: {named}."
    return strongest, (
        f"No single feature reveals the group: the closest, {closest!r}, has a correlation of {strongest:.2f} with it."
    )


def _sensitive_homophily(statistics: GraphStatistics) -> _Checked:
    mixing = statistics.sensitive_mixing
    if math.isnan(mixing.assortativity):
        return None
    if _severity("sensitive_homophily", mixing.assortativity) != "low":
        consequence = "message passing makes nodes of one group similar and drives the groups apart"
    elif mixing.assortativity >= 0:
        consequence = "message passing hardly separates the groups"
    else:
        consequence = "message passing mixes the groups"
    return mixing.assortativity, (
        f"{mixing.homophily:.1%} of the edges join nodes of one group; {mixing.expected:.1%} are expected by chance: "
        f"{consequence}."
    )


def _base_rates(statistics: GraphStatistics) -> _Checked:
    groups = [group for group in statistics.groups if group.labelled]
    if len(groups) < 2:
        return None

    def gap(label: str) -> float:
        rates = [group.label_rates[label] for group in groups]
        return max(rates) - min(rates)

    # Two labels have the same gap, up to rounding: the last, the positive one, is named.
    label = max(reversed(statistics.label_counts), key=lambda label: round(gap(label), 9))
    lowest, *_, highest = sorted(groups, key=lambda group: group.label_rates[label])
    return gap(label), (
        f"{highest.label_rates[label]:.1%} of group {highest.name!r} but {lowest.label_rates[label]:.1%} of "
        f"{lowest.name!r} have label {label!r}: even perfect predictions have a demographic parity gap of "
        f"{_points(gap(label))}."
    )


def _degrees(statistics: GraphStatistics) -> _Checked:
    groups = sorted((group for group in statistics.groups if group.size), key=lambda group: group.degree_mean)
    if len(groups) < 2 or groups[-1].degree_mean == 0:
        return None
    least, most = groups[0], groups[-1]
    fewer = 1 - least.degree_mean / most.degree_mean
    low = _severity("degrees", fewer) == "low"
    consequence = "nearly the same" if low else f"{fewer:.0%} fewer, so message passing has less information about them"
    return fewer, (
        f"Nodes of group {least.name!r} have {least.degree_mean:.1f} neighbours on average, those of "
        f"{most.name!r} {most.degree_mean:.1f}: {consequence}."
    )


def _group_sizes(statistics: GraphStatistics) -> _Checked:
    known = sum(group.size for group in statistics.groups)
    if known == 0:
        return None
    smallest = min(statistics.groups, key=lambda group: group.size)
    share = smallest.size / known
    return share * len(statistics.groups), (
        f"The smallest of {len(statistics.groups)} groups, {smallest.name!r}, has {share:.1%} of the nodes "
        f"({smallest.size:,}): that is its weight in a loss that counts all nodes equally."
    )


def _small_cells(statistics: GraphStatistics) -> _Checked:
    cells = [
        (round(rate * group.labelled), group.name, label)
        for group in statistics.groups
        if group.labelled
        for label, rate in group.label_rates.items()
    ]
    if not cells:
        return None
    count, group, label = min(cells)
    # 1.96 standard errors of a rate of one half.
    error = min(0.98 / math.sqrt(count), 1) if count else 1
    return count, (
        f"The rarest pair of group and label, {group!r} with {label!r}, has {count:,} of the labelled nodes: "
        f"a rate among them is only known to within {_points(error)}."
    )


def _labelling(statistics: GraphStatistics) -> _Checked:
    shares = sorted((group.labelled / group.size, group.name) for group in statistics.groups if group.size)
    if len(shares) < 2 or statistics.unlabelled == 0:
        return None
    (least, least_name), (most, most_name) = shares[0], shares[-1]
    return most - least, (
        f"{least:.1%} of group {least_name!r} and {most:.1%} of {most_name!r} are labelled: "
        f"the labelled nodes may not represent the others."
    )


def _unknown_groups(statistics: GraphStatistics) -> _Checked:
    if statistics.unknown_group == 0:
        return None
    share = statistics.unknown_group / statistics.nodes
    return share, (
        f"{statistics.unknown_group:,} of the nodes ({share:.1%}) are of unknown group: "
        f"how a model treats them cannot be compared between groups."
    )


def _points(share: float) -> str:
    return f"{100 * share:.1f} percentage points"


_CHECKS: dict[str, Callable[[GraphStatistics], _Checked]] = {
    check.__name__.removeprefix("_"): check
    for check in (
        _sensitive_feature,
        _group_predictable,
        _leaking_features,
        _sensitive_homophily,
        _base_rates,
        _degrees,
        _group_sizes,
        _small_cells,
        _labelling,
        _unknown_groups,
    )
}
