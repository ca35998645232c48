"""Where bias can come from: sentences made from a graph's statistics (the texts and limits are in bias_checks.toml)."""

import math
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from fairpass.datasets.statistics import GraphStatistics

Severity = Literal["high", "medium", "low"]

_WORST_FIRST: tuple[Severity, ...] = ("high", "medium", "low")

# How many leaking features a sentence names.
_NAMED = 3

# The value of a check and the fields of its sentence; None if it does not apply.
_Checked = tuple[float, dict[str, Any]] | None


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
    found = [_explained(kind, *result) for kind, result in checked.items() if result is not None]
    return tuple(sorted(found, key=lambda check: _WORST_FIRST.index(check.severity)))


@cache
def _texts() -> dict[str, dict[str, Any]]:
    return tomllib.loads((resources.files("fairpass.datasets") / "bias_checks.toml").read_text(encoding="utf-8"))


def _explained(kind: str, value: float, fields: dict[str, Any]) -> BiasCheck:
    text = _texts()[kind]
    limits = text["high"], text["medium"]
    reached = [value < limit if limits[1] > limits[0] else value >= limit for limit in limits]
    severity = _WORST_FIRST[[*reached, True].index(True)]
    outcome = text.get("low" if severity == "low" else "otherwise", "").format(**fields)
    return BiasCheck(kind, severity, float(value), text["sentence"].format(**fields, outcome=outcome))


def _sensitive_feature(statistics: GraphStatistics) -> _Checked:
    name = statistics.leakage.sensitive_feature
    return int(name is not None), {"name": name}


def _group_predictable(statistics: GraphStatistics) -> _Checked:
    leakage = statistics.leakage
    if leakage.auc is None or math.isnan(leakage.auc):
        return None
    return leakage.auc, {"auc": leakage.auc, "other": "" if leakage.sensitive_feature is None else "other "}


def _leaking_features(statistics: GraphStatistics) -> _Checked:
    correlations = statistics.leakage.correlations
    if not correlations:
        return None
    closest, strongest = next(iter(correlations.items()))
    limit = _texts()["leaking_features"]["medium"]
    proxies = [f"{name!r} ({value:.2f})" for name, value in correlations.items() if value >= limit]
    more = f" and {len(proxies) - _NAMED} more" if len(proxies) > _NAMED else ""
    return strongest, {"closest": closest, "strongest": strongest, "proxies": ", ".join(proxies[:_NAMED]) + more}


def _sensitive_homophily(statistics: GraphStatistics) -> _Checked:
    mixing = statistics.sensitive_mixing
    if math.isnan(mixing.assortativity):
        return None
    hardly = "hardly separates the groups" if mixing.assortativity >= 0 else "mixes the groups"
    return mixing.assortativity, asdict(mixing) | {"hardly": hardly}


def _base_rates(statistics: GraphStatistics) -> _Checked:
    groups = [group for group in statistics.groups if group.labelled]
    if len(groups) < 2:
        return None
    rates = {label: [group.label_rates[label] for group in groups] for label in reversed(statistics.label_counts)}
    gaps = {label: max(each) - min(each) for label, each in rates.items()}
    # Two labels have the same gap, up to rounding: the last, the positive one, is named.
    label = max(gaps, key=lambda label: round(gaps[label], 9))
    return gaps[label], _extremes({group.name: group.label_rates[label] for group in groups}) | {
        "label": label,
        "points": 100 * gaps[label],
    }


def _degrees(statistics: GraphStatistics) -> _Checked:
    degrees = _extremes({group.name: group.degree_mean for group in statistics.groups if group.size})
    if not degrees or degrees["highest"] == 0:
        return None
    fewer = 1 - degrees["lowest"] / degrees["highest"]
    return fewer, degrees | {"fewer": fewer}


def _group_sizes(statistics: GraphStatistics) -> _Checked:
    known, groups = sum(group.size for group in statistics.groups), len(statistics.groups)
    if known == 0:
        return None
    smallest = min(statistics.groups, key=lambda group: group.size)
    share = smallest.size / known
    return share * groups, {"groups": groups, "smallest": smallest.name, "share": share, "size": smallest.size}


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
    error = min(0.98 / math.sqrt(count), 1) if count else 1  # 1.96 standard errors of a rate of one half
    return count, {"group": group, "label": label, "count": count, "points": 100 * error}


def _labelling(statistics: GraphStatistics) -> _Checked:
    shares = _extremes({group.name: group.labelled / group.size for group in statistics.groups if group.size})
    if not shares or statistics.unlabelled == 0:
        return None
    return shares["highest"] - shares["lowest"], shares


def _unknown_groups(statistics: GraphStatistics) -> _Checked:
    if statistics.unknown_group == 0:
        return None
    share = statistics.unknown_group / statistics.nodes
    return share, {"count": statistics.unknown_group, "share": share}


def _extremes(values: dict[str, float]) -> dict[str, Any]:
    """Return the groups with the smallest and the largest value; nothing if there are fewer than two groups."""
    if len(values) < 2:
        return {}
    (least, lowest), *_, (most, highest) = sorted(values.items(), key=lambda pair: pair[1])
    return {"least": least, "lowest": lowest, "most": most, "highest": highest}


_CHECKS: dict[str, Callable[[GraphStatistics], _Checked]] = {
    "sensitive_feature": _sensitive_feature,
    "group_predictable": _group_predictable,
    "leaking_features": _leaking_features,
    "sensitive_homophily": _sensitive_homophily,
    "base_rates": _base_rates,
    "degrees": _degrees,
    "group_sizes": _group_sizes,
    "small_cells": _small_cells,
    "labelling": _labelling,
    "unknown_groups": _unknown_groups,
}
