"""The trials of a study that several searches may share: what to try next, and the outcomes."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from fairpass.tuning.configurations import Configurations
from fairpass.tuning.front import Point
from fairpass.tuning.strategies import SeededSampler, Strategy, distribution, values
from fairpass.tuning.study import give_up, running, sign

_OUTCOME, _ERROR = "outcome", "error"


class Ledger:
    """One search's view of a study.

    Args:
        study: the study.
        owner: name of this search in it.
        configurations: what is searched.
        strategy: how.
        sampler: the study's sampler.
        grid: all configurations, in the order in which they are tried; None: the sampler proposes.
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

    def finished(self) -> list[FrozenTrial]:
        """Return the trials that count: complete, stopped early, or failed for a reason of their own."""
        return [
            trial
            for trial in self.study.get_trials(deepcopy=False)
            if trial.state in (TrialState.COMPLETE, TrialState.PRUNED) or _ERROR in trial.user_attrs
        ]

    def taken(self) -> list[FrozenTrial]:
        """Return the trials that count and those that a living search works on."""
        return [*self.finished(), *running(self.study)]

    def untried(self) -> list[Mapping[str, Any]]:
        """Return what is left of the grid."""
        taken = {frozenset(trial.params.items()) for trial in self.taken()}
        return [values for values in self.grid or () if frozenset(values.items()) not in taken]

    def claim(self, size: int, limit: int | None) -> list[Trial]:
        """Begin new trials: one if its classifier trains alone, otherwise up to `size` that train as one population.

        `limit` is how many trials the study may have.
        """
        claimed: list[Trial] = []
        varied = {name: distribution(each) for name, each in self.configurations.varied.items()}
        try:
            while len(claimed) < size and (prescribed := self._prescribe(claimed)) is not None:
                self.sampler.fixed = prescribed
                trial = self.study.ask(varied)
                claimed.append(trial)
                sign(trial, self.owner)
                if self.configurations.classifier(trial.params).trains_alone:
                    break
            if limit is None:
                return claimed
            # Others may have claimed some at the same moment.
            within = sorted(trial.number for trial in self.taken())[:limit]
            self.abandon([trial for trial in claimed if trial.number not in within])
            return [trial for trial in claimed if trial.number in within]
        except BaseException:
            self.abandon(claimed)
            raise

    def _prescribe(self, claimed: Sequence[Trial]) -> Mapping[str, Any] | None:
        """Return the values that the next trial must have; None if the grid has no more with these."""
        shape = {name: claimed[0].params[name] for name in self.configurations.shape()} if claimed else {}
        if self.grid is not None:
            return next((values for values in self.untried() if shape.items() <= values.items()), None)
        if claimed or self.study.get_trials(deepcopy=False):
            return shape
        return self.configurations.default()  # so that the result is never worse than without a search

    def abandon(self, trials: Sequence[Trial]) -> None:
        """End trials without a result; they do not count."""
        for trial in trials:
            give_up(self.study, trial.number)

    def conclude(self, trial: Trial, outcome: Mapping[str, Any]) -> Point:
        """Keep the outcome of a trial."""
        point = self.configurations.point(trial.params, **outcome)
        with suppress(UpdateFinishedTrialError):  # another search gave it up and tries something else
            trial.set_user_attr(_OUTCOME, outcome)
            self.study.tell(trial, values(point, self.strategy), skip_if_finished=True)
        return point

    def fail(self, trial: Trial, error: Exception) -> None:
        """Keep why a trial failed."""
        with suppress(UpdateFinishedTrialError):
            trial.set_user_attr(_ERROR, str(error))
            self.study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)

    def points(self) -> list[Point]:
        """Return the configurations that were trained to the end, in the order of their trials."""
        done = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return [self.configurations.point(trial.params, **trial.user_attrs[_OUTCOME]) for trial in done]

    def errors(self) -> list[str]:
        """Return why trials failed."""
        return [trial.user_attrs[_ERROR] for trial in self.finished() if _ERROR in trial.user_attrs]
