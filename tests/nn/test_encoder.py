"""Encoders against PyTorch's and PyG's own layers, and as a population against their members."""

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from fairpass.nn import Encoder, SparseOperator
from fairpass.nn.convolution import EncoderKind
from fairpass.nn.layers import members

MakeGraph = Callable[..., SimpleNamespace]
KINDS: list[EncoderKind] = ["mlp", "linear", "gcn", "sage", "gat", "gin"]
BATCHED: list[EncoderKind] = ["mlp", "linear", "gcn", "sage", "gin"]  # attention has no axis of members
WIDTHS = (5, 6, 6, 2)


def operator(graph: SimpleNamespace, kind: EncoderKind) -> SparseOperator | None:
    if kind == "mlp" or kind == "linear":  # not `in`: mypy narrows the type by `==` alone
        return None
    return SparseOperator.from_edge_index(graph.edge_index, graph.n, kind, dtype=torch.float64)


def theirs(layer: Any, kind: EncoderKind, edge_index: Tensor) -> Callable[[Tensor], Tensor]:
    """Return PyTorch's or PyG's layer with the same weights."""
    with torch.no_grad():
        if kind in ("mlp", "linear"):
            linear = nn.Linear(layer.in_features, layer.out_features).double()
            linear.load_state_dict(layer.state_dict())
            return linear
        its: Any
        if kind == "gin":
            first, second = (nn.Linear(part.in_features, part.out_features) for part in (layer.first, layer.second))
            norm = nn.BatchNorm1d(second.in_features)
            its = GINConv(nn.Sequential(first, norm, nn.ReLU(), second)).double()  # draws their weights again
            for part, other in ((layer.first, first), (layer.norm, norm), (layer.second, second)):
                other.load_state_dict(part.state_dict(), strict=False)  # we keep no running statistics
        elif kind == "sage":
            its = SAGEConv(*layer.weight.shape).double()
            its.lin_l.weight.copy_(layer.weight.T)
            its.lin_l.bias.copy_(layer.root.bias)
            its.lin_r.weight.copy_(layer.root.weight)
        else:
            its = (GCNConv if kind == "gcn" else GATConv)(*layer.weight.shape).double()
            its.lin.weight.copy_(layer.weight.T)
            its.bias.copy_(layer.bias)
            if kind == "gat":
                its.att_dst.copy_(layer.attention.b_target.reshape(1, 1, -1))
                its.att_src.copy_(layer.attention.b_source.reshape(1, 1, -1))

    def convolve(x: Tensor) -> Tensor:
        out: Tensor = its(x, edge_index)
        return out

    return convolve


def randomised(encoder: Encoder, seed: int = 0) -> Encoder:
    """Fill all parameters, so that biases and norms are not those of the beginning."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random, dtype=parameter.dtype))
    return encoder


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_is_a_chain_of_well_known_layers(make_graph: MakeGraph, kind: EncoderKind, norm: bool, residual: bool) -> None:
    graph = make_graph(c=5)
    encoder = randomised(Encoder(kind, WIDTHS, norm=norm, residual=residual).double())
    assert len(encoder.layers) == (1 if kind == "linear" else 3)
    layers = [theirs(layer, kind, graph.edge_index) for layer in encoder.layers]
    x = graph.x
    for i, layer in enumerate(layers):
        if i:
            if encoder.norms is not None:
                batch_norm = nn.BatchNorm1d(6).double()
                batch_norm.load_state_dict(encoder.norms[i - 1].state_dict(), strict=False)
                x = batch_norm(x)
            x = x.relu()
        # Of 5, 6, 6, 2 columns only the second layer leaves as many as it was given.
        x = layer(x) + x if residual and i == 1 else layer(x)
    torch.testing.assert_close(encoder(graph.x, operator(graph, kind)), x)


def test_a_first_layer_may_have_a_residual_connection_and_the_last_has_none() -> None:
    encoder = randomised(Encoder("mlp", (4, 4, 4), residual=True).double())
    x = torch.randn(7, 4, dtype=torch.float64)
    first, second = encoder.layers
    torch.testing.assert_close(encoder(x), second((first(x) + x).relu()))


def test_linear_is_one_layer_whatever_the_widths_between() -> None:
    encoder = Encoder("linear", (5, 16, 16, 2), norm=True, residual=True)
    assert [layer.get_parameter("weight").shape for layer in encoder.layers] == [(2, 5)]
    x, y = torch.randn(4, 5), torch.randn(4, 5)
    torch.testing.assert_close(encoder(x + y) + encoder(0 * x), encoder(x) + encoder(y))


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("kind", BATCHED)
def test_a_population_is_its_members_one_by_one(make_graph: MakeGraph, kind: EncoderKind, norm: bool) -> None:
    graph = make_graph(c=5)
    alone = [randomised(Encoder(kind, WIDTHS, norm=norm, residual=True).double(), seed) for seed in range(3)]
    together = copy.deepcopy(alone[0])
    for path, module in together.named_modules():
        for name in module._parameters:
            rows = [encoder.get_submodule(path).get_parameter(name).detach() for encoder in alone]
            module._parameters[name] = nn.Parameter(torch.stack(rows))
    on = operator(graph, kind)
    out = together(graph.x, on)
    assert out.shape == (3, graph.n, 2)
    for row, encoder in zip(out, alone, strict=True):
        torch.testing.assert_close(row, encoder(graph.x, on))


def test_each_member_of_a_population_drops_its_own_units() -> None:
    encoder, x = Encoder("mlp", (4, 32, 2), dropout=0.5), torch.randn(6, 4)
    together = copy.deepcopy(encoder)
    for module in together.modules():
        for name in module._parameters:
            module._parameters[name] = nn.Parameter(torch.stack([module.get_parameter(name).detach()] * 2))
    with members([torch.Generator().manual_seed(seed) for seed in (4, 9)]):
        out = together(x)
    for row, seed in zip(out, (4, 9), strict=True):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            torch.testing.assert_close(row, encoder(x))
    together.eval()
    torch.testing.assert_close(together(x)[0], encoder.eval()(x))


@pytest.mark.parametrize("kind", KINDS)
def test_reset_draws_all_parameters_again(kind: EncoderKind) -> None:
    encoder = randomised(Encoder(kind, WIDTHS, norm=True))
    before = copy.deepcopy(encoder.state_dict())
    encoder.reset_parameters()
    assert not any(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())


def test_errors(make_graph: MakeGraph) -> None:
    with pytest.raises(ValueError, match=r"'kind' must be one of \('mlp', .*'gin'\) \(got 'cheb'\)"):
        Encoder("cheb", (2, 2))  # type: ignore[arg-type] # the mistake under test
    graph = make_graph()
    with pytest.raises(ValueError, match=r"'operator' must have entries of its own \(got kind 'gat'"):
        Encoder("gcn", (2, 2)).double()(graph.x, operator(graph, "gat"))
    with pytest.raises(ValueError, match=r"'operator' must be given for 'gcn' \(got None\)"):
        Encoder("gcn", (2, 2)).double()(graph.x)
