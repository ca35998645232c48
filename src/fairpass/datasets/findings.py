"""Where bias can come from, in plain words: sentences made from a graph's statistics."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fairpass.datasets.statistics import GraphStatistics

Severity = Literal["high", "medium", "low"]

_WORST_FIRST: tuple[Severity, ...] = ("high", "medium", "low")

# From where on a number is of medium and of high severity; below, where the first limit is the larger one.
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


@dataclass(frozen=True)
class Finding:
    """One place where bias can come from: its kind, the number that was found, and a sentence about it.

    `severity` is "low" where there is little to worry about; it follows rules of thumb, not a standard.
    """

    kind: str
    severity: Severity
    value: float
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a plain dict, ready for JSON."""
        return asdict(self)


def find_bias(statistics: GraphStatistics) -> tuple[Finding, ...]:
    """Return what a graph's statistics say about bias before any training, the most severe first.

    Every check that can be made is reported, also where all is well. The `value` of each kind:

    - `sensitive_feature`: 1 if the sensitive attribute is itself a feature, else 0.
    - `group_predictable`: the AUC of predicting the group from the other features, if `describe` measured it.
    - `leaking_features`: the largest absolute correlation of a feature with a group.
    - `sensitive_homophily`: the assortativity of the groups (0: edges mix them at random, 1: none crosses).
    - `base_rates`: the largest difference of `P(y = label | group)` between two groups.
    - `degrees`: by what share the least connected group has fewer neighbours than the most connected one.
    - `group_sizes`: the size of the smallest group, as a share of what it is if all are equally large.
    - `small_cells`: the number of labelled nodes in the smallest pair of label and group.
    - `labelling`: the largest difference of the share of labelled nodes between two groups.
    - `unknown_groups`: the share of nodes whose group is unknown.
    """
    found = [finding for check in _CHECKS if (finding := check(statistics))]
    return tuple(sorted(found, key=lambda finding: _WORST_FIRST.index(finding.severity)))


def _severity(kind: str, value: float) -> Severity:
    medium, high = _MEDIUM_AND_HIGH[kind]
    reached = [value < limit if medium > high else value >= limit for limit in (high, medium)]
    return _WORST_FIRST[[*reached, True].index(True)]


def _finding(kind: str, value: float, sentence: str) -> Finding:
    return Finding(kind, _severity(kind, value), float(value), sentence)


def _sensitive_feature(statistics: GraphStatistics) -> Finding:
    name = statistics.leakage.sensitive_feature
    if name is None:
        return _finding("sensitive_feature", 0, "The sensitive attribute is not marked as a feature.")
    sentence = f"The sensitive attribute is itself a feature ({name!r}): a model can use it directly."
    return _finding("sensitive_feature", 1, sentence)


def _group_predictable(statistics: GraphStatistics) -> Finding | None:
    auc = statistics.leakage.auc
    if auc is None or math.isnan(auc):
        return None
    consequence = (
        "a linear model sees little of it there"
        if _severity("group_predictable", auc) == "low"
        else "leaving the sensitive attribute out does not hide it"
    )
    others = "the features" if statistics.leakage.sensitive_feature is None else "the other features"
    sentence = f"The group can be predicted from {others} with an AUC of {auc:.2f}: {consequence}."
    return _finding("group_predictable", auc, sentence)


def _leaking_features(statistics: GraphStatistics) -> Finding | None:
    correlations = statistics.leakage.correlations
    if not correlations:
        return None
    closest, strongest = next(iter(correlations.items()))
    limit, _ = _MEDIUM_AND_HIGH["leaking_features"]
    proxies = [f"{name!r} ({value:.2f})" for name, value in correlations.items() if value >= limit]
    if proxies:
        sentence = f"Features that give the group away, by their correlation with it: {_listed(proxies)}."
    else:
        sentence = (
            f"No single feature gives the group away: the closest, {closest!r}, "
            f"has a correlation of {strongest:.2f} with it."
        )
    return _finding("leaking_features", strongest, sentence)


def _sensitive_homophily(statistics: GraphStatistics) -> Finding | None:
    mixing = statistics.sensitive_mixing
    if math.isnan(mixing.assortativity):
        return None
    if _severity("sensitive_homophily", mixing.assortativity) != "low":
        consequence = "message passing makes nodes of one group alike and drives the groups apart"
    elif mixing.assortativity >= 0:
        consequence = "message passing hardly tells the groups apart"
    else:
        consequence = "message passing mixes the groups"
    sentence = (
        f"{mixing.homophily:.1%} of the edges join nodes of one group, where chance would give "
        f"{mixing.expected:.1%}: {consequence}."
    )
    return _finding("sensitive_homophily", mixing.assortativity, sentence)


def _base_rates(statistics: GraphStatistics) -> Finding | None:
    groups = [group for group in statistics.groups if group.labelled]
    if len(groups) < 2:
        return None

    def gap(label: str) -> float:
        rates = [group.label_rates[label] for group in groups]
        return max(rates) - min(rates)

    # Two labels have the same gap, up to rounding: the last, the positive one, is named.
    label = max(reversed(statistics.label_counts), key=lambda label: round(gap(label), 9))
    lowest, *_, highest = sorted(groups, key=lambda group: group.label_rates[label])
    sentence = (
        f"{highest.label_rates[label]:.1%} of group {highest.name!r} but {lowest.label_rates[label]:.1%} of "
        f"{lowest.name!r} have label {label!r}: even predictions that are all correct have a demographic "
        f"parity gap of {_points(gap(label))}."
    )
    return _finding("base_rates", gap(label), sentence)


def _degrees(statistics: GraphStatistics) -> Finding | None:
    groups = sorted((group for group in statistics.groups if group.size), key=lambda group: group.degree_mean)
    if len(groups) < 2 or groups[-1].degree_mean == 0:
        return None
    least, most = groups[0], groups[-1]
    fewer = 1 - least.degree_mean / most.degree_mean
    consequence = (
        "nearly the same"
        if _severity("degrees", fewer) == "low"
        else f"{fewer:.0%} fewer, so message passing has less to go by for them"
    )
    sentence = (
        f"Nodes of group {least.name!r} have {least.degree_mean:.1f} neighbours on average, those of "
        f"{most.name!r} {most.degree_mean:.1f}: {consequence}."
    )
    return _finding("degrees", fewer, sentence)


def _group_sizes(statistics: GraphStatistics) -> Finding | None:
    known = sum(group.size for group in statistics.groups)
    if known == 0:
        return None
    smallest = min(statistics.groups, key=lambda group: group.size)
    share = smallest.size / known
    sentence = (
        f"The smallest of {len(statistics.groups)} groups, {smallest.name!r}, has {share:.1%} of the nodes "
        f"({smallest.size:,}): that is its weight in a loss that counts all nodes alike."
    )
    return _finding("group_sizes", share * len(statistics.groups), sentence)


def _small_cells(statistics: GraphStatistics) -> Finding | None:
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
    sentence = (
        f"The rarest pair of group and label, {group!r} with {label!r}, has {count:,} of the labelled nodes: "
        f"a rate among them is only known to within {_points(error)}."
    )
    return _finding("small_cells", count, sentence)


def _labelling(statistics: GraphStatistics) -> Finding | None:
    shares = sorted((group.labelled / group.size, group.name) for group in statistics.groups if group.size)
    if len(shares) < 2 or statistics.unlabelled == 0:
        return None
    (least, least_name), (most, most_name) = shares[0], shares[-1]
    sentence = (
        f"{least:.1%} of group {least_name!r} and {most:.1%} of {most_name!r} are labelled: "
        f"the labelled nodes may not stand for the rest."
    )
    return _finding("labelling", most - least, sentence)


def _unknown_groups(statistics: GraphStatistics) -> Finding | None:
    if statistics.unknown_group == 0:
        return None
    share = statistics.unknown_group / statistics.nodes
    sentence = (
        f"{statistics.unknown_group:,} of the nodes ({share:.1%}) are of unknown group: "
        f"how a model treats them cannot be compared between groups."
    )
    return _finding("unknown_groups", share, sentence)


def _points(share: float) -> str:
    return f"{100 * share:.1f} percentage points"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


_CHECKS: tuple[Callable[[GraphStatistics], Finding | None], ...] = (
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
