"""The places of methods among each other."""

from collections.abc import Iterable, Mapping
from statistics import fmean

from scipy.stats import rankdata

from fairpass.experiments.records import METRICS

LOWER_IS_BETTER = ("DP", "EO")
UTILITY = tuple(metric for metric in METRICS if metric not in LOWER_IS_BETTER)

Means = Mapping[str, Mapping[str, float]]
"""By method and metric."""

__all__ = ["LOWER_IS_BETTER", "METRICS", "UTILITY", "Means", "average_ranks", "is_better", "places"]


def places(values: Mapping[str, float], metric: str) -> dict[str, float]:
    """Return each method's place, 1 the best; those that print the same share theirs."""
    sign = 1 if metric in LOWER_IS_BETTER else -1
    found = rankdata([sign * round(value, 2) for value in values.values()])
    return {name: float(place) for name, place in zip(values, found, strict=True)}


def average_ranks(tables: Iterable[Means]) -> dict[str, float]:
    """Return each method's place averaged over all metrics of all tables that it is in."""
    found: dict[str, list[float]] = {}
    for table in tables:
        for metric in METRICS:
            for name, place in places({name: row[metric] for name, row in table.items()}, metric).items():
                found.setdefault(name, []).append(place)
    return {name: fmean(each) for name, each in found.items()}


def is_better(value: float, other: float, metric: str) -> bool:
    """Return whether a value is strictly better, as printed."""
    value, other = round(value, 2), round(other, 2)
    return value < other if metric in LOWER_IS_BETTER else value > other
