"""Claim configurations for a search: none twice, and no more than requested, however many searches share a study.

Every trial has a place, a number on which everything random in its configuration depends. A lost trial gives its place
back, so a resumed search proposes what it would have proposed without the interruption.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from fairpass.tuning.spaces import Configurations
from fairpass.tuning.strategies import SeededSampler, distribution
from fairpass.tuning.study import OWNER, SharedStudy, give_up

ERROR = "error"  # why a trial failed; lost trials do not have this attribute
_PLACE = "place"


def place_of(trial: FrozenTrial) -> int:
    place: int = trial.user_attrs.get(_PLACE, trial.number)
    return place


def is_finished(trial: FrozenTrial) -> bool:
    """Return whether a trial counts: it is complete, stopped early, or failed with an error."""
    return trial.state in (TrialState.COMPLETE, TrialState.PRUNED) or ERROR in trial.user_attrs


def finished(study: Study) -> list[FrozenTrial]:
    return [trial for trial in study.get_trials(deepcopy=False) if is_finished(trial)]


def in_batches(
    grid: Sequence[Mapping[str, Any]], configurations: Configurations, batch: int
) -> list[Mapping[str, Any]]:
    """Return a grid reordered: up to `batch` configurations of one shape follow each other, to train together."""
    left, ordered = list(grid), list[Mapping[str, Any]]()
    while left:
        first = left[0]
        alone = configurations.classifier(first).trains_alone
        shape = first if alone else {name: first[name] for name in configurations.shape()}
        chosen = [values for values in left if shape.items() <= values.items()][:batch]
        ordered += chosen
        left = [values for values in left if values not in chosen]
    return ordered


@dataclass
class Claims:
    """Begins trials for one search."""

    shared: SharedStudy
    configurations: Configurations
    sampler: SeededSampler
    grid: Sequence[Mapping[str, Any]] | None  # the configuration of each place; None: the sampler proposes
    limit: int | None  # most trials of the study, over all searches
    batch: int  # most trials that are begun at once
    side_by_side: bool = False  # whether configurations that train alone are begun in batches, too
    others: int = 0  # trials of other searches that were running when trials were last begun

    @property
    def study(self) -> Study:
        return self.shared.study

    def take(self, size: int) -> list[Trial]:
        """Begin up to `size` trials that train as one population; one if its classifier trains alone."""
        claimed: list[Trial] = []
        varied = {name: distribution(each) for name, each in self.configurations.varied.items()}
        try:
            with self.shared.exclusive():
                # Searches sign their trials before they release the lock, so unsigned ones are of a killed search.
                begun = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
                give_up(self.study, [trial.number for trial in begun if OWNER not in trial.user_attrs])
                self.shared.give_up_lost()
                # Read all trials at once: between two reads a running trial could finish and appear in neither.
                trials = self.study.get_trials(deepcopy=False)
                taken = [each for each in trials if is_finished(each) or each.state == TrialState.RUNNING]
                self.others = sum(each.state == TrialState.RUNNING for each in taken)
                places = {place_of(trial) for trial in taken}
                size = size if self.limit is None else min(size, self.limit - len(taken))
                while len(claimed) < size:
                    place = next(place for place in count() if place not in places)
                    prescribed = self._prescribe(claimed, place)
                    if prescribed is None:
                        break
                    self.sampler.fixed, self.sampler.place = prescribed, place
                    trial = self.study.ask(varied)
                    claimed.append(trial)
                    trial.set_user_attr(_PLACE, place)
                    trial.set_user_attr(OWNER, self.shared.owner)
                    places.add(place)
                    if self.configurations.classifier(trial.params).trains_alone and not self.side_by_side:
                        break
        except BaseException:
            give_up(self.study, [trial.number for trial in claimed])
            raise
        return claimed

    def _prescribe(self, claimed: Sequence[Trial], place: int) -> Mapping[str, Any] | None:
        """Return the values that the next trial must have; None if the next one in the grid has another shape."""
        shape = {}
        if claimed and not self.configurations.classifier(claimed[0].params).trains_alone:
            shape = {name: claimed[0].params[name] for name in self.configurations.shape()}
        if self.grid is not None:
            values = self.grid[place] if place < len(self.grid) else None
            return values if values is not None and shape.items() <= values.items() else None
        default = self.configurations.default()
        if place == 0:
            return default  # so that the result is never worse than without a search
        alone = self.configurations.classifier(default).trains_alone
        if not claimed and not alone and place < self.batch:
            # The first population has the default's shape, even if the default was trained alone to measure its time.
            return {name: default[name] for name in self.configurations.shape() if name in default}
        return shape
