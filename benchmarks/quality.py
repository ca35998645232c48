"""What the speed buys: GMMD on Bail over five seeds, and the last epoch as the fair steps grow."""

import statistics

from torch_geometric.data import Data

from benchmarks.result import Cell, Result, Table
from fairpass.datasets import is_available, load
from fairpass.methods import GMMD, GMMDS
from fairpass.training import Training

METRICS = ("AUC", "F1", "ACC", "DP", "EO")


def run(quick: bool) -> Result:
    tables = [_fair_steps("german", 3 if quick else 5, 100 if quick else 300)]
    if is_available("bail"):
        tables += [_five_seeds(2 if quick else 5)]
        if not quick:
            tables += [_fair_steps("bail", 2, 200)]
    return Result("quality", tables)


def _summary(fits: list[GMMD], data: Data) -> dict[str, Cell]:
    numbers = [fit.evaluate(data).percent() for fit in fits]
    out: dict[str, Cell] = {}
    for metric in METRICS:
        values = [row[metric] for row in numbers]
        out[metric] = f"{statistics.mean(values):.2f} ± {statistics.pstdev(values):.2f}"
    return out


def _five_seeds(seeds: int) -> Table:
    data = load("bail")
    rows: list[dict[str, Cell]] = []
    for cls in (GMMD, GMMDS):
        training = cls.default_training().but(track_discrepancy=False)
        fits = [cls(training=training.but(seed=seed)).fit(data) for seed in range(seeds)]
        rows.append({"method": cls.name, "seeds": seeds, **_summary(fits, data)})
    return Table("Bail, defaults, epoch selected on validation, test nodes (mean ± standard deviation)", rows)


def _fair_steps(name: str, seeds: int, epochs: int) -> Table:
    data = load(name)
    rows: list[dict[str, Cell]] = []
    for steps in (0, 4, 12):
        settings = Training(
            epochs=epochs,
            select="last",
            track_discrepancy=False,
            weight_decay=GMMD.default_training().weight_decay,
        )
        fits = [GMMD(fair_steps=steps, training=settings.but(seed=seed)).fit(data) for seed in range(seeds)]
        rows.append({"data": name, "fair steps": steps, "seeds": seeds, **_summary(fits, data)})
    return Table(f"{name.capitalize()}, LAST epoch (no selection), test nodes, as the fair steps grow", rows)
