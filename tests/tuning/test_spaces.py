"""Where to search: every space suits its method, and the paper's grid is the paper's."""

import pytest
import torch

from fairpass.datasets import synthetic
from fairpass.methods import GMMD, GMMDS, names
from fairpass.parameters import Dimension
from fairpass.runs import fit_all
from fairpass.tuning import GRIDS, RECOMMENDED, Choice, Integers, LogUniform, Uniform, space_of
from fairpass.tuning.spaces import Configurations, Space, combinations
from fairpass.tuning.strategies import distribution

TUNABLE = [name for name in names() if name != "constant"]


@pytest.mark.parametrize("method", TUNABLE)
@pytest.mark.parametrize("kind", ["recommended", "grid"])
def test_every_method_has_a_space_that_it_takes(method: str, kind: str) -> None:
    space = space_of(method, kind)  # type: ignore[arg-type] # one of its kinds
    configurations = Configurations.of(method, space, {})  # every end is tried
    assert set(configurations.varied) <= set(space)
    assert method in RECOMMENDED
    assert method in GRIDS


@pytest.mark.parametrize("method", TUNABLE)
def test_recommended_space_holds_the_defaults(method: str) -> None:
    configurations = Configurations.of(method, space_of(method), {})
    lacking = set(configurations.varied) - set(configurations.default())
    # FairVGNN's authors train without weight decay and EDITS' with little dropout: no order of magnitude, no choice.
    assert lacking <= {"weight_decay", "dropout"}


def test_paper_grid() -> None:
    space = space_of("gmmd", "grid")
    assert space == space_of("gmmd-s", "grid")
    assert space["lambda_s"] == Choice(0.0, 0.1, 0.5, 1.0, 2.0)
    assert space["lambda_f"] == Choice(0.0, 0.1, 0.5, 1.0, 5.0, 10.0)
    assert space["alpha"] == Choice(0.1, 0.3, 0.7, 1.0)
    assert space["num_layers"] == Choice(1, 2, 4, 6)
    assert space["learning_rate"] == Choice(0.003, 0.001, 0.0001)
    assert space["weight_decay"] == Choice(0.0, 0.4, 0.0001, 0.00001)
    configurations = Configurations.of("gmmd", space, {"sample": 200})
    assert len(list(combinations(configurations.varied))) == 5 * 6 * 4 * 4 * 3 * 4
    model = configurations.classifier(configurations.first())
    values = model.get_params()
    assert (values["step"], values["bandwidth"], values["lambda_f_scaling"]) == ("paper", "fixed", "product")
    assert (values["sample"], values["K"], values["hidden"]) == (200, 2, 16)
    assert (values["encoder"], values["scale"], values["columns"], values["criterion"]) == ("mlp", "given", "all", "dp")


@pytest.mark.parametrize("method", [GMMD, GMMDS])
def test_paper_grid_is_the_paper_configuration(method: type[GMMD]) -> None:
    """What the grid fixes is what `paper` sets."""
    configurations = Configurations.of(method.name, space_of(method.name, "grid"), {})
    values = configurations.first()
    parameters = {name: value for name, value in values.items() if name not in ("learning_rate", "weight_decay")}
    expected = method.paper(sample=100, **parameters)
    assert configurations.classifier(values).hyperparameters == expected.hyperparameters


@pytest.mark.parametrize("method", ["gmmd", "gmmd-s"])
def test_validation_chooses_encoder_smoothing_and_scale(method: str) -> None:
    space = space_of(method)
    assert space["encoder"] == Choice("linear", "mlp", "gcn", "sage")
    assert space["scale"] == Choice("given", "minmax")
    assert space["lambda_s"].contains(0.0)
    assert set(space) == {
        *("encoder", "hidden", "scale", "lambda_s", "weight", "alpha", "fair_steps"),
        *("learning_rate", "weight_decay"),
    }
    configurations = Configurations.of(method, space, {"criterion": "eo"})
    assert configurations.classifier(configurations.first()).hyperparameters["criterion"] == "eo"


@pytest.mark.parametrize("encoder", ["linear", "mlp", "gcn", "sage"])
def test_a_batch_trains_with_and_without_smoothing(encoder: str) -> None:
    """Members of one population may differ in `lambda_s`, 0 included, and each is as it is alone."""
    data = synthetic(120)
    configurations = Configurations.of("gmmd", space_of("gmmd"), {"encoder": encoder, "epochs": 2})
    values = [{**configurations.first(), "lambda_s": smooth} for smooth in (0.0, 0.5, 2.0)]
    together = [configurations.classifier(each) for each in values]
    assert fit_all(together, data) == [None] * 3
    for each, member in zip(values, together, strict=True):
        alone = configurations.classifier(each).fit(data)
        torch.testing.assert_close(member.predict_proba(data), alone.predict_proba(data), atol=1e-4, rtol=1e-3)


def test_unlisted_method_and_unknown_kind() -> None:
    assert set(space_of("somebody's own")) == {"learning_rate", "weight_decay"}
    with pytest.raises(ValueError, match="'kind' must be one of"):
        space_of("gmmd", "paper")  # type: ignore[arg-type] # the mistake under test


def test_combinations() -> None:
    space: Space = {"K": Integers(1, 2), "backbone": Choice("gcn", "gat")}
    assert list(combinations(space)) == [
        {"K": 1, "backbone": "gcn"},
        {"K": 1, "backbone": "gat"},
        {"K": 2, "backbone": "gcn"},
        {"K": 2, "backbone": "gat"},
    ]
    with pytest.raises(ValueError, match="'alpha' must be a Choice or Integers for the strategy 'grid'"):
        combinations({"alpha": Uniform(0, 1)})


@pytest.mark.parametrize(
    ("dimension", "inside", "outside"),
    [
        (Choice("a", None, 2), [None, 2], ["b", 3]),
        (Uniform(0, 1), [0, 0.5, 1.0], [-0.1, True, "a", None]),
        (LogUniform(0.1, 10), [0.1, 10], [0, 11]),
        (Integers(1, 3), [1, 3], [2.0, 0, True]),
    ],
)
def test_dimensions_know_what_they_hold(dimension: Dimension, inside: list[object], outside: list[object]) -> None:
    assert all(dimension.contains(value) for value in [*inside, *dimension.ends()])
    assert not any(dimension.contains(value) for value in outside)
    found = distribution(dimension)
    for value in inside:
        assert found._contains(found.to_internal_repr(value))


def test_numbers_are_short_enough_to_be_read() -> None:
    assert LogUniform(1e-5, 1).read(0.000123456789) == 0.0001235
    assert Integers(1, 9).read(4) == 4
    assert Choice(0.123456789).read(0.123456789) == 0.123456789


@pytest.mark.parametrize("kind", [Uniform, LogUniform, Integers])
def test_intervals_have_two_ends(kind: type[Uniform]) -> None:
    for low, high in ((2, 2), (3, 2), (1, float("inf"))):
        with pytest.raises(ValueError, match="'low' must be less than 'high', both finite"):
            kind(low, high)


def test_other_errors_of_dimensions() -> None:
    with pytest.raises(ValueError, match="'low' must be positive"):
        LogUniform(0, 1)
    with pytest.raises(ValueError, match="'low' and 'high' must be whole numbers"):
        Integers(0.5, 2)
    with pytest.raises(ValueError, match="'values' must hold at least one value"):
        Choice()
    with pytest.raises(ValueError, match="'values' must be different from each other"):
        Choice(1, 1)
