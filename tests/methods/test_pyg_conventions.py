"""PyTorch Geometric's `Data` and transforms: what can be done with our graphs, and what is refused with a reason."""

import copy
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import torch
import torch_geometric.transforms as T
from tests.methods.ingredients import small_graph
from torch_geometric.data import Batch, Data, HeteroData

from fairpass.datasets import from_tables, load, synthetic
from fairpass.errors import DataError
from fairpass.methods import GCN, GMMD, NodeClassifier
from fairpass.training import Task, Training

QUICK = Training(epochs=2)


@pytest.fixture
def data() -> Data:
    return small_graph()


def own_tables() -> Data:
    people = pd.DataFrame(
        {
            "name": [f"p{i}" for i in range(60)],
            "age": [20 + i % 31 for i in range(60)],
            "sex": ["f" if i % 3 else "m" for i in range(60)],
            "hired": ["yes" if i % 2 else "no" for i in range(60)],
        }
    )
    friends = pd.DataFrame({"one": people["name"], "other": people["name"].shift(7, fill_value="p3")})
    return from_tables(people, friends, id="name", label="hired", sensitive="sex")


@pytest.mark.parametrize("make", [lambda: load("german"), lambda: synthetic(200), own_tables])
def test_our_graphs_are_valid_data(make: Callable[[], Data]) -> None:
    data = make()
    assert data.validate(raise_on_error=True)
    assert data.is_undirected()
    assert not data.has_self_loops()
    assert data.is_coalesced()


@pytest.mark.parametrize(
    "transform",
    [
        T.NormalizeFeatures(),
        T.ToUndirected(),
        T.AddSelfLoops(),
        T.RemoveIsolatedNodes(),
        T.LargestConnectedComponents(),
        T.RandomNodeSplit(num_val=0.3, num_test=0.2),
        T.Compose([T.ToUndirected(), T.NormalizeFeatures(), T.RandomNodeSplit(num_val=0.3, num_test=0.2)]),
    ],
    ids=str,
)
def test_transformed_graphs_can_be_fitted(data: Data, transform: Callable[[Data], Data]) -> None:
    before = copy.deepcopy(data)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        changed = transform(copy.copy(data))
    model = GMMD(fair_steps=1, training=QUICK).fit(changed)
    assert model.evaluate(changed).n == int((changed.test_mask & (changed.y >= 0)).sum())
    assert torch.equal(data.x, before.x)
    assert torch.equal(data.edge_index, before.edge_index)


def test_a_transform_can_be_undone_by_another(data: Data) -> None:
    """Half of the edges, made undirected again, are the same graph to a method."""
    source, target = data.edge_index
    half = copy.copy(data)
    half.edge_index = data.edge_index[:, source < target]
    again = T.ToUndirected()(half)
    models = [GCN(training=QUICK).fit(graph) for graph in (data, again)]
    assert torch.equal(models[0].predict_proba(data), models[1].predict_proba(again))


def test_a_part_of_a_graph_can_be_fitted(data: Data) -> None:
    part = data.subgraph(torch.arange(100))
    assert GCN(training=QUICK).fit(part).predict(part).shape == (100,)


def test_new_features_need_names_or_none(data: Data) -> None:
    wider = T.Constant()(copy.copy(data))
    with pytest.raises(DataError, match=r"'data.feature_names' must name the 8 features \(got 7 names"):
        GCN(training=QUICK).fit(wider)
    wider.feature_names = [*data.feature_names, "one"]
    GCN(training=QUICK).fit(wider)
    del wider.feature_names
    GCN(training=QUICK).fit(wider)


def hetero(data: Data) -> HeteroData:
    other = HeteroData()
    other["person"].x = data.x
    other["person", "knows", "person"].edge_index = data.edge_index
    return other


def with_column(data: Data, column: Any) -> Data:
    other = copy.copy(data)
    other.sens_column = column
    return other


def directed(data: Data) -> Data:
    other = copy.copy(data)
    other.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    return other


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (hetero, r"must be a torch_geometric.data.Data \(got HeteroData; its 'to_homogeneous\(\)' returns a Data"),
        (lambda d: Batch.from_data_list([d, d]), r"must be one graph \(got a Batch of 2"),
        (
            lambda d: T.ToSparseTensor()(copy.copy(d)),
            r"must have 'edge_index' \(got 'adj_t' instead; leave .* ToSparseTensor",
        ),
        (lambda d: Data(x=d.x), r"must have x, edge_index, y, .* \(missing: edge_index, y, sens, train_mask, val_mask"),
        (lambda d: with_column(d, torch.tensor([6])), r"'data.sens_column' must be a column .* \(got tensor"),
        (lambda d: [d], r"must be a torch_geometric.data.Data \(got list"),
    ],
)
def test_what_is_not_such_a_graph_is_refused(data: Data, make: Callable[[Data], Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        GMMD(training=QUICK).fit(make(data))


@pytest.mark.parametrize("kind", [GCN, GMMD])
def test_one_way_edges_are_taken_with_a_warning(
    data: Data, kind: type[NodeClassifier], caplog: pytest.LogCaptureFixture
) -> None:
    edges = data.num_edges // 2
    model = kind(training=QUICK).fit(directed(data))
    (record,) = caplog.records
    message = f"'data.edge_index' has {edges} edges with one direction only: .*ToUndirected adds the other"
    assert re.match(message, record.getMessage())
    caplog.clear()
    model.evaluate(directed(data))
    kind(training=QUICK).fit(data)
    assert not caplog.records


def test_edges_may_be_there_twice_or_not_at_all(data: Data, caplog: pytest.LogCaptureFixture) -> None:
    source, target = data.edge_index[:, :1]
    twice = torch.cat([data.edge_index, torch.stack([source, target])], 1)
    none = torch.zeros(2, 0, dtype=torch.long)
    loop = torch.tensor([[3], [3]])
    for edges in (twice, none, loop):
        changed = copy.copy(data)
        changed.edge_index = edges
        Task(changed)
    assert not caplog.records
