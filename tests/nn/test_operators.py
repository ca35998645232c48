import copy
from collections.abc import Callable
from types import SimpleNamespace
from unittest import mock

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.nn import GCNConv, GINConv, SimpleConv

from fairpass.nn import SparseOperator, operators
from fairpass.nn.operators import OperatorKind

MakeGraph = Callable[..., SimpleNamespace]
KINDS: list[OperatorKind] = ["gcn", "gin", "gin_mean", "sage"]


def operator(graph: SimpleNamespace, kind: OperatorKind = "gcn", **options: object) -> SparseOperator:
    return SparseOperator.from_edge_index(
        graph.edge_index,
        graph.n,
        kind,
        dtype=torch.float64,
        **options,  # type: ignore[arg-type] # any option
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_kind_multiplies_as_pyg_convolves(make_graph: MakeGraph, directed: bool, weighted: bool) -> None:
    graph = make_graph(directed=directed)
    weight = graph.edge_weight if weighted else None
    gcn = GCNConv(2, 2, bias=False).double()
    gcn.lin.weight.data = torch.eye(2, dtype=torch.float64)
    torch.testing.assert_close(
        operator(graph, "gcn", edge_weight=weight) @ graph.x, gcn(graph.x, graph.edge_index, weight)
    )
    mean = operator(graph, "sage") @ graph.x
    torch.testing.assert_close(mean, SimpleConv(aggr="mean")(graph.x, graph.edge_index))
    gin = GINConv(nn.Identity(), eps=0.3)
    torch.testing.assert_close(operator(graph, "gin", epsilon=0.3) @ graph.x, gin(graph.x, graph.edge_index))


def test_entries_are_those_of_the_formulas(make_graph: MakeGraph) -> None:
    graph = make_graph(directed=True)
    A = torch.zeros(graph.n, graph.n, dtype=torch.float64)
    A[graph.edge_index[1], graph.edge_index[0]] = graph.edge_weight  # row: who receives
    looped = A + torch.eye(graph.n)
    root = looped.sum(1).rsqrt()
    expected = {
        "gcn": root[:, None] * looped * root,
        "gin": A + 1.5 * torch.eye(graph.n),
        "gin_mean": (A + 1.5 * torch.eye(graph.n)) / (A.sum(1, keepdim=True) + 1.5),
        "sage": A / A.sum(1, keepdim=True).clamp(min=1e-300),
    }
    for kind in KINDS:
        built = operator(graph, kind, edge_weight=graph.edge_weight, epsilon=0.5)
        torch.testing.assert_close(built.matrix.to_dense(), expected[kind])
        torch.testing.assert_close(built.transpose.to_dense(), expected[kind].T)


def test_isolated_nodes(make_graph: MakeGraph) -> None:
    graph = make_graph()
    last = graph.x[-1]
    assert torch.equal((operator(graph, "gcn") @ graph.x)[-1], last)
    assert torch.equal((operator(graph, "gin", epsilon=1.0) @ graph.x)[-1], 2 * last)
    assert torch.equal((operator(graph, "sage") @ graph.x)[-1], 0 * last)


def test_a_graph_without_edges() -> None:
    none = torch.empty(2, 0, dtype=torch.int64)
    x = torch.randn(3, 2)
    assert torch.equal(SparseOperator.from_edge_index(none, 3) @ x, x)


def test_repeated_edges_add_up() -> None:
    twice = torch.tensor([[0, 0], [1, 1]])
    doubled = SparseOperator.from_edge_index(twice, 2, "gin").matrix.to_dense()
    assert torch.equal(doubled, torch.tensor([[1.0, 0.0], [2.0, 1.0]]))


@pytest.mark.parametrize("weighted", [False, True])
def test_loops_and_repeated_edges_as_in_pyg(make_graph: MakeGraph, weighted: bool) -> None:
    graph = make_graph(directed=True)
    loops = torch.tensor([[0, 3, 3], [0, 3, 3]])
    edge_index = torch.cat([graph.edge_index, loops, graph.edge_index[:, :4]], 1)
    weight = torch.rand(edge_index.shape[1], dtype=torch.float64) + 0.5 if weighted else None
    gcn = GCNConv(2, 2, bias=False).double()
    gcn.lin.weight.data = torch.eye(2, dtype=torch.float64)
    built = SparseOperator.from_edge_index(edge_index, graph.n, edge_weight=weight, dtype=torch.float64)
    torch.testing.assert_close(built @ graph.x, gcn(graph.x, edge_index, weight))
    gin = GINConv(nn.Identity(), eps=0.3)
    built = SparseOperator.from_edge_index(edge_index, graph.n, "gin", epsilon=0.3, dtype=torch.float64)
    torch.testing.assert_close(built @ graph.x, gin(graph.x, edge_index))


def test_a_matrix_in_small_blocks_is_the_same(make_graph: MakeGraph) -> None:
    graph = make_graph()
    for kind in KINDS:
        whole = operator(graph, kind, edge_weight=graph.edge_weight)
        with mock.patch.object(operators, "_CHUNK", 3):
            parts = operator(graph, kind, edge_weight=graph.edge_weight)
        assert torch.equal(whole.matrix.to_dense(), parts.matrix.to_dense())
        assert whole.is_symmetric == parts.is_symmetric


def test_symmetry_is_found_exactly_where_it_is(make_graph: MakeGraph) -> None:
    both_ways, one_way = make_graph(), make_graph(directed=True)
    assert operator(both_ways, "gcn").is_symmetric
    assert operator(both_ways, "gcn", edge_weight=both_ways.edge_weight).is_symmetric
    assert operator(both_ways, "gin").is_symmetric
    assert not operator(both_ways, "sage").is_symmetric
    assert not any(operator(one_way, kind).is_symmetric for kind in KINDS)
    lopsided = both_ways.edge_weight.clone()
    lopsided[0] += 1
    assert not operator(both_ways, "gin", edge_weight=lopsided).is_symmetric


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_its_members_one_by_one(make_graph: MakeGraph, kind: OperatorKind) -> None:
    adjacency = operator(make_graph(directed=True), kind)
    x = torch.randn(3, 2, 10, 4, dtype=torch.float64)
    expected = torch.stack([torch.stack([adjacency @ one for one in row]) for row in x])
    torch.testing.assert_close(adjacency @ x, expected)
    assert (adjacency @ x[:0]).shape == (0, 2, 10, 4)


@pytest.mark.parametrize("shape", [(2, 5, 2), (5, 1), (2, 5, 1)])
@pytest.mark.parametrize("directed", [False, True])
def test_derivatives(make_graph: MakeGraph, directed: bool, shape: tuple[int, ...]) -> None:
    adjacency = operator(make_graph(n=5, directed=directed))
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)

    def product(x: torch.Tensor) -> torch.Tensor:
        return adjacency @ x

    assert gradcheck(product, x)
    assert gradgradcheck(product, x)
    # A linear map's second derivative vanishes; that of its cube does not.
    assert gradgradcheck(lambda x: product(x) ** 3, x)


def test_gradient_is_multiplied_by_the_transpose(make_graph: MakeGraph) -> None:
    graph = make_graph(directed=True)
    adjacency = operator(graph)
    x, pulled = graph.x.requires_grad_(), torch.randn(graph.n, 2, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(adjacency @ x, x, pulled)
    torch.testing.assert_close(gradient, adjacency.matrix.to_dense().T @ pulled)


def test_repr_tells_size_and_symmetry(make_graph: MakeGraph) -> None:
    ring = torch.tensor([[0, 1], [1, 0]])
    assert repr(SparseOperator.from_edge_index(ring, 3)) == "SparseOperator(3 nodes, 5 entries, symmetric)"
    assert "directed" in repr(operator(make_graph(directed=True)))


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_left_alone(make_graph: MakeGraph, kind: OperatorKind) -> None:
    graph = make_graph()
    before = copy.deepcopy(graph)
    _ = operator(graph, kind, edge_weight=graph.edge_weight) @ graph.x
    for name in ("edge_index", "edge_weight", "x"):
        assert torch.equal(getattr(graph, name), getattr(before, name))


def test_errors(make_graph: MakeGraph) -> None:
    graph = make_graph()
    with pytest.raises(
        ValueError, match=r"'kind' must be one of \('gcn', 'gin', 'gin_mean', 'sage', 'gat'\) \(got 'cheb'\)"
    ):
        operator(graph, "cheb")  # type: ignore[arg-type] # the mistake under test
    with pytest.raises(ValueError, match=r"'edge_index' must be an integer tensor of shape \(2, E\) \(got shape \(3"):
        SparseOperator.from_edge_index(torch.zeros(3, 4, dtype=torch.int64), 5)
    with pytest.raises(ValueError, match=r"'edge_index' must be an integer tensor .* torch.float32\)"):
        SparseOperator.from_edge_index(torch.zeros(2, 4), 5)
    with pytest.raises(ValueError, match=r"'edge_index' must name nodes from 0 to 2 \(got 0 to 3\)"):
        SparseOperator.from_edge_index(torch.tensor([[0], [3]]), 3)
    with pytest.raises(ValueError, match=r"'edge_index' must name nodes from 0 to 2 \(got -1 to 0\)"):
        SparseOperator.from_edge_index(torch.tensor([[0], [-1]]), 3)
    with pytest.raises(ValueError, match=r"'matrix' must be a square sparse CSR tensor \(got torch.strided"):
        SparseOperator(torch.eye(3), torch.eye(3))
    for wrong in (torch.ones(4, 2), torch.ones(10)):
        with pytest.raises(ValueError, match=r"'x' must have 10 rows \(got shape \("):
            _ = operator(graph) @ wrong.double()
    with pytest.raises(ValueError, match=r"'operator' must have entries of its own \(got kind 'gat'"):
        _ = operator(graph, "gat") @ graph.x
    with pytest.raises(ValueError, match=r"'x' must be torch.float64 like the operator \(got torch.float32\)"):
        _ = operator(graph) @ graph.x.float()


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 1e38, -1e38, 1e-30])
def test_weights_whose_sums_would_overflow_or_vanish_are_refused(wrong: float) -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    limits = r"'edge_weight' must be 0, or between 1e-12 and 1e\+12 in absolute value \(got 1 others\)"
    with pytest.raises(ValueError, match=limits):
        SparseOperator.from_edge_index(edge_index, 2, "gcn", edge_weight=torch.tensor([1.0, wrong]))
    SparseOperator.from_edge_index(edge_index, 2, "gcn", edge_weight=torch.tensor([1.0, 0.0]))
