"""What two methods do to each group, in sentences for readers who do not know the metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from fairpass.methods.runs import Run
from fairpass.metrics import Evaluation

Rate = Literal["selection_rate", "true_positive_rate"]

_METRIC = {"selection_rate": "DP", "true_positive_rate": "EO"}
# Smaller changes, in points, do not show in a number with one decimal.
_VISIBLE = 0.05


@dataclass(frozen=True)
class Wording:
    """How sentences name what is predicted, and of whom.

    Attributes:
        label: the positive label with its article, as in "an income over 50K".
        groups: plural nouns by the name of the group, in the order in which they are to appear; a group that is not
            here goes by its own name.
    """

    label: str
    groups: Mapping[str, str] = field(default_factory=dict)


def rates_in_words(plain: Sequence[Run], fair: Sequence[Run], wording: Wording, rate: Rate) -> str:
    """Return a sentence on how often each group gets the positive label, with one method and with another.

    All numbers are means over the runs without error. The sentence says so if the groups come no closer.

    Args:
        plain: the runs of one method, of two labels.
        fair: the runs of another.
        wording: names of the label and the groups.
        rate: `"selection_rate"`, among all people, or `"true_positive_rate"`, among those who have the label.
    """
    before, after = _evaluations(plain), _evaluations(fair)
    for runs, evaluations in ((plain, before), (fair, after)):
        if not evaluations:
            return f"There is no result of {runs[0].method if runs else 'one of the methods'} to compare."
    names = [name for name in wording.groups if name in _rates(before, rate)]
    names += [name for name in _rates(before, rate) if name not in names]
    people = [wording.groups.get(name, name) for name in names]
    old, new = ([found[name] for name in names] for found in (_rates(before, rate), _rates(after, rate)))
    first = _listed([f"{_percent(value)} of {who}" for value, who in zip(old, people, strict=True)])
    second = _listed([_percent(value) for value in new])
    key = _METRIC[rate]
    gaps = [fmean(found.percent()[key] for found in runs) for runs in (before, after)]
    if rate == "selection_rate":
        opening, verb = f"{plain[0].method} predicts {wording.label} for", "for"
    else:
        opening, verb = f"Of the people with {wording.label}, {plain[0].method} finds", "finds"
    return (
        f"{opening} {first} (Δ{key} {gaps[0]:.1f}); {fair[0].method} {verb} {second} (Δ{key} {gaps[1]:.1f}), "
        f"{_cost(before, after)}{_doubt(gaps)}."
    )


def _evaluations(runs: Sequence[Run]) -> list[Evaluation]:
    found = [run.evaluation for run in runs if run.evaluation is not None]
    for evaluation in found:
        if len(labels := {row.label for row in evaluation.groups}) > 1:
            raise ValueError(f"'runs' must be of two labels (got rates of {', '.join(sorted(labels))})")
    return found


def _rates(evaluations: Sequence[Evaluation], rate: Rate) -> dict[str, float]:
    """Return the mean rate of each group."""
    groups = [row.group for row in evaluations[0].groups]
    return {
        name: fmean(getattr(row, rate) for found in evaluations for row in found.groups if row.group == name)
        for name in groups
    }


def _cost(before: Sequence[Evaluation], after: Sequence[Evaluation]) -> str:
    loss = 100 * (fmean(found.acc for found in before) - fmean(found.acc for found in after))
    if loss >= _VISIBLE:
        return f"at a cost of {loss:.1f} points of accuracy"
    return "at no cost in accuracy" if loss > -_VISIBLE else f"and is {-loss:.1f} points more accurate"


def _doubt(gaps: Sequence[float]) -> str:
    """Say that nothing is gained where nothing is."""
    before, after = gaps
    if after > before - _VISIBLE:
        return ": the groups come no closer"
    return ""


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
