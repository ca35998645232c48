"""The figures of each item, as pure functions of the records."""

from collections.abc import Callable, Mapping
from functools import partial

from matplotlib.figure import Figure

from fairpass.experiments.figures import cases, comparisons, sweeps, training
from fairpass.experiments.figures.style import house_style
from fairpass.experiments.findings import Findings

_FIGURES: Mapping[str, Callable[[Findings], dict[str, Figure]]] = {
    "main": comparisons.main,
    "hyper": sweeps.hyper,
    "layers": partial(sweeps.along, "layers", "K"),
    "theory": training.theory,
    "alpha": partial(sweeps.along, "alpha", "alpha"),
    "mlp": partial(sweeps.along, "mlp", "num_layers"),
    "cases": cases.cases,
    "runtime": comparisons.runtime,
    "pareto": comparisons.pareto,
}


def figures_of(item: str, findings: Findings) -> dict[str, Figure]:
    """Return the figures of an item by name; none if it has none or nothing of it was run."""
    if item not in _FIGURES or not findings.datasets(item):
        return {}
    with house_style():
        return _FIGURES[item](findings)
