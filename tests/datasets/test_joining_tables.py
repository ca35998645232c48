"""New people in tables join the graph of earlier tables by their ids."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.datasets.test_tables import PEOPLE, build, people, ring
from tests.drawing import examples
from torch_geometric.data import Data

from fairpass.datasets import from_tables, join_tables
from fairpass.errors import DataError

OWN: dict[str, Any] = {"id": "name", "label": "paid", "sensitive": "sex"}


def newcomers(*names: str) -> pd.DataFrame:
    """People like the first ones of the graph, under names of their own."""
    names = names or ("n0", "n1", "n2")
    return people().head(len(names)).assign(name=list(names)).drop(columns="paid")


def pairs(*ends: tuple[Any, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(ends), columns=["a", "b"])


def named_edges(data: Data) -> set[frozenset[Any]]:
    return {frozenset((data.node_ids[i], data.node_ids[j])) for i, j in data.edge_index.T.tolist()}


def test_edges_name_new_and_known_people() -> None:
    graph = build()
    joined = join_tables(
        graph, newcomers(), pairs(("n0", "p3"), ("p5", "n1"), ("n1", "n0"), ("n0", "n1"), ("n2", "n2"))
    )
    assert joined.new_mask.sum() == 3
    assert joined.node_ids == [*graph.node_ids, "n0", "n1", "n2"]
    assert named_edges(joined) - named_edges(graph) == {
        frozenset(each) for each in (("n0", "p3"), ("n1", "p5"), ("n0", "n1"))
    }
    assert named_edges(graph) < named_edges(joined)
    assert torch.equal(joined.x[joined.new_mask], graph.x[:3])  # the same features, so the same numbers
    assert torch.equal(joined.x[:PEOPLE], graph.x)
    assert joined.y[joined.new_mask].tolist() == [-1, -1, -1]
    assert joined.sens[joined.new_mask].tolist() == [0, 0, 0]
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(joined[mask][:PEOPLE], graph[mask])
        assert not joined[mask][PEOPLE:].any()
    assert joined.provenance["encoding"] == graph.provenance["encoding"]
    assert joined.provenance["new"]["edges"] == {"source": "DataFrame", "sha256": None}
    assert "new" not in graph.provenance


def test_people_without_edges() -> None:
    joined = join_tables(build(), newcomers("n0"))
    assert joined.new_mask.sum() == 1
    assert named_edges(joined) == named_edges(build())
    assert joined.provenance["new"]["edges"]["source"] == "no edges"


def test_labels_are_kept_if_there_are_any() -> None:
    joined = join_tables(build(), newcomers().assign(paid=pd.Series(["yes", None, "no"])))
    assert joined.y[joined.new_mask].tolist() == [1, -1, 0]
    assert not joined.test_mask[joined.new_mask].any()


def test_edges_between_known_people_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    graph = build()
    joined = join_tables(graph, newcomers("n0"), pairs(("p0", "p7"), ("p0", "p1"), ("n0", "p1")))
    assert named_edges(joined) - named_edges(graph) == {frozenset(("n0", "p1"))}
    assert "edges between two nodes of the graph are left out: 2" in caplog.text


def test_unknown_groups() -> None:
    without = newcomers().drop(columns="sex")
    assert (join_tables(build(), without).sens[-3:] == -1).all()
    gap = newcomers().assign(sex=pd.Series(["F", None, "M"]))
    assert join_tables(build(), gap).sens[-3:].tolist() == [0, -1, 1]
    with pytest.raises(DataError, match=r"column 'sex' must have a value for each node \(1 missing, first in row 1\)"):
        join_tables(build(), gap, missing_sensitive="error")
    with pytest.raises(DataError, match="'nodes' has no column 'sex'"):
        join_tables(build(), without, missing_sensitive="error")


def test_options_are_those_of_the_graph(tmp_path: Path) -> None:
    table = people().rename(columns={"age": "âge"})
    table.to_csv(tmp_path / "people.csv", index=False, encoding="latin-1")
    turned = ring().assign(since=1)[["since", "b", "a"]]
    turned.to_csv(tmp_path / "friends.csv", index=False)
    graph = from_tables(
        tmp_path / "people.csv", tmp_path / "friends.csv", source="b", target="a", text_encoding="latin-1", **OWN
    )
    newcomers().rename(columns={"age": "âge"}).to_csv(tmp_path / "new.csv", index=False, encoding="latin-1")
    pairs(("n0", "p3")).assign(since=2)[["since", "a", "b"]].to_csv(tmp_path / "edges.csv", index=False)
    joined = join_tables(graph, tmp_path / "new.csv", tmp_path / "edges.csv")
    assert frozenset(("n0", "p3")) in named_edges(joined)
    # What differs can be said.
    other = newcomers().rename(columns={"age": "âge", "name": "called"})
    ends = pd.DataFrame({"x": [0], "from": ["n1"], "to": ["p4"]})
    joined = join_tables(graph, other, ends, id="called", source="from", target="to")
    assert frozenset(("n1", "p4")) in named_edges(joined)


@pytest.mark.parametrize("known", ["csv", "parquet"])
@pytest.mark.parametrize("new", ["csv", "parquet"])
@pytest.mark.parametrize("ends", ["csv", "parquet", "text in parquet"])
def test_numbers_as_ids_in_any_format(tmp_path: Path, known: str, new: str, ends: str) -> None:
    """A CSV file has ids as text, a Parquet file as what they are: 7 is the same in both."""

    def written(table: pd.DataFrame, name: str, ending: str) -> Path:
        path = tmp_path / f"{name}.{ending}"
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
        return path

    numbered = people(name=np.arange(PEOPLE))
    friends = pd.DataFrame({"a": np.arange(PEOPLE), "b": np.roll(np.arange(PEOPLE), 1)})
    graph = from_tables(written(numbered, "people", known), written(friends, "friends", known), **OWN)
    more = newcomers("a", "b").assign(name=[100, 101])
    edges = pairs((100, 7), (101, 100))
    if ends == "text in parquet":
        edges, ends = edges.astype(str), "parquet"
    joined = join_tables(graph, written(more, "new", new), written(edges, "edges", ends))
    assert named_edges(joined) - named_edges(graph) == {frozenset((100, 7)), frozenset((101, 100))}


def test_ids_with_leading_zeros_differ(tmp_path: Path) -> None:
    graph = build(people(name=np.arange(PEOPLE)), pairs((0, 1)))
    newcomers("07").to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "edges.csv").write_text("a,b\n07,7\n")
    joined = join_tables(graph, tmp_path / "new.csv", tmp_path / "edges.csv")
    assert named_edges(joined) - named_edges(graph) == {frozenset(("07", 7))}


def test_similar_people_are_joined_as_in_the_graph() -> None:
    graph = from_tables(people(), similarity=0.9, **OWN)
    joined = join_tables(graph, newcomers("n0"))
    # The twin of p0 is nearest to it; edges among known people stay.
    assert frozenset(("n0", "p0")) in named_edges(joined)
    among_known = {each for each in named_edges(joined) if "n0" not in each}
    assert among_known == named_edges(graph)
    assert "0.9 times as similar" in joined.provenance["new"]["edges"]["source"]
    by_table = join_tables(graph, newcomers("n0"), pairs(("n0", "p9")))
    assert named_edges(by_table) - named_edges(graph) == {frozenset(("n0", "p9"))}


def test_row_numbers_go_on_where_those_of_the_graph_end() -> None:
    graph = from_tables(people().drop(columns="name"), similarity=0.9, label="paid", sensitive="sex")
    joined = join_tables(graph, newcomers().drop(columns="name"))
    assert joined.node_ids == list(range(PEOPLE + 3))


def test_tables_and_graph_are_not_changed() -> None:
    graph, nodes, edges = build(), newcomers(), pairs(("n0", "p3"))
    before = nodes.copy(deep=True), edges.copy(deep=True), graph.clone()
    join_tables(graph, nodes, edges)
    pd.testing.assert_frame_equal(nodes, before[0])
    pd.testing.assert_frame_equal(edges, before[1])
    assert torch.equal(graph.edge_index, before[2].edge_index)
    assert graph.node_ids == before[2].node_ids


@given(st.permutations(range(3)), st.permutations(range(4)), st.lists(st.booleans(), min_size=4, max_size=4))
@examples(30)
def test_order_of_rows_and_ends_does_not_matter(rows: list[int], order: list[int], turned: list[bool]) -> None:
    ends = [("n0", "p3"), ("n1", "p3"), ("n1", "n2"), ("n2", "p9")]
    graph = build()
    joined = join_tables(graph, newcomers(), pairs(*ends))
    shuffled = [ends[i][::-1] if turn else ends[i] for i, turn in zip(order, turned, strict=True)]
    other = join_tables(graph, newcomers().iloc[rows], pairs(*shuffled))
    assert named_edges(other) == named_edges(joined)
    at = {name: i for i, name in enumerate(other.node_ids)}
    index = torch.tensor([at[name] for name in joined.node_ids])
    assert torch.equal(other.x[index], joined.x)
    assert torch.equal(other.sens[index], joined.sens)


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (
            newcomers("n0", "p3", "p1"),
            None,
            "'nodes' must have new nodes only, .* but 2 of its ids are in the graph already, or repeated: 'p3', 'p1'",
        ),
        (newcomers("n0", "n0"), None, r"the ids in column 'name' of 'nodes' must be unique"),
        (newcomers().drop(columns="name"), None, "'nodes' has no column 'name'"),
        (newcomers().drop(columns="age"), None, "'nodes' has no column 'age'"),
        (newcomers().head(0), None, "'nodes' must have at least one row"),
        (newcomers().assign(sex="X"), None, "column 'sex' has values that the fitted table does not have: 'X'"),
        (
            newcomers(),
            pairs(("n0", "p3"), ("n0", "n1"), ("n1", "p2"), ("n2", "p77")),
            r"column '.*' of 'edges' names nodes that do not exist \(1 ids, 1 edges, first in row 3\): 'p77'",
        ),
        (
            newcomers(),
            pairs(("n0", "p3"), ("u", "n1"), ("v", "p2"), ("u", "p2")),
            r"names nodes that do not exist \(2 ids, 3 edges, first in row 1\): 'u', ",
        ),
        (newcomers(), pairs(("n0", None)), r"column 'b' of 'edges' must have an id for each edge \(1 missing"),
        (newcomers(), pairs(("n0", "p1"))[["a"]], r"'edges' must have at least two columns \(got 1\)"),
        ("nowhere.csv", None, "there is no file 'nowhere.csv'"),
        (newcomers(), "nowhere.csv", "there is no file 'nowhere.csv'"),
    ],
)
def test_tables_that_do_not_fit(nodes: Any, edges: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        join_tables(build(), nodes, edges)


def test_row_numbers_cannot_tell_who_is_new() -> None:
    friends = pd.DataFrame({"a": [0, 1], "b": [1, 2]})
    graph = from_tables(people().drop(columns="name"), friends, label="paid", sensitive="sex")
    with pytest.raises(DataError, match=r"'graph' must have ids that edges can name \('id' of 'from_tables'\)"):
        join_tables(graph, newcomers().drop(columns="name"), pairs((0, 1)))


def test_graphs_that_were_not_made_from_tables() -> None:
    with pytest.raises(DataError, match="'graph' must be made by 'from_tables'"):
        join_tables(Data(x=torch.ones(2, 2)), newcomers())


def test_known_ids_that_are_one_text() -> None:
    graph = build(people(name=[7, "7", *range(100, 122)]), pairs((7, "7")))
    with pytest.raises(DataError, match=r"ids that differ as text, but 1 .* or repeated: '7'"):
        join_tables(graph, newcomers(), pairs(("n0", 7)))


def test_nothing_is_logged_in_the_usual_case(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        join_tables(build(), newcomers(), pairs(("n0", "p3")))
    assert not caplog.records
