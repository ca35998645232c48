"""What samplers are told, and that what they draw depends on nothing but seed and history."""

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from tests.tuning.points import point

from fairpass.tuning.strategies import SeededSampler, Strategy, directions, values

STRATEGIES: tuple[Strategy, ...] = ("tpe", "motpe", "nsga2", "random", "grid")
SPACE = {"x": FloatDistribution(0, 1), "n": IntDistribution(1, 100)}


def draw(strategy: Strategy, seed: int, trials: int, *, pause: int | None = None) -> list[dict[str, object]]:
    """Return what is proposed; after `pause` trials with a new sampler, as another process would have."""
    storage = optuna.storages.InMemoryStorage()
    goals = list(directions(strategy))
    study = optuna.create_study(storage=storage, directions=goals, sampler=SeededSampler(strategy, seed))
    for number in range(trials):
        if number == pause:
            study.sampler = SeededSampler(strategy, seed)
        trial = study.ask(SPACE)
        study.tell(trial, [trial.params["x"], trial.params["n"] / 100][: len(goals)])
    return [trial.params for trial in study.trials]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_proposals_depend_on_seed_and_history_only(strategy: Strategy) -> None:
    drawn = draw(strategy, 0, 30)
    assert draw(strategy, 0, 30, pause=17) == drawn
    assert draw(strategy, 1, 30) != drawn
    assert len({str(each) for each in drawn}) >= 28  # a child of NSGA-II may be like one of its parents


def test_tpe_learns() -> None:
    drawn = [each["x"] for each in draw("tpe", 0, 40)]
    assert sum(float(str(x)) for x in drawn[-10:]) / 10 > 0.8


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fixed_values_are_kept(strategy: Strategy) -> None:
    sampler = SeededSampler(strategy, 0)
    study = optuna.create_study(directions=list(directions(strategy)), sampler=sampler)
    for n in range(1, 31):
        sampler.fixed = {"n": n}
        trial = study.ask(SPACE)
        assert trial.params["n"] == n
        study.tell(trial, [trial.params["x"]] * len(directions(strategy)))


def test_samplers_are_told_the_rule_or_the_two_sides_of_it() -> None:
    one = point(0.5, 0.25)
    assert values(one, "tpe") == [pytest.approx(one.selection)] == [1.0]
    assert values(one, "nsga2") == values(one, "motpe") == [0.5, 0.25]
    assert directions("motpe") == ("maximize", "minimize")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_constant_is_no_goal(strategy: Strategy) -> None:
    constant, useless = point(0.9, 0.0, near_constant=True), point(0.01, 0.99)
    signs = [1 if direction == "maximize" else -1 for direction in directions(strategy)]
    told = [
        [sign * value for sign, value in zip(signs, values(each, strategy), strict=True)]
        for each in (constant, useless)
    ]
    assert all(a < b for a, b in zip(*told, strict=True))
