"""The numbers behind the figures that vary a parameter."""

from fairpass.experiments.findings import TITLES, Findings
from fairpass.experiments.table import Table
from fairpass.experiments.tables.metrics import MetricRow, metric_table

_TITLES = {
    "hyper": "weights of smoothness and fairness",
    "layers": "layers of message passing",
    "alpha": "width of the kernel",
    "mlp": "layers of the perceptron",
}


def sweep(item: str, findings: Findings) -> list[Table]:
    """Return the five metrics at every point of an item that varies parameters, a table for each data set."""
    tables = []
    for dataset in findings.datasets(item):
        found = list(findings.of(item, dataset))
        axes = tuple(found[0].cell.at)
        rows = [
            MetricRow((*(f"{f.cell.at[axis]:g}" for axis in axes), f.cell.label), f, group=f.cell.label) for f in found
        ]
        title = f"{TITLES[dataset]}: {_TITLES[item]}"
        tables.append(metric_table(f"{item}-{dataset}", title, (*axes, "method"), rows))
    return tables
