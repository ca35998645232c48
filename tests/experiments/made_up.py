"""Records that were not run: every cell of every item, with numbers that are made up but always the same."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from fairpass.experiments import Cell
from fairpass.runs import RunSpec

METRICS = ("AUC", "F1", "ACC", "DP", "EO")


def record(
    spec: RunSpec, test: Mapping[str, float] | None = None, *, selection: float = 1.0, near_constant: bool = False
) -> dict[str, Any]:
    """Return a record of a run with some test metrics; those not given are random."""
    random = Random(spec.key)
    metrics = {
        name: round(random.uniform(0, 10) if name in ("DP", "EO") else random.uniform(70, 90), 4) for name in METRICS
    }
    metrics |= test or {}
    return {
        "key": spec.key,
        **spec.identity,
        "seed": spec.seed,
        "environment": {"fairpass": "0", "torch": "2", "python": "3", "machine": "x86_64", "threads": 1},
        "seconds": round(random.uniform(0.1, 9), 3),
        "trained_together": 1,
        "error": None,
        "epoch": 1,
        "epochs": spec.identity["training"]["epochs"],
        "threshold": 0.5,
        "validation": {**metrics, "selection": selection},
        "test": {
            **metrics,
            "balanced_accuracy": 60.0,
            "positive_rate": 50.0,
            "group_rates": [50.0, 50.0],
            "near_constant": near_constant or spec.configuration.method == "constant",
        },
        "measured": {name: _MEASURED[name] for name in spec.measures if name in _MEASURED},
    }


def write(specs: Iterable[RunSpec], directory: Path) -> None:
    """Write made-up records as lines of one file."""
    records = {spec.key: record(spec) for spec in specs}
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "all.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records.values()))


def specs_of(cells: Iterable[Cell]) -> list[RunSpec]:
    """Return the runs of some cells."""
    return [spec for cell in cells for spec in cell.specs()]


def _neighbourhood(label: int) -> dict[str, Any]:
    neighbours = [
        {"node": i, "label": i % 2, "group": i // 2 % 2, "similarity": 0.9 if i % 2 == label else 0.4} for i in range(8)
    ]
    return {"centre": {"node": 9, "label": label, "group": 0}, "neighbours": neighbours}


_MIXING = {"edges": 21742, "homophily": 0.8, "expected": 0.6, "assortativity": 0.5}
_MEASURED: dict[str, Any] = {
    "statistics": {
        "nodes": 1000,
        "edges": 21742,
        "features": 27,
        "label_mixing": {**_MIXING, "homophily": 0.587},
        "sensitive_mixing": _MIXING,
    },
    "curves": {
        "epoch": [0.0, 1.0, 2.0, 3.0],
        "ACC": [0.6, 0.7, 0.72, 0.75],
        "DP": [0.05, 0.1, 0.06, 0.01],
        "similarity": [0.5, 0.4, 0.6, 0.9],
        "bound": [3e5, 2e5, 2e5, None],
    },
    "theorems": {
        "nodes": 1000,
        "isolated": 0,
        "alpha": 0.3,
        "4.1": {"measured": 0.01, "bound": 20000.0, "holds": True},
        "4.2": {"measured": 1271.0, "bound": 340619.0, "holds": True},
    },
    "cases": {
        "same label": {"mean": 0.7, "histogram": [0.05] * 20},
        "different label": {"mean": 0.6, "histogram": [0.1, 0.0] * 10},
        "neighbourhoods": [_neighbourhood(0), _neighbourhood(1)],
    },
}
