"""Runs of methods, in this process and in others: one that fails is that one's business only."""

import multiprocessing
import os
import signal
from collections.abc import Iterable
from typing import ClassVar

import pytest
import torch
from tests.methods.ingredients import small_graph
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import GCN, Constant, NodeClassifier
from fairpass.methods.runs import Run, Trial, run, run_all, trials
from fairpass.training import EpochRecord, Program, Task, Training


class Failing(Constant):
    """Fails with the error it is given."""

    name: ClassVar[str] = "failing"

    def __init__(self, *, error: Exception | None = None, training: Training | None = None) -> None:
        super().__init__(training=training)
        self.error = error

    def build(self, task: Task) -> Program:
        if self.error is not None:
            raise self.error
        os.kill(os.getpid(), signal.SIGKILL)  # what the system does when memory runs out
        return super().build(task)


@pytest.fixture(scope="module")
def data() -> Data:
    return small_graph()


def quick() -> dict[str, NodeClassifier]:
    return {"constant": Constant(), "gcn": GCN(hidden=4, training=Training(epochs=3))}


def outcomes(runs: Iterable[Run]) -> dict[tuple[str, int], object]:
    return {(run.method, run.seed): run.evaluation or run.error for run in runs}


def test_trials_go_seed_by_seed() -> None:
    methods = quick()
    planned = trials(methods, [4, 7])
    assert [(trial.method, trial.seed) for trial in planned] == [
        ("constant", 4),
        ("gcn", 4),
        ("constant", 7),
        ("gcn", 7),
    ]
    assert planned[3].classifier.get_params(deep=False) == {
        **methods["gcn"].get_params(deep=False),
        "training": Training(epochs=3, seed=7),
    }
    assert methods["gcn"].training.seed == 0


def test_a_run_is_a_fit_and_an_evaluation(data: Data) -> None:
    trial = trials(quick(), [5])[1]
    epochs: list[EpochRecord] = []
    made = run(trial, data, [epochs.append])
    assert (made.method, made.seed, made.error) == ("gcn", 5, None)
    assert made.evaluation == GCN(hidden=4, training=Training(epochs=3, seed=5)).fit(data).evaluate(data)
    assert made.seconds > 0
    assert len(epochs) == 3
    assert Run.from_dict(made.to_dict()) == made


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DataError("'x' is odd"), "'x' is odd"),
        (MemoryError(), "there is not enough memory"),
        (TypeError("a bug"), "TypeError: a bug"),
        (ValueError(), "ValueError: "),
    ],
)
def test_a_failing_run_does_not_stop_the_others(data: Data, error: Exception, message: str) -> None:
    methods = {"failing": Failing(error=error), **quick()}
    runs = list(run_all(trials(methods, [0]), data))
    assert [made.method for made in runs] == list(methods)
    assert runs[0].error == message
    assert runs[0].evaluation is None
    assert Run.from_dict(runs[0].to_dict()) == runs[0]
    assert all(made.error is None and made.evaluation is not None for made in runs[1:])


def test_an_interruption_is_no_failure(data: Data) -> None:
    def interrupt(record: EpochRecord) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_all(trials(quick(), [0]), data, callbacks=[interrupt]))


def test_data_is_checked_before_any_work(data: Data) -> None:
    without = data.clone()
    without.test_mask = data.test_mask & (data.sens == 0)
    with pytest.raises(DataError, match="group"):
        run_all([Trial("never", Failing())], without)


def test_jobs_are_checked(data: Data) -> None:
    with pytest.raises(ValueError, match=r"'jobs' must be at least 1 \(got 0\)"):
        run_all([], data, jobs=0)


def test_nothing_to_do(data: Data) -> None:
    assert list(run_all([], data, jobs=4)) == []


@pytest.mark.slow
def test_processes_give_the_same_results_and_end_when_asked(data: Data) -> None:
    planned = trials({**quick(), "failing": Failing(error=DataError("no"))}, [0, 1])
    endless = Trial("endless", GCN(hidden=4, training=Training(epochs=10**9)))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the processes have, so that sums are added up alike
    try:
        expected = outcomes(run_all(planned, data))
    finally:
        torch.set_num_threads(threads)
    runs = run_all([*planned, endless], data, jobs=2)
    assert outcomes(next(runs) for _ in planned) == expected
    runs.close()
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_a_killed_process_costs_its_own_run_only(data: Data) -> None:
    planned = trials({"killed": Failing(), "constant": Constant()}, [0])
    assert outcomes(run_all(planned, data, jobs=2)) == {
        ("killed", 0): "its process was killed (is there enough memory?)",
        **outcomes(run_all(planned[1:], data)),
    }
