"""Many classifiers fitted on one graph: those of one shape as one batched program, the others one by one."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Generator
from torch_geometric.data import Data

from fairpass.errors import FairpassError
from fairpass.methods.base import NodeClassifier
from fairpass.methods.workers import Workers
from fairpass.training import DivergedError, Task, seeded
from fairpass.training.history import EpochRecord
from fairpass.training.population import COMMON_SETTINGS, Member, train_population
from fairpass.training.tensors import to_json

MemberCallback = Callable[[int, EpochRecord], None]

# Node representations, nodes times members, in one batch. Small graphs gain from many members until all of them no
# longer fit the cache; on large ones two members at a time already keep the cores busy.
BATCH_ROWS = 1 << 16


def fit_all(
    classifiers: Sequence[NodeClassifier],
    data: Data,
    *,
    jobs: int = 1,
    callback: MemberCallback | None = None,
    batch_rows: int = BATCH_ROWS,
) -> list[FairpassError | None]:
    """Fit every classifier in place; return for each the error that it failed with, or None.

    The results are those of `fit`, up to rounding. Classifiers of one method are trained together if they differ only
    in the method's `per_member` hyper-parameters, learning rate, weight decay, seed, epochs and patience.

    Args:
        classifiers: of any methods, each with its own hyper-parameters and training settings.
        data: the graph; not modified.
        jobs: processes to share the work, this one included; each gets its share of torch's threads.
        callback: called with a classifier's index and the record of each of its epochs (only of those fitted in this
            process; with one job, all).
        batch_rows: how many node representations (nodes times members) to have in one batch.
    """
    if jobs < 1:
        raise ValueError(f"'jobs' must be at least 1 (got {jobs})")
    errors: list[FairpassError | None] = [None] * len(classifiers)
    todo = batches(classifiers, batch_rows // max(1, data.num_nodes or 0), jobs)
    task = _LazyTask(data)

    def fit_here(batch: Sequence[int]) -> None:
        found = _fit_batch([classifiers[i] for i in batch], data, task, batch, callback)
        for i, error in zip(batch, found, strict=True):
            errors[i] = error

    jobs = min(jobs, len(todo))
    if jobs <= 1:
        for batch in todo:
            fit_here(batch)
        return errors
    # This process takes its share: it can start at once, while the others still load their libraries.
    with Workers(data, jobs, caller_works=True) as workers:
        waiting = [
            (batch, workers.submit(_fit_in_worker, [classifiers[i] for i in batch]))
            for number, batch in enumerate(todo)
            if number % jobs
        ]
        for batch in todo[::jobs]:
            fit_here(batch)
        for batch, done in waiting:
            for i, (fitted, error) in zip(batch, done.result(), strict=True):
                vars(classifiers[i]).update(fitted)
                errors[i] = error
    return errors


def batches(classifiers: Sequence[NodeClassifier], size: int, jobs: int) -> list[list[int]]:
    """Return the indices of those that are trained together, at most `size` of them, the others one by one.

    There are as many, and as large ones, for every process; but none of fewer than two members.
    """
    found = []
    for key, indices in _alike(classifiers).items():
        if key is None:
            found += [[i] for i in indices]
            continue
        shares = -(-len(indices) // (max(2, size) * jobs)) * jobs
        shares = max(1, min(shares, len(indices) // 2))
        bounds = [len(indices) * k // shares for k in range(shares + 1)]
        found += [indices[start:end] for start, end in pairwise(bounds)]
    return found


class _LazyTask:
    """The graph as methods see it, made when it is first needed."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._task: Task | None = None

    def on(self, device: str) -> Task:
        if self._task is None or self._task.device != torch.device(device):
            self._task = Task(self._data, device)
        return self._task


def _fit_in_worker(
    data: Data, classifiers: Sequence[NodeClassifier]
) -> list[tuple[dict[str, Any], FairpassError | None]]:
    errors = _fit_batch(classifiers, data, _LazyTask(data), range(len(classifiers)), None)
    return [(vars(classifier), error) for classifier, error in zip(classifiers, errors, strict=True)]


def _fit_batch(
    classifiers: Sequence[NodeClassifier],
    data: Data,
    task: _LazyTask,
    indices: Sequence[int],
    callback: MemberCallback | None,
) -> list[FairpassError | None]:
    if classifiers[0].trains_alone:
        return [_fit_alone(classifiers[0], data, indices[0], callback)]
    return _fit_together(classifiers, task.on(classifiers[0].training.device), data, indices, callback)


def _alike(classifiers: Iterable[NodeClassifier]) -> dict[str | None, list[int]]:
    """Return the indices of those that can be trained together, under a key of what they have in common."""
    found: dict[str | None, list[int]] = {}
    for i, classifier in enumerate(classifiers):
        found.setdefault(_key(classifier), []).append(i)
    return found


def _key(classifier: NodeClassifier) -> str | None:
    if classifier.trains_alone:
        return None
    own = set(classifier.per_member)
    shape = {
        # One that is not given cannot be a row of numbers.
        name: value if name not in own else value is None
        for name, value in classifier.hyperparameters.items()
    }
    return to_json([classifier.name, shape, {name: getattr(classifier.training, name) for name in COMMON_SETTINGS}])


def _fit_alone(
    classifier: NodeClassifier, data: Data, index: int, callback: MemberCallback | None
) -> FairpassError | None:
    def report(record: EpochRecord) -> None:
        if callback is not None:
            callback(index, record)

    try:
        classifier.fit(data, callbacks=[report])
    except FairpassError as error:
        return error
    return None


def _fit_together(
    classifiers: Sequence[NodeClassifier],
    task: Task,
    data: Data,
    indices: Sequence[int],
    callback: MemberCallback | None,
) -> list[FairpassError | None]:
    errors = [_refusal(classifier, task) for classifier in classifiers]
    if any(errors):
        taken = [i for i, error in enumerate(errors) if error is None]
        if taken:
            found = _fit_together([classifiers[i] for i in taken], task, data, [indices[i] for i in taken], callback)
            for i, error in zip(taken, found, strict=True):
                errors[i] = error
        return errors
    population = [_member(classifier, task) for classifier in classifiers]

    def report(member: int, record: EpochRecord) -> None:
        if callback is not None:
            callback(indices[member], record)

    with seeded(0, deterministic=classifiers[0].training.deterministic):  # members draw from their own generators
        train_population(population, task, on_epoch=report)
    for i, (classifier, member) in enumerate(zip(classifiers, population, strict=True)):
        try:
            classifier._accept(member.program, member.progress, classifier._describe(task, data), task)
        except DivergedError as error:
            errors[i] = error
    return errors


def _refusal(classifier: NodeClassifier, task: Task) -> FairpassError | None:
    """Return why a classifier cannot make its decisions on this graph, or None."""
    try:
        classifier._check_task(task)
    except FairpassError as error:
        return error
    return None


def _member(classifier: NodeClassifier, task: Task) -> Member:
    """Return a program as `fit` would build it, and a generator in the state in which `fit` would go on."""
    training = classifier.training
    with seeded(training.seed, deterministic=training.deterministic):
        program = classifier.build(task).to(task.device)
        generator = Generator(task.device)
        if task.device.type == "cpu":
            generator.set_state(torch.get_rng_state())
        else:
            generator.manual_seed(training.seed)
    return Member(program, training, generator)
