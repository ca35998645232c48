"""The strategies of a search: which sampler of Optuna proposes, and what it is told."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler

from fairpass.tuning.front import Point

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial, TrialState

Direction = Literal["maximize", "minimize"]
Strategy = Literal["tpe", "motpe", "nsga2", "random", "grid"]

# Small enough that a search of some hundred trials sees several generations.
_GENERATION = 24

_SAMPLERS: dict[Strategy, Callable[[int], BaseSampler]] = {
    "tpe": lambda seed: TPESampler(seed=seed),
    "motpe": lambda seed: TPESampler(seed=seed),
    "nsga2": lambda seed: NSGAIISampler(population_size=_GENERATION, seed=seed),
    "random": lambda seed: RandomSampler(seed=seed),
    "grid": lambda seed: RandomSampler(seed=seed),  # not asked: every configuration is put into the queue
}


def directions(strategy: Strategy) -> tuple[Direction, ...]:
    """Return what happens to the values: one is maximised, or utility is and unfairness is minimised."""
    return ("maximize", "minimize") if strategy in ("motpe", "nsga2") else ("maximize",)


def values(point: Point, strategy: Strategy) -> list[float]:
    """Return what the sampler is told of a configuration.

    One that is near constant counts as the worst there is: on many graphs a constant has the largest sum of all,
    and the search would look for nothing else.
    """
    if len(directions(strategy)) > 1:
        return [0.0, 1.0] if point.near_constant else [point.utility, point.unfairness]
    return [-2.0 if point.near_constant else point.selection]


class SeededSampler(BaseSampler):
    """A strategy's sampler, with random numbers that depend on nothing but a seed and the trial's number.

    So a search that was interrupted goes on as it would have, and no two processes propose the same.

    Attributes:
        fixed: values that the next proposals must have.
    """

    def __init__(self, strategy: Strategy, seed: int) -> None:
        self._strategy, self._seed = strategy, seed
        self.fixed: Mapping[str, Any] = {}
        self._sampler: BaseSampler = _SAMPLERS[strategy](seed)

    def before_trial(self, study: "Study", trial: "FrozenTrial") -> None:
        """Draw for each trial."""
        seed = int(np.random.SeedSequence((self._seed, trial.number)).generate_state(1)[0])
        self._sampler = _SAMPLERS[self._strategy](seed)
        self._sampler.before_trial(study, trial)

    def infer_relative_search_space(self, study: "Study", trial: "FrozenTrial") -> "dict[str, BaseDistribution]":
        """Return what is drawn together: all that is not fixed, if the strategy does so at all."""
        space = self._sampler.infer_relative_search_space(study, trial)
        return {name: distribution for name, distribution in space.items() if name not in self.fixed}

    def sample_relative(
        self, study: "Study", trial: "FrozenTrial", search_space: "dict[str, BaseDistribution]"
    ) -> dict[str, Any]:
        """Ask the strategy's sampler."""
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: "Study", trial: "FrozenTrial", param_name: str, param_distribution: "BaseDistribution"
    ) -> Any:
        """Return the fixed value, or ask the strategy's sampler."""
        if param_name in self.fixed:
            return self.fixed[param_name]
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: "Study", trial: "FrozenTrial", state: "TrialState", values: Sequence[float] | None
    ) -> None:
        """Ask the strategy's sampler."""
        self._sampler.after_trial(study, trial, state, values)
