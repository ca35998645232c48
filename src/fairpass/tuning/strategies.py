"""The strategies of a search: Optuna's samplers, and what they are told."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from fairpass.parameters import Choice, Dimension, Integers, LogUniform
from fairpass.tuning.front import Point

Direction = Literal["maximize", "minimize"]
Distributions = dict[str, BaseDistribution]
Strategy = Literal["tpe", "motpe", "nsga2", "random", "grid"]

# Small enough that a search of some hundred trials sees several generations.
_GENERATION = 24


def directions(strategy: Strategy) -> tuple[Direction, ...]:
    """Return the directions of the values: one is maximised, or utility is maximised and unfairness minimised."""
    return ("maximize", "minimize") if strategy in ("motpe", "nsga2") else ("maximize",)


def values(point: Point, strategy: Strategy) -> list[float]:
    """Return the values of a configuration that are reported to the sampler.

    A near-constant one counts as the worst possible: on many graphs a constant has the largest sum of all, and the
    search would look for nothing else.
    """
    if len(directions(strategy)) > 1:
        return [0.0, 1.0] if point.near_constant else [point.utility, point.unfairness]
    return [-2.0 if point.near_constant else point.selection]


def distribution(dimension: Dimension) -> BaseDistribution:
    if isinstance(dimension, Choice):
        return CategoricalDistribution(dimension.values)
    if isinstance(dimension, Integers):
        return IntDistribution(int(dimension.low), int(dimension.high))
    return FloatDistribution(dimension.low, dimension.high, log=isinstance(dimension, LogUniform))


def _sampler(strategy: Strategy, seed: int) -> BaseSampler:
    if strategy in ("tpe", "motpe"):
        return TPESampler(seed=seed)
    # The configurations of a grid are all prescribed; its sampler is never asked.
    return NSGAIISampler(population_size=_GENERATION, seed=seed) if strategy == "nsga2" else RandomSampler(seed=seed)


class SeededSampler(BaseSampler):
    """A strategy's sampler whose random numbers depend only on a seed and the trial's place (see `claims.py`).

    An interrupted search continues as it would have, and no two processes propose the same.
    """

    def __init__(self, strategy: Strategy, seed: int) -> None:
        self.strategy, self.seed = strategy, seed
        self.fixed: Mapping[str, Any] = {}  # values that the next proposals must have
        self.place: int | None = None  # of the next trial; None: its number
        self._sampler = _sampler(strategy, seed)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        seed = int(
            np.random.SeedSequence((self.seed, trial.number if self.place is None else self.place)).generate_state(1)[0]
        )
        self._sampler = _sampler(self.strategy, seed)
        self._sampler.before_trial(study, trial)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Distributions:
        space = self._sampler.infer_relative_search_space(study, trial)
        return {name: distribution for name, distribution in space.items() if name not in self.fixed}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: Distributions) -> dict[str, Any]:
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        if param_name in self.fixed:
            return self.fixed[param_name]
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)
