"""A run's key says everything its result depends on, and nothing else."""

from pathlib import Path
from typing import Any

import pytest

from fairpass.experiments import Cell, Configuration, Spec
from fairpass.experiments.records import Records
from fairpass.experiments.spec import ADDED_SINCE_0_1
from fairpass.methods import method

RESULTS = Path(__file__).parents[2] / "results"


def spec(**changes: Any) -> Spec:
    return Spec("german", Configuration("gmmd", {"alpha": 0.3}).but(**changes))


def test_defaults_are_part_of_the_identity() -> None:
    assert spec().identity["parameters"]["backbone"] == "gcn"
    assert spec().identity["training"]["seed"] == 0
    assert spec().key == spec(backbone="gcn").key


@pytest.mark.parametrize(
    "other",
    [
        spec(alpha=0.4),
        Spec("german", spec().configuration, seed=1),
        Spec("bail", spec().configuration),
        Spec("german", spec().configuration, measures=("curves",)),
        Spec("german", spec().configuration.but(scale="none")),
        Spec("german", spec().configuration.but(training={"epochs": 3})),
        Spec("german", Configuration("gmmd-s", {"alpha": 0.3})),
    ],
)
def test_any_change_has_a_key_of_its_own(other: Spec) -> None:
    assert other.key != spec().key


def test_keys_of_stored_records_are_reproduced() -> None:
    records = list(Records(RESULTS))
    assert len(records) > 1300
    for record in records:
        stored = {name: value for name, value in record["training"].items() if name != "seed"}
        # A setting that did not exist yet has the value that means "as before", whatever the default is now.
        training = {**ADDED_SINCE_0_1, **stored}
        parameters = {**method(record["method"]).before, **record["parameters"]}
        configuration = Configuration(record["method"], parameters, training, record["scale"])
        made = Spec(record["dataset"], configuration, record["seed"], tuple(record["measures"]))
        assert made.key == record["key"]


def test_what_was_added_since_is_in_the_identity_only_if_it_changes_something() -> None:
    plain = Spec("german", Configuration("gcn"))
    for name, value in ADDED_SINCE_0_1.items():
        assert name not in plain.identity["training"]
        assert Spec("german", Configuration("gcn", {}, {name: value})).key == plain.key
    changed = Spec("german", Configuration("gcn", {}, {"postprocess": "thresholds"}))
    assert changed.identity["training"]["postprocess"] == "thresholds"
    assert "constraint" not in changed.identity["training"]
    assert changed.key != plain.key
    other = changed.configuration.but(training={"constraint": "equalized_odds"})
    assert Spec("german", other).key != changed.key
    assert "encoder" not in spec().identity["parameters"]
    assert spec(encoder="gcn").identity["parameters"]["encoder"] == "gcn"


def test_each_split_has_a_key_of_its_own() -> None:
    published = Spec("german", Configuration("gcn"))
    assert "split" not in published.identity
    assert len({published.key, *(Spec("german", Configuration("gcn"), split=seed).key for seed in (0, 1))}) == 3


def test_but_keeps_the_original() -> None:
    original = Configuration("gmmd", {"alpha": 0.3}, {"epochs": 5})
    changed = original.but(alpha=1.0, training={"learning_rate": 0.1}, scale="none")
    assert (original.parameters, original.training, original.scale) == ({"alpha": 0.3}, {"epochs": 5}, "minmax")
    assert changed.parameters == {"alpha": 1.0}
    assert changed.training == {"epochs": 5, "learning_rate": 0.1}
    assert changed.scale == "none"


def test_a_cell_has_every_candidate_with_every_seed() -> None:
    cell = Cell("german", "GCN", (Configuration("gcn"), Configuration("gin")), seeds=(0, 1, 2))
    runs = [(run.configuration.method, run.seed) for run in cell.specs()]
    assert runs == [("gcn", 0), ("gcn", 1), ("gcn", 2), ("gin", 0), ("gin", 1), ("gin", 2)]
