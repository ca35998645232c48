"""What the runs of several methods come to: means, deviations, ranks, and what to beware of."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from scipy.stats import rankdata

from fairpass.methods.runs import Run
from fairpass.metrics.catalog import SELECTION

METRICS = tuple(metric.label for metric in SELECTION)
_LOWER_IS_BETTER = tuple(metric.label for metric in SELECTION if not metric.higher_is_better)


@dataclass(frozen=True)
class Row:
    """What the runs of one method come to; AUC, F1, ACC, DP and EO in percent."""

    method: str
    seeds: tuple[int, ...]
    """Of the runs that were made, with or without success."""
    failed: int
    """How many of them ended with an error."""
    mean: Mapping[str, float]
    """Over the runs without error, by metric; empty if there is none."""
    std: Mapping[str, float]
    """Standard deviation (of a sample: n - 1) of the same; nan for a single run."""
    ranks: Mapping[str, float]
    """The place of each mean among the methods, 1 the best; equal ones share theirs. A reference has none:
    it is what to compare with, and takes no part."""
    seconds: float
    """Mean time of a run."""
    flags: tuple[str, ...]
    """What to know before trusting the numbers, in words."""

    @property
    def rank(self) -> float | None:
        """Return the average of the ranks; None if there are none."""
        return fmean(self.ranks.values()) if self.ranks else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold (nan becomes None)."""
        std = {metric: None if math.isnan(value) else value for metric, value in self.std.items()}
        return {**asdict(self), "std": std, "rank": self.rank}


def summarise(runs: Iterable[Run], references: Collection[str] = ()) -> tuple[Row, ...]:
    """Return one row for each method, in the order in which they first appear.

    Args:
        runs: of any methods and seeds.
        references: names of constant classifiers. They are not ranked, and what is not more accurate than
            they are is told so.
    """
    by_method: dict[str, list[Run]] = {}
    for run in runs:
        by_method.setdefault(run.method, []).append(run)
    means = {name: _means(made) for name, made in by_method.items()}
    ranks = _ranks({name: mean for name, mean in means.items() if mean and name not in references})
    floor = max((mean["ACC"] for name, mean in means.items() if mean and name in references), default=None)
    most = max(map(len, by_method.values()), default=0)
    rows = []
    for name, made in by_method.items():
        flags = [*_flags_of_runs(made, most)]
        if name in references:
            flags.append("predicts the same for every node: fair, but of no use")
        else:
            flags += _flags_of_use(made, means[name], floor)
        rows.append(_row(name, made, means[name], ranks.get(name, {}), flags))
    return tuple(rows)


def _row(name: str, runs: Sequence[Run], mean: dict[str, float], ranks: dict[str, float], flags: Sequence[str]) -> Row:
    done = sum(run.evaluation is not None for run in runs)
    return Row(
        method=name,
        seeds=tuple(sorted(run.seed for run in runs)),
        failed=len(runs) - done,
        mean=mean,
        std={metric: stdev(_values(runs, metric)) if done > 1 else math.nan for metric in mean},
        ranks=ranks,
        seconds=fmean(run.seconds for run in runs),
        flags=tuple(flags),
    )


def _values(runs: Iterable[Run], metric: str) -> list[float]:
    return [run.evaluation.percent()[metric] for run in runs if run.evaluation is not None]


def _means(runs: Sequence[Run]) -> dict[str, float]:
    if all(run.evaluation is None for run in runs):
        return {}
    return {metric: fmean(_values(runs, metric)) for metric in METRICS}


def _ranks(means: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    ranks: dict[str, dict[str, float]] = {name: {} for name in means}
    for metric in METRICS:
        # Rounded, so that the same numbers, added up in another order, are still a tie.
        values = [round(mean[metric], 9) for mean in means.values()]
        places = rankdata(values if metric in _LOWER_IS_BETTER else [-value for value in values])
        for name, place in zip(means, places, strict=True):
            ranks[name][metric] = float(place)
    return ranks


def _flags_of_runs(runs: Sequence[Run], most: int) -> Iterable[str]:
    failures = [run.error for run in runs if run.error is not None]
    if failures:
        yield f"failed in {len(failures)} of {len(runs)} runs: {'; '.join(dict.fromkeys(failures))}"
    if len(runs) < most:
        yield f"{len(runs)} of {most} seeds only"


def _flags_of_use(runs: Sequence[Run], mean: Mapping[str, float], floor: float | None) -> Iterable[str]:
    near_constant = sum(run.evaluation.near_constant for run in runs if run.evaluation is not None)
    if near_constant:
        yield f"near constant in {near_constant} of {len(runs)} runs"
    if mean and floor is not None and mean["ACC"] <= floor:
        yield f"not more accurate than the constant ({floor:.1f})"
