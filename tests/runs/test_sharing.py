"""Several processes fill one store, or one file: no run is lost, and none is made twice."""

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from tests.experiments.made_up import record
from tests.holding import HOLD, start
from tests.methods.ingredients import small_graph
from tests.trial import Trial
from torch_geometric.data import Data

from fairpass.methods import GCN, Constant, NodeClassifier
from fairpass.runs import Comparison, RunSpec, RunStore, run
from fairpass.training import Training


@pytest.fixture(scope="module")
def data() -> Data:
    return small_graph()


def methods() -> dict[str, NodeClassifier]:
    return {"constant": Constant(), "gcn": GCN(hidden=4, training=Training(epochs=2))}


class Other:
    """A process that has claimed a run; it ends, after `before`, once somebody waits for it."""

    def __init__(self, store: RunStore | Comparison, spec: RunSpec, log: pytest.LogCaptureFixture) -> None:
        assert store.claims is not None
        self.process = start(HOLD, store.claims.path, spec.key)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "True\n"
        self.log = log

    def end(self, before: Callable[[], object] = lambda: None) -> Thread:
        def wait_and_end() -> None:
            deadline = time.monotonic() + 600
            while "waiting for 1 run" not in self.log.text and time.monotonic() < deadline:
                time.sleep(0.02)
            before()
            self.process.kill()
            self.process.communicate()

        thread = Thread(target=wait_and_end)
        thread.start()
        return thread


def test_a_run_that_another_process_makes_is_waited_for(
    data: Data, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    store = RunStore(tmp_path)
    specs = Comparison.of(methods(), data).specs(methods(), [0])
    other = Other(store, specs[1], caplog)
    made_there = record(specs[1])
    thread = other.end(before=lambda: RunStore(tmp_path).add(made_there))
    assert run(specs, store, graphs={specs[0].dataset: data}) == 1
    thread.join(600)
    assert store.get(specs[1]) == made_there
    assert store.missing(specs) == []
    assert len(list(tmp_path.iterdir())) == 2  # no lock is left


@pytest.mark.parametrize("kind", ["store", "file"])
def test_a_run_that_a_killed_process_left_is_taken_over(
    kind: str, data: Data, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    comparison = Comparison.of(methods(), data, tmp_path / "R.json")
    store = comparison if kind == "file" else RunStore(tmp_path / "records")
    specs = comparison.specs(methods(), [0])
    thread = Other(store, specs[0], caplog).end()
    assert run(specs, store, graphs={comparison.graph: data}, together=False) == 2
    thread.join(600)
    assert store.missing(specs) == []


def test_what_another_process_added_to_a_file_is_kept(data: Data, tmp_path: Path) -> None:
    path, others = tmp_path / "R.json", {"wide": GCN(hidden=8, training=Training(epochs=2))}
    first, second = Comparison.of(methods(), data, path), Comparison.of(others, data, path)
    for comparison, names in ((first, methods()), (second, others)):
        run(comparison.specs(names, [0]), comparison, graphs={comparison.graph: data}, together=False)
    assert {each.method for each in Comparison.load(path).runs} == {"constant", "gcn", "wide"}
    # Each shows its own.
    assert {row.method for row in first.rows} == {"constant", "gcn"}
    assert {row.method for row in second.rows} == {"wide"}


def test_a_run_that_is_in_the_file_by_now_is_not_made_again(data: Data, tmp_path: Path) -> None:
    both = [Comparison.of(methods(), data, tmp_path / "R.json") for _ in range(2)]
    specs = both[0].specs(methods(), [0])
    assert [run(specs, each, graphs={each.graph: data}, together=False) for each in both] == [2, 0]
    assert both[0].runs == both[1].runs


def test_four_comparisons_at_once_lose_nothing(tmp_path: Path) -> None:
    wanted = ("gcn", "gin", "sage", "mlp")
    options = ("--seeds", "2", "--epochs", "2", "--out", "R.json", "--json")
    trials = [Trial(("compare", "german", "--methods", name, *options), tmp_path / "work") for name in wanted]
    outcomes = {name: trial.outcome() for name, trial in zip(wanted, trials, strict=True)}
    for name, outcome in outcomes.items():
        assert (outcome.code, outcome.faults()) == (0, []), outcome.describe()
        shown = {(each["method"], each["seed"]) for each in json.loads(outcome.stdout)["runs"]}
        assert {(name, 0), (name, 1), ("constant", 0), ("constant", 1)} <= shown
    made = sorted((each.method, each.seed) for each in Comparison.load(tmp_path / "work" / "R.json").runs)
    assert made == sorted((name, seed) for name in ("constant", *wanted) for seed in (0, 1))
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["R.json"]
