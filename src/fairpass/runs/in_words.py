"""What one method gains over another, and what that costs, in words."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

from fairpass.metrics.bootstrap import Interval
from fairpass.runs.store import RunRecord
from fairpass.runs.summary import Row, summarise

Rate = Literal["selection_rate", "true_positive_rate"]

# The metric that compares groups by each rate.
_COMPARED_BY = {"selection_rate": "DP", "true_positive_rate": "EO"}
# Smaller changes, in points, do not show in a number with one decimal.
_VISIBLE = 0.05
_Z = 1.96  # of a 95 % interval


def tradeoff(plain: Row, fair: Row, loss: Interval | None = None) -> str:
    """Return a sentence on how `fair` differs from `plain`, by their means over the runs.

    It says so if there is no gain, if a gain is smaller than the deviation between runs, so that other seeds could
    reverse it, or if it is smaller than the test nodes can show. `loss` is an interval of the loss of accuracy on the
    same nodes; without it, the one for two samples is taken, which is wider.
    """
    if not plain.mean:
        return f"There is no result of {plain.method} to compare with."
    if not fair.mean:
        return f"Against {plain.method}, {fair.method} has no result."
    verbs, moves = [], []
    for metric in _COMPARED_BY.values():
        before, after = plain.mean[metric], fair.mean[metric]
        stays = abs(after - before) < _VISIBLE
        verbs.append("leaves" if stays else "lowers" if after < before else "raises")
        moves.append(f"Δ{metric} at {after:.1f}" if stays else f"Δ{metric} from {before:.1f} to {after:.1f}")
    change = f"{verbs[0]} {moves[0]} " + (f"and {moves[1]}" if verbs[0] == verbs[1] else f"but {verbs[1]} {moves[1]}")
    gained = [metric for metric in _COMPARED_BY.values() if plain.mean[metric] - fair.mean[metric] >= _VISIBLE]
    subject = fair.method if gained else f"{fair.method} gains no fairness: it"
    doubts = [_doubt(plain, fair, metric) for metric in gained]
    doubt = f" ({doubts[0]})" if doubts and all(doubts) else ""
    levels = ", ".join(f"{name} {plain.mean[name]:.1f} to {fair.mean[name]:.1f}" for name in ("ACC", "AUC"))
    cost, interval = _cost(plain, fair, loss)
    return f"Against {plain.method}, {subject} {change}{doubt}, {cost} ({'; '.join(filter(None, [interval, levels]))})."


def rates_in_words(
    plain: Sequence[RunRecord], fair: Sequence[RunRecord], rate: Rate, *, label: str, names: Mapping[str, str]
) -> str:
    """Return a sentence on what a fair method changes for each group, and what that costs.

    All numbers are means over the runs without error. The sentence says so if the groups come no closer, or by less
    than the deviation between runs.

    Args:
        plain: runs of one method, on a graph with two labels.
        fair: runs of another on the same graph.
        rate: `"selection_rate"`, among all people, or `"true_positive_rate"`, among those who have the label.
        label: the positive label with its article, as in "an income over 50K".
        names: what to call methods and groups, the latter in the plural and in the order in which they appear.
    """
    rows = [*summarise(plain), *summarise(fair)]
    if len(rows) < 2 or not all(row.mean for row in rows):
        missing = [row.method for row in rows if not row.mean] or ["a method"]
        return f"There is no result of {missing[0]} to compare."
    old, new = rows
    rates, changed_rates = (_rates(runs, names, rate) for runs in (plain, fair))
    shares = _joined([f"{share:.0f} % of {names.get(group, group)}" for group, share in rates.items()])
    changed = _joined([f"{changed_rates[group]:.0f} %" for group in rates])
    if rate == "selection_rate":
        first, second = f"predicts {label} for {shares}", f"for {changed}"
    else:
        first, second = f"finds {shares} with {label}", changed
    metric, doubt = _COMPARED_BY[rate], ""
    if old.mean[metric] - new.mean[metric] < _VISIBLE:
        doubt = ". The groups come no closer"
    elif reason := _doubt(old, new, metric):
        doubt = f". The gain in fairness is {reason}"
    before = f"{names.get(old.method, old.method)} {first} (Δ{metric} {old.mean[metric]:.1f})"
    after = f"{names.get(new.method, new.method)} {second} (Δ{metric} {new.mean[metric]:.1f})"
    cost, interval = _cost(old, new, None)
    return f"{before}; {after}, {cost}{f' ({interval})' if interval else ''}{doubt}."


def _cost(plain: Row, fair: Row, loss: Interval | None) -> tuple[str, str]:
    """Return the cost in accuracy, called "no cost" only if the interval shows it; and the interval."""
    lost = plain.mean["ACC"] - fair.mean["ACC"]
    if loss is not None:
        low, high = 100 * loss.low, 100 * loss.high
    elif plain.detectable is None:  # the number of test nodes is unknown
        return f"with {_moved(lost)}", ""
    else:
        shares = [row.mean["ACC"] / 100 for row in (plain, fair)]
        margin = 100 * _Z * math.sqrt(sum(share * (1 - share) for share in shares) / plain.detectable.nodes)
        low, high = lost - margin, lost + margin
    interval = f"95 % interval of the loss {low:.1f} to {high:.1f}"
    if high < _VISIBLE:
        return "at no cost in accuracy", interval
    if low > 0:
        return f"at a cost of {lost:.1f} points of accuracy", interval
    unclear = "" if abs(lost) < _VISIBLE else ", which these test nodes cannot tell from none"
    return f"with {_moved(lost)}{unclear}", interval


def _moved(lost: float) -> str:
    if abs(lost) < _VISIBLE:
        return "the same accuracy"
    return f"{abs(lost):.1f} points {'less' if lost > 0 else 'more'} accuracy"


def _doubt(plain: Row, fair: Row, metric: str) -> str:
    """Return why a gain in fairness may be due to chance; empty if there is no such reason."""
    gain = plain.mean[metric] - fair.mean[metric]
    # No number compares as larger than nan, the deviation of a single run, so nan must not come first.
    if gain < max(0.0, plain.std[metric], fair.std[metric]):
        return "less than the deviation between runs"
    if plain.detectable is not None:
        least = plain.detectable.delta_dp if metric == "DP" else plain.detectable.delta_eo
        if not gain >= 100 * least:  # also if nothing can be shown
            return f"less than {plain.detectable.nodes:,} test nodes can show"
    return ""


def _rates(runs: Sequence[RunRecord], names: Mapping[str, str], rate: Rate) -> dict[str, float]:
    """Return the mean rate of each group over the runs, in percent, in the order of `names`."""
    rows = [row for run in runs if run.evaluation is not None for row in run.evaluation.groups]
    if len(labels := {row.label for row in rows}) > 1:
        raise ValueError(f"'runs' must be of a graph with two labels (got {len(labels)})")
    rates: dict[str, list[float]] = {name: [] for name in names}
    for row in rows:
        rates.setdefault(row.group, []).append(getattr(row, rate))
    return {group: 100 * fmean(each) for group, each in rates.items() if each}


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
