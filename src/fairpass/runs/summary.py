"""The runs of several methods in a table: means, deviations, ranks, and warnings."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from fairpass.metrics.catalog import BY_LABEL, SELECTION
from fairpass.runs.store import RunRecord

METRICS = tuple(metric.label for metric in SELECTION)


def ranks(means: pd.DataFrame, digits: int = 2) -> pd.DataFrame:
    """Return the rank of each row (a method) in each column (a metric's label), 1 the best; ties share theirs.

    Args:
        means: numbers to compare.
        digits: values that are equal after rounding to this many decimals are a tie; tables print two.
    """
    made = means.map(lambda value: round(float(value), digits))
    for label in made:
        made[label] = made[label].rank(ascending=not BY_LABEL[str(label)].higher_is_better)
    return made


@dataclass(frozen=True)
class Row:
    """The runs of one method; AUC, F1, ACC, DP and EO in percent."""

    method: str
    seeds: tuple[int, ...]
    """Of all runs, failed ones included."""
    failed: int
    """How many runs ended with an error."""
    mean: Mapping[str, float]
    """Over the runs without error, by metric; empty if there is none."""
    std: Mapping[str, float]
    """Sample standard deviation (n - 1); nan for a single run."""
    ranks: Mapping[str, float]
    """Rank of each mean among the methods, 1 the best; ties share theirs. References are not ranked."""
    seconds: float
    """Mean training time."""
    flags: tuple[str, ...]
    """Warnings for readers of the numbers."""

    @property
    def rank(self) -> float | None:
        """Mean of the ranks; None if there are none."""
        return fmean(self.ranks.values()) if self.ranks else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values (nan becomes None)."""
        std = {metric: None if math.isnan(value) else value for metric, value in self.std.items()}
        return {**asdict(self), "std": std, "rank": self.rank}


def summarise(runs: Iterable[RunRecord], references: Collection[str] = ()) -> tuple[Row, ...]:
    """Return one row for each method, in the order in which they first appear.

    Args:
        runs: of any methods and seeds.
        references: names of constant classifiers. They are not ranked, and methods that are not more accurate than
            them are flagged.
    """
    by_method: dict[str, list[RunRecord]] = {}
    for run in runs:
        by_method.setdefault(run.method, []).append(run)
    values = {name: [run.evaluation.percent() for run in made if run.evaluation] for name, made in by_method.items()}
    means = {
        name: {metric: fmean(each[metric] for each in found) for metric in METRICS if found}
        for name, found in values.items()
    }
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
            std={metric: _deviation([each[metric] for each in values[name]]) for metric in means[name]},
            ranks=places.get(name, {}),
            seconds=fmean(run.seconds for run in made),
            flags=tuple(_flags(made, most, means[name], math.inf if name in references else floor)),
        )
        for name, made in by_method.items()
    )


def _deviation(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else math.nan


def _flags(runs: Sequence[RunRecord], most: int, mean: Mapping[str, float], floor: float) -> Iterable[str]:
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
