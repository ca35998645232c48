"""The numbers that the paper prints."""

from collections.abc import Mapping

from fairpass.experiments.cells import METRICS, better_of
from fairpass.experiments.texts import read_toml

PrintedRow = Mapping[str, tuple[float, float]]
"""Mean and standard deviation by metric, in percent."""

_VALUES = read_toml("paper_values.toml")

MAIN: Mapping[str, Mapping[str, PrintedRow]] = _VALUES["main"]
"""By data set and method."""
BACKBONES: Mapping[str, Mapping[str, Mapping[str, PrintedRow]]] = _VALUES["backbones"]
"""By data set, backbone and method."""
ABLATION: Mapping[str, Mapping[str, PrintedRow]] = _VALUES["ablation"]
"""By data set (there is one) and variant."""
RANKS: Mapping[str, Mapping[str, float]] = _VALUES["ranks"]
"""By table ("main", "GIN", "GAT") and method."""
SECONDS: Mapping[str, Mapping[str, float]] = _VALUES["seconds"]
"""By data set and method."""
STATISTICS: Mapping[str, Mapping[str, float]] = _VALUES["statistics"]
"""By data set and statistic, as printed."""

OURS = ("GMMD", "GMMD-S")
"""The methods that the paper proposes."""
PAPERS = " (paper's)"
"""Ends the label of a method as the paper defines it, if we also have another variant."""


def method_of(label: str) -> str:
    """Return the paper's name of a method."""
    return label.removesuffix(PAPERS)


def target(dataset: str, metric: str) -> float:
    """Return the better of the paper's two methods in a cell of its main table."""
    return better_of([MAIN[dataset][name][metric][0] for name in OURS], metric)


def means(table: Mapping[str, PrintedRow]) -> dict[str, dict[str, float]]:
    """Return a table of the paper without the standard deviations."""
    return {name: {metric: row[metric][0] for metric in METRICS} for name, row in table.items()}
