"""A fit that diverges says so and names the learning rate; no other error comes first."""

import math

import pytest
import torch
from tests.methods.ingredients import make, small_graph
from torch_geometric.data import Data

from fairpass.methods import method, names
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


@pytest.mark.parametrize("scale", [1e13, 1e19, 1e30, 1e37])
def test_discrepancy_of_huge_logits_is_that_of_small_ones(graph: Data, scale: float) -> None:
    logits = torch.randn(1, graph.num_nodes or 0, 2, generator=torch.Generator().manual_seed(0))
    watch = EpochMonitor(Task(graph), Training())
    (small,), (huge,) = watch(logits), watch(scale * logits)
    assert huge["discrepancy"] == pytest.approx(small["discrepancy"], rel=1e-4)
    assert not math.isnan(huge["selection"])
