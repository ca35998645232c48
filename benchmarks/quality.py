"""What the speed buys: the last epoch, where nothing is selected, as the fair steps grow."""

import statistics

from benchmarks.result import Cell, Result, Table
from fairpass.datasets import is_available, load
from fairpass.methods import GMMD
from fairpass.runs import fit_all
from fairpass.training import Training

METRICS = ("AUC", "F1", "ACC", "DP", "EO")


def run(quick: bool) -> Result:
    tables = [_fair_steps("german", 3 if quick else 5, 100 if quick else 200)]
    if is_available("bail") and not quick:
        tables.append(_fair_steps("bail", 1, 150))
    return Result("quality", tables)


def _fair_steps(name: str, seeds: int, epochs: int) -> Table:
    data = load(name)
    decay = GMMD.default_training().weight_decay
    settings = Training(epochs=epochs, select="last", track_discrepancy=False, weight_decay=decay)
    rows: list[dict[str, Cell]] = []
    for steps in (0, 4, 12):
        fits = [GMMD(fair_steps=steps, training=settings.but(seed=seed)) for seed in range(seeds)]
        fit_all(fits, data)
        numbers = [fit.evaluate(data).percent() for fit in fits]
        row: dict[str, Cell] = {"data": name, "fair steps": steps, "seeds": seeds}
        rows.append(row | {metric: statistics.mean(n[metric] for n in numbers) for metric in METRICS})
    return Table(f"{name.capitalize()}, last of {epochs} epochs (no selection), test nodes, mean over the seeds", rows)
