"""What is varied and what is fixed, by name; a wrong name or value is an error before any training."""

import re

import pytest

from fairpass.methods.registry import UnknownMethodError
from fairpass.tuning import Choice, LogUniform, Uniform, space_of
from fairpass.tuning.spaces import Configurations, Space

SPACE: Space = {"hidden": Choice(8, 16), "dropout": Choice(0.2), "learning_rate": LogUniform(1e-3, 1e-1)}


def test_parameters_and_training_settings_go_by_name() -> None:
    made = Configurations.of("gcn", SPACE, {"epochs": 7, "num_layers": 3, "threshold": "f1"})
    model = made.classifier({"hidden": 8, "learning_rate": 0.012345678}, seed=5)
    assert (model.hidden, model.num_layers, model.dropout) == (8, 3, 0.2)  # type: ignore[attr-defined] # of the GCN it is
    expected = model.default_training().but(epochs=7, threshold="f1", learning_rate=0.01235, seed=5)
    assert model.training == expected
    assert made.classifier(made.first()).training.epochs == 7
    assert made.default() == {"hidden": 16, "learning_rate": 0.01}


def test_one_value_is_fixed_and_fixed_is_not_varied() -> None:
    made = Configurations.of("gcn", SPACE, {"hidden": 4})
    assert list(made.varied) == ["learning_rate"]
    assert made.fixed == {"dropout": 0.2, "hidden": 4}


def test_a_point_says_all() -> None:
    made = Configurations.of("gcn", SPACE, {})
    point = made.point({"hidden": 8, "learning_rate": 0.02}, validation={"AUC": 0.5})
    assert point.parameters == {"num_layers": 2, "hidden": 8, "dropout": 0.2}
    assert point.training["learning_rate"] == 0.02
    assert "seed" not in point.training
    assert point.classifier(seed=1).training.seed == 1


def test_shape_is_what_a_population_shares() -> None:
    assert Configurations.of("gmmd", space_of("gmmd"), {}).shape() == ["encoder", "hidden", "scale", "fair_steps"]
    assert Configurations.of("gcn", space_of("gcn"), {}).shape() == ["dropout"]


def test_descriptions_tell_configurations_apart() -> None:
    made = [
        Configurations.of("gcn", SPACE, {}),
        Configurations.of("gcn", SPACE, {"epochs": 7}),
        Configurations.of("gcn", {**SPACE, "hidden": Choice(8, 32)}, {}),
        Configurations.of("gin", SPACE, {}),
    ]
    descriptions = [each.describe() for each in made]
    assert all(one != other for i, one in enumerate(descriptions) for other in descriptions[:i])
    # To say what is the default anyway changes nothing.
    assert Configurations.of("gcn", SPACE, {"num_layers": 2}).describe() == descriptions[0]


def test_names_that_nobody_knows() -> None:
    known = "num_layers, hidden, dropout, epochs, learning_rate"
    with pytest.raises(
        ValueError, match=re.escape(f"'space' must hold parameters of 'gcn' or training settings: {known}")
    ):
        Configurations.of("gcn", {"weight": Choice(1, 2)}, {})
    with pytest.raises(ValueError, match=re.escape("(got 'weight')")):
        Configurations.of("gcn", SPACE, {"weight": 1.0})
    with pytest.raises(ValueError, match="'fixed' must not hold 'seed'"):
        Configurations.of("gcn", SPACE, {"seed": 1})
    with pytest.raises(UnknownMethodError, match="'method' must be one of"):
        Configurations.of("gnc", SPACE, {})


def test_values_that_a_method_does_not_take() -> None:
    with pytest.raises(ValueError, match=re.escape("'dropout' must be at least 0 and below 1 (got 2.0)")):
        Configurations.of("gcn", {"dropout": Uniform(0, 2)}, {})
    with pytest.raises(ValueError, match="'epochs' must be at least 1"):
        Configurations.of("gcn", SPACE, {"epochs": 0})


def test_something_must_vary() -> None:
    with pytest.raises(ValueError, match="there must be something to vary for 'gcn'"):
        Configurations.of("gcn", {"dropout": Choice(0.1, 0.2)}, {"dropout": 0.1})
