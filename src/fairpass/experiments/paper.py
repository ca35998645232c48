"""The numbers that the paper prints; `paper_values.toml` says what they are."""

from collections.abc import Mapping
from typing import Any

from fairpass.experiments.cells import METRICS, Means, better_of
from fairpass.experiments.texts import read_toml

PrintedRow = Mapping[str, tuple[float, float]]  # mean and standard deviation by metric, in percent

_VALUES = read_toml("paper_values.toml")
MAIN: Mapping[str, Mapping[str, PrintedRow]] = _VALUES["main"]
BACKBONES: Mapping[str, Mapping[str, Mapping[str, PrintedRow]]] = _VALUES["backbones"]
ABLATION: Mapping[str, Mapping[str, PrintedRow]] = _VALUES["ablation"]
RANKS: Mapping[str, Mapping[str, float]] = _VALUES["ranks"]
SECONDS: Mapping[str, Mapping[str, float]] = _VALUES["seconds"]
STATISTICS: Mapping[str, Mapping[str, Any]] = _VALUES["statistics"]

OURS = ("GMMD", "GMMD-S")  # the methods that the paper proposes
PAPERS = " (paper's)"  # ends the label of a method as the paper defines it, if we also have another variant


def method_of(label: str) -> str:
    """Return the paper's name of a method."""
    return label.removesuffix(PAPERS)


def target(dataset: str, metric: str) -> float:
    """Return the better of the paper's two methods in a cell of its main table."""
    return better_of([MAIN[dataset][name][metric][0] for name in OURS], metric)


def means(table: Mapping[str, PrintedRow]) -> dict[str, Means]:
    """Return a table of the paper without the standard deviations."""
    return {name: {metric: row[metric][0] for metric in METRICS} for name, row in table.items()}
