"""One process's part of a study: ask, train with all seeds, tell, until the budget is used."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from optuna.exceptions import TrialPruned, UpdateFinishedTrialError
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import NodeClassifier
from fairpass.runs.population import BATCH_ROWS, MemberCallback, fit_all
from fairpass.training import EpochRecord
from fairpass.tuning.budget import Budget
from fairpass.tuning.choice import choose
from fairpass.tuning.front import Point
from fairpass.tuning.measure import Measure
from fairpass.tuning.spaces import Configurations
from fairpass.tuning.strategies import SeededSampler, distribution, values
from fairpass.tuning.study import give_up, running, sign

# Configurations in one batch, at most: with more, a strategy would have to propose too many without feedback.
_BATCH = 8
# After this many failures and no success, the configurations are not to blame.
_HOPELESS = 3
# How often the pruner looks at a trial.
_LOOKS = 20
# Seconds between two reports of progress, and between two looks at whether others are done.
_OFTEN, _POLL = 0.1, 0.5
# What is kept with a trial.
_OUTCOME, _ERROR = "outcome", "error"


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    Attributes:
        fraction: share of the budget that is used, from 0 to 1.
        finished: number of configurations that are done, by earlier calls and other processes too.
        training: number of configurations that this process is training; 0: it waits for others.
        best: the best so far, if any.
    """

    fraction: float
    finished: int
    training: int
    best: Point | None


ProgressCallback = Callable[[Progress], None]


@dataclass
class Worker:
    """Claims trials, trains them and keeps the outcomes; others may work on the same study."""

    data: Data
    study: Study
    owner: str
    """Name of this search in the study."""
    configurations: Configurations
    sampler: SeededSampler
    grid: Sequence[Mapping[str, Any]] | None
    """All configurations, in the order in which they are tried; None: the sampler proposes."""
    budget: Budget
    seeds: Sequence[int]
    callback: ProgressCallback | None

    def __post_init__(self) -> None:
        self.measure = Measure(self.data)
        # As many as one population takes; on large graphs one configuration at a time.
        self.batch: int = min(_BATCH, max(1, BATCH_ROWS // (self.measure.num_nodes * len(self.seeds))))
        self.start, self.last_report = time.monotonic(), 0.0
        self.trained, self.seconds_each = 0, 0.0
        self.known = self.points()

    def run(self) -> None:
        while (failed := len(self.errors())) < _HOPELESS or failed < len(self._finished()):
            size = self._affordable()
            batch = self._claim(size) if size > 0 else []
            if batch:
                self._train(batch)
            elif running(self.study) and self._seconds_left() >= self.seconds_each:
                # Others work on the rest; if that gets lost, it is ours to do.
                self._report(len(self._finished()), 0, 0.0)
                time.sleep(_POLL)
            else:
                break
        if not self.points():
            reason, *_ = [*self.errors(), "all of them were stopped early"]
            raise DataError(f"no configuration of {self.configurations.method} could be trained: {reason}")

    def points(self) -> list[Point]:
        """Return the configurations that were trained to the end, in the order of their trials."""
        done = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return [self.configurations.point(trial.params, **trial.user_attrs[_OUTCOME]) for trial in done]

    def errors(self) -> list[str]:
        """Return why trials failed."""
        trials = self.study.get_trials(deepcopy=False)
        return [trial.user_attrs[_ERROR] for trial in trials if _ERROR in trial.user_attrs]

    def _finished(self) -> list[FrozenTrial]:
        """Return the trials that count: complete, stopped early, or failed for a reason of their own."""
        ended = (TrialState.COMPLETE, TrialState.PRUNED)
        trials = self.study.get_trials(deepcopy=False)
        return [trial for trial in trials if trial.state in ended or _ERROR in trial.user_attrs]

    def _taken(self) -> list[FrozenTrial]:
        return [*self._finished(), *running(self.study)]

    def _untried(self) -> list[Mapping[str, Any]]:
        taken = {frozenset(trial.params.items()) for trial in self._taken()}
        return [values for values in self.grid or () if frozenset(values.items()) not in taken]

    def _affordable(self) -> int:
        """Return how many configurations may be trained next."""
        size: int = self.batch
        if self.grid is not None:
            size = min(size, len(self._untried()))
        if self.budget.trials is not None:
            size = min(size, self.budget.trials - len(self._taken()))
        if self.budget.seconds is not None:
            # How long the first one takes is not known, but there has to be one.
            size = min(size, int(self._seconds_left() / self.seconds_each) if self.seconds_each else 1)
        return size

    def _seconds_left(self) -> float:
        """Return what is left of the time budget; infinite without one."""
        return (self.budget.seconds or math.inf) - (time.monotonic() - self.start)

    def _claim(self, size: int) -> list[Trial]:
        """Begin new trials: one if its classifier trains alone, otherwise up to `size` that train as one population."""
        claimed: list[Trial] = []
        varied = {name: distribution(each) for name, each in self.configurations.varied.items()}
        try:
            while len(claimed) < size and (prescribed := self._prescribe(claimed)) is not None:
                self.sampler.fixed = prescribed
                claimed.append(self.study.ask(varied))
                sign(claimed[-1], self.owner)
                if self.configurations.classifier(claimed[-1].params).trains_alone:
                    break
            # Others may have claimed some at the same moment.
            within = sorted(trial.number for trial in self._taken())[: self.budget.trials]
            self._abandon([trial for trial in claimed if trial.number not in within])
            return [trial for trial in claimed if trial.number in within]
        except BaseException:
            self._abandon(claimed)
            raise

    def _prescribe(self, claimed: Sequence[Trial]) -> Mapping[str, Any] | None:
        """Return the values that the next trial must have; None if the grid has no more with these."""
        shape = {name: claimed[0].params[name] for name in self.configurations.shape()} if claimed else {}
        if self.grid is not None:
            return next((values for values in self._untried() if shape.items() <= values.items()), None)
        if claimed or self.study.get_trials(deepcopy=False):
            return shape
        return self.configurations.default()  # so that the result is never worse than without a search

    def _abandon(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            give_up(self.study, trial.number)

    def _tell(self, trial: Trial, kept: Mapping[str, Any], told: Sequence[float] | None = None) -> None:
        """Keep the outcome of a trial: its values, or why it failed."""
        with suppress(UpdateFinishedTrialError):  # another search gave it up and tries something else
            for name, value in kept.items():
                trial.set_user_attr(name, value)
            self.study.tell(trial, told, None if told else TrialState.FAIL, skip_if_finished=True)

    def _train(self, batch: Sequence[Trial]) -> None:
        began, size = time.monotonic(), len(self.seeds)
        models = [self.configurations.classifier(trial.params, seed=seed) for trial in batch for seed in self.seeds]
        for model in models:
            model.training = model.training.but(track_discrepancy=False)  # takes time, and changes nothing
        try:
            errors = fit_all(models, self.data, callback=self._watch(batch, models))
            for i, trial in enumerate(batch):
                own = slice(i * size, (i + 1) * size)
                if problems := [str(error) for error in errors[own] if error is not None]:
                    self._tell(trial, {_ERROR: problems[0]})
                    continue
                outcome = self.measure(models[own])
                point = self.configurations.point(trial.params, **outcome)
                self._tell(trial, {_OUTCOME: outcome}, values(point, self.sampler.strategy))
                self.known.append(point)
        except TrialPruned:
            self.study.tell(batch[0], state=TrialState.PRUNED, skip_if_finished=True)
        except BaseException:
            self._abandon(batch)
            raise
        seconds = self.trained * self.seconds_each + time.monotonic() - began
        self.trained += len(batch)
        self.seconds_each = seconds / self.trained

    def _watch(self, batch: Sequence[Trial], models: Sequence[NodeClassifier]) -> MemberCallback:
        """Return what is called after every epoch of every model: it reports progress and prunes."""
        finished, epochs = len(self._finished()), models[0].training.epochs
        done = [0] * len(models)
        can_prune = models[0].trains_alone and len(self.study.directions) == 1
        prune = _Prune(batch[0], models[0]) if can_prune else None

        def watch(i: int, record: EpochRecord) -> None:
            done[i] = record.epoch + 1
            if prune is not None and i == 0:
                prune(record)
            if time.monotonic() - self.last_report >= _OFTEN:
                self._report(finished, len(batch), sum(done) / (len(models) * epochs))

        return watch

    def _report(self, finished: int, training: int, share: float) -> None:
        """Report progress; `share` is the part of the configurations in training that is done."""
        self.last_report = time.monotonic()
        if self.callback is None:
            return
        used, done = [0.0], finished + training * share
        if self.budget.trials is not None:
            used.append(done / self.budget.trials)
        if self.grid is not None:
            used.append(done / len(self.grid))
        if self.budget.seconds is not None:
            used.append(1 - self._seconds_left() / self.budget.seconds)
        self.callback(Progress(min(1.0, max(used)), finished, training, choose(self.known) if self.known else None))


class _Prune:
    """Stops a trial if its first seed, so far, does worse than the median of earlier trials."""

    def __init__(self, trial: Trial, model: NodeClassifier) -> None:
        self.trial, self.best = trial, -float("inf")
        self.every = max(1, model.training.epochs // _LOOKS)
        self.only_last = model.training.select == "last"

    def __call__(self, record: EpochRecord) -> None:
        self.best = record.selection if self.only_last else max(self.best, record.selection)
        # A value that is not a number ends the training anyway, with its own error.
        if record.epoch % self.every == 0 and self.best > -float("inf"):
            self.trial.report(self.best, record.epoch)
            if self.trial.should_prune():
                raise TrialPruned
