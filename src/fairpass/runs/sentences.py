"""Comparisons of two methods in a sentence: what fairness is gained, for whom, and at what cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from fairpass.runs.store import RunRecord
from fairpass.runs.summary import Row, summarise

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
    before, after = summarise(plain), summarise(fair)
    for rows in (before, after):
        if not rows or not rows[0].mean:
            return f"There is no result of {rows[0].method if rows else 'a method'} to compare."
    (old,), (new,) = before, after
    rates, changed_rates = _rates(plain, wording, rate), _rates(fair, wording, rate)
    shares = [f"{share:.0f} % of {wording.groups.get(group, group)}" for group, share in rates.items()]
    changed = _joined([f"{changed_rates[group]:.0f} %" for group in rates])
    if rate == "selection_rate":
        first, second = f"predicts {wording.label} for {_joined(shares)}", f"for {changed}"
    else:
        first, second = f"finds {_joined(shares)} with {wording.label}", changed
    metric = _METRICS[rate]
    gain, doubt = old.mean[metric] - new.mean[metric], ""
    if gain < _VISIBLE:
        doubt = ". The groups come no closer"
    elif gain < max(0.0, old.std[metric], new.std[metric]):
        doubt = ". That is less than the deviation between runs"
    names = [wording.methods.get(row.method, row.method) for row in (old, new)]
    return (
        f"{names[0]} {first} (Δ{metric} {old.mean[metric]:.1f}); {names[1]} {second} "
        f"(Δ{metric} {new.mean[metric]:.1f}), {_cost(old.mean['ACC'] - new.mean['ACC'])}{doubt}."
    )


def _rates(runs: Sequence[RunRecord], wording: Wording, rate: Rate) -> dict[str, float]:
    """Return the mean rate of each group over the runs, in percent, in the order of the wording."""
    rows = [row for run in runs if run.evaluation is not None for row in run.evaluation.groups]
    if len(labels := {row.label for row in rows}) > 1:
        raise ValueError(f"'runs' must be of a graph with two labels (got {len(labels)})")
    rates: dict[str, list[float]] = {group: [] for group in wording.groups}
    for row in rows:
        rates.setdefault(row.group, []).append(getattr(row, rate))
    return {group: 100 * fmean(each) for group, each in rates.items() if each}


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
