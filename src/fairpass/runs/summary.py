"""The runs of several methods in a table: means, deviations, ranks, warnings."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from fairpass.metrics.catalog import BY_LABEL, SELECTION
from fairpass.metrics.detectable import Detectable, detectable_by
from fairpass.runs.store import RunRecord

METRICS = tuple(metric.label for metric in SELECTION)


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
    detectable: Detectable | None = None  # the smallest differences that the test nodes of a run can show

    @property
    def rank(self) -> float | None:
        return fmean(self.ranks.values()) if self.ranks else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values (nan becomes None)."""
        std = {metric: None if math.isnan(value) else value for metric, value in self.std.items()}
        made = {**asdict(self), "std": std, "rank": self.rank}
        del made["detectable"]  # it is about the nodes and not about the method
        return made


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
            detectable=next((detectable_by(run.evaluation) for run in made if run.evaluation is not None), None),
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
