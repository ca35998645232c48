"""Four processes that search in one study at once.

They are forked, after all imports and before any threads, so that they start at the same moment.
"""

import json
import multiprocessing
import sys
from typing import Any

from tests.methods.ingredients import small_graph

from fairpass.tuning import Choice, LogUniform, tune

PROCESSES, TRIALS = 4, 7
GRID: dict[str, Any] = {"learning_rate": Choice(0.01, 0.02, 0.03, 0.04), "hidden": Choice(4, 8, 12)}
# GAT trains alone: one claim for each configuration. With two objectives nothing is stopped early.
SEARCHES: dict[str, dict[str, Any]] = {
    "grid": {"strategy": "grid", "space": GRID, "budget": 1000},
    "nsga2": {"strategy": "nsga2", "space": {"learning_rate": LogUniform(1e-3, 1e-1)}, "budget": TRIALS},
}


def search(storage: str, name: str) -> list[str]:
    """Search, and return all configurations that the study has in the end."""
    tuned = tune(small_graph(), "gat", storage=storage, seeds=1, fixed={"epochs": 2}, **SEARCHES[name])
    return [json.dumps(tuned.values(point)) for point in tuned.points]


def search_at_once(storage: str) -> None:
    """Print what the processes find; must be called in a process of its own."""
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        found = {name: pool.starmap(search, [(storage, name)] * PROCESSES, chunksize=1) for name in SEARCHES}
    sys.stdout.write(json.dumps(found))
