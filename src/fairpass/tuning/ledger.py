"""The trials of a study that several searches may share: what to try next, what came out, what is lost."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from fairpass.tuning.configurations import Configurations
from fairpass.tuning.front import Point
from fairpass.tuning.ownership import give_up, running, sign
from fairpass.tuning.spaces import distribution
from fairpass.tuning.strategies import SeededSampler, Strategy, values

_OUTCOME, _ERROR = "outcome", "error"


class Ledger:
    """One search's view of a study.

    Args:
        study: the study.
        owner: name of this search in it.
        configurations: what is searched.
        strategy: how.
        sampler: the study's sampler.
        grid: all configurations, in the order in which they are to be tried; None: the sampler proposes.
    """

    def __init__(
        self,
        study: Study,
        owner: str,
        configurations: Configurations,
        strategy: Strategy,
        sampler: SeededSampler,
        grid: Sequence[Mapping[str, Any]] | None,
    ) -> None:
        self.study, self.owner, self.configurations = study, owner, configurations
        self.strategy, self.sampler, self.grid = strategy, sampler, grid
        self.distributions = {name: distribution(each) for name, each in configurations.varied.items()}

    def finished(self) -> list[FrozenTrial]:
        """Return the trials that count: done, given up early, or failed for a reason of their own."""
        return [
            trial
            for trial in self.study.get_trials(deepcopy=False)
            if trial.state in (TrialState.COMPLETE, TrialState.PRUNED) or _ERROR in trial.user_attrs
        ]

    def running(self) -> list[FrozenTrial]:
        """Return the trials that a living search works on."""
        return running(self.study)

    def untried(self) -> list[Mapping[str, Any]] | None:
        """Return what is left of the grid; None if there is no grid."""
        if self.grid is None:
            return None
        taken = {_key(trial.params) for trial in [*self.finished(), *self.running()]}
        return [values for values in self.grid if _key(values) not in taken]

    def claim(self, size: int, limit: int | None) -> list[Trial]:
        """Begin new trials: one if its classifier trains alone, else up to `size` that train as one population.

        Args:
            size: how many.
            limit: how many trials the study may have.
        """
        claimed: list[Trial] = []
        try:
            while len(claimed) < size and (prescribed := self._prescribe(claimed)) is not None:
                self.sampler.fixed = prescribed
                trial = self.study.ask(self.distributions)
                claimed.append(trial)
                sign(trial, self.owner)
                if self.configurations.classifier(trial.params).trains_alone:
                    break
            return claimed if limit is None else self._without_surplus(claimed, limit)
        except BaseException:
            self.abandon(claimed)
            raise

    def _prescribe(self, claimed: Sequence[Trial]) -> Mapping[str, Any] | None:
        """Return the values that the next trial must have; None if there is none to be tried with these."""
        shape = {name: claimed[0].params[name] for name in self.configurations.shape()} if claimed else {}
        untried = self.untried()
        if untried is not None:
            return next((values for values in untried if shape.items() <= values.items()), None)
        if claimed or self.study.get_trials(deepcopy=False):
            return shape
        return self.configurations.default()  # what is found is then never worse than what needs no search

    def _without_surplus(self, claimed: list[Trial], limit: int) -> list[Trial]:
        """Return the trials that are within the limit: others may have claimed some at the same moment."""
        numbers = sorted(trial.number for trial in [*self.finished(), *self.running()])
        within = set(numbers[:limit])
        self.abandon([trial for trial in claimed if trial.number not in within])
        return [trial for trial in claimed if trial.number in within]

    def abandon(self, trials: Sequence[Trial]) -> None:
        """End trials of which nothing is known; they do not count."""
        for trial in trials:
            give_up(self.study, trial.number)

    def conclude(self, trial: Trial, outcome: Mapping[str, Any]) -> Point:
        """Keep what came out of a trial."""
        point = self.configurations.point(trial.params, **outcome)
        with suppress(UpdateFinishedTrialError):  # taken for lost by another search, which tries something else
            trial.set_user_attr(_OUTCOME, outcome)
            self.study.tell(trial, values(point, self.strategy), skip_if_finished=True)
        return point

    def fail(self, trial: Trial, error: Exception) -> None:
        """Keep why a trial failed."""
        with suppress(UpdateFinishedTrialError):
            trial.set_user_attr(_ERROR, str(error))
            self.study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)

    def prune(self, trial: Trial) -> None:
        """Keep that a trial was given up early."""
        self.study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)

    def points(self) -> list[Point]:
        """Return the configurations that were trained to the end, in the order of their trials."""
        done = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return [self.configurations.point(trial.params, **trial.user_attrs[_OUTCOME]) for trial in done]

    def errors(self) -> list[str]:
        """Return why trials failed."""
        return [trial.user_attrs[_ERROR] for trial in self.finished() if _ERROR in trial.user_attrs]

    def pruned(self) -> int:
        """Return how many trials were given up early."""
        return len(self.study.get_trials(deepcopy=False, states=(TrialState.PRUNED,)))


def _key(values: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(values.items()))
