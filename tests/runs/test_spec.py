"""A run's key says everything its result depends on, and nothing else."""

from pathlib import Path
from typing import Any

import pytest

from fairpass.methods import GCN, method
from fairpass.runs import Configuration, RunSpec, RunStore
from fairpass.training import Training

RESULTS = Path(__file__).parents[2] / "results"


def spec(**changes: Any) -> RunSpec:
    return RunSpec("german", Configuration("gmmd", {"alpha": 0.3}).but(**changes))


def test_defaults_are_part_of_the_identity() -> None:
    assert spec().identity["parameters"]["backbone"] == "gcn"
    assert spec().identity["training"]["seed"] == 0
    assert spec().key == spec(backbone="gcn").key


@pytest.mark.parametrize(
    "other",
    [
        spec(alpha=0.4),
        RunSpec("german", spec().configuration, seed=1),
        RunSpec("bail", spec().configuration),
        RunSpec("german", spec().configuration, measures=("curves",)),
        RunSpec("german", spec().configuration.but(scale="none")),
        RunSpec("german", spec().configuration.but(training={"epochs": 3})),
        RunSpec("german", Configuration("gmmd-s", {"alpha": 0.3})),
    ],
)
def test_any_change_has_a_key_of_its_own(other: RunSpec) -> None:
    assert other.key != spec().key


def test_keys_of_stored_records_are_reproduced() -> None:
    records = list(RunStore(RESULTS))
    assert len(records) > 1300
    for record in records:
        stored = {name: value for name, value in record["training"].items() if name != "seed"}
        # A setting that did not exist yet has the value that means "as before", whatever the default is now.
        training = {**Training.before, **stored}
        parameters = {**method(record["method"]).before, **record["parameters"]}
        configuration = Configuration(record["method"], parameters, training, record["scale"])
        made = RunSpec(record["dataset"], configuration, record["seed"], tuple(record["measures"]))
        assert made.key == record["key"]


def test_what_was_added_since_is_in_the_identity_only_if_it_changes_something() -> None:
    plain = RunSpec("german", Configuration("gcn"))
    for name, value in Training.before.items():
        assert name not in plain.identity["training"]
        assert RunSpec("german", Configuration("gcn", {}, {name: value})).key == plain.key
    changed = RunSpec("german", Configuration("gcn", {}, {"postprocess": "thresholds"}))
    assert changed.identity["training"]["postprocess"] == "thresholds"
    assert "constraint" not in changed.identity["training"]
    assert changed.key != plain.key
    other = changed.configuration.but(training={"constraint": "equalized_odds"})
    assert RunSpec("german", other).key != changed.key
    assert "encoder" not in spec().identity["parameters"]
    assert spec(encoder="gcn").identity["parameters"]["encoder"] == "gcn"


def test_each_split_has_a_key_of_its_own() -> None:
    published = RunSpec("german", Configuration("gcn"))
    assert "split" not in published.identity
    assert len({published.key, *(RunSpec("german", Configuration("gcn"), split=seed).key for seed in (0, 1))}) == 3


def test_but_keeps_the_original() -> None:
    original = Configuration("gmmd", {"alpha": 0.3}, {"epochs": 5})
    changed = original.but(alpha=1.0, training={"learning_rate": 0.1}, scale="none")
    assert (original.parameters, original.training, original.scale) == ({"alpha": 0.3}, {"epochs": 5}, "minmax")
    assert changed.parameters == {"alpha": 1.0}
    assert changed.training == {"epochs": 5, "learning_rate": 0.1}
    assert changed.scale == "none"


def test_a_classifier_has_a_configuration() -> None:
    original = GCN(hidden=4, training=Training(epochs=3, seed=5))
    configuration = Configuration.of(original)
    again = configuration.classifier(seed=5)
    assert again.get_params(deep=False) == original.get_params(deep=False)
    assert "seed" not in configuration.training
    assert Configuration(**configuration.to_dict()) == configuration


def test_a_name_is_no_part_of_the_identity() -> None:
    plain, named = RunSpec("german", Configuration("gcn")), RunSpec("german", Configuration("gcn"), name="ours")
    assert (plain.label, named.label) == ("gcn", "ours")
    assert plain.key == named.key
