"""What is found in tables: contents, roles, and what looks wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairpass.datasets.column_names import words_of
from fairpass.datasets.predictability import Predictability
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
    back = [(other, one) for one, other in pairs]
    return pd.DataFrame([*pairs, *back, *more], columns=["one", "other"])


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
    assert found.left_out == {
        "empty": "has no value in any row",
        "same": "has one value only",
        "note": "has 120 different texts, too many for a category",
        "mixed": "contains values of several types",
        "gaps": "has one value only",
    }


@pytest.mark.parametrize("value", [["a"], {"a": 1}, b"a"], ids=str)
def test_columns_without_single_values_are_left_out(value: Any) -> None:
    found = inspect_tables(
        people(odd=[value] * SIZE), friends().assign(odd=[value] * 2 * SIZE, weight=[value] * 2 * SIZE)
    )
    odd = found.column("odd")
    assert (odd.kind, odd.distinct, odd.examples, odd.rule) == ("other", 1, (str(value),), None)
    assert found.left_out == {"odd": "contains lists, records or bytes"}
    assert "column 'odd' contains lists, records or bytes: it is left out" in sentences(found)
    assert "columns of the edges that are not used: 'odd', 'weight'" in sentences(found)
    with pytest.raises(DataError, match="column 'odd' of 'nodes' must have single values"):
        inspect_tables(people(odd=[value] * SIZE), friends(), label="odd")


def test_numbers_of_edges_that_may_be_weights() -> None:
    pairs = friends().assign(calls=range(1, 2 * SIZE + 1), at=1_700_000_000 + np.arange(2 * SIZE), kind=1)
    found = inspect_tables(people(), pairs)
    hint = (
        "column 'calls' of the edges has positive numbers, 1 to 240: if they say how much an edge counts, use them "
        "with edge_weight='calls'"
    )
    assert [sentence for sentence in sentences(found) if "how much an edge counts" in sentence] == [hint]
    assert found.settings == {}


def test_rules() -> None:
    table = people(
        salary=[f"${i:,}.50" for i in range(1000, 1000 + SIZE)],
        rent=[f"{i}.000,50 €" for i in range(SIZE)],
        joined=[f"{i % 28 + 1:02d}/{i % 12 + 1:02d}/2020" for i in range(SIZE)],
        day=pd.date_range("2020-01-01", periods=SIZE),
        plz=[f"0{i % 20}123" for i in range(SIZE)],
        member=["Yes", "no"] * 60,
    )
    assert inspect_tables(table, friends()).rules == {
        "salary": "money",
        "rent": {"kind": "money", "decimal": ","},
        "joined": {"kind": "date", "format": "%d/%m/%Y"},
        "day": "date",
        "plz": "code",
        "member": "flag",
    }


def test_spellings_of_one_value_count_once() -> None:
    sexes, hired = ["F", "female", "M", "m"] * 30, ["yes", "Yes", "no", "no"] * 30
    found = inspect_tables(people(sex=sexes, hired=hired, works=["Y", "yes", "N"] * 40), friends())
    assert (found.column("sex").distinct, found.column("sex").examples) == (2, ("F", "M"))
    assert found.roles["sensitive"][0].reason.endswith("it has 2 values in 4 spellings")
    assert found.roles["label"][0].reason.endswith("it has 2 values in 3 spellings")
    assert "column 'sex': spellings are merged: 'female' is 'F', 'm' is 'M'" in sentences(found)
    assert "column 'hired': spellings are merged: 'yes' is 'Yes'" in sentences(found)
    assert not any("'works'" in sentence for sentence in sentences(found))  # a flag reads every spelling


def test_a_label_with_one_value_stops() -> None:
    found = inspect_tables(people(hired="yes"), friends(), label="hired")
    assert sentences(found, stops=True) == ["label 'hired' must have at least two values (got 'yes')"]


def test_names_of_people_are_asked_about() -> None:
    names = np.random.default_rng(3).choice(["Ada", "Ben", "Cem"], SIZE)
    found = inspect_tables(people(**{"First Name": names, "company_name": names[::-1]}), friends())
    assert [guess.column for guess in found.undecided] == ["First Name"]
    assert found.undecided[0].reason == "it has people's names, which can tell their sex and origin"


def test_groups_that_are_too_small_to_compare() -> None:
    rows = 1200
    table = pd.DataFrame(
        {
            "height": np.random.default_rng(0).normal(170, 10, rows),
            "sex": ["f", "m"] * 590 + ["d"] * 20,
            "hired": ["yes", "no", "no", "yes"] * 300,
        }
    )
    hint = (
        "group 'd' of 'sex' has 20 labelled nodes, too few to show a small difference: with min_group_size=100 and "
        "small_groups='unknown' such groups are not compared"
    )
    assert hint in sentences(inspect_tables(table))
    assert hint not in sentences(inspect_tables(table.tail(500)))  # a small table has small groups


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
    assert sentences(found) == ["edges that occur more than once: 120; each pair of nodes counts once"]


def test_edges_by_row_number() -> None:
    pairs = pd.DataFrame({"a": range(SIZE - 1), "b": range(1, SIZE)})
    found = inspect_tables(people().drop(columns="person"), pairs)
    assert found.best("id") is None
    assert (found.best("source"), found.best("target")) == ("a", "b")
    assert sentences(found, stops=True) == []


def test_ends_are_found_by_what_they_hold() -> None:
    table = friends().assign(since=range(2 * SIZE))[["since", "other", "one"]]
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
    assert sentences(found, stops=True) == []


def test_a_word_within_a_name_says_nothing() -> None:
    table = people(sex=["a", "b"] * 60).rename(columns={"job": "JobClassIsSkilled", "sex": "PassageTime"})
    found = inspect_tables(table, friends())
    assert found.best("label") == "hired"
    assert found.roles["sensitive"] == ()


def test_a_label_without_a_telling_name_has_few_values_and_some_are_missing() -> None:
    table = people().rename(columns={"hired": "q17"})
    assert inspect_tables(table, friends()).best("label") is None
    table.loc[:9, "q17"] = None
    found = inspect_tables(table, friends())
    assert found.best("label") == "q17"
    assert found.roles["label"][0].reason == "it has 2 values, and 10 nodes have none, perhaps those to be predicted"


def test_a_part_of_a_one_hot_code_is_no_label() -> None:
    job = np.arange(SIZE) % 3
    table = people(**{f"class_{i}": (job == i).astype(int) for i in range(3)}).drop(columns="hired")
    assert inspect_tables(table, friends()).best("label") is None
    table.loc[0, "class_0"] = 0  # now a row has none
    assert inspect_tables(table, friends()).best("label") == "class_0"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("geschlecht", ["a", "b"]),
        ("Nationalité", ["a", "b"]),
        ("género", ["a", "b"]),
        ("date_of_birth", ["1990-01-01", "1991-01-01"]),
        ("q1", ["male", "female"]),
        ("q1", ["M", "F"]),
        ("q1", ["white", "black", "asian"]),
        ("q1", ["married", "single", "widowed"]),
        ("q1", ["katholisch", "evangelisch"]),
    ],
)
def test_what_may_be_sensitive_is_asked_about(name: str, values: list[str]) -> None:
    table = people(**{name: np.random.default_rng(5).choice(values, SIZE)})
    found = inspect_tables(table, friends())
    assert found.sensitive == ("sex",)
    assert [guess.column for guess in found.undecided] == [name]


@pytest.mark.parametrize("values", [["red", "blue"], ["single", "double"], ["m", "s", "l", "xl"]])
def test_what_is_not_sensitive_is_not_asked_about(values: list[str]) -> None:
    found = inspect_tables(people(q1=np.random.default_rng(5).choice(values, SIZE)), friends())
    assert found.undecided == ()


def test_roles_that_are_given() -> None:
    table = people(region=["north", "south"] * 60)
    found = inspect_tables(table, friends(), label="job", sensitive=["region", "sex"], id="person")
    assert (found.best("label"), found.sensitive, found.best("id")) == ("job", ("region", "sex"), "person")
    assert found.roles["label"][0].reason == "you said so"
    with pytest.raises(DataError, match="'nodes' has no column 'regio': did you mean 'region'"):
        inspect_tables(table, friends(), sensitive=["regio"])
    stops = sentences(inspect_tables(table, friends(), label="height"), stops=True)
    assert stops == ["label 'height' must have at most 50 values (got 120)"]


@pytest.mark.parametrize(
    ("value", "message"),
    [(1e300, "has numbers too large for 32-bit features (got 1e+300 in row 3)"), (np.inf, "must be finite (got 1 inf")],
)
def test_numbers_with_which_no_graph_can_be_made(value: float, message: str) -> None:
    values = np.random.default_rng(0).normal(size=SIZE)
    values[3] = value
    (stops,) = sentences(inspect_tables(people(lot=values), friends()), stops=True)
    assert stops.startswith(f"column 'lot' {message}")


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
    table = friends(("p001", "nobody"), (None, "p001"), ("p005", "p005"))
    found = inspect_tables(people(), table)
    assert sentences(found, stops=True) == []
    assert found.settings == {"dangling": "drop"}
    first = "the first: an empty cell in column 'one', row 241"
    assert f"2 of 243 edges have an end that is not a node ({first}): they are left out" in sentences(found)
    assert "edges that join a node with itself: 1; they are left out" in sentences(found)
    found = inspect_tables(people(), table.tail(10))
    assert found.settings == {}
    assert sentences(found, stops=True) == [
        "column 'one' of 'edges' must have an id for each edge (1 missing, first in row 8)",
        "column 'other' of 'edges' names nodes that do not exist (1 ids, 1 edges, first in row 7): 'nobody'; "
        "the nodes have ids such as 'p000' (dangling='drop' leaves such edges out)",
    ]
    assert sentences(inspect_tables(people(), friends()[["one"]]), stops=True) == [
        "the table of edges must have two columns, one for each end"
    ]


def test_isolated_nodes() -> None:
    found = inspect_tables(people(), friends().iloc[: SIZE // 2])
    one_way = "edges are read as undirected: 60 of 60 pairs occur in one direction only"
    assert one_way in sentences(found)
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
    assert "nodes without a value in 'height' (10.0 %): it is filled in, and marked" in found
    assert "nodes without a value in 'sex' (5.0 %): their group is unknown" in found


def test_columns_that_give_the_label_or_the_group_away() -> None:
    table = people()
    table["contract"] = np.where(table["hired"] == "yes", 1.0, 0.0) + np.linspace(0, 0.1, SIZE)
    table["title"] = np.where(table["sex"] == "f", "ms", "mr")
    inspection = inspect_tables(table, friends())
    found = sentences(inspection)
    assert [(guess.column, guess.reason) for guess in inspection.undecided] == [
        ("title", "it is almost the same as 'sex' (AUC 1.00): a proxy")
    ]
    assert any(
        sentence.startswith("column 'contract' alone reveals the label 'hired' (AUC 1.00)") for sentence in found
    )
    assert not any("'height' alone" in sentence for sentence in found)


def test_proxies_are_found_through_all_spellings() -> None:
    table = people()
    table["title"] = np.where(table["sex"] == "f", "ms", "mr")
    table.loc[::3, "sex"] = table.loc[::3, "sex"].replace({"f": "female", "m": "Male"})
    assert [guess.column for guess in inspect_tables(table, friends()).undecided] == ["title"]


def test_columns_that_give_the_label_away_together() -> None:
    generator = np.random.default_rng(2)
    size = 600
    base, raised = generator.integers(0, 2, (2, size))
    table = pd.DataFrame(
        {
            "base": base + generator.normal(0, 0.01, size),
            "raised": raised + generator.normal(0, 0.01, size),
            **{f"noise{i}": generator.normal(size=size) for i in range(4)},
            "sex": generator.choice(["f", "m"], size),
            "approved": base ^ raised,
        }
    )
    (sentence,) = sentences(inspect_tables(table))
    assert "'base'" in sentence
    assert "'raised'" in sentence
    assert "together reveal the label 'approved' (AUC 1.000)" in sentence
    assert "'noise" not in sentence


def test_columns_and_rows_that_say_the_same() -> None:
    table = people()
    table["inches"] = table["height"] / 2.54 + np.linspace(0, 0.01, SIZE)
    table["work"] = table["job"].map({"nurse": "N", "clerk": "C", "smith": "S"})
    table = pd.concat([table, table.assign(person=[f"q{i:03d}" for i in range(SIZE)])])
    found = sentences(inspect_tables(table, friends()))
    assert "columns 'job' and 'work' say the same: one of them is enough ('drop')" in found
    repeated = sentences(inspect_tables(table.head(SIZE), friends()))
    assert "columns 'height' and 'inches' are almost the same (correlation 1.0000): one is enough ('drop')" in repeated
    assert any(sentence.startswith("100.0 % of the rows are like another row in every feature") for sentence in found)


def test_a_column_that_counts_the_rows_is_no_feature() -> None:
    found = inspect_tables(people(row=range(SIZE), customer_no=np.arange(SIZE) * 7), friends())
    assert list(found.left_out) == ["row", "customer_no"]
    assert "column 'row' has a different whole number in every row, like an id: it is left out" in sentences(found)


def test_weights_of_edges() -> None:
    table = friends().assign(weight=np.arange(2 * SIZE) + 1, since="2020")
    found = inspect_tables(people(), table)
    assert found.settings == {"edge_weight": "weight"}
    assert found.reasons["edge_weight"].startswith("Why 'weight': it has positive numbers, 1 to 240")
    assert "columns of the edges that are not used: 'since'" in sentences(found)
    assert "edges that occur more than once: 120; their weights are added" in sentences(found)
    found = inspect_tables(people(), table.assign(weight=np.arange(2 * SIZE)))
    assert found.settings == {"unweighted": True}
    assert (
        "column 'weight' of 'edges' must be positive to be the weight of edges (got 0 in row 0): all edges count alike"
    ) in sentences(found)


def test_edges_without_a_header(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "nodes.csv", index=False)
    friends().assign(w=[1.5, 2.5] * SIZE).to_csv(tmp_path / "edges.csv", index=False, header=False)
    found = inspect_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    assert found.edge_rows == 2 * SIZE
    assert found.settings == {"edges_header": False, "edge_weight": "weight"}
    assert (found.best("source"), found.best("target")) == ("source", "target")
    assert any(sentence.startswith("the table of edges has no row with names") for sentence in sentences(found))


def test_nodes_without_a_header(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "nodes.csv", index=False, header=False)
    with pytest.raises(DataError, match=r"'nodes' has no header: its first row looks like data \('p000', '171.257"):
        inspect_tables(tmp_path / "nodes.csv")


def test_how_files_are_read(tmp_path: Path) -> None:
    table = people(rent=[f"{i + 100},5" for i in range(SIZE)], town=["Köln", "Bonn"] * 60)
    table.to_csv(tmp_path / "nodes.csv", index=False, sep=";", encoding="latin-1")
    found = inspect_tables(tmp_path / "nodes.csv")
    assert found.settings == {"separator": ";", "decimal": ",", "text_encoding": "cp1252"}
    friends().to_csv(tmp_path / "edges.csv", index=False)  # with another separator: each file is recognised by itself
    assert "separator" not in inspect_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv").settings
    given = inspect_tables(tmp_path / "nodes.csv", separator=";", text_encoding="latin-1")
    assert given.settings["text_encoding"] == "latin-1"


def test_how_well_one_column_tells_another() -> None:
    generator = np.random.default_rng(1)
    target = pd.Series(generator.choice(["a", "b", "c"], 300))
    assert Predictability({"x": (target.map({"a": 1, "b": 2, "c": 3}), None)}).auc(["x"], target) == pytest.approx(1)
    assert Predictability({"x": (pd.Series(generator.normal(size=300)), None)}).auc(["x"], target) == pytest.approx(
        0.5, abs=0.1
    )
    assert (
        Predictability({"x": (pd.Series([1.0, 2.0]), None)}).auc(["x"], pd.Series(["a", "b"])) == 0.5
    )  # too few to say


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


def test_numbers_beyond_single_precision_can_be_compared() -> None:
    numbers = pd.Series(np.r_[np.full(30, 1e300), np.full(30, -1e300)])
    target = pd.Series(["yes"] * 30 + ["no"] * 30)
    found = Predictability({"pay": (numbers, None), "age": (pd.Series(range(60)), None)})
    assert found.auc(["pay"], target) == 1.0
    assert found.auc(["pay", "age"], target) == 1.0
