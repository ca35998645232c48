"""Many classifiers fitted on one graph: those of one shape as one batched program, the others one by one."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any

import torch
from torch import Generator
from torch_geometric.data import Data

from fairpass.errors import FairpassError
from fairpass.methods import NodeClassifier
from fairpass.runs.executors import KILLED, Executor, executor_for
from fairpass.training import EpochRecord, Task, seeded
from fairpass.training.population import COMMON_SETTINGS, Member, train_population
from fairpass.training.task import fingerprint
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
    executor: Executor | None = None,
    callback: MemberCallback | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Errors:
    """Fit every classifier in place; return for each the error that it failed with, or None.

    The results are those of `fit`, up to rounding. Classifiers of one method are trained together if they differ only
    in the method's `per_member` hyper-parameters, learning rate, weight decay, seed, epochs and patience.

    Args:
        jobs: processes to share the work; each gets its share of torch's threads.
        executor: where to compute; by default in `jobs` processes.
        callback: called with a classifier's index and the record of each of its epochs (in this process only).
        batch_rows: how many node representations (nodes times members) to have in one batch.
    """
    used, errors = executor or executor_for(jobs), dict[int, FairpassError | None]()
    shares = [[(k, classifiers[k]) for k in batch] for batch in batches(classifiers, data, used.jobs, batch_rows)]
    # In this process the batches share one task on each device.
    here = partial(_fit_batch, task_on=cache(partial(Task, data)), callback=callback)
    for batch, found in used.map(here if used.is_here(len(shares)) else _fit_batch, data, shares):
        outcomes = found or [({}, FairpassError(KILLED)) for _ in batch]
        for (k, classifier), (fitted, error) in zip(batch, outcomes, strict=True):
            vars(classifier).update(fitted)
            errors[k] = error
    return [errors[k] for k in range(len(classifiers))]


def batches(models: Sequence[NodeClassifier], data: Data, jobs: int, rows: int = BATCH_ROWS) -> list[list[int]]:
    """Return batches of indices: classifiers that are trained together, and the others one by one.

    Every process gets the same number of batches of about equal size, but no batch has fewer than two members.
    """
    size = max(2, rows // max(1, data.num_nodes or 0))
    alike: dict[str | None, list[int]] = {}
    for i, model in enumerate(models):
        alike.setdefault(_shape(model), []).append(i)
    found = []
    for shape, indices in alike.items():
        shares = -(-len(indices) // (size * jobs)) * jobs
        shares = len(indices) if shape is None else max(1, min(shares, len(indices) // 2))
        bounds = [len(indices) * k // shares for k in range(shares + 1)]
        found += [indices[start:end] for start, end in pairwise(bounds)]
    return found


def _shape(classifier: NodeClassifier) -> str | None:
    """Return what classifiers that train together have in common; None for one that trains alone."""
    if classifier.trains_alone:
        return None
    own, parameters = classifier.per_member, classifier.hyperparameters
    # Values per member may differ, but None cannot be stacked with numbers.
    shared = {name: value is None if name in own else value for name, value in parameters.items()}
    return to_json([classifier.name, shared, {name: getattr(classifier.training, name) for name in COMMON_SETTINGS}])


def _fit_batch(
    data: Data,
    batch: Sequence[tuple[int, NodeClassifier]],
    task_on: Callable[[str], Task] | None = None,
    callback: MemberCallback | None = None,
) -> list[tuple[dict[str, Any], FairpassError | None]]:
    """Fit classifiers that train together; return for each its attributes, for other processes, and its error."""
    numbers, classifiers = zip(*batch, strict=True)
    first: NodeClassifier = classifiers[0]

    def report(i: int, record: EpochRecord) -> None:
        if callback is not None:
            callback(numbers[i], record)

    if first.trains_alone:
        errors = [_error_of(first.fit, data, callbacks=[partial(report, 0)])]
    else:
        task = (task_on or partial(Task, data))(first.training.device)
        errors = [_error_of(classifier._check_task, task) for classifier in classifiers]
        members = {i: _member(each, task) for i, each in enumerate(classifiers) if errors[i] is None}
        if members:
            places = [*members]
            with seeded(0, deterministic=first.training.deterministic):  # members draw from their own generators
                train_population([*members.values()], task, on_epoch=lambda i, record: report(places[i], record))
        for i, member in members.items():
            header = classifiers[i].describe(task, fingerprint(data))
            errors[i] = _error_of(classifiers[i]._accept, member.program, member.state, header, task)
    return [(vars(classifier), error) for classifier, error in zip(classifiers, errors, strict=True)]


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
