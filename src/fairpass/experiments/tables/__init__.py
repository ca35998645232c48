"""The tables of each item, as pure functions of the records."""

from collections.abc import Callable, Mapping
from functools import partial

from fairpass.experiments.findings import Findings
from fairpass.experiments.table import Table
from fairpass.experiments.tables import main, measured, pareto, sweeps, variants

_TABLES: Mapping[str, Callable[[Findings], list[Table]]] = {
    "stats": measured.stats,
    "main": lambda findings: [*main.main(findings), *main.configurations(findings)],
    "backbones": variants.backbones,
    "ablation": variants.ablation,
    "hyper": partial(sweeps.sweep, "hyper"),
    "layers": partial(sweeps.sweep, "layers"),
    "theory": measured.theory,
    "alpha": partial(sweeps.sweep, "alpha"),
    "mlp": partial(sweeps.sweep, "mlp"),
    "cases": measured.cases,
    "runtime": measured.runtime,
    "pareto": pareto.pareto,
    "beyond": variants.beyond,
}


def tables_of(item: str, findings: Findings) -> list[Table]:
    """Return the tables of an item; none if nothing of it was run."""
    return _TABLES[item](findings) if findings.datasets(item) else []
