"""Methods trained on one graph with several seeds: a record of every run, whatever becomes of the others."""

import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from torch_geometric.data import Data

from fairpass.errors import FairpassError
from fairpass.methods.base import NodeClassifier
from fairpass.methods.constant import Constant
from fairpass.methods.workers import Workers
from fairpass.metrics import Evaluation
from fairpass.training import Callback


@dataclass(frozen=True)
class Trial:
    """A run that is still to be made: a classifier with its seed, and the name it goes by."""

    method: str
    classifier: NodeClassifier

    @property
    def seed(self) -> int:
        """Return the seed."""
        return self.classifier.training.seed


@dataclass(frozen=True)
class Run:
    """One method, trained once: how it did on the test nodes, or why it did not."""

    method: str
    seed: int
    seconds: float
    """Of training and evaluation."""
    evaluation: Evaluation | None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; `from_dict` is the inverse."""
        return {**vars(self), "evaluation": self.evaluation and self.evaluation.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Run":
        """Rebuild a record from `to_dict`."""
        stored = values["evaluation"]
        return cls(**{**values, "evaluation": stored and Evaluation.from_dict(stored)})


def trials(methods: Mapping[str, NodeClassifier], seeds: Iterable[int]) -> list[Trial]:
    """Return every method with every seed, all methods with the first seed first.

    Args:
        methods: unfitted classifiers by the name they are to go by; they are not changed.
        seeds: seeds of the training, in place of the classifiers' own.
    """
    return [Trial(name, _with_seed(methods[name], seed)) for seed in seeds for name in methods]


def run_all(
    todo: Sequence[Trial], data: Data, *, jobs: int = 1, callbacks: Sequence[Callback] = ()
) -> Generator[Run, None, None]:
    """Train and evaluate, and yield each run when it is done; one that fails does not stop the others.

    Args:
        todo: what to run.
        data: the graph; every label and group must occur among its test nodes, or `DataError` is raised.
        jobs: processes to share the work; each gets its share of torch's threads. Ending the iteration
            early ends them.
        callbacks: called with the record of every epoch (only in this process: `jobs=1`).
    """
    if jobs < 1:
        raise ValueError(f"'jobs' must be at least 1 (got {jobs})")
    # What is wrong with the graph shows with the simplest method, before any work is done.
    Constant().fit(data).evaluate(data)
    jobs = min(jobs, len(todo))
    return (run(trial, data, callbacks) for trial in todo) if jobs <= 1 else _run_in_processes(todo, data, jobs)


def run(trial: Trial, data: Data, callbacks: Sequence[Callback] = ()) -> Run:
    """Train and evaluate once; an error becomes part of the record."""
    start = time.perf_counter()
    evaluation = error = None
    try:
        evaluation = trial.classifier.fit(data, callbacks=callbacks).evaluate(data)
    except Exception as problem:  # of whatever kind: it is this run's alone, and is reported with it
        error = _in_words(problem)
    return Run(trial.method, trial.seed, time.perf_counter() - start, evaluation, error)


def _with_seed(classifier: NodeClassifier, seed: int) -> NodeClassifier:
    parameters = {**classifier.hyperparameters, "training": classifier.training.but(seed=seed)}
    return type(classifier)(**parameters)


def _in_words(problem: Exception) -> str:
    if isinstance(problem, MemoryError):
        return "there is not enough memory"
    # A bug has no message for users; the name of its class is the least that helps to find it.
    known = isinstance(problem, FairpassError | ValueError | OSError)
    return str(problem) if known and str(problem) else f"{type(problem).__name__}: {problem}"


def _run_in_processes(todo: Sequence[Trial], data: Data, jobs: int) -> Generator[Run, None, None]:
    lost: list[Trial] = []
    with Workers(data, jobs) as workers:
        waiting = {workers.submit(_run_in_worker, trial): trial for trial in todo}
        for done in as_completed(waiting):
            try:
                yield done.result()
            except BrokenProcessPool:
                lost.append(waiting[done])
    # A process that is killed (out of memory) takes all runs with it that were not done. Nobody knows
    # which of them was to blame, so each gets a process of its own, one after the other.
    for trial in lost:
        start = time.perf_counter()
        with Workers(data, 1) as workers:
            try:
                yield workers.submit(_run_in_worker, trial).result()
            except BrokenProcessPool:
                error = "its process was killed (is there enough memory?)"
                yield Run(trial.method, trial.seed, time.perf_counter() - start, None, error)


def _run_in_worker(data: Data, trial: Trial) -> Run:
    return run(trial, data)
