import copy
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.nn import GATConv

from fairpass.nn import Attention, SparseOperator

MakeGraph = Callable[..., SimpleNamespace]


def pattern(graph: SimpleNamespace) -> SparseOperator:
    return SparseOperator.from_edge_index(graph.edge_index, graph.n, "gat")


def attention(channels: int = 2, seed: int = 0) -> Attention:
    torch.manual_seed(seed)
    return Attention(channels).double()


@pytest.mark.parametrize("directed", [False, True])
def test_structure_knows_its_transpose(make_graph: MakeGraph, directed: bool) -> None:
    graph = make_graph(directed=directed)
    structure = pattern(graph)
    values = torch.rand(len(structure.row), dtype=torch.float64)
    dense = torch.zeros(graph.n, graph.n, dtype=torch.float64)
    dense[structure.row, structure.col] = values
    assert torch.equal(structure.with_values(values).to_dense(), dense)
    assert torch.equal(structure.transposed_with_values(values).to_dense(), dense.T)
    torch.testing.assert_close(structure.row_max(values), dense.max(1).values)


def test_structure_holds_each_edge_and_each_node_once(make_graph: MakeGraph) -> None:
    graph = make_graph(directed=True)
    looped = torch.cat([graph.edge_index, torch.tensor([[0, 3], [0, 3]])], 1)
    structure = SparseOperator.from_edge_index(looped, graph.n, "gat")
    sources, targets = graph.edge_index.tolist()
    expected = {*zip(targets, sources, strict=True), *((i, i) for i in range(graph.n))}
    entries = list(zip(structure.row.tolist(), structure.col.tolist(), strict=True))
    assert entries == sorted(expected)


@pytest.mark.parametrize("directed", [False, True])
def test_weights_of_each_node_sum_to_one(make_graph: MakeGraph, directed: bool) -> None:
    graph = make_graph(directed=directed)
    structure = pattern(graph)
    weights = attention().weights(graph.x, structure)
    assert bool((weights > 0).all())
    torch.testing.assert_close(structure.with_values(weights).to_dense().sum(1), torch.ones(graph.n).double())
    # Alone with itself, a node keeps its features.
    torch.testing.assert_close(attention()(graph.x, structure)[-1], graph.x[-1])


@pytest.mark.parametrize("directed", [False, True])
def test_agrees_with_pyg(make_graph: MakeGraph, directed: bool) -> None:
    graph = make_graph(directed=directed)
    ours, theirs = attention(), GATConv(2, 2, bias=False).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(torch.eye(2))
        theirs.att_dst.copy_(ours.b_target.T)
        theirs.att_src.copy_(ours.b_source.T)
    mine, its = graph.x.clone().requires_grad_(), graph.x.clone().requires_grad_()
    out, expected = (ours(mine, pattern(graph)), theirs(its, graph.edge_index))
    torch.testing.assert_close(out, expected)
    pulled = torch.randn_like(out)
    by_mine = torch.autograd.grad(out, [mine, ours.b_target, ours.b_source], pulled)
    by_its = torch.autograd.grad(expected, [its, theirs.att_dst, theirs.att_src], pulled)
    for a, b in zip(by_mine, by_its, strict=True):
        torch.testing.assert_close(a, b.reshape(a.shape))


def test_agrees_with_attention_over_all_pairs(make_graph: MakeGraph) -> None:
    graph, layer = make_graph(directed=True), attention()
    joined = torch.eye(graph.n, dtype=torch.bool)
    joined[graph.edge_index[1], graph.edge_index[0]] = True
    score = torch.nn.functional.leaky_relu(graph.x @ layer.b_target + (graph.x @ layer.b_source).T, 0.2)
    dense = score.masked_fill(~joined, -torch.inf).softmax(1)
    torch.testing.assert_close(layer(graph.x, pattern(graph)), dense @ graph.x)


@pytest.mark.parametrize("scale", [1e-30, 1e3, 1e15])
def test_extreme_scores_stay_finite(make_graph: MakeGraph, scale: float) -> None:
    graph, layer = make_graph(), attention()
    x = (scale * graph.x).float().requires_grad_()
    out = layer.float()(x, pattern(graph))
    assert bool(torch.isfinite(out).all())
    for gradient in torch.autograd.grad((out / scale).sum(), [x, *layer.parameters()]):
        assert bool(torch.isfinite(gradient).all())


def test_derivatives(make_graph: MakeGraph) -> None:
    graph, layer = make_graph(n=5, directed=True), attention()
    structure = pattern(graph)

    def attend(x: Tensor, b_target: Tensor, b_source: Tensor) -> Tensor:
        parameters = {"b_target": b_target, "b_source": b_source}
        out: Tensor = torch.func.functional_call(layer, parameters, (x, structure))
        return out

    inputs = (graph.x.requires_grad_(), layer.b_target, layer.b_source)
    assert gradcheck(attend, inputs)
    assert gradgradcheck(attend, inputs)
    values = torch.rand(len(structure.row), dtype=torch.float64, requires_grad=True)
    assert gradcheck(structure.weighted_product, (values, graph.x))


def test_permuting_the_nodes_permutes_the_output(make_graph: MakeGraph) -> None:
    graph, layer = make_graph(directed=True), attention()
    order = torch.randperm(graph.n)
    place = order.argsort()
    permuted = layer(graph.x[order], SparseOperator.from_edge_index(place[graph.edge_index], graph.n, "gat"))
    torch.testing.assert_close(permuted, layer(graph.x, pattern(graph))[order])


def test_inputs_are_left_alone(make_graph: MakeGraph) -> None:
    graph = make_graph()
    before = copy.deepcopy(graph)
    attention()(graph.x, pattern(graph))
    assert torch.equal(graph.edge_index, before.edge_index)
    assert torch.equal(graph.x, before.x)


def test_reset_draws_new_parameters() -> None:
    layer = attention()
    before = copy.deepcopy(layer.state_dict())
    layer.reset_parameters()
    assert not any(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert repr(layer) == "Attention(2)"


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"'edge_index' must name nodes from 0 to 1 \(got 0 to 2\)"):
        SparseOperator.from_edge_index(torch.tensor([[0], [2]]), 2, "gat")
    with pytest.raises(ValueError, match=r"'edge_index' must be an integer tensor of shape \(2, E\)"):
        SparseOperator.from_edge_index(torch.zeros(2), 2, "gat")
