"""Where bias can come from: sentences made from a graph's statistics (the texts and limits are in audit_texts.toml)."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fairpass.datasets.statistics import GraphStatistics, audit_texts
from fairpass.documents import STRICT

Severity = Literal["high", "medium", "low"]

_WORST_FIRST: tuple[Severity, ...] = ("high", "medium", "low")
_NAMED = 3  # leaking features in a sentence

# The kind of a check, its value, and the fields of its sentence.
_Checked = tuple[str, float, dict[str, Any]]


@dataclass(frozen=True)
class BiasCheck:
    """One possible source of bias: its kind, the measured value, and a sentence about it.

    `severity` is "low" if there is little to worry about; it follows rules of thumb, not a standard.
    """

    __pydantic_config__ = STRICT

    kind: str
    severity: Severity
    value: float
    sentence: str

    def to_dict(self) -> dict[str, Any]:
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
    found = [_explained(*each) for check in (_features, _edges, _labels, _groups) for each in check(statistics)]
    kinds = list(audit_texts())
    return tuple(sorted(found, key=lambda each: (_WORST_FIRST.index(each.severity), kinds.index(each.kind))))


def _explained(kind: str, value: float, fields: dict[str, Any]) -> BiasCheck:
    text = audit_texts()[kind]
    limits = text["high"], text["medium"]
    reached = [value < limit if limits[1] > limits[0] else value >= limit for limit in limits]
    severity = _WORST_FIRST[[*reached, True].index(True)]
    outcome = text.get("low" if severity == "low" else "otherwise", "").format(**fields)
    return BiasCheck(kind, severity, float(value), text["sentence"].format(**fields, outcome=outcome))


def _features(statistics: GraphStatistics) -> Iterator[_Checked]:
    leakage = statistics.leakage
    name, correlations, auc = leakage.sensitive_feature, leakage.correlations, leakage.auc
    yield "sensitive_feature", int(name is not None), {"name": name}
    if auc is not None and not math.isnan(auc):
        yield "group_predictable", auc, {"auc": auc, "other": "" if name is None else "other "}
    if correlations:
        closest, strongest = next(iter(correlations.items()))
        limit = audit_texts()["leaking_features"]["medium"]
        proxies = [f"{name!r} ({value:.2f})" for name, value in correlations.items() if value >= limit]
        shown = ", ".join(proxies[:_NAMED]) + (f" and {len(proxies) - _NAMED} more" if len(proxies) > _NAMED else "")
        yield "leaking_features", strongest, {"closest": closest, "strongest": strongest, "proxies": shown}


def _edges(statistics: GraphStatistics) -> Iterator[_Checked]:
    mixing = statistics.sensitive_mixing
    if not math.isnan(mixing.assortativity):
        hardly = "hardly separates the groups" if mixing.assortativity >= 0 else "mixes the groups"
        yield "sensitive_homophily", mixing.assortativity, asdict(mixing) | {"hardly": hardly}
    degrees = _extremes({group.name: group.degree_mean for group in statistics.groups if group.size})
    if degrees and degrees["highest"] > 0:
        fewer = 1 - degrees["lowest"] / degrees["highest"]
        yield "degrees", fewer, degrees | {"fewer": fewer}


def _labels(statistics: GraphStatistics) -> Iterator[_Checked]:
    groups = [group for group in statistics.groups if group.labelled]
    if len(groups) > 1:
        rates = {label: [group.label_rates[label] for group in groups] for label in reversed(statistics.label_counts)}
        gaps = {label: max(each) - min(each) for label, each in rates.items()}
        # Two labels have the same gap, up to rounding: the last, the positive one, is named.
        label = max(gaps, key=lambda label: round(gaps[label], 9))
        extremes = _extremes({group.name: group.label_rates[label] for group in groups})
        yield "base_rates", gaps[label], extremes | {"label": label, "points": 100 * gaps[label]}
    if groups:
        count, group, label = min(
            (round(rate * group.labelled), group.name, label)
            for group in groups
            for label, rate in group.label_rates.items()
        )
        error = min(0.98 / math.sqrt(count), 1) if count else 1  # 1.96 standard errors of a rate of one half
        yield "small_cells", count, {"group": group, "label": label, "count": count, "points": 100 * error}
    shares = _extremes({group.name: group.labelled / group.size for group in statistics.groups if group.size})
    if shares and statistics.unlabelled:
        yield "labelling", shares["highest"] - shares["lowest"], shares


def _groups(statistics: GraphStatistics) -> Iterator[_Checked]:
    if known := sum(group.size for group in statistics.groups):
        groups, smallest = len(statistics.groups), min(statistics.groups, key=lambda group: group.size)
        share = smallest.size / known
        fields = {"groups": groups, "smallest": smallest.name, "share": share, "size": smallest.size}
        yield "group_sizes", share * groups, fields
    if unknown := statistics.unknown_group:
        share = unknown / statistics.nodes
        yield "unknown_groups", share, {"count": unknown, "share": share}


def _extremes(values: dict[str, float]) -> dict[str, Any]:
    """Return the groups with the smallest and the largest value; nothing if there are fewer than two groups."""
    if len(values) < 2:
        return {}
    (least, lowest), *_, (most, highest) = sorted(values.items(), key=lambda pair: pair[1])
    return {"least": least, "lowest": lowest, "most": most, "highest": highest}
