"""The perceptron: features only, and the network it says it is."""

from typing import Any

import pytest
import torch
from tests.methods.ingredients import changed, small_graph
from torch import nn

from fairpass.methods import Logistic, MLPClassifier
from fairpass.training import Training


def test_it_is_the_literal_network_and_sees_no_edges() -> None:
    data = small_graph()
    training = Training(epochs=5)
    model = MLPClassifier(num_layers=3, hidden=5, dropout=0.3, training=training).fit(data)
    weights = list(model.program_.state_dict().values())
    assert [tuple(value.shape) for value in weights] == [(5, 7), (5,), (5, 5), (5,), (2, 5), (2,)]
    x = data.x
    for i in range(3):
        x = nn.functional.linear(x.relu() if i else x, weights[2 * i], weights[2 * i + 1])
    torch.testing.assert_close(model.predict_proba(data), x.softmax(-1))
    without = changed(data, edge_index=data.edge_index[:, :0])
    same = MLPClassifier(num_layers=3, hidden=5, dropout=0.3, training=training).fit(without)
    assert torch.equal(same.predict_proba(data), model.predict_proba(data))


def test_one_layer_without_decay_is_logistic_regression() -> None:
    data = small_graph()
    training = Training(epochs=700, learning_rate=0.1, weight_decay=0.0, select="last", track_discrepancy=False)
    linear = MLPClassifier(num_layers=1, training=training).fit(data)
    regression = Logistic(C=1e6).fit(data)
    torch.testing.assert_close(linear.predict_proba(data), regression.predict_proba(data), rtol=0, atol=5e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"num_layers": 0}, r"'num_layers' must be at least 1 \(got 0\)"),
        ({"hidden": 0}, r"'hidden' must be at least 1 \(got 0\)"),
        ({"dropout": 1}, r"'dropout' must be at least 0 and below 1 \(got 1\)"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MLPClassifier(**parameters)
