"""The search: configurations are proposed in batches, and each is trained with several seeds."""

import hashlib
import logging
import math
import os
import random
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Any, get_args

from optuna.exceptions import TrialPruned, UpdateFinishedTrialError
from optuna.pruners import MedianPruner, NopPruner
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState
from sklearn.exceptions import UndefinedMetricWarning
from torch_geometric.data import Data

from fairpass import __version__
from fairpass.documents import validate
from fairpass.errors import DataError
from fairpass.methods import NodeClassifier
from fairpass.methods.estimator import SpaceKind
from fairpass.metrics.catalog import SELECTION
from fairpass.metrics.evaluation import impact_ratio
from fairpass.parameters import MOST_SEEDS, check_count, check_seed
from fairpass.runs.executors import Executor
from fairpass.runs.population import BATCH_ROWS, MemberCallback, fit_all
from fairpass.training import EpochRecord, Task, fingerprint
from fairpass.training.tensors import to_json
from fairpass.tuning.budget import Budget
from fairpass.tuning.claims import ERROR, Claims, finished, in_batches, place_of
from fairpass.tuning.database import readable
from fairpass.tuning.front import IMPACT_RATIO, Point, choose
from fairpass.tuning.result import Tuned
from fairpass.tuning.spaces import Configurations, Space, combinations, space_of
from fairpass.tuning.strategies import SeededSampler, Strategy, directions, values
from fairpass.tuning.study import give_up, open_study

logger = logging.getLogger(__name__)

_BATCH = 8  # configurations, at most: with more, a strategy would have to propose too many without feedback
_HOPELESS = 3  # failures without a success after which the search ends: configurations are not the cause
_SPARED = 5  # trials that are never stopped early; later ones are not stopped in the first quarter of epochs
_LOOKS = 20  # how often the pruner looks at a trial
_OFTEN, _POLL = 0.1, 0.5  # seconds between progress reports, and between checks whether other searches are done
_OUTCOME = "outcome"  # attribute of a trial


@dataclass(frozen=True)
class Progress:
    """How far a search is."""

    fraction: float  # of the budget that is used, from 0 to 1
    finished: int  # configurations that are done, by earlier calls and other processes too
    training: int  # configurations that this process is training; 0: it waits for others
    best: Point | None  # so far


ProgressCallback = Callable[[Progress], None]


def tune(
    data: Data,
    method: str,
    *,
    budget: Budget | int | str,
    storage: str | os.PathLike[str] | None = None,
    seeds: int | Sequence[int] = 3,
    fixed: Mapping[str, Any] | None = None,
    space: Space | None = None,
    strategy: Strategy = "tpe",
    seed: int = 0,
    executor: Executor | None = None,
    callback: ProgressCallback | None = None,
) -> Tuned:
    """Search for good configurations of a method on a graph.

    Epochs and configurations are judged on the validation nodes only. The metrics on the test nodes are computed and
    kept beside them for the reader; nothing is chosen by them.

    Args:
        budget: a number of configurations in all, a time for this call such as `"10m"`, or a :class:`Budget`.
        storage: where the study is kept: the path of an SQLite file, or any database URL that Optuna takes. The same
            call continues the study, also from several processes at once; another graph, space, value of `fixed` or
            of `seeds` begins a study of its own. None: nothing is kept.
        seeds: each configuration is trained with these, and judged by the means; a number `n` is 0 to `n - 1`.
        fixed: parameters and training settings that are not varied, by name.
        space: what to vary; by default :func:`space_of` the method, its grid if the strategy is `"grid"`.
        strategy: `"tpe"` maximises `AUC + F1 + ACC - DP - EO`; `"motpe"` (also TPE) and `"nsga2"` look for the whole
            front of utility and unfairness; `"random"`; `"grid"` tries every combination, in random order.
        seed: of the strategy's random numbers.
        executor: where to train; by default in this process. In other processes, no trial is stopped early.
    """
    if strategy not in get_args(Strategy):
        raise ValueError(f"'strategy' must be one of {get_args(Strategy)} (got {strategy!r})")
    limit = Budget.of(budget)
    used = _seeds(seeds)
    check_seed("seed", seed)
    kind: SpaceKind = "grid" if strategy == "grid" else "recommended"
    configurations = Configurations.of(method, space_of(method, kind) if space is None else space, fixed or {})
    grid = None
    if strategy == "grid":
        grid = list(combinations(configurations.varied))
        random.Random(seed).shuffle(grid)  # so that any part of it is a random sample of the grid
    goals = list(directions(strategy))
    settings = {**configurations.describe(), "seeds": list(used), "directions": goals}
    graph = fingerprint(data)
    name = f"{method}-{hashlib.sha256(to_json([settings, graph, __version__]).encode()).hexdigest()[:12]}"
    sampler = SeededSampler(strategy, seed)
    epochs = configurations.classifier(configurations.first()).training.epochs
    pruner = MedianPruner(_SPARED, epochs // 4) if len(goals) == 1 else NopPruner()
    where = executor or Executor()
    is_here = where.is_here(_BATCH)
    # As many as one population takes; on large graphs one configuration at a time.
    batch = min(_BATCH, max(1, where.jobs * BATCH_ROWS // (Task(data).num_nodes * len(used))))
    places = None if grid is None else in_batches(grid, configurations, batch)
    with open_study(name, storage, directions=goals, sampler=sampler, pruner=pruner) as shared:
        claims = Claims(shared, configurations, sampler, places, limit.trials, batch, not is_here)
        with readable(storage):
            search = _Search(data, shared.study, claims, limit, used, where, callback)
            for point in search.known:
                validate(point.to_dict(), Point)
        search.run()
        return Tuned(
            method=method,
            points=tuple(search.points()),
            varied=tuple(configurations.varied),
            study=name,
            settings={**settings, "strategy": strategy},
            graph=graph,
            provenance=data.get("provenance"),
            pruned=len(search.trials(TrialState.PRUNED)),
            failed=len(search.errors()),
        )


def _seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(seeds, Iterable):
        used = tuple(seeds)
        for each in used:
            check_seed("seeds", each)
        if not used or len(set(used)) < len(used):
            raise ValueError(f"'seeds' must be a number of at least 1, or different seeds (got {seeds})")
        return tuple(map(int, used))  # JSON cannot hold NumPy integers
    check_count("seeds", seeds, most=MOST_SEEDS)
    return tuple(range(seeds))


@dataclass
class _Search:
    """One process's part of a study: ask, train with all seeds, tell, until the budget is used."""

    data: Data
    study: Study
    claims: Claims
    budget: Budget
    seeds: Sequence[int]
    executor: Executor
    callback: ProgressCallback | None

    def __post_init__(self) -> None:
        self.configurations, self.sampler = self.claims.configurations, self.claims.sampler
        self.start, self.last_report = time.monotonic(), 0.0
        self.trained, self.seconds_each = 0, 0.0
        self.known = self.points()

    def run(self) -> None:
        told = False
        while (failed := len(self.errors())) < _HOPELESS or failed < len(finished(self.study)):
            size = self._in_time()
            batch = self.claims.take(size) if size > 0 else []
            if batch:
                self._train(batch)
            elif self.claims.others and self._seconds_left() >= self.seconds_each:
                # Other searches are trying the rest. If one of them is killed, its trials are tried here.
                if not told:
                    number = f"{self.claims.others} configuration{'' if self.claims.others == 1 else 's'}"
                    logger.warning("waiting for %s that another search is trying", number)
                told = True
                self._report(len(finished(self.study)), 0, 0.0)
                time.sleep(_POLL)
            else:
                break
        if not self.points():
            reason, *_ = [*self.errors(), "all of them were stopped early"]
            raise DataError(f"no configuration of {self.configurations.method} could be trained: {reason}")

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=states or None)

    def points(self) -> list[Point]:
        """Return the configurations that were trained to the end, in the order of their places."""
        done = sorted(self.trials(TrialState.COMPLETE), key=place_of)
        return [self.configurations.point(trial.params, **trial.user_attrs[_OUTCOME]) for trial in done]

    def errors(self) -> list[str]:
        return [trial.user_attrs[ERROR] for trial in self.trials() if ERROR in trial.user_attrs]

    def _in_time(self) -> int:
        """Return how many configurations to train next in the time that is left."""
        if self.budget.seconds is None:
            return self.claims.batch
        # The time that the first one takes is unknown, but one is trained in any case.
        fitting = int(self._seconds_left() / self.seconds_each) if self.seconds_each else 1
        return min(self.claims.batch, fitting)

    def _seconds_left(self) -> float:
        return (self.budget.seconds or math.inf) - (time.monotonic() - self.start)

    def _tell(self, trial: Trial, kept: str, value: Any, told: Sequence[float] | None = None) -> None:
        """Keep the outcome of a trial, or why it failed."""
        with suppress(UpdateFinishedTrialError):  # another search gave it up and tries something else
            trial.set_user_attr(kept, value)
            self.study.tell(trial, told, None if told else TrialState.FAIL, skip_if_finished=True)

    def _train(self, batch: Sequence[Trial]) -> None:
        began, size = time.monotonic(), len(self.seeds)
        models = [self.configurations.classifier(trial.params, seed=seed) for trial in batch for seed in self.seeds]
        for model in models:
            model.training = model.training.but(track_discrepancy=False)  # takes time, and changes nothing
        try:
            watch = self._watch(batch, models)
            errors = fit_all(models, self.data, executor=self.executor, callback=watch)
            for i, trial in enumerate(batch):
                own = slice(i * size, (i + 1) * size)
                if problems := [str(error) for error in errors[own] if error is not None]:
                    self._tell(trial, ERROR, problems[0])
                    continue
                outcome = _outcome(models[own], self.data)
                point = self.configurations.point(trial.params, **outcome)
                self._tell(trial, _OUTCOME, outcome, values(point, self.sampler.strategy))
                self.known.append(point)
        except TrialPruned:
            self.study.tell(batch[0], state=TrialState.PRUNED, skip_if_finished=True)
        except BaseException:
            give_up(self.study, [trial.number for trial in batch])
            raise
        seconds = self.trained * self.seconds_each + time.monotonic() - began
        self.trained += len(batch)
        self.seconds_each = seconds / self.trained

    def _watch(self, batch: Sequence[Trial], models: Sequence[NodeClassifier]) -> MemberCallback:
        """Return what is called after every epoch of every model: it reports progress and prunes."""
        finished_before, epochs = len(finished(self.study)), models[0].training.epochs
        done = [0] * len(models)
        if self.claims.side_by_side:
            self._report(finished_before, len(batch), 0.0)  # the only report: other processes do not report epochs
        can_prune = models[0].trains_alone and len(self.study.directions) == 1
        prune = _Prune(batch[0], models[0]) if can_prune else None

        def watch(i: int, record: EpochRecord) -> None:
            done[i] = record.epoch + 1
            if prune is not None and i == 0:
                prune(record)
            if time.monotonic() - self.last_report >= _OFTEN:
                self._report(finished_before, len(batch), sum(done) / (len(models) * epochs))

        return watch

    def _report(self, finished: int, training: int, share: float) -> None:
        """Report progress; `share` is the part of the configurations in training that is done."""
        self.last_report = time.monotonic()
        if self.callback is None:
            return
        limits = [self.budget.trials, None if self.claims.grid is None else len(self.claims.grid)]
        used = [(finished + training * share) / limit for limit in limits if limit is not None]
        if self.budget.seconds is not None:
            used.append(1 - self._seconds_left() / self.budget.seconds)
        self.callback(Progress(min(1.0, max(used)), finished, training, choose(self.known) if self.known else None))


class _Prune:
    """Stops a trial if its first seed has done worse so far than the median of earlier trials."""

    def __init__(self, trial: Trial, model: NodeClassifier) -> None:
        self.trial, self.best = trial, -math.inf
        self.every = max(1, model.training.epochs // _LOOKS)
        self.only_last = model.training.select == "last"

    def __call__(self, record: EpochRecord) -> None:
        self.best = record.selection if self.only_last else max(self.best, record.selection)
        # A value that is not a number ends the training anyway, with its own error.
        if record.epoch % self.every == 0 and self.best > -math.inf:
            self.trial.report(self.best, record.epoch)
            if self.trial.should_prune():
                raise TrialPruned


def _outcome(models: Sequence[NodeClassifier], data: Data) -> dict[str, Any]:
    """Return `validation`, `test` and `near_constant` of one configuration, fitted with several seeds."""
    tested = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        validated = [model.evaluate(data, "val", undefined="nan") for model in models]
        with suppress(DataError):  # there is no test split
            found = [model.evaluate(data, undefined="nan").metrics for model in models]
            tested = {metric.label: fmean(each[metric.key] for each in found) for metric in SELECTION}
    validation = {m.label: fmean(model.selected_.metrics[m.label] for model in models) for m in SELECTION}
    ratios = [impact_ratio(each.groups) for each in validated]
    return {
        "validation": validation | ({} if any(map(math.isnan, ratios)) else {IMPACT_RATIO: fmean(ratios)}),
        "test": None if tested is None or any(map(math.isnan, tested.values())) else tested,
        "near_constant": 2 * sum(each.near_constant for each in validated) >= len(models),
    }
