"""What is found in tables: contents, roles, and what looks wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairpass.datasets.column_names import words_of
from fairpass.datasets.predictability import auc_of_column
from fairpass.datasets.table_inspection import Inspection, inspect_tables
from fairpass.errors import DataError

SIZE = 120


def people(**columns: Any) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    table = {
        "person": [f"p{i:03d}" for i in range(SIZE)],
        "height": generator.normal(170, 10, SIZE),
        "job": generator.choice(["nurse", "clerk", "smith"], SIZE),
        "sex": generator.choice(["f", "m"], SIZE),
        "hired": generator.choice(["yes", "no"], SIZE),
    }
    return pd.DataFrame(table | columns)


def friends(*more: tuple[Any, Any]) -> pd.DataFrame:
    pairs = [(f"p{i:03d}", f"p{(i + 1) % SIZE:03d}") for i in range(SIZE)]
    return pd.DataFrame([*pairs, *more], columns=["one", "other"])


def sentences(found: Inspection, *, stops: bool | None = None) -> list[str]:
    return [problem.sentence for problem in found.problems if stops is None or problem.stops == stops]


def test_contents() -> None:
    table = people(
        flag=[True, False] * 60,
        empty=[None] * SIZE,
        same=1,
        note=[f"t{i}" for i in range(SIZE)],
        day=pd.date_range("2020-01-01", periods=SIZE),
        mixed=[1, "a"] * 60,
        gaps=[1.0, np.nan] * 60,
    )
    found = inspect_tables(table, friends())
    kinds = {column.name: column.kind for column in found.columns}
    assert kinds["height"] == "number"
    assert kinds["job"] == "category"
    assert (kinds["flag"], kinds["empty"], kinds["same"]) == ("flag", "empty", "constant")
    assert (kinds["note"], kinds["day"], kinds["mixed"]) == ("text", "date", "mixed")
    assert (found.column("gaps").missing, found.column("job").distinct) == (60, 3)
    assert list(found.left_out) == ["empty", "same", "note", "day", "mixed", "gaps"]


def test_roles() -> None:
    found = inspect_tables(people(part=["train", "val", "test"] * 40), friends())
    best = {role: found.best(role) for role in found.roles}
    assert best == {
        "id": "person",
        "label": "hired",
        "sensitive": "sex",
        "split": "part",
        "source": "one",
        "target": "other",
    }
    assert "100 % of the edges' ends are among them" in found.roles["id"][0].reason
    assert sentences(found) == []


def test_edges_by_row_number() -> None:
    pairs = pd.DataFrame({"a": range(SIZE - 1), "b": range(1, SIZE)})
    found = inspect_tables(people().drop(columns="person"), pairs)
    assert found.best("id") is None
    assert (found.best("source"), found.best("target")) == ("a", "b")
    assert sentences(found, stops=True) == []


def test_ends_are_found_by_what_they_hold() -> None:
    table = friends().assign(since=range(SIZE))[["since", "other", "one"]]
    found = inspect_tables(people(), table)
    assert (found.best("source"), found.best("target")) == ("other", "one")


def test_without_edges() -> None:
    found = inspect_tables(people().rename(columns={"person": "person_id"}))
    assert (found.best("id"), found.edges, found.edge_rows) == ("person_id", None, None)


def test_ids_with_leading_zeros(tmp_path: Path) -> None:
    people(person=[f"{i:03d}" for i in range(SIZE)]).to_csv(tmp_path / "nodes.csv", index=False)
    friends().map(lambda name: name[1:]).to_csv(tmp_path / "edges.csv", index=False)
    found = inspect_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    assert found.best("id") == "person"
    assert sentences(found) == []


def test_a_word_within_a_name_says_nothing() -> None:
    found = inspect_tables(people().rename(columns={"job": "JobClassIsSkilled", "sex": "PassageTime"}), friends())
    assert found.best("label") == "hired"
    assert found.roles["sensitive"] == ()


def test_a_label_without_a_telling_name_is_a_guess() -> None:
    found = inspect_tables(people().rename(columns={"hired": "q17"}), friends())
    assert found.best("label") == "q17"
    assert found.roles["label"][0].reason == "a guess: it has 2 values"


@pytest.mark.parametrize(
    ("name", "words"),
    [("GoodCustomer_id", ["good", "customer", "id"]), ("SEX", ["sex"]), ("home.address2", ["home", "address"])],
)
def test_words(name: str, words: list[str]) -> None:
    assert words_of(name) == words


def test_duplicate_and_missing_ids() -> None:
    table = people()
    table.loc[1, "person"] = "p000"
    table.loc[2, "person"] = None
    found = inspect_tables(table, friends())
    assert found.best("id") == "person"
    stops = sentences(found, stops=True)
    assert "column 'person' of 'nodes' must have an id for each node (1 missing, first in row 2)" in stops
    assert "the ids in column 'person' of 'nodes' must be unique (1 occur more than once: 'p000')" in stops


def test_edges_that_cannot_be() -> None:
    found = inspect_tables(people(), friends(("p001", "nobody"), (None, "p001"), ("p005", "p005")))
    assert sentences(found, stops=True) == [
        "column 'one' of 'edges' must have an id for each edge (1 missing, first in row 121)",
        "column 'other' of 'edges' names nodes that do not exist (1 ids, 1 edges, first in row 120): 'nobody'; "
        "the nodes have ids such as 'p000'",
    ]
    assert "edges that join a node with itself: 1; they are left out" in sentences(found)
    assert sentences(inspect_tables(people(), friends()[["one"]]), stops=True) == [
        "the table of edges must have two columns, one for each end"
    ]


def test_isolated_nodes() -> None:
    found = inspect_tables(people(), friends().iloc[: SIZE // 2])
    assert "nodes without any edge: 59; they are classified by their features alone" in sentences(found)


def test_labels_that_are_rare_or_missing() -> None:
    table = people()
    table.loc[:4, "hired"] = "later"
    table.loc[5:7, "hired"] = None
    found = sentences(inspect_tables(table, friends()))
    assert "label 'later' is rare (5 nodes): measurements for it are uncertain" in found
    assert "nodes without a label ('hired'): 3; they stay in the graph, unlabelled" in found


def test_gaps() -> None:
    table = people()
    table.loc[:11, "height"] = np.nan
    table.loc[:5, "sex"] = None
    found = sentences(inspect_tables(table, friends()))
    assert "10.0 % of the nodes have no value in 'height': it is filled in, and marked" in found
    assert "5.0 % of the nodes have no value in 'sex': their group is unknown" in found


def test_columns_that_give_the_label_or_the_group_away() -> None:
    table = people()
    table["contract"] = np.where(table["hired"] == "yes", 1.0, 0.0) + np.linspace(0, 0.1, SIZE)
    table["title"] = np.where(table["sex"] == "f", "ms", "mr")
    found = sentences(inspect_tables(table, friends()))
    assert any(
        sentence.startswith("column 'contract' alone reveals the label 'hired' (AUC 1.00)") for sentence in found
    )
    assert "column 'title' is almost the same as 'sex' (AUC 1.00): a proxy" in found
    assert not any("'height' alone" in sentence for sentence in found)


def test_how_well_one_column_tells_another() -> None:
    generator = np.random.default_rng(1)
    target = pd.Series(generator.choice(["a", "b", "c"], 300))
    assert auc_of_column(target.map({"a": 1, "b": 2, "c": 3}), target) == pytest.approx(1)
    assert auc_of_column(pd.Series(generator.normal(size=300)), target) == pytest.approx(0.5, abs=0.1)
    assert auc_of_column(pd.Series([1.0, 2.0]), pd.Series(["a", "b"])) == 0.5  # too few to say


def test_it_is_json() -> None:
    assert json.loads(json.dumps(inspect_tables(people(), friends()).to_dict()))["rows"] == SIZE


def test_the_tables_are_not_changed() -> None:
    table, pairs = people(), friends()
    inspect_tables(table, pairs)
    pd.testing.assert_frame_equal(table, people())
    pd.testing.assert_frame_equal(pairs, friends())


def test_an_empty_table() -> None:
    with pytest.raises(DataError, match="'nodes' must have at least one row"):
        inspect_tables(people().head(0))
