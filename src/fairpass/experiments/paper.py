"""Every number that the paper prints, to be put beside ours."""

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from fairpass.experiments.ranks import LOWER_IS_BETTER, METRICS

Metrics = Mapping[str, tuple[float, float]]
"""Mean and standard deviation by metric, in percent."""

_VALUES: Mapping[str, Any] = tomllib.loads(
    (resources.files("fairpass.experiments") / "paper_values.toml").read_text(encoding="utf-8")
)

MAIN: Mapping[str, Mapping[str, Metrics]] = _VALUES["main"]
"""By data set and method."""
BACKBONES: Mapping[str, Mapping[str, Mapping[str, Metrics]]] = _VALUES["backbones"]
"""By data set, backbone and method."""
ABLATION: Mapping[str, Mapping[str, Metrics]] = _VALUES["ablation"]
"""By data set (there is one) and variant."""
RANKS: Mapping[str, Mapping[str, float]] = _VALUES["ranks"]
"""By table ("main", "GIN", "GAT") and method."""
SECONDS: Mapping[str, Mapping[str, float]] = _VALUES["seconds"]
"""By data set and method."""
STATISTICS: Mapping[str, Mapping[str, float]] = _VALUES["statistics"]
"""By data set and statistic, as printed."""

OURS = ("GMMD", "GMMD-S")
"""The methods that the paper proposes."""


def method_of(label: str) -> str:
    """Return what the paper calls a method that is one of several variants here."""
    return label.removesuffix(" (paper's)")


def target(dataset: str, metric: str) -> float:
    """Return the better of the paper's two methods in a cell of its main table."""
    values = [MAIN[dataset][name][metric][0] for name in OURS]
    return min(values) if metric in LOWER_IS_BETTER else max(values)


def means(table: Mapping[str, Metrics]) -> dict[str, dict[str, float]]:
    """Return a table of the paper without the standard deviations."""
    return {name: {metric: row[metric][0] for metric in METRICS} for name, row in table.items()}
