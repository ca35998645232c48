"""Comparisons of two methods in a sentence: what fairness is gained, for whom, and at what cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Literal

from fairpass.runs.store import RunRecord
from fairpass.runs.summary import Row

Rate = Literal["selection_rate", "true_positive_rate"]

# The metric that compares groups by each rate.
_METRICS = {"selection_rate": "DP", "true_positive_rate": "EO"}
# Smaller changes, in points, do not show in a number with one decimal.
_VISIBLE = 0.05


def tradeoff(plain: Row, *fair: Row) -> str:
    """Return a sentence on how each of `fair` differs from `plain`, by their means over the runs.

    It says so if there is no gain, or if a gain is smaller than the deviation between runs, so that other seeds could
    reverse it.
    """
    if not plain.mean:
        return f"There is no result of {plain.method} to compare with."
    return f"Against {plain.method}, {'; '.join(_clause(plain, row) for row in fair)}."


def _clause(plain: Row, fair: Row) -> str:
    if not fair.mean:
        return f"{fair.method} has no result"
    visible = {}
    verbs, moves = [], []
    for metric in _METRICS.values():
        before, after = plain.mean[metric], fair.mean[metric]
        stays = abs(after - before) < _VISIBLE
        verbs.append("leaves" if stays else "lowers" if after < before else "raises")
        moves.append(f"Δ{metric} at {after:.1f}" if stays else f"Δ{metric} from {before:.1f} to {after:.1f}")
        if before - after >= _VISIBLE:
            visible[metric] = before - after
    change = f"{verbs[0]} {moves[0]} " + (f"and {moves[1]}" if verbs[0] == verbs[1] else f"but {verbs[1]} {moves[1]}")
    subject = fair.method if visible else f"{fair.method} gains no fairness: it"
    in_doubt = visible and all(gain < max(fair.std[name], plain.std[name]) for name, gain in visible.items())
    doubt = " (less than the deviation between runs)" if in_doubt else ""
    levels = ", ".join(f"{name} {plain.mean[name]:.1f} to {fair.mean[name]:.1f}" for name in ("ACC", "AUC"))
    return f"{subject} {change}{doubt}, {_cost(plain.mean['ACC'] - fair.mean['ACC'])} ({levels})"


def _cost(loss: float) -> str:
    return f"at a cost of {loss:.1f} points of accuracy" if loss >= _VISIBLE else "at no cost in accuracy"


@dataclass(frozen=True)
class Wording:
    """Names to use in a sentence. A method or group that is not listed goes by its own name.

    Attributes:
        label: the positive label with its article, as in "an income over 50K".
        groups: plural nouns by the name of the group, in the order in which they appear.
        methods: names of methods, able to start a sentence.
    """

    label: str
    groups: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)


def rates_in_words(plain: Sequence[RunRecord], fair: Sequence[RunRecord], wording: Wording, rate: Rate) -> str:
    """Return a sentence on what a fair method changes for each group, and what that costs.

    All numbers are means over the runs without error. The sentence says so if the groups come no closer, or by less
    than the deviation between runs.

    Args:
        plain: runs of one method, on a graph with two labels.
        fair: runs of another on the same graph.
        wording: names of the label, the groups and the methods.
        rate: `"selection_rate"`, among all people, or `"true_positive_rate"`, among those who have the label.
    """
    for runs in (plain, fair):
        if all(run.evaluation is None for run in runs):
            return f"There is no result of {runs[0].method if runs else 'a method'} to compare."
    before, after = _Rates.of(plain, wording, rate), _Rates.of(fair, wording, rate)
    shares = [f"{share:.0f} % of {wording.groups.get(group, group)}" for group, share in before.percent.items()]
    changed = _joined([f"{after.percent[group]:.0f} %" for group in before.percent])
    if rate == "selection_rate":
        first, second = f"predicts {wording.label} for {_joined(shares)}", f"for {changed}"
    else:
        first, second = f"finds {_joined(shares)} with {wording.label}", changed
    gain, doubt = before.gap - after.gap, ""
    if gain < _VISIBLE:
        doubt = ". The groups come no closer"
    elif gain < max(before.deviation, after.deviation):
        doubt = ". That is less than the deviation between runs"
    metric = _METRICS[rate]
    return (
        f"{before.method} {first} (Δ{metric} {before.gap:.1f}); {after.method} {second} "
        f"(Δ{metric} {after.gap:.1f}), {_cost(before.accuracy - after.accuracy)}{doubt}."
    )


@dataclass(frozen=True)
class _Rates:
    """One method over its runs, in percent."""

    method: str
    percent: Mapping[str, float]
    """The mean rate of each group."""
    gap: float
    """Mean over the runs of the widest difference between groups."""
    deviation: float
    accuracy: float

    @classmethod
    def of(cls, runs: Sequence[RunRecord], wording: Wording, rate: Rate) -> "_Rates":
        found = [run.evaluation for run in runs if run.evaluation is not None]
        if len(labels := {row.label for row in found[0].groups}) > 1:
            raise ValueError(f"'runs' must be of a graph with two labels (got {len(labels)})")
        rates: dict[str, list[float]] = {group: [] for group in wording.groups}
        for row in (row for evaluation in found for row in evaluation.groups):
            rates.setdefault(row.group, []).append(100 * getattr(row, rate))
        gaps = [evaluation.percent()[_METRICS[rate]] for evaluation in found]
        return cls(
            method=wording.methods.get(runs[0].method, runs[0].method),
            percent={group: fmean(each) for group, each in rates.items() if each},
            gap=fmean(gaps),
            deviation=stdev(gaps) if len(gaps) > 1 else 0.0,
            accuracy=100 * fmean(evaluation.acc for evaluation in found),
        )


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
