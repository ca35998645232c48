"""One process's work for a study: ask, train with all seeds, tell, until the budget is used."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optuna.exceptions import TrialPruned
from optuna.trial import Trial, TrialState
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import NodeClassifier
from fairpass.runs.population import BATCH_ROWS, MemberCallback, fit_all
from fairpass.training import EpochRecord
from fairpass.tuning.budget import Budget
from fairpass.tuning.choice import choose
from fairpass.tuning.front import Point
from fairpass.tuning.ledger import Ledger
from fairpass.tuning.measure import Measure
from fairpass.tuning.strategies import directions
from fairpass.tuning.study import running

# At most so many configurations at once: of more, a strategy would have to propose too many without feedback.
_BATCH = 8
# After so many failures and no success, the configurations are not to blame.
_HOPELESS = 3
# How often the pruner looks at a trial.
_LOOKS = 20
# Seconds between two reports of progress, and between two looks at whether others are done.
_OFTEN, _POLL = 0.1, 0.5


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


class Worker:
    """Claims trials, trains them and keeps the outcomes."""

    def __init__(
        self, data: Data, ledger: Ledger, budget: Budget, seeds: Sequence[int], callback: ProgressCallback | None
    ) -> None:
        self.data, self.ledger, self.budget, self.seeds, self.callback = data, ledger, budget, seeds, callback
        self.measure = Measure(data)
        # As many as one population takes; on large graphs one configuration at a time.
        self.batch = min(_BATCH, max(1, BATCH_ROWS // (self.measure.num_nodes * len(seeds))))
        self.start = time.monotonic()
        self.trained, self.training_seconds = 0, 0.0
        self.points = ledger.points()
        self.last_report = 0.0

    def run(self) -> None:
        """Train configurations until the budget is used."""
        while not self._is_hopeless():
            size = self._affordable()
            batch = self.ledger.claim(size, self.budget.trials) if size > 0 else []
            if batch:
                self._train(batch)
            elif running(self.ledger.study) and not self._is_late():
                # Others work on the rest; if that gets lost, it is ours to do.
                self._report(len(self.ledger.finished()), 0, 0.0)
                time.sleep(_POLL)
            else:
                break
        if not self.ledger.points():
            reason, *_ = [*self.ledger.errors(), "all of them were stopped early"]
            raise DataError(f"no configuration of {self.ledger.configurations.method} could be trained: {reason}")

    def _is_hopeless(self) -> bool:
        errors = len(self.ledger.errors())
        return errors >= _HOPELESS and errors == len(self.ledger.finished())

    def _affordable(self) -> int:
        """Return how many configurations may be trained next."""
        size = self.batch
        if self.ledger.grid is not None:
            size = min(size, len(self.ledger.untried()))
        if self.budget.trials is not None:
            size = min(size, self.budget.trials - len(self.ledger.taken()))
        if self.budget.seconds is not None:
            # How long the first one takes is not known, but there has to be one.
            size = min(size, int(self._seconds_left() / self._seconds_each()) if self.trained else 1)
        return size

    def _seconds_left(self) -> float:
        return (self.budget.seconds or 0.0) - (time.monotonic() - self.start)

    def _seconds_each(self) -> float:
        return self.training_seconds / max(self.trained, 1)

    def _is_late(self) -> bool:
        return self.budget.seconds is not None and self._seconds_left() < self._seconds_each()

    def _train(self, batch: Sequence[Trial]) -> None:
        began, size = time.monotonic(), len(self.seeds)
        models = [self._classifier(trial, seed) for trial in batch for seed in self.seeds]
        try:
            errors = fit_all(models, self.data, callback=self._watch(batch, models))
            for i, trial in enumerate(batch):
                own = slice(i * size, (i + 1) * size)
                if problems := [error for error in errors[own] if error is not None]:
                    self.ledger.fail(trial, problems[0])
                else:
                    self.points.append(self.ledger.conclude(trial, self.measure(models[own])))
        except TrialPruned:
            self.ledger.study.tell(batch[0], state=TrialState.PRUNED, skip_if_finished=True)
        except BaseException:
            self.ledger.abandon(batch)
            raise
        self.trained += len(batch)
        self.training_seconds += time.monotonic() - began

    def _classifier(self, trial: Trial, seed: int) -> NodeClassifier:
        model = self.ledger.configurations.classifier(trial.params, seed=seed)
        model.training = model.training.but(track_discrepancy=False)  # takes time, and changes nothing
        return model

    def _watch(self, batch: Sequence[Trial], models: Sequence[NodeClassifier]) -> MemberCallback:
        """Return what is called after every epoch of every model: it reports progress and prunes."""
        finished, epochs = len(self.ledger.finished()), models[0].training.epochs
        done = [0] * len(models)
        can_prune = models[0].trains_alone and len(directions(self.ledger.strategy)) == 1
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
        if self.ledger.grid is not None:
            used.append(done / len(self.ledger.grid))
        if self.budget.seconds is not None:
            used.append(1 - self._seconds_left() / self.budget.seconds)
        best = choose(self.points) if self.points else None
        self.callback(Progress(min(1.0, max(used)), finished, training, best))


class _Prune:
    """Stops a trial if its first seed, so far, does worse than the median of earlier trials."""

    def __init__(self, trial: Trial, model: NodeClassifier) -> None:
        self.trial, self.best = trial, -float("inf")
        self.every = max(1, model.training.epochs // _LOOKS)
        self.only_last = model.training.select == "last"

    def __call__(self, record: EpochRecord) -> None:
        """Look at an epoch; raise `TrialPruned` to stop."""
        self.best = record.selection if self.only_last else max(self.best, record.selection)
        # A value that is not a number ends the training anyway, with its own error.
        if record.epoch % self.every == 0 and self.best > -float("inf"):
            self.trial.report(self.best, record.epoch)
            if self.trial.should_prune():
                raise TrialPruned
