import copy

import pytest
import torch
from torch import nn

from fairpass.nn import MLP


@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_is_linear_layers_with_relu_between(num_layers: int) -> None:
    mlp = MLP(5, 2, num_layers, 7)
    parts: list[nn.Module] = []
    for layer in mlp.layers:
        parts += [nn.ReLU(), layer]
    x = torch.randn(3, 6, 5)
    torch.testing.assert_close(mlp(x), nn.Sequential(*parts[1:])(x))
    assert mlp(x).shape == (3, 6, 2)
    assert len(mlp.layers) == num_layers


def test_one_layer_is_linear() -> None:
    mlp = MLP(5, 2, num_layers=1)
    x, y = torch.randn(4, 5), torch.randn(4, 5)
    torch.testing.assert_close(mlp(x + y) + mlp(0 * x), mlp(x) + mlp(y))


def test_default_width_is_the_papers() -> None:
    assert MLP(5, 2).layers[0].weight.shape == (16, 5)


def test_drops_hidden_units_in_training_only() -> None:
    torch.manual_seed(0)
    mlp, x = MLP(5, 2, dropout=0.5), torch.randn(4, 5)
    assert not torch.equal(mlp(x), mlp(x))
    mlp.eval()
    assert torch.equal(mlp(x), mlp(x))
    everything = MLP(5, 2, dropout=1.0)
    torch.testing.assert_close(everything(x), everything(0 * x))


def test_reset_draws_new_parameters() -> None:
    mlp = MLP(5, 2)
    before = copy.deepcopy(mlp.state_dict())
    mlp.reset_parameters()
    assert not any(torch.equal(value, before[name]) for name, value in mlp.state_dict().items())


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"'num_layers' must be at least 1 \(got 0\)"):
        MLP(5, 2, num_layers=0)
