"""Classifiers on a graph with new nodes: these are seen with their whole neighbourhood."""

import pytest
import torch
from tests.methods.ingredients import Kind, make, small_graph
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

from fairpass.datasets import join
from fairpass.methods import FMP, GAT, GCN, GIN, GMMD, SAGE, MLPClassifier, NodeClassifier

KNOWN = 150
methods = pytest.mark.parametrize("kind", [GCN, GIN, GAT, SAGE, GMMD, FMP], ids=lambda kind: kind.name)


def twin_of(data: Data, node: int, *, with_edges: bool = True) -> Data:
    """Return the graph joined with a copy of a node, which has the same neighbours or none."""
    new = Data(x=data.x[[node]], y=data.y[[node]], sens=data.sens[[node]])
    neighbours = data.edge_index[1][data.edge_index[0] == node]
    links = torch.stack([torch.zeros_like(neighbours), neighbours])
    return join(data, new, links if with_edges else links[:, :0])


def well_connected(data: Data) -> int:
    """Return the node with most neighbours: that they have one more hardly matters to it."""
    return int(torch.bincount(data.edge_index[0]).argmax())


def scores(model: NodeClassifier, data: Data) -> Tensor:
    return model.predict_proba(data)[:, 1].double()


@methods
def test_a_twin_has_the_scores_of_its_original(kind: Kind) -> None:
    """To exchange a node and its twin changes nothing in the graph, so their scores are equal."""
    data = small_graph(KNOWN)
    model = make(kind).fit(data)
    node = well_connected(data)
    found = scores(model, twin_of(data, node))
    torch.testing.assert_close(found[KNOWN], found[node], rtol=0, atol=1e-5)


def test_a_twin_has_nearly_the_scores_of_the_fitted_graph() -> None:
    data = small_graph(KNOWN)
    model = make(GCN, epochs=30).fit(data)
    node = well_connected(data)
    before = scores(model, data)
    twin = twin_of(data, node)
    with_edges, without = scores(model, twin)[KNOWN], scores(model, twin_of(data, node, with_edges=False))[KNOWN]
    moved = abs(float(with_edges - before[node]))
    assert moved < 0.03
    assert abs(float(without - before[node])) > 3 * moved


def test_what_is_far_from_new_nodes_keeps_its_scores() -> None:
    """Two layers, and the degrees of neighbours in the normalisation: nothing changes beyond three hops."""
    data = small_graph(KNOWN)
    one_way = torch.stack([torch.arange(KNOWN - 1), torch.arange(1, KNOWN)])
    data.edge_index = torch.cat([one_way, one_way.flip(0)], 1)
    model = make(GCN).fit(data)
    joined = join(data, Data(x=data.x[[0]]), torch.tensor([[0], [70]]))
    near, *_ = k_hop_subgraph(KNOWN, 3, joined.edge_index)
    far = torch.ones(KNOWN + 1, dtype=torch.bool)
    far[near] = False
    before, after = scores(model, data), scores(model, joined)
    torch.testing.assert_close(after[:KNOWN][far[:KNOWN]], before[far[:KNOWN]], rtol=0, atol=1e-6)
    assert not torch.allclose(after[70], before[70], rtol=0, atol=1e-6)


def test_without_message_passing_edges_do_not_matter() -> None:
    data = small_graph(KNOWN)
    model = make(MLPClassifier).fit(data)
    torch.testing.assert_close(scores(model, twin_of(data, 3))[:KNOWN], scores(model, data))


def test_a_joined_graph_is_no_other_task_to_fit() -> None:
    """New nodes are in no mask: nothing is learnt from their labels."""
    data = small_graph(KNOWN)
    joined = twin_of(data, 3, with_edges=False)
    wrong = joined.clone()
    wrong.y[KNOWN] = 1 - wrong.y[KNOWN]
    torch.testing.assert_close(scores(make(GCN).fit(wrong), wrong), scores(make(GCN).fit(joined), joined))
