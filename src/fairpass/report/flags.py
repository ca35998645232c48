"""What to know of a method before its numbers are believed, in plain words."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from fairpass.methods import Constant
from fairpass.report.words import listed, percent

# An AUC below this is hardly better than the 0.5 of scores drawn at random.
_LITTLE_ORDER = 0.55
# From here on, an interval is too wide to tell a fair model from an unfair one.
_WIDE = 0.1

_GAPS = {"delta_dp": "ΔDP", "delta_eo": "ΔEO"}


def flags(method: str, runs: Sequence[dict[str, Any]], labels: Sequence[str], majority: tuple[str, float]) -> list[str]:
    """Return sentences about the runs of a method, the gravest first.

    Args:
        method: its registered name.
        runs: as `measure` returns them.
        labels: their names.
        majority: the most frequent label of the test nodes, and its share.
    """
    if method == Constant.name:
        return ["predicts the same for every node: it is fair, but of no use, and here as a yardstick"]
    return [*_constant(runs, labels), *_weak(runs, *majority), *_undefined(runs), *_uncertain(runs)]


def _constant(runs: Sequence[dict[str, Any]], labels: Sequence[str]) -> Iterable[str]:
    found = [run for run in runs if run["evaluation"]["near_constant"]]
    if found:
        predicted = found[0]["predicted"]
        most = max(range(len(labels)), key=predicted.__getitem__)
        share = percent(predicted[most] / sum(predicted), 0)
        yield (
            f"predicts {labels[most]!r} for {share} % of the nodes{_where(found, runs)}: "
            "its fairness is not informative"
        )


def _weak(runs: Sequence[dict[str, Any]], label: str, share: float) -> Iterable[str]:
    if _mean(runs, "acc") <= share:
        yield f"is not more accurate than giving {label!r} to every node, which is right for {percent(share)} %"
    auc = _mean(runs, "auc")
    if auc < _LITTLE_ORDER:
        yield f"puts the nodes hardly in a better order than chance (AUC {percent(auc)})"


def _undefined(runs: Sequence[dict[str, Any]]) -> Iterable[str]:
    lacking = [name for key, name in _GAPS.items() if any(run["evaluation"][key] is None for run in runs)]
    if lacking:
        reason = "a group, or a label within a group, is missing from the test nodes"
        yield f"has no {listed(lacking)} here: {reason}"


def _uncertain(runs: Sequence[dict[str, Any]]) -> Iterable[str]:
    wide = []
    for key, name in _GAPS.items():
        low, high = mean_interval(runs, key)
        if low is not None and high is not None and high - low >= _WIDE:
            wide.append(f"{name} from {percent(low)} to {percent(high)}")
    if wide:
        yield f"is measured on few nodes: the 95 % intervals are wide, {listed(wide)}"


def mean_interval(runs: Sequence[dict[str, Any]], metric: str) -> tuple[float | None, float | None]:
    """Return the ends of a metric's confidence interval, each the mean of the runs' ends."""
    found = [run["evaluation"]["intervals"].get(metric) for run in runs]
    known = [ends for ends in found if ends and ends["low"] is not None and ends["high"] is not None]
    if not known:
        return None, None
    return fmean(ends["low"] for ends in known), fmean(ends["high"] for ends in known)


def _mean(runs: Sequence[dict[str, Any]], metric: str) -> float:
    values = [run["evaluation"][metric] for run in runs]
    return float("nan") if None in values else sum(values) / len(values)


def _where(some: Sequence[dict[str, Any]], runs: Sequence[dict[str, Any]]) -> str:
    return "" if len(runs) == 1 else f" in {len(some)} of {len(runs)} runs"
