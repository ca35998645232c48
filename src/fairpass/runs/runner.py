"""Make the runs that have no record, and keep each as soon as it is done."""

import logging
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from math import isnan
from typing import Any

import torch
from torch_geometric.data import Data

from fairpass import __version__
from fairpass.datasets import load
from fairpass.datasets.registry import PUBLISHED_SEED
from fairpass.errors import FairpassError
from fairpass.locks import Locks
from fairpass.methods import Constant, NodeClassifier
from fairpass.metrics import Evaluation
from fairpass.runs.comparison import Comparison
from fairpass.runs.executors import KILLED, Executor
from fairpass.runs.population import batches, fit_all
from fairpass.runs.spec import RunSpec
from fairpass.runs.store import RunRecord, RunStore
from fairpass.training import EpochRecord

Measure = Callable[[NodeClassifier, Data], Any]
"""Computes something about a fitted classifier, as plain JSON values."""
OnEpoch = Callable[[RunSpec, EpochRecord], None]
OnFitted = Callable[[RunSpec, NodeClassifier], None]

logger = logging.getLogger(__name__)

_POLL = 0.2  # seconds
TIMING = "timing"
"""Measure of runs whose training time matters: they are made last, one at a time, with no other run beside them."""


@dataclass(frozen=True)
class Progress:
    """How many runs are done, in how many seconds, and the data set and method of the last one."""

    done: int
    total: int
    seconds: float
    what: str


def run(
    specs: Iterable[RunSpec],
    store: RunStore | Comparison,
    *,
    graphs: Mapping[str, Data] | None = None,
    executor: Executor | None = None,
    measures: Mapping[str, Measure] | None = None,
    together: bool = True,
    again: bool = False,
    progress: Callable[[Progress], None] | None = None,
    on_epoch: OnEpoch | None = None,
    on_fitted: OnFitted | None = None,
) -> int:
    """Make every run that the store lacks, and return how many were made.

    Several processes may fill one store: each run is made by one of them, and all return when all runs are done.

    A run that fails is kept with its error and does not stop the others. A graph whose test nodes lack a label or a
    group is a `DataError` before any training on it.

    Args:
        store: contains earlier records, and stores new ones as soon as they are made.
        graphs: your own graphs, by the `dataset` of their specs; all others are benchmarks, and are loaded.
        executor: where to compute; by default in this process.
        measures: functions for the `measures` of the specs, by name.
        together: train runs of one shape as one population, which is faster; the results are those of `fit` up to
            rounding. Otherwise each is trained by `fit`.
        again: make all runs, also those that the store has.
        progress: called after every batch.
        on_epoch: called with the record of every epoch (only in this process).
        on_fitted: called with every fitted classifier (only in this process).
    """
    pending = list(specs) if again else store.missing(specs)
    claims = None if again else store.claims
    make = partial(_make_unclaimed, measures=measures or {}, together=together)
    start, done, made = time.perf_counter(), 0, 0
    by_graph: dict[tuple[Any, ...], list[RunSpec]] = {}
    for spec in sorted(pending, key=lambda spec: TIMING in spec.measures):
        key = (spec.dataset, spec.configuration.scale, spec.split, TIMING in spec.measures)
        by_graph.setdefault(key, []).append(spec)
    for (name, scale, split, timed), todo in by_graph.items():
        seed = PUBLISHED_SEED if split is None else split
        data = graphs[name] if graphs and name in graphs else load(name, scale=scale, split_seed=seed)
        # Problems of the graph show with the simplest method, before any work is done.
        Constant().fit(data).evaluate(data)
        used = Executor() if timed or executor is None else executor
        if used.shares_disk:
            work, receive = partial(make, store=store.handle(), claims=claims), store.remember
        else:  # machines that do not share this disk only return their records, which are stored here
            work, receive = partial(make, store=RunStore(), claims=None), store.keep
        watched = partial(work, on_epoch=on_epoch, on_fitted=on_fitted)
        alone = [[i] for i in range(len(todo))]
        joined = together and not timed
        shares = batches([spec.classifier() for spec in todo], data, used.jobs) if joined else alone
        planned, busy = [[todo[i] for i in share] for share in shares], list[RunSpec]()
        while planned:
            with closing(used.map(watched if used.is_here(len(planned)) else work, data, planned)) as results:
                for batch, found in results:
                    for spec, record in zip(batch, found or [None] * len(batch), strict=True):
                        if record is not None:
                            receive(spec, record)
                            made += 1
                        elif store.made_elsewhere(spec):
                            continue
                        elif found is None and _keep_lost(spec, store, claims):
                            made += 1
                        else:
                            busy.append(spec)
                    done += len(batch)
                    if progress is not None:
                        seconds = time.perf_counter() - start
                        progress(Progress(done - len(busy), len(pending), seconds, f"{name}, {batch[-1].label}"))
            freed, busy = _wait_for(busy, store)
            done -= len(freed)
            planned = [[spec] for spec in freed]
    return made


def _make_unclaimed(
    data: Data, specs: Sequence[RunSpec], *, store: RunStore | Comparison, claims: Locks | None, **options: Any
) -> list[RunRecord | None]:
    """Make and store the runs of a batch; None stands for runs that another process is making or has made."""
    with ExitStack() as claimed:
        todo = []
        for i, spec in enumerate(specs):
            if claims is not None:
                if not claims.acquire(spec.key):
                    continue
                claimed.callback(claims.release, spec.key)
                # Another process may have made the run since the store was read.
                if store.made_elsewhere(spec):
                    continue
            todo.append(i)
        made = dict(zip(todo, make_records(data, [specs[i] for i in todo], **options) if todo else [], strict=True))
        for i, record in made.items():
            store.keep(specs[i], record)
    return [made.get(i) for i in range(len(specs))]


def _wait_for(busy: list[RunSpec], store: RunStore | Comparison) -> tuple[list[RunSpec], list[RunSpec]]:
    """Wait for runs that other processes are making; return those left unfinished, and those still in progress."""
    claims = store.claims
    if busy and claims is not None:
        who = claims.holder(busy[0].key)
        logger.warning("waiting for %d %s that %s is making", len(busy), "run" if len(busy) == 1 else "runs", who)
    while busy and claims is not None:
        over = [spec for spec in busy if claims.is_free(spec.key)]
        freed, busy = [spec for spec in over if not store.made_elsewhere(spec)], [s for s in busy if s not in over]
        if freed:
            return freed, busy
        if busy:
            time.sleep(_POLL)
    return [], []


def _keep_lost(spec: RunSpec, store: RunStore | Comparison, claims: Locks | None) -> bool:
    """Record that the process of a run was killed, unless another process is making the run now, or has made it."""
    if claims is None:
        store.keep(spec, _lost(spec))
        return True
    if not claims.acquire(spec.key):
        return False
    try:
        made_elsewhere = store.made_elsewhere(spec)
        if not made_elsewhere:
            store.keep(spec, _lost(spec))
        return not made_elsewhere
    finally:
        claims.release(spec.key)


def _lost(spec: RunSpec) -> RunRecord:
    return RunRecord(spec.label, spec.seed, 0.0, None, KILLED, {"environment": _environment(), "retry": True})


def make_records(
    data: Data,
    specs: Sequence[RunSpec],
    *,
    measures: Mapping[str, Measure],
    together: bool,
    on_epoch: OnEpoch | None = None,
    on_fitted: OnFitted | None = None,
) -> list[RunRecord]:
    """Train the classifiers of a batch, evaluate and measure them; errors become part of the records."""

    def report(i: int, record: EpochRecord) -> None:
        if on_epoch is not None:
            on_epoch(specs[i], record)

    models = [spec.classifier() for spec in specs]
    errors: list[Exception | None] = [None]
    start = time.perf_counter()
    try:
        if together:
            errors = [*fit_all(models, data, callback=report, batch_rows=len(specs) * (data.num_nodes or 1))]
        else:
            models[0].fit(data, callbacks=[partial(report, 0)])
    except Exception as problem:  # of any kind: it concerns this batch only, and is reported with it
        errors = [problem] * len(specs)
    seconds = (time.perf_counter() - start) / len(specs)
    records = []
    for spec, model, error in zip(specs, models, errors, strict=True):
        evaluation = None
        facts: dict[str, Any] = {"environment": _environment(), "trained_together": len(specs)}
        if error is None:
            try:
                found = model.evaluate(data)
                measured = {name: measures[name](model, data) for name in spec.measures if name != TIMING}
                facts |= {**_outcome(model, found, model.evaluate(data, "val", undefined="nan")), "measured": measured}
                evaluation = found
            except Exception as problem:  # as above
                error = problem  # noqa: PLW2901 # the record keeps the first error of the run
        if error is not None and not isinstance(error, FairpassError):
            facts["retry"] = True
        records.append(RunRecord(spec.label, spec.seed, seconds, evaluation, _in_words(error), facts))
        if on_fitted is not None and error is None:
            on_fitted(spec, model)
    return records


def _in_words(problem: Exception | None) -> str | None:
    if problem is None:
        return None
    if isinstance(problem, MemoryError):
        return "there is not enough memory"
    # A bug has no message for users; the name of its class is the least that helps to find it.
    known = isinstance(problem, FairpassError | ValueError | OSError)
    return str(problem) if known and str(problem) else f"{type(problem).__name__}: {problem}"


def _outcome(model: NodeClassifier, evaluation: Evaluation, on_validation: Evaluation) -> dict[str, Any]:
    """Return selected epoch, threshold and metrics (in percent) as records hold them."""
    chosen, window = model.selected_, model.training.window
    # The validation score of the final decisions, or averaged as in the selection of epochs.
    selection = chosen.selection if window == 1 else model.history_.smoothed(model.epoch_, window)
    test = {
        **{name: _digits(value) for name, value in evaluation.percent().items()},
        "balanced_accuracy": _digits(100 * evaluation.balanced_acc),
        "positive_rate": _digits(100 * (evaluation.positive_rate or 0.0)),
        "group_rates": [_digits(100 * row.selection_rate) for row in evaluation.groups],
        "near_constant": bool(evaluation.near_constant),
    }
    validation = {name: _digits(100 * value) for name, value in chosen.metrics.items()}
    kept = {"epoch": model.epoch_, "epochs": len(model.history_), "threshold": _digits(chosen.threshold)}
    seen = {"selection": _digits(selection), "near_constant": bool(on_validation.near_constant)}
    return {**kept, "validation": {**validation, **seen}, "test": test}


def _digits(value: float | None) -> float | None:
    return None if value is None or isnan(value) else round(float(value), 4)


def _environment() -> dict[str, Any]:
    return {
        "fairpass": __version__,
        "torch": version("torch"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }
