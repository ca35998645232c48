"""A method, or a hyper-parameter, is declared in one place, and everything else knows it."""

import inspect
from collections.abc import Iterator
from typing import Literal

import pytest
import torch
import typer
from tests.methods.battery import MethodBattery
from torch import Tensor, nn
from typer.testing import CliRunner

from fairpass.cli.app import app
from fairpass.cli.options import parse_parameters
from fairpass.methods import GCN, NodeClassifier, method, registry
from fairpass.parameters import Choice, LogUniform, parameter
from fairpass.training import Program, Task, Training
from fairpass.tuning import space_of


class Linear(NodeClassifier):
    """A linear map of the features."""

    temperature: float = parameter(1.0, "divides the logits", LogUniform(0.1, 10), above=0)

    name = "linear"
    summary = "a linear map of the features"

    def build(self, task: Task) -> Program:
        return _Linear(task, self.temperature)


class _Linear(Program):
    def __init__(self, task: Task, temperature: float) -> None:
        super().__init__()
        self.linear, self.temperature = nn.Linear(task.num_features, task.num_classes), temperature

    def forward(self, task: Task) -> Tensor:
        logits: Tensor = self.linear(task.x)
        return logits / self.temperature


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """Add the method: one line in the registry."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.OWN, "linear", f"{__name__}:Linear")
        yield


class TestNewMethod(MethodBattery):
    @pytest.fixture(scope="class")
    @classmethod
    def kind(cls) -> type[NodeClassifier]:
        return Linear


def test_a_new_method_is_known_everywhere() -> None:
    assert method("linear") is Linear
    shown = CliRunner().invoke(app, ["methods"]).stdout
    assert "a linear map of the features" in " ".join(shown.split())
    assert parse_parameters(Linear, ["temperature=2"]) == {"temperature": 2.0}
    assert list(space_of("linear")) == ["temperature", "learning_rate", "weight_decay"]
    assert "`temperature`" in registry.hyperparameter_table(Linear)


class Wider(GCN):
    """A GCN with one more parameter."""

    shape: Literal["square", "round"] = parameter(
        "square", "shape of the network", Choice("square", "round"), Choice("round"), per_member=True, before="round"
    )

    name = "wider"


def test_a_new_hyper_parameter_is_known_everywhere() -> None:
    assert list(inspect.signature(Wider).parameters) == ["shape", "num_layers", "hidden", "dropout", "training"]
    assert Wider(shape="round", hidden=4).shape == "round"
    with pytest.raises(ValueError, match=r"'shape' must be one of \('square', 'round'\) \(got 'oval'\)"):
        Wider(shape="oval")  # type: ignore[arg-type] # the mistake under test
    assert repr(Wider(shape="round")) == "Wider(shape='round')"
    assert Wider().set_params(shape="round").get_params()["shape"] == "round"
    assert Wider(shape="round").hyperparameters == {"shape": "round", "num_layers": 2, "hidden": 16, "dropout": 0.5}
    assert parse_parameters(Wider, ["shape=round"]) == {"shape": "round"}
    with pytest.raises(typer.BadParameter, match=r"'shape' must be 'square' or 'round' \(got 'oval'\)"):
        parse_parameters(Wider, ["shape=oval"])
    assert Wider.space()["shape"] == Choice("square", "round")
    assert Wider.space("grid")["shape"] == Choice("round")
    assert (Wider.per_member, Wider.before) == (("shape",), {"shape": "round"})
    assert "shape: shape of the network ('square', 'round')." in (Wider.__doc__ or "")
    row = "| `wider` | `shape` | `'square'` | 'square', 'round' | `Choice(values=('square', 'round'))` |"
    assert row in registry.hyperparameter_table(Wider)


class Written(NodeClassifier):
    """A method as for version 0.2, which writes its constructor itself."""

    name = "written"
    summary = "a method"

    def __init__(self, *, width: int = 3, training: Training | None = None) -> None:
        super().__init__(training=training)  # type: ignore[arg-type] # None is the default
        self.width = width

    def build(self, task: Task) -> Program:
        raise NotImplementedError


class WrittenToo(Written):
    name = "written-too"


@pytest.mark.parametrize("kind", [Written, WrittenToo])
def test_a_written_constructor_still_works(kind: type[Written]) -> None:
    model = kind(width=4)
    assert model.hyperparameters == {"width": 4}
    assert model.training == Training()
    assert repr(model) == f"{kind.__name__}(width=4)"
    assert model.set_params(width=5, training__epochs=2).width == 5
    assert parse_parameters(kind, ["width=6"]) == {"width": 6}
    assert list(kind.space()) == ["learning_rate", "weight_decay"]


def test_values_of_other_types_are_refused() -> None:
    wrong: dict[str, object] = {"num_layers": 2.5, "hidden": True, "dropout": "much"}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=rf"'{name}' must be a (whole )?number \(got {value!r}\)"):
            GCN(**{name: value})  # type: ignore[arg-type] # the mistake under test
    with pytest.raises(ValueError, match=r"'dropout' must be at least 0 and below 1 \(got nan\)"):
        GCN(dropout=float("nan"))
    with pytest.raises(TypeError, match="unexpected keyword argument 'width'"):
        GCN(width=3)  # type: ignore[call-arg] # the mistake under test


def test_a_fitted_program_does_not_follow_its_classifier() -> None:
    from tests.methods.ingredients import QUICK, small_graph

    data = small_graph()
    for name in ("nifty", "fairvgnn", "fairinv", "edits", "fairgnn", "fairsin", "bemap"):
        model = method(name)(**QUICK.get(name, {}), training=Training(epochs=1)).fit(data)
        before = model.predict_proba(data)
        for changed, declared in model.declared.items():
            if declared.search is not None or changed in ("K", "backbone"):
                setattr(model, changed, "gat" if changed == "backbone" else 1)
        assert torch.equal(model.predict_proba(data), before)
