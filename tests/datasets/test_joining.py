"""New nodes join a graph: nothing of the graph changes, and nothing of the new nodes is lost."""

import copy
import logging
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, is_undirected

from fairpass.datasets import join
from fairpass.errors import DataError

KNOWN, NEW, FEATURES = 6, 3, 2
MASKS = ("train_mask", "val_mask", "test_mask")


def both_ways(*pairs: tuple[int, int]) -> Tensor:
    return torch.tensor([*pairs, *((j, i) for i, j in pairs)], dtype=torch.long).reshape(-1, 2).T


def known_graph(**attributes: Any) -> Data:
    part = torch.arange(KNOWN) % 3
    ours = {
        "x": torch.arange(KNOWN * FEATURES, dtype=torch.float32).reshape(KNOWN, FEATURES),
        "edge_index": both_ways((0, 1), (1, 2), (3, 4)),
        "y": torch.tensor([0, 1, 0, 1, -1, 1]),
        "sens": torch.tensor([0, 0, 1, 1, -1, 1]),
        **{mask: part == number for number, mask in enumerate(MASKS)},
        "feature_names": ["age", "income"],
        "label_names": ["no", "yes"],
        "group_names": ["F", "M"],
        "node_ids": [f"p{i}" for i in range(KNOWN)],
        "provenance": {"source": "tables"},
    }
    return Data(**{name: value for name, value in (ours | attributes).items() if value is not None})


def new_nodes(**attributes: Any) -> Data:
    ours = {"x": -torch.ones(NEW, FEATURES), "edge_index": both_ways((0, 2)), "node_ids": ["q0", "q1", "q2"]}
    return Data(**{name: value for name, value in (ours | attributes).items() if value is not None})


def links(*pairs: tuple[int, int]) -> Tensor:
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T


def edges_of(data: Data) -> set[tuple[int, int]]:
    return {(i, j) for i, j in data.edge_index.T.tolist() if i < j}


def test_contract() -> None:
    graph, new = known_graph(), new_nodes()
    joined = join(graph, new, links((0, 5), (1, 0)))
    assert torch.equal(joined.x, torch.cat([graph.x, new.x]))
    assert edges_of(joined) == {(0, 1), (1, 2), (3, 4), (6, 8), (5, 6), (0, 7)}
    assert is_undirected(joined.edge_index)
    assert joined.y.tolist() == [*graph.y.tolist(), -1, -1, -1]
    assert joined.sens.tolist() == [*graph.sens.tolist(), -1, -1, -1]
    for mask in MASKS:
        assert joined[mask].tolist() == [*graph[mask].tolist(), False, False, False]
    assert joined.new_mask.tolist() == [False] * KNOWN + [True] * NEW
    assert joined.node_ids == [*graph.node_ids, *new.node_ids]
    assert (joined.feature_names, joined.label_names, joined.group_names) == (
        ["age", "income"],
        ["no", "yes"],
        ["F", "M"],
    )
    assert joined.provenance == {"source": "tables", "new": {"nodes": NEW}}
    joined.validate(raise_on_error=True)


def test_labels_and_groups_of_new_nodes_are_kept_but_in_no_mask() -> None:
    new = new_nodes(
        y=torch.tensor([1, -1, 0]),
        sens=torch.tensor([1, 0, -1]),
        test_mask=torch.ones(NEW, dtype=torch.bool),
        train_mask=torch.ones(NEW, dtype=torch.bool),
    )
    joined = join(known_graph(), new, links())
    assert joined.y[joined.new_mask].tolist() == [1, -1, 0]
    assert joined.sens[joined.new_mask].tolist() == [1, 0, -1]
    assert not any(joined[mask][joined.new_mask].any() for mask in MASKS)


def test_inputs_are_not_changed() -> None:
    graph, new, pairs = known_graph(), new_nodes(y=torch.tensor([0, 1, 0])), links((0, 5), (0, 5))
    before = copy.deepcopy((graph.to_dict(), new.to_dict(), pairs))
    joined = join(graph, new, pairs)
    for name in ("x", "y", "sens", *MASKS, "edge_index"):
        joined[name].fill_(1)
    joined.feature_names.append("more")
    joined.node_ids.append("more")
    joined.provenance["more"] = True
    for data, old in zip((graph, new), before[:2], strict=True):
        for name, value in old.items():
            same = torch.equal(data[name], value) if isinstance(value, Tensor) else data[name] == value
            assert same, name
    assert torch.equal(pairs, before[2])


def test_features_are_enough() -> None:
    joined = join(Data(x=torch.zeros(2, 1)), Data(x=torch.ones(1, 1)), links((0, 1)))
    assert edges_of(joined) == {(1, 2)}
    assert sorted(joined.keys()) == ["edge_index", "new_mask", "x"]
    nothing = join(Data(x=torch.zeros(2, 1)), Data(x=torch.ones(1, 1)), torch.empty(2, 0))
    assert nothing.edge_index.shape == (2, 0)
    assert nothing.edge_index.dtype == torch.long


def test_new_nodes_are_of_the_graph_s_precision() -> None:
    joined = join(known_graph(), new_nodes(x=torch.ones(NEW, FEATURES, dtype=torch.float64)), links())
    assert joined.x.dtype == torch.float32


@pytest.mark.parametrize(
    ("known", "new", "expected"),
    [
        (None, None, None),
        (list(range(KNOWN)), list(range(NEW)), list(range(KNOWN + NEW))),  # row numbers, no ids
        (["a", "b", "c", "d", "e", "f"], None, ["a", "b", "c", "d", "e", "f", 6, 7, 8]),
        (None, ["q", "r", "s"], [0, 1, 2, 3, 4, 5, "q", "r", "s"]),
        ([10, 11, 12, 13, 14, 15], [0, 1, 2], [10, 11, 12, 13, 14, 15, 0, 1, 2]),
    ],
)
def test_ids(known: Any, new: Any, expected: Any) -> None:
    joined = join(known_graph(node_ids=known), new_nodes(node_ids=new), links())
    assert joined.get("node_ids") == expected


def test_joining_again() -> None:
    once = join(known_graph(), new_nodes(), links((0, 5)))
    twice = join(once, new_nodes(node_ids=["r0", "r1", "r2"]), links((2, 8)))
    assert twice.new_mask.tolist() == [False] * (KNOWN + NEW) + [True] * NEW
    assert (8, 11) in edges_of(twice)


def test_edges_of_the_graph_that_change_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        join(known_graph(), new_nodes(), links((0, 5)))
    assert not caplog.records
    one_way = known_graph(edge_index=torch.tensor([[0, 1, 3], [1, 2, 3]]))
    joined = join(one_way, new_nodes(), links())
    assert edges_of(joined) == {(0, 1), (1, 2), (6, 8)}
    assert "made undirected, without duplicates or self-loops: 3 became 4" in caplog.text


pairs_of_nodes = st.lists(st.tuples(st.integers(0, NEW - 1), st.integers(0, KNOWN - 1)), max_size=12)


@given(pairs_of_nodes, st.lists(st.tuples(st.integers(0, NEW - 1), st.integers(0, NEW - 1)), max_size=6))
@examples(60)
def test_edges_are_those_of_a_dense_graph(pairs: list[tuple[int, int]], among: list[tuple[int, int]]) -> None:
    graph, new = known_graph(), new_nodes(edge_index=links(*among))
    joined = join(graph, new, links(*pairs))
    dense = torch.zeros(KNOWN + NEW, KNOWN + NEW)
    dense[tuple(graph.edge_index)] = 1
    for i, j in among:
        dense[KNOWN + i, KNOWN + j] = 1
    for i, j in pairs:
        dense[KNOWN + i, j] = 1
    dense = ((dense + dense.T) > 0).float().fill_diagonal_(0)
    found = torch.zeros_like(dense)
    found[tuple(joined.edge_index)] += 1
    assert torch.equal(found, dense)
    assert joined.edge_index.shape[1] == int(dense.sum())  # no duplicates
    assert not contains_self_loops(joined.edge_index)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"x": torch.ones(NEW, 3)}, r"'new.x' must have the 2 features of 'graph' \(got 3\)"),
        ({"x": torch.ones(NEW)}, r"'new.x' must be a tensor of shape \[nodes, features\] \(got shape \(3,\)\)"),
        ({"x": None}, r"'new.x' must be a tensor of shape \[nodes, features\] \(got NoneType\)"),
        (
            {"feature_names": ["income", "age"]},
            r"'new.feature_names' must be those of 'graph', 'age', 'income' \(got 'income', 'age'\)",
        ),
        (
            {"label_names": ["no", "maybe"]},
            r"'new.label_names' must be those of 'graph', 'no', 'yes' \(got 'no', 'maybe",
        ),
        ({"group_names": ["F"]}, r"'new.group_names' must be those of 'graph', 'F', 'M' \(got 'F'\)"),
        ({"sens_column": 0}, r"'new.sens_column' must be that of 'graph', 1 \(got 0\)"),
        ({"node_ids": ["q0", "p3", "p1"]}, r"'new.node_ids' must not be ids of 'graph' \(in both: 'p3', 'p1'\)"),
        ({"node_ids": ["q0"]}, r"'new.node_ids' must name the 3 nodes \(got 1 ids\)"),
        ({"y": torch.tensor([1, 0])}, r"'new.y' must be an integer tensor of shape \(3,\)"),
        ({"sens": torch.ones(NEW)}, r"'new.sens' must be an integer tensor of shape \(3,\)"),
        (
            {"edge_index": both_ways((0, 3))},
            r"row 0 of 'new.edge_index' must have indices of the 3 nodes of 'new' \(got 3",
        ),
    ],
)
def test_new_nodes_that_do_not_fit(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        join(known_graph(sens_column=1), new_nodes(**attributes), links())


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0], [1]], r"'links' must be a tensor \(got list\)"),
        (None, r"'links' must be a tensor \(got NoneType\)"),
        (torch.zeros(3, 2, dtype=torch.long), r"'links' must have shape \[2, edges\] \(got \[3, 2\]\)"),
        (torch.zeros(2, 1), r"'links' must be integer \(got torch.float32\)"),
        (links((NEW, 0)), r"row 0 of 'links' must have indices of the 3 nodes of 'new' \(got 3\)"),
        (links((0, KNOWN)), r"row 1 of 'links' must have indices of the 6 nodes of 'graph' \(got 6\)"),
        (links((0, -1)), r"row 1 of 'links' must have indices of the 6 nodes of 'graph' \(got -1\)"),
    ],
)
def test_links_that_lead_nowhere(pairs: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        join(known_graph(), new_nodes(), pairs)


def test_other_kinds_of_graphs() -> None:
    with pytest.raises(DataError, match=r"'graph' must be a torch_geometric.data.Data \(got dict\)"):
        join({}, new_nodes(), links())
