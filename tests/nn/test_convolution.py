import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv
from torch_geometric.nn.models import GAT, GCN, GraphSAGE

from fairpass.nn import GNN, SparseOperator
from fairpass.nn.convolution import (
    Backbone,
    GATConvolution,
    GCNConvolution,
    GINConvolution,
    SAGEConvolution,
    convolution,
)
from fairpass.nn.layers import NodeNorm

MakeGraph = Callable[..., SimpleNamespace]
BACKBONES: list[Backbone] = ["gcn", "gin", "gat", "sage"]
# Narrowing and widening: GCN and GraphSAGE multiply in the cheaper order.
WIDTHS = [(5, 3), (3, 5)]


def operator(graph: SimpleNamespace, backbone: Backbone, edge_weight: Tensor | None = None) -> SparseOperator:
    return SparseOperator.from_edge_index(
        graph.edge_index, graph.n, backbone, edge_weight=edge_weight, dtype=torch.float64
    )


def gcn_like(ours: Any, a: int, b: int) -> tuple[nn.Module, list[tuple[Tensor, Tensor]]]:
    theirs = GCNConv(a, b).double()
    return theirs, [(ours.weight, theirs.lin.weight), (ours.bias, theirs.bias)]


def gin_like(ours: Any, a: int, b: int) -> tuple[nn.Module, list[tuple[Tensor, Tensor]]]:
    first, second = nn.Linear(a, b), nn.Linear(b, b)
    pairs = [(ours.first.weight, first.weight), (ours.first.bias, first.bias)]
    pairs += [(ours.second.weight, second.weight), (ours.second.bias, second.bias)]
    norm = nn.BatchNorm1d(b)
    pairs += [(ours.norm.weight, norm.weight), (ours.norm.bias, norm.bias)]
    return GINConv(nn.Sequential(first, norm, nn.ReLU(), second)).double(), pairs


def gat_like(ours: Any, a: int, b: int) -> tuple[nn.Module, list[tuple[Tensor, Tensor]]]:
    theirs = GATConv(a, b).double()
    pairs = [(ours.weight, theirs.lin.weight), (ours.bias, theirs.bias)]
    pairs += [(ours.attention.b_target, theirs.att_dst), (ours.attention.b_source, theirs.att_src)]
    return theirs, pairs


def sage_like(ours: Any, a: int, b: int) -> tuple[nn.Module, list[tuple[Tensor, Tensor]]]:
    theirs = SAGEConv(a, b).double()
    pairs = [(ours.weight, theirs.lin_l.weight), (ours.root.bias, theirs.lin_l.bias)]
    pairs += [(ours.root.weight, theirs.lin_r.weight)]
    return theirs, pairs


def as_ours(theirs: Tensor, ours: Tensor) -> Tensor:
    """Return PyG's parameter (or its gradient) in the shape of ours, which are `in x out`."""
    return (theirs if theirs.shape == ours.shape else theirs.mT).reshape(ours.shape)


PYG = {"gcn": gcn_like, "gin": gin_like, "gat": gat_like, "sage": sage_like}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_agrees_with_pyg(make_graph: MakeGraph, backbone: Backbone, widths: tuple[int, int], directed: bool) -> None:
    torch.manual_seed(0)
    graph = make_graph(c=widths[0], directed=directed)
    ours = convolution(backbone, *widths).double()
    theirs, pairs = PYG[backbone](ours, *widths)
    with torch.no_grad():
        for mine, its in pairs:
            mine.copy_(torch.randn_like(mine))
            its.copy_(mine.reshape(its.shape) if its.shape == mine.shape else mine.mT.reshape(its.shape))
    x, same = graph.x.clone().requires_grad_(), graph.x.clone().requires_grad_()
    out, expected = ours(x, operator(graph, backbone)), theirs(same, graph.edge_index)
    torch.testing.assert_close(out, expected)
    pulled = torch.randn_like(out)
    by_ours = torch.autograd.grad(out, [x, *(mine for mine, _ in pairs)], pulled)
    by_theirs = torch.autograd.grad(expected, [same, *(its for _, its in pairs)], pulled)
    for a, b in zip(by_ours, by_theirs, strict=True):
        torch.testing.assert_close(a, as_ours(b, a))


@pytest.mark.parametrize("directed", [False, True])
def test_gcn_with_edge_weights_agrees_with_pyg(make_graph: MakeGraph, directed: bool) -> None:
    graph = make_graph(c=4, directed=directed)
    ours = GCNConvolution(4, 2).double()
    theirs, ((_, weight), _) = gcn_like(ours, 4, 2)
    with torch.no_grad():
        weight.copy_(ours.weight.T)
    torch.testing.assert_close(
        ours(graph.x, operator(graph, "gcn", graph.edge_weight)), theirs(graph.x, graph.edge_index, graph.edge_weight)
    )


@pytest.mark.parametrize(("backbone", "model"), [("gcn", GCN), ("gat", GAT), ("sage", GraphSAGE)])
def test_network_agrees_with_pygs_model(make_graph: MakeGraph, backbone: Backbone, model: Any) -> None:
    graph = make_graph(c=5)
    ours = GNN(backbone, (5, 4, 2)).double().eval()
    theirs = model(5, 4, num_layers=2, out_channels=2).double().eval()
    with torch.no_grad():
        for mine, its in zip(ours.layers, theirs.convs, strict=True):
            if isinstance(mine, SAGEConvolution):
                its.lin_l.weight.copy_(mine.weight.T)
                its.lin_l.bias.copy_(mine.root.bias)
                its.lin_r.weight.copy_(mine.root.weight)
                continue
            its.lin.weight.copy_(mine.weight.T)
            if isinstance(mine, GATConvolution):
                its.att_dst.copy_(mine.attention.b_target.T)
                its.att_src.copy_(mine.attention.b_source.T)
    torch.testing.assert_close(ours(graph.x, operator(graph, backbone)), theirs(graph.x, graph.edge_index))


def test_sage_of_an_isolated_node_is_its_own_features_alone(make_graph: MakeGraph) -> None:
    graph = make_graph(c=4)
    layer = SAGEConvolution(4, 3).double()
    out = layer(graph.x, operator(graph, "sage"))
    torch.testing.assert_close(out[-1], layer.root(graph.x[-1]))
    # The mean over the neighbours of a node is what PyG's aggregator makes of them.
    node = int(graph.edge_index[1, 0])
    neighbours = graph.edge_index[0, graph.edge_index[1] == node]
    torch.testing.assert_close(out[node], graph.x[neighbours].mean(0) @ layer.weight + layer.root(graph.x[node]))


def test_sage_starts_as_pygs_does() -> None:
    torch.manual_seed(0)
    ours, theirs = SAGEConvolution(100, 400), SAGEConv(100, 400)
    for mine, its in ((ours.weight, theirs.lin_l.weight), (ours.root.weight, theirs.lin_r.weight)):
        for value in (mine, its):  # uniform within 1 / sqrt(100)
            assert 0.0999 < float(value.detach().abs().max()) <= 0.1
            assert float(value.detach().std()) == pytest.approx(0.1 / 3**0.5, rel=0.01)
    for bias in (ours.root.bias, theirs.lin_l.bias):
        assert 0.09 < float(bias.detach().abs().max()) <= 0.1


@pytest.mark.parametrize("backbone", ["gcn", "gin", "sage"])
@pytest.mark.parametrize("widths", WIDTHS)
def test_a_batch_is_its_members_one_by_one(make_graph: MakeGraph, backbone: Backbone, widths: tuple[int, int]) -> None:
    graph = make_graph()
    layer, on = convolution(backbone, *widths).double(), operator(graph, backbone)
    x = torch.randn(3, graph.n, widths[0], dtype=torch.float64)
    torch.testing.assert_close(layer(x, on), torch.stack([layer(one, on) for one in x]))


@pytest.mark.parametrize("backbone", BACKBONES)
def test_network_drops_hidden_units_in_training_only(make_graph: MakeGraph, backbone: Backbone) -> None:
    torch.manual_seed(0)
    graph = make_graph()
    network, on = GNN(backbone, (2, 16, 2), dropout=0.5).double(), operator(graph, backbone)
    before = copy.deepcopy(graph)
    assert not torch.equal(network(graph.x, on), network(graph.x, on))
    network.eval()
    assert torch.equal(network(graph.x, on), network(graph.x, on))
    assert torch.equal(graph.x, before.x)


@pytest.mark.parametrize(
    "layer", [GCNConvolution(2, 3), GINConvolution(2, 3), GATConvolution(2, 3), SAGEConvolution(2, 3)]
)
def test_reset_draws_new_weights(layer: GCNConvolution | GINConvolution | GATConvolution | SAGEConvolution) -> None:
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(1)  # what starts from a constant would else be the same again
    before = copy.deepcopy(dict(layer.named_parameters()))
    layer.reset_parameters()
    for name, value in layer.named_parameters():
        assert not torch.equal(value, before[name])


def test_norm_agrees_with_pytorchs() -> None:
    x = 100 + 30 * torch.randn(50, 3, dtype=torch.float64)
    ours, theirs = NodeNorm(3).double(), nn.BatchNorm1d(3).double()
    torch.testing.assert_close(ours(x), theirs(x))
    torch.testing.assert_close(ours(torch.stack([x, 2 * x]))[1], theirs(2 * x))
    assert torch.equal(ours.eval()(x), ours.train()(x))


def test_errors(make_graph: MakeGraph) -> None:
    graph = make_graph()
    adjacency, structure = operator(graph, "gcn"), operator(graph, "gat")
    with pytest.raises(ValueError, match=r"'backbone' must be one of .* \(got 'cheb'\)"):
        convolution("cheb", 2, 2)  # type: ignore[arg-type] # the mistake under test
    for layer in (GCNConvolution(2, 2), GINConvolution(2, 2), SAGEConvolution(2, 2)):
        with pytest.raises(ValueError, match=r"'operator' must have entries of its own \(got kind 'gat'"):
            layer.double()(graph.x, structure)
    with pytest.raises(ValueError, match=r"'operator' must be of kind 'gat' for attention \(got 'gcn'\)"):
        GATConvolution(2, 2).double()(graph.x, adjacency)
