"""Validation chooses among the records of a cell."""

from pathlib import Path

from tests.experiments.made_up import record

from fairpass.experiments import Cell, CellResult
from fairpass.runs import Configuration, RunStore

GCN, GIN = Configuration("gcn"), Configuration("gin")
CELL = Cell("german", "plain", (GCN, GIN), seeds=(0, 1))


def fill(store: RunStore, configuration: Configuration, selections: list[float], **test: float) -> None:
    for run, selection in zip(CELL.runs(configuration), selections, strict=False):
        store.add(record(run, test, selection=selection))


def test_validation_chooses_by_the_mean_over_the_seeds(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    fill(store, GCN, [3.0, 0.0], ACC=90.0)
    fill(store, GIN, [2.0, 2.0], ACC=80.0)
    chosen = CellResult.of(CELL, store)
    assert chosen is not None
    assert chosen.configuration == GIN
    assert chosen.values("ACC") == [80.0, 80.0]
    assert chosen.selection == 2.0


def test_a_candidate_counts_only_with_all_seeds_and_no_error(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    fill(store, GCN, [9.0])
    assert CellResult.of(CELL, store) is None
    fill(store, GIN, [1.0, 1.0])
    chosen = CellResult.of(CELL, store)
    assert chosen is not None
    assert chosen.configuration == GIN
    store.add({**record(CELL.runs(GIN)[0]), "error": "diverged"})
    assert CellResult.of(CELL, store) is None


def test_near_constant_needs_most_runs(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    first, second = CELL.runs(GCN)
    store.add(record(first, near_constant=True))
    store.add(record(second))
    chosen = CellResult.of(CELL, store)
    assert chosen is not None
    assert not chosen.is_near_constant
    store.add(record(second, near_constant=True))
    assert chosen.is_near_constant is False
    again = CellResult.of(CELL, store)
    assert again is not None
    assert again.is_near_constant


def test_a_cell_has_every_candidate_with_every_seed() -> None:
    cell = Cell("german", "GCN", (Configuration("gcn"), Configuration("gin")), seeds=(0, 1, 2))
    runs = [(run.configuration.method, run.seed) for run in cell.specs()]
    assert runs == [("gcn", 0), ("gcn", 1), ("gcn", 2), ("gin", 0), ("gin", 1), ("gin", 2)]
