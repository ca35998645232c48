"""The runs of several methods in a table (means, deviations, ranks, warnings), and what one gains over another."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any, Literal

import pandas as pd

from fairpass.metrics.catalog import BY_LABEL, SELECTION
from fairpass.runs.store import RunRecord

METRICS = tuple(metric.label for metric in SELECTION)
Rate = Literal["selection_rate", "true_positive_rate"]

# The metric that compares groups by each rate.
_COMPARED_BY = {"selection_rate": "DP", "true_positive_rate": "EO"}
# Smaller changes, in points, do not show in a number with one decimal.
_VISIBLE = 0.05


def ranks(means: pd.DataFrame, digits: int = 2) -> pd.DataFrame:
    """Return the rank of each row (a method) in each column (a metric's label), 1 the best; ties share theirs.

    Values that are equal after rounding to `digits` decimals are a tie; tables print two.
    """
    made = means.map(lambda value: round(float(value), digits))
    for label in made:
        made[label] = made[label].rank(ascending=not BY_LABEL[str(label)].higher_is_better)
    return made


@dataclass(frozen=True)
class Row:
    """The runs of one method; AUC, F1, ACC, DP and EO in percent."""

    method: str
    seeds: tuple[int, ...]  # of all runs, failed ones included
    failed: int
    mean: Mapping[str, float]  # over the runs without error, by metric; empty if there is none
    std: Mapping[str, float]  # sample standard deviation (n - 1); nan for a single run
    ranks: Mapping[str, float]  # of each mean among the methods, 1 the best; references are not ranked
    seconds: float  # mean training time
    flags: tuple[str, ...]  # warnings for readers of the numbers

    @property
    def rank(self) -> float | None:
        return fmean(self.ranks.values()) if self.ranks else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values (nan becomes None)."""
        std = {metric: None if math.isnan(value) else value for metric, value in self.std.items()}
        return {**asdict(self), "std": std, "rank": self.rank}


def summarise(runs: Iterable[RunRecord], references: Collection[str] = ()) -> tuple[Row, ...]:
    """Return one row for each method, in the order in which they first appear.

    `references` are names of constant classifiers. They are not ranked, and methods that are not more accurate than
    them are flagged.
    """
    by_method: dict[str, list[RunRecord]] = {}
    for run in runs:
        by_method.setdefault(run.method, []).append(run)
    values = {name: [run.evaluation.percent() for run in made if run.evaluation] for name, made in by_method.items()}
    columns = {name: {m: [each[m] for each in found] for m in METRICS if found} for name, found in values.items()}
    means = {name: {metric: fmean(column) for metric, column in own.items()} for name, own in columns.items()}
    ranked = {name: mean for name, mean in means.items() if mean and name not in references}
    # Nine digits, so that the same numbers, added up in another order, are still a tie.
    places: Mapping[Any, Any] = ranks(pd.DataFrame.from_dict(ranked, orient="index"), digits=9).to_dict("index")
    floor = max((mean["ACC"] for name, mean in means.items() if mean and name in references), default=math.nan)
    most = max(map(len, by_method.values()), default=0)
    return tuple(
        Row(
            method=name,
            seeds=tuple(sorted(run.seed for run in made)),
            failed=len(made) - len(values[name]),
            mean=means[name],
            std={metric: stdev(each) if len(each) > 1 else math.nan for metric, each in columns[name].items()},
            ranks=places.get(name, {}),
            seconds=fmean(run.seconds for run in made),
            flags=tuple(_flags(made, most, means[name], math.inf if name in references else floor)),
        )
        for name, made in by_method.items()
    )


def _flags(runs: Sequence[RunRecord], most: int, mean: Mapping[str, float], floor: float) -> Iterator[str]:
    """Yield warnings; `floor` is the accuracy of the best constant, nan without one, infinite for a constant itself."""
    failures = [run.error for run in runs if run.error is not None]
    if failures:
        yield f"failed in {len(failures)} of {len(runs)} runs: {'; '.join(dict.fromkeys(failures))}"
    if len(runs) < most:
        yield f"{len(runs)} of {most} seeds only"
    if floor == math.inf:
        yield "predicts the same for every node: fair, but of no use"
        return
    near_constant = sum(run.evaluation.near_constant for run in runs if run.evaluation is not None)
    if near_constant:
        yield f"near constant in {near_constant} of {len(runs)} runs"
    if mean and mean["ACC"] <= floor:
        yield f"not more accurate than the constant ({floor:.1f})"


def tradeoff(plain: Row, fair: Row) -> str:
    """Return a sentence on how `fair` differs from `plain`, by their means over the runs.

    It says so if there is no gain, or if a gain is smaller than the deviation between runs, so that other seeds could
    reverse it.
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
    in_doubt = gained and all(_is_in_doubt(plain, fair, metric) for metric in gained)
    doubt = " (less than the deviation between runs)" if in_doubt else ""
    levels = ", ".join(f"{name} {plain.mean[name]:.1f} to {fair.mean[name]:.1f}" for name in ("ACC", "AUC"))
    return f"Against {plain.method}, {subject} {change}{doubt}, {_cost(plain, fair)} ({levels})."


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
    elif _is_in_doubt(old, new, metric):
        doubt = ". That is less than the deviation between runs"
    return (
        f"{names.get(old.method, old.method)} {first} (Δ{metric} {old.mean[metric]:.1f}); "
        f"{names.get(new.method, new.method)} {second} (Δ{metric} {new.mean[metric]:.1f}), {_cost(old, new)}{doubt}."
    )


def _cost(plain: Row, fair: Row) -> str:
    loss = plain.mean["ACC"] - fair.mean["ACC"]
    return f"at a cost of {loss:.1f} points of accuracy" if loss >= _VISIBLE else "at no cost in accuracy"


def _is_in_doubt(plain: Row, fair: Row, metric: str) -> bool:
    # Nothing is larger than nan, the deviation of a single run, so it must not come first.
    return plain.mean[metric] - fair.mean[metric] < max(0.0, plain.std[metric], fair.std[metric])


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
