"""Many classifiers fitted on one graph: those of one shape as one batched program, the others one by one."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, partial
from itertools import pairwise
from typing import Any

import torch
from torch import Generator
from torch_geometric.data import Data

from fairpass.errors import FairpassError
from fairpass.methods import NodeClassifier
from fairpass.runs.executors import worker_pool
from fairpass.training import EpochRecord, Task, seeded
from fairpass.training.population import COMMON_SETTINGS, Member, train_population
from fairpass.training.tensors import to_json

MemberCallback = Callable[[int, EpochRecord], None]
Errors = list[FairpassError | None]

# Node representations, nodes times members, in one batch. Small graphs gain from many members until they no longer fit
# the cache; on large ones two members at a time already keep the cores busy.
BATCH_ROWS = 1 << 16


def fit_all(
    classifiers: Sequence[NodeClassifier],
    data: Data,
    *,
    jobs: int = 1,
    callback: MemberCallback | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Errors:
    """Fit every classifier in place; return for each the error that it failed with, or None.

    The results are those of `fit`, up to rounding. Classifiers of one method are trained together if they differ only
    in the method's `per_member` hyper-parameters, learning rate, weight decay, seed, epochs and patience.

    Args:
        jobs: processes to share the work, this one included; each gets its share of torch's threads.
        callback: called with a classifier's index and the record of each of its epochs (only of those fitted in this
            process; with one job, all).
        batch_rows: how many node representations (nodes times members) to have in one batch.
    """
    if jobs < 1:
        raise ValueError(f"'jobs' must be at least 1 (got {jobs})")
    todo = batches(classifiers, batch_rows // max(1, data.num_nodes or 0), jobs)
    jobs = max(1, min(jobs, len(todo)))
    errors: Errors = [None] * len(classifiers)
    task_on = cache(partial(Task, data))
    # This process takes its share: it can start at once, while the others still load their libraries.
    with worker_pool(data, jobs, caller_works=True) if jobs > 1 else nullcontext() as submit:
        others = [batch for i, batch in enumerate(todo) if i % jobs]
        elsewhere = [submit(_fit_in_worker, [classifiers[k] for k in batch]) for batch in others] if submit else []
        for batch in todo[::jobs]:
            report = _renumbered(callback, batch)
            for k, error in zip(batch, _fit_batch([classifiers[k] for k in batch], data, task_on, report), strict=True):
                errors[k] = error
        for batch, done in zip(others, elsewhere, strict=True):
            for k, (fitted, error) in zip(batch, done.result(), strict=True):
                vars(classifiers[k]).update(fitted)
                errors[k] = error
    return errors


def batches(classifiers: Sequence[NodeClassifier], size: int, jobs: int) -> list[list[int]]:
    """Return the indices of those that are trained together, at most `size` of them, the others one by one.

    Every process gets as many batches, of about the same size, but none with fewer than two members.
    """
    alike: dict[str | None, list[int]] = {}
    for i, classifier in enumerate(classifiers):
        alike.setdefault(_shape(classifier), []).append(i)
    found = []
    for shape, indices in alike.items():
        shares = -(-len(indices) // (max(2, size) * jobs)) * jobs
        shares = len(indices) if shape is None else max(1, min(shares, len(indices) // 2))
        bounds = [len(indices) * k // shares for k in range(shares + 1)]
        found += [indices[start:end] for start, end in pairwise(bounds)]
    return found


def _shape(classifier: NodeClassifier) -> str | None:
    """Return what classifiers that train together have in common; None for one that trains alone."""
    if classifier.trains_alone:
        return None
    own, parameters = classifier.per_member, classifier.hyperparameters
    # Values of one's own may differ, but None cannot be in a row of numbers.
    shared = {name: value is None if name in own else value for name, value in parameters.items()}
    return to_json([classifier.name, shared, {name: getattr(classifier.training, name) for name in COMMON_SETTINGS}])


def _renumbered(callback: MemberCallback | None, indices: Sequence[int]) -> MemberCallback:
    """Return a callback that reports member `i` as `indices[i]`."""

    def report(member: int, record: EpochRecord) -> None:
        if callback is not None:
            callback(indices[member], record)

    return report


def _fit_in_worker(data: Data, classifiers: Sequence[NodeClassifier]) -> list[tuple[Any, FairpassError | None]]:
    errors = _fit_batch(classifiers, data, partial(Task, data), _renumbered(None, ()))
    return [(vars(classifier), error) for classifier, error in zip(classifiers, errors, strict=True)]


def _fit_batch(
    classifiers: Sequence[NodeClassifier], data: Data, task_on: Callable[[str], Task], callback: MemberCallback
) -> Errors:
    first = classifiers[0]
    if first.trains_alone:
        return [_error_of(first.fit, data, callbacks=[partial(callback, 0)])]
    task = task_on(first.training.device)
    errors = [_error_of(classifier._check_task, task) for classifier in classifiers]
    members = {i: _member(classifier, task) for i, classifier in enumerate(classifiers) if errors[i] is None}
    if members:
        with seeded(0, deterministic=first.training.deterministic):  # members draw from their own generators
            train_population([*members.values()], task, on_epoch=_renumbered(callback, [*members]))
    for i, member in members.items():
        header = classifiers[i]._describe(task, data)
        errors[i] = _error_of(classifiers[i]._accept, member.program, member.state, header, task)
    return errors


def _error_of(action: Callable[..., object], *arguments: Any, **options: Any) -> FairpassError | None:
    try:
        action(*arguments, **options)
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
