"""The one runner: makes the runs that have no record yet, many at once, and keeps each as soon as it is done."""

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from math import isnan
from typing import Any

import torch
from torch_geometric.data import Data

from fairpass import __version__
from fairpass.datasets import load
from fairpass.datasets.registry import PUBLISHED_SEED
from fairpass.errors import FairpassError
from fairpass.experiments.measures import MEASURES
from fairpass.experiments.records import Record, Records
from fairpass.experiments.spec import Spec
from fairpass.methods import NodeClassifier
from fairpass.methods.population import batches, fit_all
from fairpass.methods.workers import Workers

# Named in a spec's measures, but no function of the fitted model: its time is measured, alone on the machine.
TIMING = "timing"
# Node representations (nodes times members) trained as one: no more, because a batch that is interrupted is lost.
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class Progress:
    """How far a job has come."""

    done: int
    total: int
    seconds: float
    what: str

    @property
    def remaining(self) -> float:
        """Return an estimate of the seconds that are left; nan before anything is done."""
        return self.seconds / self.done * (self.total - self.done) if self.done else float("nan")


OnProgress = Callable[[Progress], None]


def run_specs(
    specs: Iterable[Spec],
    records: Records,
    *,
    jobs: int = 1,
    on_progress: OnProgress | None = None,
    data_dir: str | None = None,
) -> int:
    """Make every run that has no record, and return how many were made.

    Runs on the same graph whose programs have one shape are trained together. Runs whose time is measured come last,
    one after another with nothing beside them.

    Args:
        specs: of the runs, in any order; those that occur twice are made once.
        records: where they are kept.
        jobs: processes to share the work.
        on_progress: called after every batch.
        data_dir: where the data sets are.
    """
    pending = {spec.key: spec for spec in specs if spec not in records}
    timed = [spec for spec in pending.values() if TIMING in spec.measures]
    others = [spec for spec in pending.values() if TIMING not in spec.measures]
    start, done = time.perf_counter(), 0

    def keep(found: Sequence[Record]) -> None:
        nonlocal done
        for record in found:
            records.add(record)
        done += len(found)
        if on_progress is not None and found:
            last = found[-1]
            what = f"{last['dataset']}, {last['method']}"
            on_progress(Progress(done, len(pending), time.perf_counter() - start, what))

    for graph, of_graph in _by_graph(others).items():
        data = _load(*graph, data_dir)
        for found in _make(of_graph, data, jobs):
            keep(found)
    for graph, of_graph in _by_graph(timed).items():
        data = _load(*graph, data_dir)
        for spec in of_graph:
            keep(make_records(data, [spec]))
    return done


def _by_graph(specs: Iterable[Spec]) -> dict[tuple[str, str, int | None], list[Spec]]:
    found: dict[tuple[str, str, int | None], list[Spec]] = {}
    for spec in specs:
        found.setdefault((spec.dataset, spec.configuration.scale, spec.split), []).append(spec)
    return found


def _load(dataset: str, scale: Any, split: int | None, data_dir: str | None) -> Data:
    return load(dataset, scale=scale, data_dir=data_dir, split_seed=PUBLISHED_SEED if split is None else split)


def _make(specs: Sequence[Spec], data: Data, jobs: int) -> Iterator[list[Record]]:
    classifiers = [_classifier(spec) for spec in specs]
    size = max(2, _BATCH_ROWS // max(1, data.num_nodes or 1))
    todo = [[specs[i] for i in batch] for batch in batches(classifiers, size, jobs)]
    if jobs == 1:
        for batch in todo:
            yield make_records(data, batch)
        return
    with Workers(data, jobs) as workers:
        waiting: list[Future[list[Record]]] = [workers.submit(make_records, batch) for batch in todo]
        for done in as_completed(waiting):
            yield done.result()


def make_records(data: Data, specs: Sequence[Spec]) -> list[Record]:
    """Train the classifiers of some runs on a graph, evaluate and measure them; an error is part of a record."""
    classifiers = [_classifier(spec) for spec in specs]
    start = time.perf_counter()
    errors = fit_all(classifiers, data, batch_rows=len(specs) * (data.num_nodes or 1))
    seconds = (time.perf_counter() - start) / len(specs)
    return [
        _record(spec, classifier, error, data, seconds, len(specs))
        for spec, classifier, error in zip(specs, classifiers, errors, strict=True)
    ]


def _classifier(spec: Spec) -> NodeClassifier:
    return spec.configuration.classifier(spec.seed)


def _record(
    spec: Spec, model: NodeClassifier, error: FairpassError | None, data: Data, seconds: float, together: int
) -> Record:
    record: dict[str, Any] = {
        "key": spec.key,
        **spec.identity,
        "seed": spec.seed,
        "environment": {**_environment(), "threads": torch.get_num_threads()},
        "seconds": round(seconds, 3),
        "trained_together": together,
        "error": None if error is None else str(error),
    }
    if error is None:
        chosen = model.selected_
        evaluation = model.evaluate(data)
        record |= {
            "epoch": model.epoch_,
            "epochs": len(model.history_),
            "threshold": _digits(chosen.threshold),
            "validation": {
                **{name: _digits(100 * value) for name, value in chosen.metrics.items()},
                "selection": _digits(_selection(model)),
            },
            "test": {
                **{name: _digits(value) for name, value in evaluation.percent().items()},
                "balanced_accuracy": _digits(100 * evaluation.balanced_acc),
                "positive_rate": _digits(100 * (evaluation.positive_rate or 0.0)),
                "group_rates": [_digits(100 * row.selection_rate) for row in evaluation.groups],
                "near_constant": bool(evaluation.near_constant),
            },
            "measured": {name: MEASURES[name](model, data) for name in spec.measures if name != TIMING},
        }
    return record


def _selection(model: NodeClassifier) -> float:
    """Return what validation says of a fitted model, of its final decisions or averaged as its epochs were."""
    window = model.training.window
    return model.selected_.selection if window == 1 else model.history_.smoothed(model.epoch_, window)


def _digits(value: float | None) -> float | None:
    return None if value is None or isnan(value) else round(float(value), 4)


@cache
def _environment() -> dict[str, Any]:
    return {
        "fairpass": __version__,
        "torch": version("torch"),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
