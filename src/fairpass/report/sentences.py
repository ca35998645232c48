"""Numbers and warnings as text."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from fairpass.methods import Constant
from fairpass.metrics.catalog import UNFAIRNESS

ABSENT = "–"
"""Shown for a number that is undefined."""

# An AUC below this is hardly better than the 0.5 of random scores.
_WEAK_AUC = 0.55
# An interval this wide cannot tell a fair model from an unfair one.
_WIDE = 0.1


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction in percent, without the sign."""
    return ABSENT if value is None or math.isnan(value) else f"{100 * value:.{digits}f}"


def number(value: float | None) -> str:
    """Return a number with three significant digits, and a separator for thousands."""
    if value is None or math.isnan(value):
        return ABSENT
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:.3g}"


def listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def plural(count: int, thing: str) -> str:
    """Return "1 node" or "1,000 nodes"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def mean_interval(runs: Sequence[dict[str, Any]], key: str) -> tuple[float | None, float | None]:
    """Return the ends of a metric's confidence interval, each the mean of the runs' ends."""
    found = [run["evaluation"]["intervals"].get(key) for run in runs]
    known = [ends for ends in found if ends and ends["low"] is not None and ends["high"] is not None]
    if not known:
        return None, None
    return fmean(ends["low"] for ends in known), fmean(ends["high"] for ends in known)


def flags(
    method: str, runs: Sequence[dict[str, Any]], labels: Sequence[str], majority: tuple[str, float]
) -> Iterator[str]:
    """Yield warnings about the runs of a method, the most serious first.

    Args:
        method: Its registered name.
        runs: Records of `measure`.
        labels: Their names.
        majority: The most frequent label of the test nodes, and its share.
    """
    if method == Constant.name:
        yield "predicts the same for every node: it is fair, but of no use, and here for comparison"
        return
    constant = [run for run in runs if run["evaluation"]["near_constant"]]
    if constant:
        predicted = constant[0]["predicted"]
        most = max(range(len(labels)), key=predicted.__getitem__)
        where = "" if len(runs) == 1 else f" in {len(constant)} of {len(runs)} runs"
        everybody = percent(predicted[most] / sum(predicted), 0)
        yield f"predicts {labels[most]!r} for {everybody} % of the nodes{where}: its fairness is not informative"
    label, share = majority
    if _mean(runs, "acc") <= share:
        yield f"is not more accurate than giving {label!r} to every node, which is right for {percent(share)} %"
    auc = _mean(runs, "auc")
    if auc < _WEAK_AUC:
        yield f"ranks the nodes hardly better than chance (AUC {percent(auc)})"
    undefined = [m.symbol for m in UNFAIRNESS if any(run["evaluation"][m.key] is None for run in runs)]
    if undefined:
        reason = "a group, or a label within a group, is missing from the test nodes"
        yield f"has no {listed(undefined)} here: {reason}"
    wide = []
    for metric in UNFAIRNESS:
        low, high = mean_interval(runs, metric.key)
        if low is not None and high is not None and high - low >= _WIDE:
            wide.append(f"{metric.symbol} from {percent(low)} to {percent(high)}")
    if wide:
        yield f"is measured on few nodes: the 95 % intervals are wide, {listed(wide)}"


def _mean(runs: Sequence[dict[str, Any]], key: str) -> float:
    values = [run["evaluation"][key] for run in runs]
    return math.nan if None in values else fmean(values)
