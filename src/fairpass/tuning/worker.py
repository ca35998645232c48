"""One process's work for a study: batches of configurations, each trained with all seeds, until the budget is used."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optuna.exceptions import TrialPruned
from optuna.trial import Trial
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import NodeClassifier
from fairpass.runs.population import BATCH_ROWS, fit_all
from fairpass.training import EpochRecord
from fairpass.tuning.budget import Budget
from fairpass.tuning.choice import choose
from fairpass.tuning.front import Point
from fairpass.tuning.ledger import Ledger
from fairpass.tuning.measure import Measure
from fairpass.tuning.strategies import directions

# At most so many configurations are tried at once: of more, a strategy would have to propose too many blindly.
_BATCH = 8
# After so many failures and no success, the fault is not the configurations'.
_HOPELESS = 3
# How often the pruner looks at a trial.
_LOOKS = 20
# Seconds between two reports of progress, and two looks at whether others are done.
_OFTEN, _POLL = 0.1, 0.5


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    Attributes:
        fraction: of the budget that is used, from 0 to 1.
        finished: configurations that are done, those of earlier calls and of other processes included.
        training: configurations that this process trains at the moment; 0: it waits for others.
        best: the best one so far, if there is one.
    """

    fraction: float
    finished: int
    training: int
    best: Point | None


ProgressCallback = Callable[[Progress], None]


class Worker:
    """Claims trials, trains them, and writes down what came out.

    Args:
        data: the graph.
        ledger: the trials.
        budget: when to stop.
        seeds: of each configuration.
        callback: called with how far it is.
    """

    def __init__(
        self, data: Data, ledger: Ledger, budget: Budget, seeds: Sequence[int], callback: ProgressCallback | None
    ) -> None:
        self.data, self.ledger, self.budget, self.seeds, self.callback = data, ledger, budget, seeds, callback
        self.measure = Measure(data)
        # As many as one population takes; on large graphs that is one configuration at a time.
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
            elif self.ledger.running() and not self._is_late():
                # Others have the rest in hand; should it be lost, it is ours to do.
                self._report(len(self.ledger.finished()), 0, 0.0)
                time.sleep(_POLL)
            else:
                break
        if not self.ledger.points():
            reasons = self.ledger.errors() or ["all of them were given up early"]
            raise DataError(f"no configuration of {self.ledger.configurations.method} could be trained: {reasons[0]}")

    def _is_hopeless(self) -> bool:
        finished, errors = self.ledger.finished(), self.ledger.errors()
        return len(errors) >= _HOPELESS and len(errors) == len(finished)

    def _affordable(self) -> int:
        """Return how many configurations may be trained next."""
        size = self.batch
        untried = self.ledger.untried()
        if untried is not None:
            size = min(size, len(untried))
        if self.budget.trials is not None:
            size = min(size, self.budget.trials - len(self.ledger.finished()) - len(self.ledger.running()))
        if self.budget.seconds is not None:
            # Nothing is known of the first one but that there has to be one.
            size = min(size, int(self._seconds_left() / self._seconds_each()) if self.trained else 1)
        return size

    def _seconds_left(self) -> float:
        return (self.budget.seconds or 0.0) - (time.monotonic() - self.start)

    def _seconds_each(self) -> float:
        return self.training_seconds / max(self.trained, 1)

    def _is_late(self) -> bool:
        return self.budget.seconds is not None and self._seconds_left() < self._seconds_each()

    def _train(self, batch: Sequence[Trial]) -> None:
        began = time.monotonic()
        members = [[self._classifier(trial, seed) for seed in self.seeds] for trial in batch]
        flat = [model for models in members for model in models]
        try:
            errors = fit_all(flat, self.data, callback=self._watch(batch, flat))
            for i, (trial, models) in enumerate(zip(batch, members, strict=True)):
                problems = [error for error in errors[i * len(models) : (i + 1) * len(models)] if error is not None]
                if problems:
                    self.ledger.fail(trial, problems[0])
                else:
                    self.points.append(self.ledger.conclude(trial, self.measure(models)))
        except TrialPruned:
            self.ledger.prune(batch[0])
        except BaseException:
            self.ledger.abandon(batch)
            raise
        self.trained += len(batch)
        self.training_seconds += time.monotonic() - began

    def _classifier(self, trial: Trial, seed: int) -> NodeClassifier:
        model = self.ledger.configurations.classifier(trial.params, seed=seed)
        model.training = model.training.but(track_discrepancy=False)  # takes time, and changes nothing
        return model

    def _watch(self, batch: Sequence[Trial], models: Sequence[NodeClassifier]) -> Callable[[int, EpochRecord], None]:
        """Return what is called after every epoch of every model: it reports, and gives up what has no prospects."""
        finished, epochs = len(self.ledger.finished()), models[0].training.epochs
        done = [0] * len(models)
        prune = _Prune(batch[0], models[0]) if self._can_prune(models) else None

        def watch(i: int, record: EpochRecord) -> None:
            done[i] = record.epoch + 1
            if prune is not None and i == 0:
                prune(record)
            if time.monotonic() - self.last_report >= _OFTEN:
                self._report(finished, len(batch), sum(done) / (len(models) * epochs))

        return watch

    def _can_prune(self, models: Sequence[NodeClassifier]) -> bool:
        return models[0].trains_alone and len(directions(self.ledger.strategy)) == 1

    def _report(self, finished: int, training: int, share: float) -> None:
        """Report that of the configurations in training this share is done."""
        self.last_report = time.monotonic()
        if self.callback is None:
            return
        used = [0.0]
        if self.budget.trials is not None:
            used.append((finished + training * share) / self.budget.trials)
        if self.ledger.grid is not None:
            used.append((finished + training * share) / len(self.ledger.grid))
        if self.budget.seconds is not None:
            used.append(1 - self._seconds_left() / self.budget.seconds)
        best = choose(self.points) if self.points else None
        self.callback(Progress(min(1.0, max(used)), finished, training, best))


class _Prune:
    """Gives a trial up if its first seed, so far, does worse than the median of the trials before."""

    def __init__(self, trial: Trial, model: NodeClassifier) -> None:
        self.trial, self.best = trial, -float("inf")
        self.every = max(1, model.training.epochs // _LOOKS)
        self.only_last = model.training.select == "last"

    def __call__(self, record: EpochRecord) -> None:
        """Look at an epoch; raise `TrialPruned` if there is no point in going on."""
        self.best = record.selection if self.only_last else max(self.best, record.selection)
        # What is not a number ends the training anyway, with an error that says so.
        if record.epoch % self.every == 0 and self.best > -float("inf"):
            self.trial.report(self.best, record.epoch)
            if self.trial.should_prune():
                raise TrialPruned
