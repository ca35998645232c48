"""A sweep of GMMD: as populations that share both cores, against one fit after another."""

import time
from collections.abc import Callable
from itertools import islice, product

import torch

from benchmarks.result import Cell, Result, Table
from fairpass.datasets import is_available, load
from fairpass.methods import GMMD
from fairpass.runs import fit_all

# Configurations, seeds, epochs; and the threads with which one fit after another is fastest.
SWEEPS = {"german": (60, 5, 200, 1), "bail": (8, 2, 60, 2)}
QUICK = {"german": (12, 2, 10, 1), "bail": (2, 2, 5, 2)}
# Only this many single fits are timed; the total is scaled up.
MEASURED = 8


def run(quick: bool) -> Result:
    sweeps = QUICK if quick else SWEEPS
    rows = [_compare(name, *sweep) for name, sweep in sweeps.items() if is_available(name)]
    return Result("population", [Table("A sweep of GMMD with four fair steps, wall time", rows)])


def sweep(configurations: int, seeds: int, epochs: int) -> list[GMMD]:
    grid = product((1.0, 10.0, 100.0), (0.1, 0.3, 0.7, 1.0), (0.1, 0.5, 1.0, 2.0, 5.0))
    chosen = list(islice(grid, configurations))
    training = GMMD.default_training().but(epochs=epochs)
    return [
        GMMD(weight=weight, alpha=alpha, lambda_s=lambda_s, training=training.but(seed=seed))
        for weight, alpha, lambda_s in chosen
        for seed in range(seeds)
    ]


def _compare(name: str, configurations: int, seeds: int, epochs: int, threads: int) -> dict[str, Cell]:
    data = load(name)
    alone, together = (sweep(configurations, seeds, epochs) for _ in range(2))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    some = alone[:MEASURED]
    one_by_one = _seconds(lambda: [classifier.fit(data) for classifier in some]) * len(alone) / len(some)
    torch.set_num_threads(before)
    population = _seconds(lambda: fit_all(together, data, jobs=2))
    return {
        "data": name,
        "fits": len(alone),
        "epochs": epochs,
        "one after another, s": one_by_one,
        "measured on": len(some),
        "population on two processes, s": population,
        "times faster": one_by_one / population,
    }


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
