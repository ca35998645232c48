"""How often each group gets the positive label with two methods, in a sentence for readers new to the metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Literal

from fairpass.methods.runs import Run
from fairpass.metrics import Evaluation

Rate = Literal["selection_rate", "true_positive_rate"]

# What compares the groups by each rate.
_METRICS = {"selection_rate": "DP", "true_positive_rate": "EO"}
# Smaller changes, in points, do not show in a number with one decimal.
_VISIBLE = 0.05


@dataclass(frozen=True)
class Wording:
    """How sentences call things. A method or group that is not listed goes by its own name.

    Attributes:
        label: the positive label with its article, as in "an income over 50K".
        groups: plural nouns by the name of the group, in the order in which they appear.
        methods: names of methods, able to start a sentence.
    """

    label: str
    groups: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)


def rates_in_words(plain: Sequence[Run], fair: Sequence[Run], wording: Wording, rate: Rate) -> str:
    """Return a sentence on what a fair method changes for each group, and what that costs.

    All numbers are means over the runs without error. The sentence says so if the groups come no closer, or by less
    than the deviation between runs.

    Args:
        plain: runs of one method, on a graph with two labels.
        fair: runs of another on the same graph.
        wording: how to call the label, the groups and the methods.
        rate: `"selection_rate"`, among all people, or `"true_positive_rate"`, among those who have the label.
    """
    for runs in (plain, fair):
        if all(run.evaluation is None for run in runs):
            return f"There is no result of {runs[0].method if runs else 'a method'} to compare."
    before, after = _Rates.of(plain, wording, rate), _Rates.of(fair, wording, rate)
    people = [wording.groups.get(group, group) for group in before.percent]
    shares = [f"{share:.0f} % of {who}" for share, who in zip(before.percent.values(), people, strict=True)]
    changed = _joined([f"{after.percent[group]:.0f} %" for group in before.percent])
    if rate == "selection_rate":
        first, second = f"predicts {wording.label} for {_joined(shares)}", f"for {changed}"
    else:
        first, second = f"finds {_joined(shares)} with {wording.label}", changed
    metric = _METRICS[rate]
    return (
        f"{before.method} {first} (Δ{metric} {fmean(before.gaps):.1f}); {after.method} {second} "
        f"(Δ{metric} {fmean(after.gaps):.1f}), {_cost(before, after)}{_doubt(before, after)}."
    )


@dataclass(frozen=True)
class _Rates:
    """One method over its runs, in percent."""

    method: str
    percent: Mapping[str, float]
    """The mean rate of each group."""
    gaps: Sequence[float]
    """The widest difference between groups in each run."""
    accuracy: float

    @classmethod
    def of(cls, runs: Sequence[Run], wording: Wording, rate: Rate) -> "_Rates":
        found = [run.evaluation for run in runs if run.evaluation is not None]
        if len(labels := {row.label for row in found[0].groups}) > 1:
            raise ValueError(f"'runs' must be of a graph with two labels (got {len(labels)})")
        groups = [row.group for row in found[0].groups]
        ordered = [*(group for group in wording.groups if group in groups), *groups]
        return cls(
            method=wording.methods.get(runs[0].method, runs[0].method),
            percent={group: _mean_rate(found, group, rate) for group in dict.fromkeys(ordered)},
            gaps=[evaluation.percent()[_METRICS[rate]] for evaluation in found],
            accuracy=100 * fmean(evaluation.acc for evaluation in found),
        )

    @property
    def deviation(self) -> float:
        return stdev(self.gaps) if len(self.gaps) > 1 else 0.0


def _mean_rate(evaluations: Sequence[Evaluation], group: str, rate: Rate) -> float:
    return 100 * fmean(getattr(row, rate) for each in evaluations for row in each.groups if row.group == group)


def _cost(before: _Rates, after: _Rates) -> str:
    loss = before.accuracy - after.accuracy
    return f"at a cost of {loss:.1f} points of accuracy" if loss >= _VISIBLE else "at no cost in accuracy"


def _doubt(before: _Rates, after: _Rates) -> str:
    gain = fmean(before.gaps) - fmean(after.gaps)
    if gain < _VISIBLE:
        return ". The groups come no closer"
    if gain < max(before.deviation, after.deviation):
        return ". That is less than the deviation between runs"
    return ""


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
