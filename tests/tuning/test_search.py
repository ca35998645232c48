"""The search: it finds, it keeps, it goes on, and it looks at validation only."""

import copy
import re
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch
from optuna.exceptions import TrialPruned
from optuna.pruners import MedianPruner
from optuna.trial import Trial, TrialState
from tests.methods.ingredients import changed
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import GAT
from fairpass.metrics.evaluation import impact_ratio
from fairpass.runs import executor_for
from fairpass.training import EpochRecord, Training
from fairpass.tuning import Budget, Choice, Integers, LogUniform, Progress, Tuned, tune
from fairpass.tuning.claims import place_of
from fairpass.tuning.search import _Prune
from fairpass.tuning.strategies import Strategy

SPACE = {"learning_rate": LogUniform(1e-3, 1e-1), "hidden": Choice(4, 8), "num_layers": Integers(1, 2)}
QUICK: dict[str, Any] = {"seeds": 2, "fixed": {"epochs": 3}, "space": SPACE}


def quick(graph: Data, **settings: Any) -> Tuned:
    return tune(graph, "gcn", **{"budget": 4, **QUICK, **settings})


def settings_of(tuned: Tuned) -> list[dict[str, Any]]:
    return [tuned.values(point) for point in tuned.points]


def test_every_point_is_the_mean_of_its_seeds(graph: Data) -> None:
    tuned = quick(graph, budget=3)
    assert len(tuned.points) == 3
    for point in tuned.points:
        models = [point.classifier(seed=seed).fit(graph) for seed in (0, 1)]
        for split, metrics in (("val", point.validation), ("test", point.test)):
            measured = [model.evaluate(graph, split) for model in models]  # type: ignore[arg-type] # a split
            numbers = [each.percent() | {"IR": 100 * impact_ratio(each.groups)} for each in measured]
            assert metrics is not None
            for name, value in metrics.items():
                assert 100 * value == pytest.approx(sum(each[name] for each in numbers) / 2, abs=0.01)
        constant = [model.evaluate(graph, "val").near_constant for model in models]
        assert point.near_constant == any(constant)  # one of two is half of them
    assert tuned.best in tuned.front
    # The default comes first, as far as it can be found; the default of `hidden` cannot.
    assert settings_of(tuned)[0].items() >= {"learning_rate": 0.01, "num_layers": 2}.items()


def test_search_goes_on_where_it_was(graph: Data, tmp_path: Path) -> None:
    first = quick(graph, storage=tmp_path / "study.db")
    second = quick(graph, storage=tmp_path / "study.db", budget=8)
    assert first.study == second.study
    assert len(first.points) == 4
    assert len(second.points) == 8
    assert second.points[:4] == first.points
    assert len({str(each) for each in settings_of(second)}) == 8
    assert quick(graph, storage=f"sqlite:///{tmp_path}/study.db", budget=8).points == second.points


def test_interruption_loses_the_batch_in_progress_only(graph: Data, tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.finished >= 4:
            raise KeyboardInterrupt

    kept = quick(graph, storage=tmp_path / "study.db")
    with pytest.raises(KeyboardInterrupt):
        quick(graph, storage=tmp_path / "study.db", budget=8, callback=interrupt)
    assert quick(graph, storage=tmp_path / "study.db", budget=1).points == kept.points
    assert len(quick(graph, storage=tmp_path / "study.db", budget=8).points) == 8


@pytest.mark.parametrize(
    "other",
    [{"fixed": {"epochs": 4}}, {"seeds": [0, 2]}, {"space": {**SPACE, "hidden": Choice(4, 16)}}, {"strategy": "motpe"}],
)
def test_another_question_is_another_study(graph: Data, tmp_path: Path, other: dict[str, Any]) -> None:
    storage = tmp_path / "study.db"
    first = quick(graph, budget=1, storage=storage)
    second = quick(graph, **{"budget": 1, "storage": storage, **other})
    assert first.study != second.study
    assert len(second.points) == 1
    assert quick(graph, budget=1, storage=storage).points == first.points


def test_another_graph_is_another_study(graph: Data, tmp_path: Path) -> None:
    studies = {
        quick(data, budget=1, seeds=1, storage=tmp_path / "study.db").study
        for data in (graph, changed(graph, x=graph.x + 1))
    }
    assert len(studies) == 2


def test_same_seed_same_result_and_the_graph_is_left_alone(graph: Data) -> None:
    before = copy.deepcopy(graph)
    assert quick(graph, seed=3).points == quick(graph, seed=3).points
    assert settings_of(quick(graph, seed=4))[1:] != settings_of(quick(graph, seed=3))[1:]
    assert all(torch.equal(before[name], graph[name]) for name in ("x", "edge_index", "y", "sens"))


def test_test_nodes_have_no_say(graph: Data) -> None:
    y = torch.where(graph.test_mask, 1 - graph.y, graph.y)
    one, other = quick(graph, budget=12, seeds=1), quick(changed(graph, y=y), budget=12, seeds=1)
    assert settings_of(one) == settings_of(other)
    assert [point.validation for point in one.points] == [point.validation for point in other.points]
    assert [point.test for point in one.points] != [point.test for point in other.points]
    assert one.values(one.best) == other.values(other.best)


def test_graph_without_test_nodes(graph: Data) -> None:
    tuned = quick(changed(graph, test_mask=None), budget=1)
    assert [point.test for point in tuned.points] == [None]
    assert Tuned.from_dict(tuned.to_dict()) == tuned


@pytest.mark.parametrize("strategy", ["tpe", "motpe", "nsga2", "random"])
def test_strategies(graph: Data, strategy: Strategy) -> None:
    # Enough trials for the samplers to have seen some: TPE draws at random before the tenth.
    tuned = quick(graph, strategy=strategy, seeds=1, budget=14, fixed={"epochs": 1})
    assert len({str(each) for each in settings_of(tuned)}) == 14
    assert tuned.settings["strategy"] == strategy


def test_grid_tries_everything_once(graph: Data, tmp_path: Path) -> None:
    space = {"hidden": Choice(4, 8), "num_layers": Integers(1, 2), "learning_rate": Choice(0.01, 0.1)}
    wanted: dict[str, Any] = {"strategy": "grid", "space": space, "seeds": 1, "storage": tmp_path / "study.db"}
    some = quick(graph, budget=3, **wanted)
    tuned = quick(graph, budget=100, **wanted)
    assert tuned.points[:3] == some.points
    tried = sorted(tuple(each.values()) for each in settings_of(tuned))
    assert tried == [(h, n, r) for h in (4, 8) for n in (1, 2) for r in (0.01, 0.1)]


def test_time_is_a_budget_but_one_is_always_tried(graph: Data) -> None:
    assert len(quick(graph, budget="0.001s").points) == 1
    assert len(quick(graph, budget=Budget(trials=2, seconds=600)).points) == 2
    progress: list[Progress] = []
    tuned = quick(graph, budget="1.5s", callback=progress.append)
    assert len(tuned.points) > 1
    fractions = [each.fraction for each in progress]
    assert fractions == sorted(fractions)
    assert 0 < fractions[-1] <= 1


def test_first_population_has_the_shape_of_the_default(graph: Data, tmp_path: Path) -> None:
    """A budget of time trains the default alone, to measure it: what comes next must not be a random shape."""
    space = {"learning_rate": LogUniform(1e-3, 1e-1), "num_layers": Integers(1, 3)}
    common: dict[str, Any] = {"space": space, "seeds": 1, "storage": tmp_path / "study.db"}
    quick(graph, budget=Budget(trials=1, seconds=600), **common)
    tried = settings_of(quick(graph, budget=24, **common))
    assert {each["num_layers"] for each in tried[:8]} == {2}
    assert len({each["learning_rate"] for each in tried[:8]}) == 8
    assert len({each["num_layers"] for each in tried}) > 1


def tried(storage: Path) -> list[dict[str, Any]]:
    """Return the parameters of every trial of a study, also of those that were stopped early, by their places."""
    (name,) = optuna.get_all_study_names(f"sqlite:///{storage}")
    trials = optuna.load_study(study_name=name, storage=f"sqlite:///{storage}").trials
    return [trial.params for trial in sorted(trials, key=place_of)]


@pytest.mark.usefixtures("forked_jobs")
@pytest.mark.parametrize("method", ["gcn", "gat"])  # trained as a population, and alone
def test_a_random_search_in_processes_tries_the_same(graph: Data, method: str, tmp_path: Path) -> None:
    one, several = tmp_path / "one.db", tmp_path / "several.db"
    settings: dict[str, Any] = {**QUICK, "budget": 10, "strategy": "random"}
    progress: list[Progress] = []
    here = tune(graph, method, storage=one, **settings)
    there = tune(graph, method, storage=several, executor=executor_for(2), callback=progress.append, **settings)
    assert tried(several) == tried(one)
    assert (len(tried(one)), len(there.points), there.pruned) == (10, 10, 0)  # nothing is stopped early elsewhere
    found = {str(there.values(point)): point.validation for point in there.points}
    for point in here.points:
        assert found[str(here.values(point))] == pytest.approx(point.validation, abs=1e-6)
    assert [(each.finished, each.training) for each in progress] == [(0, 8), (8, 2)]  # also those that train alone


def test_progress_counts(graph: Data) -> None:
    progress: list[Progress] = []
    quick(graph, budget=9, seeds=1, fixed={"epochs": 300}, callback=progress.append)
    assert {(each.finished, each.training) for each in progress} <= {(0, 8), (8, 1)}
    assert all(0 <= each.fraction <= 1 for each in progress)
    assert progress[-1].best is not None


def test_configuration_that_diverges_is_a_failure(graph: Data) -> None:
    space = {"learning_rate": Choice(0.01, 1e30)}
    tuned = quick(graph, strategy="grid", space=space, budget=10)
    assert settings_of(tuned) == [{"learning_rate": 0.01}]
    assert tuned.failed == 1


def test_graph_that_a_method_refuses(graph: Data) -> None:
    message = "no configuration of nifty could be trained: 'data.sens_column' must be the column"
    with pytest.raises(DataError, match=message):
        tune(changed(graph, sens_column=None), "nifty", budget=50, seeds=1)


def test_pruned_trials_count_and_are_no_points(graph: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def is_not_the_first(trial: Trial) -> bool:
        seen.append(trial.number)
        return trial.number > 0

    monkeypatch.setattr(Trial, "should_prune", is_not_the_first)
    # Attention trains alone: one configuration at a time, its first seed watched.
    tuned = tune(graph, "gat", budget=3, seeds=2, fixed={"epochs": 40})
    assert (len(tuned.points), tuned.pruned) == (1, 2)
    assert seen == [0] * 20 + [1, 2]
    # Nothing is given up where there are two objectives, or a population.
    assert tune(graph, "gat", budget=2, seeds=1, fixed={"epochs": 2}, strategy="nsga2").pruned == 0
    assert quick(graph, budget=2).pruned == 0


def test_what_does_worse_than_the_others_is_given_up() -> None:
    study = optuna.create_study(direction="maximize", pruner=MedianPruner(n_startup_trials=1))
    model = GAT(training=Training(epochs=40))

    def train(selections: list[float]) -> int:
        """Return how many epochs are trained."""
        trial = study.ask()
        watch = _Prune(trial, model)
        for epoch, selection in enumerate(selections):
            try:
                watch(EpochRecord(epoch, {"loss": 0.0}, {}, selection, 0.5))
            except TrialPruned:
                study.tell(trial, state=TrialState.PRUNED)
                return epoch
        study.tell(trial, watch.best)
        return len(selections)

    assert train([1.0, 2.0] * 20) == 40
    assert train([2.5] + [0.0] * 39) == 40  # its best epoch is what counts
    assert train([2.1] * 40) == 2  # at the first look, after that at epoch 0, at which nothing can be said yet
    assert train([float("nan")] * 3) == 3  # the loop says what is to be said


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"strategy": "bayes"}, "'strategy' must be one of ('tpe', 'motpe', 'nsga2', 'random', 'grid') (got 'bayes')"),
        ({"seeds": 0}, "'seeds' must be at least 1 (got 0)"),
        ({"seeds": float("nan")}, "'seeds' must be a whole number (got nan)"),
        ({"seeds": 2.0}, "'seeds' must be a whole number (got 2.0)"),
        ({"seeds": "12"}, "'seeds' must be a whole number (got '1')"),
        ({"seeds": []}, "'seeds' must be a number of at least 1, or different seeds (got [])"),
        ({"seeds": [0, -1]}, "'seeds' must be at least 0 (got -1)"),
        ({"seeds": [2**70]}, "'seeds' must be at most 4,294,967,295 (got 1180591620717411303424)"),
        ({"seed": -1}, "'seed' must be at least 0 (got -1)"),
        ({"seed": 2**70}, "'seed' must be at most 4,294,967,295 (got 1180591620717411303424)"),
        ({"seed": 0.5}, "'seed' must be a whole number (got 0.5)"),
        ({"seeds": [1, 1]}, "'seeds' must be a number of at least 1, or different seeds (got [1, 1])"),
        ({"budget": "soon"}, "'budget' must be a time such as"),
        ({"strategy": "grid"}, "'learning_rate' must be a Choice or Integers for the strategy 'grid'"),
        ({"storage": "nosuch://host/db"}, "'storage' must be a file or a database URL (got 'nosuch://host/db'"),
        ({"storage": "nosuch://me:secret@host/db"}, "(got 'nosuch://me:***@host/db'"),
    ],
)
def test_errors(graph: Data, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        quick(graph, **wrong)


def test_storage_that_is_no_database(graph: Data, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be taken for one" * 20)
    with pytest.raises(DataError, match=f"'storage' must be a database to write to .*{path.name}"):
        quick(graph, storage=path)
    assert path.read_text().startswith("not a database")
