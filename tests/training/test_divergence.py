"""A fit that diverges says so and names the learning rate; no other error comes first."""

import math
from contextlib import suppress

import pytest
import torch
from tests.methods.ingredients import make, small_graph
from torch_geometric.data import Data

from fairpass.errors import NotFiniteError
from fairpass.methods import method, names
from fairpass.parameters import LARGEST, LARGEST_RATE, alternatives
from fairpass.training import DivergedError, Task, Training
from fairpass.training.loop import EpochMonitor


@pytest.fixture(scope="module")
def graph() -> Data:
    return small_graph()


@pytest.mark.parametrize("learning_rate", [1e6, 1e12, 1e30])
@pytest.mark.parametrize("name", names())
def test_only_divergence_is_an_error(graph: Data, name: str, learning_rate: float) -> None:
    model = make(method(name), learning_rate=learning_rate, select="last")
    complaint = None
    try:
        model.fit(graph)
    except DivergedError as error:
        complaint = str(error)
    if complaint is None:
        assert bool(model.predict_proba(graph).isfinite().all())
    else:
        assert "a smaller 'learning_rate' may help" in complaint


RATES = [(name, rate) for name in names() for rate, each in method(name).declared.items() if each.limit == LARGEST_RATE]


def test_methods_with_learning_rates_of_their_own() -> None:
    assert {name for name, _ in RATES} == {"fairinv", "fairvgnn"}


@pytest.mark.parametrize(("name", "rate"), RATES)
def test_the_learning_rate_that_is_too_large_is_named_first(graph: Data, name: str, rate: str) -> None:
    model = make(method(name), select="last", learning_rate=0.02).with_params(**{rate: 1e30})
    with pytest.raises(DivergedError, match=rf"a smaller '{rate}' may help, or a smaller .*'learning_rate'"):
        model.fit(graph)


@pytest.mark.parametrize("name", names())
def test_the_largest_numbers_that_a_method_accepts_give_a_model_or_divergence(graph: Data, name: str) -> None:
    kind = method(name)
    numbers = [each for each in kind.declared.values() if float in alternatives(each.hint) and each.name != "lambda_f"]
    for each in numbers:
        largest = (each.limit or LARGEST) if each.at_most is None else each.at_most
        model = make(kind, epochs=1).with_params(**{each.name: 0.999 if each.below == 1 else largest})
        with suppress(DivergedError):
            assert bool(model.fit(graph).predict_proba(graph).isfinite().all())


def test_a_method_that_notices_it_first_has_diverged(graph: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a kernel or a layer says about numbers that are not finite, the fit speaks of divergence."""

    def diverging(*_: object) -> None:
        raise NotFiniteError("'alpha' must be positive and finite (got nan)")

    monkeypatch.setattr("fairpass.methods.networks.encode", diverging)
    with pytest.raises(DivergedError, match=r"finite outputs \(got nan at epoch 0; a smaller 'learning_rate' may help"):
        make(method("gcn")).fit(graph)


@pytest.mark.parametrize("scale", [1e13, 1e19, 1e30, 1e37])
def test_discrepancy_of_huge_logits_is_that_of_small_ones(graph: Data, scale: float) -> None:
    logits = torch.randn(1, graph.num_nodes or 0, 2, generator=torch.Generator().manual_seed(0))
    watch = EpochMonitor(Task(graph), Training())
    (small,), (huge,) = watch(logits), watch(scale * logits)
    assert huge["discrepancy"] == pytest.approx(small["discrepancy"], rel=1e-4)
    assert not math.isnan(huge["selection"])
