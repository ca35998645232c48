from typing import Any

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from fairpass.methods import GAT, GCN, GIN, SAGE
from fairpass.nn import Encoder
from fairpass.training import Training


@pytest.mark.parametrize("kind", [GCN, GIN, GAT, SAGE])
def test_wrong_parameters_are_errors_before_fit(kind: Any) -> None:
    for parameters, message in (
        ({"num_layers": 0}, r"'num_layers' must be at least 1 \(got 0\)"),
        ({"hidden": 0}, r"'hidden' must be at least 1 \(got 0\)"),
        ({"dropout": -0.1}, r"'dropout' must be at least 0 and below 1 \(got -0.1\)"),
        ({"dropout": 1}, r"'dropout' must be at least 0 and below 1 \(got 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            kind(**parameters)


@pytest.mark.parametrize("kind", [GCN, GIN, GAT, SAGE])
def test_layers_and_widths(kind: Any, data: Data) -> None:
    model = kind(num_layers=3, hidden=5, training=Training(epochs=2)).fit(data)
    network = model.program_.network
    assert isinstance(network, Encoder)
    assert (network.backbone, len(network.layers)) == (kind.name, 3)


def test_gcn_predicts_what_pyg_does_with_its_weights(data: Data) -> None:
    model = GCN(training=Training(epochs=5)).fit(data)
    state = model.program_.state_dict()
    x = data.x
    for i in range(2):
        layer = GCNConv(x.shape[1], state[f"network.layers.{i}.bias"].numel())
        layer.lin.weight.data = state[f"network.layers.{i}.weight"].T
        layer.bias.data = state[f"network.layers.{i}.bias"]
        x = layer(x if i == 0 else x.relu(), data.edge_index)
    torch.testing.assert_close(model.predict_proba(data), x.softmax(-1).detach())
