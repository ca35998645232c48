"""Edges as they come: weights, ends that are not nodes, directions, columns that are not used."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from tests.methods.ingredients import small_graph
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj

from fairpass.datasets import from_tables, join, join_tables
from fairpass.datasets.graph import simple_graph
from fairpass.errors import DataError
from fairpass.methods import GCN
from fairpass.training import Training
from fairpass.training.task import Task, fingerprint

SIZE = 24


def people(start: int = 0, size: int = SIZE) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": [f"p{i}" for i in range(start, start + size)],
            "age": np.linspace(20.0, 66.0, size),
            "sex": ["F"] * (size // 2) + ["M"] * (size - size // 2),
            "paid": (["no", "yes"] * size)[:size],
        }
    )


def friends(*rows: tuple[Any, ...], columns: tuple[str, ...] = ("a", "b", "weight")) -> pd.DataFrame:
    return pd.DataFrame(rows or [("p0", "p1", 1.0), ("p1", "p2", 3.0)], columns=list(columns))


def build(edges: Any, **options: Any) -> Data:
    return from_tables(people(), edges, label="paid", sensitive="sex", id="name", **options)


def weights(data: Data) -> dict[tuple[int, int], float]:
    return {(i, j): w for (i, j), w in zip(data.edge_index.T.tolist(), data.edge_weight.tolist(), strict=True)}


# Weights


def test_weights_are_divided_by_their_mean() -> None:
    data = build(friends(), edge_weight="weight")
    assert weights(data) == {(0, 1): 0.5, (1, 0): 0.5, (1, 2): 1.5, (2, 1): 1.5}
    assert data.edge_weight.dtype == torch.float32
    assert data.provenance["encoding"]["mean_edge_weight"] == 2
    assert data.provenance["options"]["edge_weight"] == "weight"


def test_weights_of_repeated_edges_are_added() -> None:
    rows = [("p0", "p1", 1.0), ("p1", "p0", 2.0), ("p0", "p1", 4.0), ("p1", "p2", 1.0), ("p3", "p3", 100.0)]
    data = build(friends(*rows), edge_weight="weight")
    assert weights(data) == {(0, 1): 1.75, (1, 0): 1.75, (1, 2): 0.25, (2, 1): 0.25}
    counted = {name: data.provenance[name] for name in ("self_loops_removed", "duplicate_edges_merged")}
    assert counted == {"self_loops_removed": 1, "duplicate_edges_merged": 2}


def test_weights_in_a_file(tmp_path: Path) -> None:
    friends().to_csv(tmp_path / "edges.csv", index=False)
    people().to_csv(tmp_path / "nodes.csv", index=False)
    data = from_tables(
        tmp_path / "nodes.csv", tmp_path / "edges.csv", label="paid", sensitive="sex", id="name", edge_weight="weight"
    )
    assert weights(data) == weights(build(friends(), edge_weight="weight"))


def test_without_weights_there_is_no_attribute() -> None:
    data = build(friends()[["a", "b"]])
    assert data.get("edge_weight") is None
    assert "edge_weight" not in data


@pytest.mark.parametrize("name", ["weight", "w", "strength", "n_count", "Amount", "trust_score"])
def test_weights_are_never_ignored(name: str, caplog: pytest.LogCaptureFixture) -> None:
    table = friends(columns=("a", "b", name))
    message = (
        f"column '{name}' of 'edges' seems to have weights: use them with edge_weight='{name}', or .* unweighted=True"
    )
    with pytest.raises(DataError, match=message):
        build(table)
    with caplog.at_level(logging.WARNING, logger="fairpass"):
        data = build(table, unweighted=True)
    assert data.get("edge_weight") is None
    assert f"columns of 'edges' that are not used: '{name}'" in caplog.text
    assert data.provenance["edge_columns_ignored"] == [name]


def test_other_columns_are_named_as_ignored(caplog: pytest.LogCaptureFixture) -> None:
    table = friends()[["a", "b"]].assign(since=["2020-01-01", "2021-01-01"], kind=["friend", "aunt"], count=[1, 1])
    with caplog.at_level(logging.WARNING, logger="fairpass"):
        data = build(table)
    assert "columns of 'edges' that are not used: 'since', 'kind', 'count'" in caplog.text  # all counts are the same
    assert data.provenance["edge_columns_ignored"] == ["since", "kind", "count"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, None], r"column 'weight' of 'edges' must have a weight for each edge \(1 missing, first in row 1\)"),
        ([1.0, 0.0], r"must be positive to be the weight of edges \(got 0.0 in row 1\)"),
        ([-2.0, -1.0], r"must be positive to be the weight of edges \(got -2.0 in row 0, and 1 more\)"),
        ([1.0, np.inf], r"column 'weight' of 'edges' must be finite \(got inf in row 1\)"),
        ([1.0, 1e-60], r"'edges' has weights too small beside the others \(got 1e-60 in row 1: less than 1e-12 of"),
        (["1", "much"], r"must contain numbers to be the weight of edges \(got 'much' in row 1\)"),
    ],
)
def test_wrong_weights(values: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(friends().assign(weight=values), edge_weight="weight")


def test_contradictory_options() -> None:
    with pytest.raises(DataError, match=r"'unweighted' and 'edge_weight' cannot both be given \(got 'weight'\)"):
        build(friends(), edge_weight="weight", unweighted=True)
    with pytest.raises(DataError, match="'edges' has no column 'wieght': did you mean 'weight'"):
        build(friends(), edge_weight="wieght")
    with pytest.raises(DataError, match=r"'edge_weight' must be a column of 'edges' .* without a table of edges"):
        from_tables(people(), label="paid", sensitive="sex", id="name", similarity=0.9, edge_weight="weight")


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.floats(0.1, 9)), max_size=30))
def test_any_edges_make_the_matrix_of_their_sums(rows: list[tuple[int, int, float]]) -> None:
    source, target = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
    weight = np.array([row[2] for row in rows], dtype=np.float64)
    found = simple_graph(source, target, 8, weight)
    dense = np.zeros((8, 8))
    for i, j, w in rows:
        if i != j:
            dense[i, j] += w
    one_way = (dense > 0) & (dense.T == 0)
    dense += dense.T
    made = np.zeros((8, 8))
    made[tuple(found.edge_index)] = found.edge_weight
    np.testing.assert_allclose(made, dense)
    np.testing.assert_array_equal(made, made.T)
    assert found.one_way_pairs == one_way.sum()
    np.testing.assert_array_equal(found.edge_index, simple_graph(source, target, 8).edge_index)
    again = simple_graph(found.edge_index[0], found.edge_index[1], 8, found.edge_weight, mirrored=True)
    np.testing.assert_array_equal(again.edge_weight, found.edge_weight)


# Weights in a task


def weighted_graph() -> Data:
    data = small_graph(60)
    data.edge_weight = (data.edge_index.sum(0) % 5 + 1).float()
    return data


@pytest.mark.parametrize("kind", ["gcn", "sage", "gin", "gin_mean"])
def test_operators_have_the_weights(kind: Any) -> None:
    data = weighted_graph()
    A = to_dense_adj(data.edge_index, edge_attr=data.edge_weight, max_num_nodes=60)[0]
    own = A + torch.eye(60)
    expected = {
        "gcn": own / own.sum(1, keepdim=True).sqrt() / own.sum(1).sqrt(),
        "sage": A / A.sum(1, keepdim=True).clamp(min=1e-12),
        "gin": own,
        "gin_mean": own / own.sum(1, keepdim=True),
    }
    operator = Task(data).operator(kind)
    torch.testing.assert_close(operator.matrix.to_dense(), expected[kind])
    assert operator.is_symmetric == (kind in ("gcn", "gin"))


def test_attention_does_not_ignore_weights() -> None:
    with pytest.raises(DataError, match=r"'data.edge_weight' must not be given to attention"):
        Task(weighted_graph()).operator("gat")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda w: w[:3], r"must be a floating point number for each of \d+ edges \(got shape \(3,\)"),
        (lambda w: w.long(), r"must be a floating point number .*int64"),
        (lambda w: w - 1, r"'data.edge_weight' must be positive and finite \(got \d+ others\)"),
        (lambda w: w * torch.nan, r"'data.edge_weight' must be positive and finite"),
        (lambda w: w * 1e13, r"'data.edge_weight' must be at least 1e-12 and at most 1e\+12 \(got \d+ others, such as"),
        (lambda w: w * 1e-30, r"'data.edge_weight' must be at least 1e-12 .*, such as .*e-3\d\)"),
        (lambda w: w.tolist(), r"'data.edge_weight' must be a tensor"),
    ],
)
def test_wrong_weights_of_a_graph(spoil: Any, message: str) -> None:
    data = weighted_graph()
    data.edge_weight = spoil(data.edge_weight)
    with pytest.raises(DataError, match=message):
        Task(data)


def test_the_fingerprint_knows_the_weights() -> None:
    data, plain = weighted_graph(), small_graph(60)
    assert fingerprint(data) != fingerprint(plain)
    data.edge_weight = None
    assert fingerprint(data) == fingerprint(plain)


# Ends that are not nodes, and directions


def test_dangling_edges() -> None:
    table = friends(("p0", "p1"), ("p1", "nobody"), (None, "p2"), ("p2", "p3"), columns=("a", "b"))
    with pytest.raises(
        DataError, match=r"column 'a' of 'edges' must have an id for each edge \(1 missing, first in row 2"
    ):
        build(table)
    with pytest.raises(DataError, match=r"column 'b' .* first in row 1\): 'nobody'; .* \(dangling='drop' leaves such"):
        build(table.dropna())
    data = build(table, dangling="drop")
    assert data.edge_index.T.tolist() == [[0, 1], [1, 0], [2, 3], [3, 2]]
    assert data.provenance["dangling_edges_dropped"] == 2


def test_dropped_edges_are_counted_in_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="fairpass"):
        data = build(friends(("p0", "p1", 1.0), ("x", "p1", 9.0)), dangling="drop", edge_weight="weight")
    assert "edges whose ends are not both nodes are left out: 1 of 2" in caplog.text
    assert data.edge_weight.tolist() == [1, 1]


def test_directions_are_counted() -> None:
    rows = [("p0", "p1"), ("p1", "p0"), ("p1", "p2"), ("p1", "p2"), ("p3", "p2")]
    data = build(friends(*rows, columns=("a", "b")))
    assert (data.provenance["one_way_pairs"], data.edge_index.shape[1] // 2) == (2, 3)


# New nodes


def test_new_nodes_with_weights() -> None:
    graph = build(friends(), edge_weight="weight")
    rows = [("p30", "p0", 4.0), ("p0", "p30", 2.0), ("p30", "p31", 1.0), ("p0", "p1", 7.0)]
    joined = join_tables(graph, people(30, 4), friends(*rows))
    found = weights(joined)
    assert {pair: w for pair, w in found.items() if max(pair) < SIZE} == weights(graph)
    assert (found[0, 24], found[24, 0], found[24, 25]) == (3.0, 3.0, 0.5)  # divided by the mean of the known graph
    with pytest.raises(DataError, match="'edges' has no column 'weight'"):
        join_tables(graph, people(30, 4), friends(*rows)[["a", "b"]])
    renamed = friends(*rows, columns=("a", "b", "strength"))
    assert weights(join_tables(graph, people(30, 4), renamed, edge_weight="strength")) == found
    model = GCN(training=Training(epochs=2)).fit(graph)
    assert model.predict_proba(joined).shape == (28, 2)


def test_new_nodes_of_a_graph_without_weights() -> None:
    graph = build(friends()[["a", "b"]])
    with pytest.raises(DataError, match="'edge_weight' must be left out: the edges of 'graph' have no weights"):
        join_tables(graph, people(30, 4), friends(("p30", "p0", 4.0)), edge_weight="weight")
    with pytest.raises(DataError, match="column 'weight' of 'edges' seems to have weights"):
        join_tables(graph, people(30, 4), friends(("p30", "p0", 4.0), ("p30", "p1", 2.0)))
    dangling = friends(("p30", "p0"), ("p30", "p99"), columns=("a", "b"))
    joined = join_tables(graph, people(30, 4), dangling, dangling="drop")
    assert joined.provenance["new"]["dangling_edges_dropped"] == 1


def test_joined_graphs_have_weights_or_none() -> None:
    graph, new = weighted_graph(), Data(x=torch.zeros(2, 7))
    link = torch.tensor([[0], [5]])
    with pytest.raises(DataError, match="'link_weight' must be given for 1 edges, because other edges have weights"):
        join(graph, new, link)
    joined = join(graph, new, link, torch.tensor([2.5]))
    assert weights(joined)[60, 5] == weights(joined)[5, 60] == 2.5
    with pytest.raises(DataError, match=r"'graph.edge_weight' must be given"):
        join(small_graph(60), new, link, torch.tensor([2.5]))
    with pytest.raises(DataError, match="'link_weight' must be a tensor with a weight for each of 1 edges"):
        join(graph, new, link, torch.tensor([2.5, 1.0]))


def test_other_tables_are_divided_by_the_mean_of_the_fit() -> None:
    fitted = build(friends(), edge_weight="weight")
    other = from_tables(
        people(),
        friends(("p0", "p1", 10.0)),
        label="paid",
        sensitive="sex",
        id="name",
        edge_weight="weight",
        encoding=fitted.provenance["encoding"],
    )
    assert other.edge_weight.tolist() == [5, 5]


# Files without a header


def files(folder: Path, text: str) -> dict[str, Any]:
    people().to_csv(folder / "nodes.csv", index=False)
    (folder / "edges.csv").write_text(text)
    return {"nodes": folder / "nodes.csv", "edges": folder / "edges.csv", "label": "paid", "sensitive": "sex"}


def test_edges_without_a_header(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    arguments = files(tmp_path, "p0,p1\np1,p2\n")
    with caplog.at_level(logging.WARNING, logger="fairpass"):
        data = from_tables(**arguments, id="name")
    assert data.edge_index.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert "'edges' has no header: its first row is the edge from 'p0' to 'p1'" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="fairpass"):
        asked = from_tables(**arguments, id="name", edges_header=False)
    assert torch.equal(asked.edge_index, data.edge_index)
    assert not caplog.text
    assert from_tables(**arguments, id="name", edges_header=True).edge_index.shape[1] == 2


def test_weights_without_a_header(tmp_path: Path) -> None:
    arguments = files(tmp_path, "p0\tp1\t1\np1\tp2\t3\n")  # the first weight is also a name of a column elsewhere
    with pytest.raises(DataError, match="column 'weight' of 'edges' seems to have weights"):
        from_tables(**arguments, id="name")
    assert from_tables(**arguments, id="name", edge_weight="weight").edge_weight.tolist() == [0.5, 0.5, 1.5, 1.5]


def test_row_numbers_without_a_header(tmp_path: Path) -> None:
    data = from_tables(**files(tmp_path, "5,5,5\n5,6,6\n"), drop=["name"], unweighted=True)
    assert (data.provenance["self_loops_removed"], data.edge_index.shape[1]) == (1, 2)
    arguments = files(tmp_path, "5,6,1600000000\n7,8,1600000001\n")
    data = from_tables(**arguments, drop=["name"])
    assert data.edge_index.shape[1] == 4
    assert data.provenance["edge_columns_ignored"] == ["column 3"]  # times are no weights


@pytest.mark.parametrize("header", ["a,b", "source,target", "one,other"])
def test_a_header_is_a_header(tmp_path: Path, header: str) -> None:
    data = from_tables(**files(tmp_path, f"{header}\np0,p1\n"), id="name")
    assert data.edge_index.shape[1] == 2


def test_a_header_that_is_also_an_id(tmp_path: Path) -> None:
    arguments = files(tmp_path, "p0,p1\np3,p4\n")
    assert from_tables(**arguments, id="name", source="p0", target="p1").edge_index.T.tolist() == [[3, 4], [4, 3]]


def test_new_edges_without_a_header(tmp_path: Path) -> None:
    graph = build(friends()[["a", "b"]])
    (tmp_path / "new.csv").write_text("p30,p0\np30,p31\n")
    assert join_tables(graph, people(30, 4), tmp_path / "new.csv").edge_index.shape[1] == 8


def test_nodes_without_a_header(tmp_path: Path) -> None:
    arguments = files(tmp_path, "a,b\np0,p1\n")
    people().to_csv(tmp_path / "nodes.csv", index=False, header=False)
    with pytest.raises(
        DataError, match=r"'nodes' has no column 'paid': its first row looks like data \('p0', '20.0', "
    ):
        from_tables(**arguments, id="name")
