"""Cells: the entries of tables and the points of figures, and what the records of their runs say."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import Any, Self

import pandas as pd

from fairpass.metrics.catalog import BY_LABEL, SELECTION, UNFAIRNESS, UTILITY
from fairpass.runs import Configuration, RunSpec, RunStore, StoredRecord, ranks

METRICS = tuple(metric.label for metric in SELECTION)
Means = Mapping[str, float]  # by metric, over the seeds, in percent

QUICK_EPOCHS = 20
# What some methods do before their first epoch.
_QUICK: dict[str, dict[str, Any]] = {"fairgnn": {"estimator_epochs": 40}, "edits": {"debias_epochs": 10}}


@dataclass(frozen=True)
class Cell:
    """One entry of a table or one point of a figure: the best of some candidate configurations."""

    dataset: str
    label: str  # what readers see, e.g. "FairGNN"
    candidates: tuple[Configuration, ...]  # validation chooses among them, by the mean over the seeds
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    at: Mapping[str, Any] = field(default_factory=dict)  # position in a figure, e.g. {"K": 3}
    measures: tuple[str, ...] = ()  # in addition to the evaluation
    resplit: bool = False  # whether each seed has its own split instead of the published one

    def runs(self, candidate: Configuration) -> list[RunSpec]:
        splits = {seed: seed if self.resplit else None for seed in self.seeds}
        return [RunSpec(self.dataset, candidate, seed, self.measures, split) for seed, split in splits.items()]

    def specs(self) -> list[RunSpec]:
        return [run for candidate in self.candidates for run in self.runs(candidate)]


@dataclass(frozen=True)
class CellResult:
    """The runs of the configuration that validation chose for a cell, one for each seed."""

    cell: Cell
    configuration: Configuration
    records: tuple[StoredRecord, ...]

    @classmethod
    def of(cls, cell: Cell, store: RunStore) -> Self | None:
        """Choose among the candidates whose runs were all made without error; None if there are none."""
        found = []
        for candidate in cell.candidates:
            records = map(store.get, cell.runs(candidate))
            made = tuple(record for record in records if record is not None and record["error"] is None)
            if len(made) == len(cell.seeds):
                found.append(cls(cell, candidate, made))
        return max(found, key=lambda result: result.selection, default=None)

    @property
    def selection(self) -> float:
        """Mean of `AUC + F1 + ACC - DP - EO` on validation."""
        return fmean(record["validation"]["selection"] for record in self.records)

    def values(self, metric: str) -> list[float]:
        """Return a test metric of every run, in percent; none if it is undefined for any of them."""
        values = [record["test"][metric] for record in self.records]
        return [] if None in values else values

    def mean(self, metric: str) -> float:
        return fmean(self.values(metric) or [math.nan])

    def std(self, metric: str) -> float:
        """Return the sample standard deviation (n - 1); nan for a single run."""
        values = self.values(metric)
        return stdev(values) if len(values) > 1 else math.nan

    @cached_property
    def means(self) -> Means:
        """Mean of each of the five metrics, and of utility (AUC, F1, ACC) and bias (ΔDP, ΔEO)."""
        means = {metric: self.mean(metric) for metric in METRICS}
        utility, bias = (fmean(means[metric.label] for metric in metrics) for metrics in (UTILITY, UNFAIRNESS))
        return {**means, "utility": utility, "bias": bias}

    @property
    def is_defined(self) -> bool:
        return not any(map(math.isnan, self.means.values()))

    @property
    def measured(self) -> Mapping[str, Any]:
        """The additional measures of the first seed."""
        return dict(self.records[0]["measured"])

    @property
    def is_near_constant(self) -> bool:
        """Whether most runs predict nearly the same for all nodes."""
        return 2 * sum(bool(record["test"]["near_constant"]) for record in self.records) > len(self.records)


def average_ranks(tables: Iterable[Mapping[Any, Means]]) -> dict[Any, float]:
    """Return each method's rank (1 is the best), averaged over all metrics of all tables that it is in."""
    frames = [ranks(pd.DataFrame(dict(table)).T[list(METRICS)]) for table in tables if table]
    return pd.concat(frames).stack().groupby(level=0, sort=False).mean().to_dict() if frames else {}


def is_better(value: float, other: float, metric: str) -> bool:
    """Return whether a value is strictly better, as printed."""
    value, other = round(value, 2), round(other, 2)
    return value > other if BY_LABEL[metric].higher_is_better else value < other


def better_of(values: Iterable[float], metric: str) -> float:
    return max(values) if BY_LABEL[metric].higher_is_better else min(values)


def quick_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Return a short variant: two seeds, few epochs, the first candidate, at most three points along an axis."""
    kept = {}
    for axis in {axis for cell in cells for axis in cell.at}:
        values = list(dict.fromkeys(cell.at[axis] for cell in cells if axis in cell.at))
        is_number = not isinstance(values[0], str)
        kept[axis] = [values[0], values[round((len(values) - 1) / 2)], values[-1]] if is_number else values
    cells = [cell for cell in cells if all(value in kept[axis] for axis, value in cell.at.items())]
    return [replace(cell, candidates=(_shortened(cell.candidates[0]),), seeds=cell.seeds[:2]) for cell in cells]


def _shortened(configuration: Configuration) -> Configuration:
    if configuration.method == "constant":
        return configuration
    epochs = min(configuration.classifier(0).training.epochs, QUICK_EPOCHS)
    return configuration.but(training={"epochs": epochs}, **_QUICK.get(configuration.method, {}))
