"""Runs in this process and in others: a failure concerns that run only."""

import multiprocessing
import os
import signal
from collections.abc import Iterable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import psutil
import pytest
import torch
from tests.methods.ingredients import small_graph
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import GCN, Constant, NodeClassifier
from fairpass.parameters import parameter
from fairpass.runs import Comparison, Progress, RunRecord, executor_for, run
from fairpass.training import EpochRecord, Program, Task, Training


class Failing(Constant):
    """Fails with the error it is given."""

    name = "failing"
    error: Exception | None = parameter(None)

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


def run_all(methods: dict[str, NodeClassifier], seeds: Iterable[int], data: Data, **options: object) -> list[RunRecord]:
    """Run each method on its own, as `fairpass compare` does."""
    comparison = Comparison.of(methods, data)
    specs = comparison.specs(methods, seeds)
    run(specs, comparison, graphs={comparison.graph: data}, **{"together": False, **options})  # type: ignore[arg-type] # any
    return comparison.runs


def outcomes(runs: Iterable[RunRecord]) -> dict[tuple[str, int], object]:
    return {(run.method, run.seed): run.evaluation or run.error for run in runs}


def test_a_run_is_a_fit_and_an_evaluation(data: Data) -> None:
    epochs: list[EpochRecord] = []
    fitted: list[NodeClassifier] = []
    _, made = run_all(
        quick(),
        [5],
        data,
        on_epoch=lambda spec, record: epochs.append(record),
        on_fitted=lambda spec, model: fitted.append(model),
    )
    assert (made.method, made.seed, made.error) == ("gcn", 5, None)
    expected = GCN(hidden=4, training=Training(epochs=3, seed=5)).fit(data)
    assert made.evaluation == expected.evaluate(data) == fitted[1].evaluate(data)
    assert made.seconds > 0
    assert len(epochs) == 1 + 3
    assert RunRecord.from_dict(made.to_dict()) == made


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DataError("'x' is odd"), "'x' is odd"),
        (MemoryError(), "there is not enough memory"),
        (TypeError("a bug"), "TypeError: a bug"),
        (ValueError(), "ValueError: "),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_a_failing_run_does_not_stop_the_others(data: Data, error: Exception, message: str, together: bool) -> None:
    methods = {"failing": Failing(error=error), **quick()}
    runs = run_all(methods, [0], data, together=together)
    assert [made.method for made in runs] == list(methods)
    assert runs[0].error == message
    assert runs[0].evaluation is None
    assert RunRecord.from_dict(runs[0].to_dict()) == runs[0]
    assert bool(runs[0].facts.get("retry")) != isinstance(error, DataError)
    assert all(made.error is None and made.evaluation is not None for made in runs[1:])


def test_an_interruption_is_no_failure(data: Data) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(quick(), [0], data, on_epoch=interrupt)


def test_data_is_checked_before_any_work(data: Data) -> None:
    without = data.clone()
    without.test_mask = data.test_mask & (data.sens == 0)
    with pytest.raises(DataError, match="group"):
        run_all({"never": Failing()}, [0], without)


def test_nothing_to_do(data: Data) -> None:
    assert run_all({}, [], data, executor=executor_for(4)) == []


@pytest.mark.slow
def test_processes_give_the_same_results_and_end_when_asked(data: Data) -> None:
    planned = {**quick(), "failing": Failing(error=DataError("no"))}
    endless = GCN(hidden=4, training=Training(epochs=10**6))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the processes have, so that sums are added up alike
    try:
        expected = outcomes(run_all(planned, [0, 1], data))
    finally:
        torch.set_num_threads(threads)
    comparison = Comparison.of({**planned, "endless": endless}, data)
    specs = [*comparison.specs(planned, [0, 1]), *comparison.specs(["endless"], [0])]
    before, workers = set(multiprocessing.active_children()), set[BaseProcess]()

    def stop(progress: Progress) -> None:
        workers.update(set(multiprocessing.active_children()) - before)
        if progress.done == len(expected):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(specs, comparison, graphs={comparison.graph: data}, executor=executor_for(2), together=False, progress=stop)
    assert outcomes(comparison.runs) == expected
    assert workers
    for worker in workers:
        worker.join(600)
        assert not worker.is_alive()


@pytest.mark.usefixtures("forked_jobs")
def test_a_killed_process_costs_its_own_run_only(data: Data) -> None:
    methods: dict[str, NodeClassifier] = {"killed": Failing(), "constant": Constant()}
    assert outcomes(run_all(methods, [0], data, executor=executor_for(2))) == {
        ("killed", 0): "its process was killed (is there enough memory?)",
        **outcomes(run_all({"constant": Constant()}, [0], data)),
    }


def test_processes_of_which_none_can_start_are_killed_processes(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(process: BaseProcess) -> None:
        raise BrokenPipeError  # as for a process that is killed before it has read what it should do

    monkeypatch.setattr(BaseProcess, "start", start)
    assert dict(executor_for(2).map(number_of, data, range(3))) == dict.fromkeys(range(3))


def killed_while_answering(_: Data, batch: int) -> bytes:
    def send_half(pipe: Connection, content: bytes) -> None:
        if len(content) < 100:  # the length of what follows
            os.write(pipe.fileno(), content)
        else:
            os.write(pipe.fileno(), content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

    if batch == 1:
        Connection._send = send_half  # type: ignore[attr-defined] # in this process, which ends
    return bytes(1_000_000)


@pytest.mark.usefixtures("forked_jobs")
def test_a_process_that_is_killed_while_it_sends_a_result_keeps_nobody_waiting(data: Data) -> None:
    found = dict(executor_for(2).map(killed_while_answering, data, range(4)))
    assert found == {batch: None if batch == 1 else bytes(1_000_000) for batch in range(4)}


def tensors_of(_: Data, batch: int) -> list[torch.Tensor]:
    return [torch.full((3,), float(batch)) for _ in range(500)]


@pytest.mark.usefixtures("forked_jobs")
def test_tensors_in_results_need_no_open_files(data: Data) -> None:
    process = psutil.Process()
    before = process.num_fds()
    found = dict(executor_for(2).map(tensors_of, data, range(4)))
    assert all(torch.equal(each[0], torch.full((3,), float(batch))) for batch, each in found.items() if each)
    assert process.num_fds() < before + 100


class Unreadable(Data):  # type: ignore[misc] # PyG has no types
    """A graph for which a worker lacks memory."""

    def __reduce__(self) -> tuple[Any, ...]:
        return no_memory, ()


def no_memory() -> None:
    raise MemoryError


@pytest.mark.usefixtures("forked_jobs")
def test_an_error_while_the_graph_is_read_is_that_of_the_work(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MemoryError):
        list(executor_for(2).map(number_of, Unreadable(), range(2)))
    assert capfd.readouterr() == ("", "")


class Unpicklable(Exception):
    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("cannot be sent")


def fails_unpicklably(_: Data, batch: int) -> None:
    raise Unpicklable(f"batch {batch}")


@pytest.mark.usefixtures("forked_jobs")
def test_an_error_that_cannot_be_sent_is_described(data: Data) -> None:
    with pytest.raises(RuntimeError, match="Unpicklable: batch"):
        list(executor_for(2).map(fails_unpicklably, data, range(2)))


def process_of(_: Data, batch: int) -> int:
    if batch == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


@pytest.mark.slow
def test_those_not_yet_begun_go_on_in_new_processes_together(data: Data) -> None:
    found = dict(executor_for(2).map(process_of, data, range(12)))
    assert sorted(found) == list(range(12))
    assert found.pop(1) is None
    assert len(set(found.values())) <= 3  # two at first, and one in place of the killed one


def number_of(_: Data, batch: int) -> int:
    return batch


@pytest.mark.usefixtures("forked_jobs")
@pytest.mark.parametrize("victim", [1, 2, 3])
def test_a_process_that_is_killed_while_others_start_leaves_none_behind(
    data: Data, monkeypatch: pytest.MonkeyPatch, victim: int
) -> None:
    start, started = BaseProcess.start, list[BaseProcess]()

    def kill_one(process: BaseProcess) -> None:
        start(process)
        started.append(process)
        if len(started) == victim:
            process.kill()
            process.join()

    monkeypatch.setattr(BaseProcess, "start", kill_one)
    assert dict(executor_for(3).map(number_of, data, range(6))) == {batch: batch for batch in range(6)}
    assert len(started) > 3
    assert not any(process.is_alive() for process in started)
