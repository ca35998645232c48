from typing import Any

import pytest
import torch
from tests.methods.ingredients import small_graph, some_unknown
from torch_geometric.data import Data

from fairpass.kernels import mmd2
from fairpass.methods import GAT, GCN, GIN, MMD, SAGE
from fairpass.training import Task, Training, seeded
from fairpass.training.program import cross_entropy


@pytest.mark.parametrize("backbone", [GCN, GIN, GAT, SAGE])
def test_without_weight_it_is_the_plain_network_to_the_bit(data: Data, backbone: Any) -> None:
    training = Training(epochs=8)
    plain = backbone(training=training).fit(data)
    mine = MMD(weight=0, backbone=backbone.name, training=training).fit(data)
    assert mine.history_ == plain.history_
    assert torch.equal(mine.predict_proba(data), plain.predict_proba(data))


@pytest.mark.parametrize("graph", [small_graph(), some_unknown(small_graph()), small_graph(240, groups=3)])
def test_regulariser_is_the_discrepancy_of_the_predictions(graph: Data) -> None:
    task = Task(graph)
    with seeded(0, deterministic=True):
        program = MMD(weight=2.5, alpha=0.8).build(task).eval()
        logits = program(task)
        expected = cross_entropy(logits, task) + 2.5 * mmd2(logits.softmax(-1), graph.sens, 0.8)
        torch.testing.assert_close(program.loss(program(task), task), expected)


def test_groups_become_more_alike_with_more_weight(data: Data) -> None:
    def discrepancy(weight: float) -> float:
        training = Training(epochs=60, select="last")
        model = MMD(weight=weight, training=training).fit(data)
        return float(mmd2(model.predict_proba(data), data.sens, 1.0))

    none, some, much = discrepancy(0.0), discrepancy(1.0), discrepancy(30.0)
    assert much < some < none
    assert much < 0.1 * none


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weight": -1.0}, r"'weight' must be at least 0 \(got -1.0\)"),
        ({"alpha": 0.0}, r"'alpha' must be positive \(got 0.0\)"),
        ({"backbone": "cheb"}, r"'backbone' must be one of .* \(got 'cheb'\)"),
        ({"num_layers": 0}, r"'num_layers' must be at least 1 \(got 0\)"),
        ({"hidden": 0}, r"'hidden' must be at least 1 \(got 0\)"),
        ({"dropout": 1.5}, r"'dropout' must be at least 0 and below 1 \(got 1.5\)"),
    ],
)
def test_wrong_parameters_are_errors_before_fit(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MMD(**parameters)
