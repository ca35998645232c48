"""Modules with a leading axis of members compute what each member would alone."""

import copy

import pytest
import torch
from torch import Generator, nn

from fairpass.nn import GNN, MLP, SparseOperator
from fairpass.nn.convolution import Backbone
from fairpass.nn.layers import Linear, as_kernel_argument, dropout, members


def edges() -> torch.Tensor:
    pairs = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    return torch.cat([pairs, pairs.flip(0)], 1)


def stacked(modules: list[nn.Module]) -> nn.Module:
    together = copy.deepcopy(modules[0])
    for path, module in together.named_modules():
        for name in module._parameters:
            rows = [m.get_submodule(path).get_parameter(name).detach() for m in modules]
            module._parameters[name] = nn.Parameter(torch.stack(rows))
    return together


@pytest.mark.parametrize("num_layers", [1, 3])
def test_perceptrons(num_layers: int) -> None:
    alone: list[nn.Module] = [MLP(4, 2, num_layers, 5) for _ in range(3)]
    x = torch.randn(5, 4, generator=Generator().manual_seed(0))
    out = stacked(alone)(x)
    assert out.shape == (3, 5, 2)
    for row, module in zip(out, alone, strict=True):
        torch.testing.assert_close(row, module(x))


@pytest.mark.parametrize("backbone", ["gcn", "gin", "sage"])
def test_convolutions(backbone: Backbone) -> None:
    alone: list[nn.Module] = [GNN(backbone, (4, 6, 2), 0.0) for _ in range(3)]
    operator = SparseOperator.from_edge_index(edges(), 5, backbone)
    x = torch.randn(5, 4, generator=Generator().manual_seed(0))
    for row, module in zip(stacked(alone)(x, operator), alone, strict=True):
        torch.testing.assert_close(row, module(x, operator))


def test_each_member_draws_from_its_own_generator() -> None:
    x = torch.ones(2, 50, 3)
    with members([Generator().manual_seed(seed) for seed in (4, 9)]):
        together = dropout(x, 0.4, training=True)
    for row, seed in zip(together, (4, 9), strict=True):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            assert torch.equal(row, nn.functional.dropout(torch.ones(50, 3), 0.4, training=True))


@pytest.mark.parametrize(("p", "training"), [(0.0, True), (0.5, False)])
def test_nothing_is_drawn_without_need(p: float, training: bool) -> None:
    x = torch.ones(2, 3, 3)
    generator = Generator().manual_seed(0)
    before = generator.get_state()
    with members([generator, Generator()]):
        assert torch.equal(dropout(x, p, training), x)
    assert torch.equal(generator.get_state(), before)


def test_without_members_it_is_pytorchs_layer() -> None:
    layer = Linear(3, 2)
    x = torch.randn(4, 3)
    assert torch.equal(layer(x), nn.functional.linear(x, layer.weight, layer.bias))


def test_one_number_for_each_problem() -> None:
    assert as_kernel_argument(0.3) == 0.3
    assert torch.equal(torch.as_tensor(as_kernel_argument(torch.tensor([[[1.0]], [[2.0]]]))), torch.tensor([1.0, 2.0]))
