"""Own tables become graphs as the contract says, whatever they hold and wherever they come from."""

import json
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
from tests.effort import calls
from torch_geometric.data import Data

from fairpass.datasets.benchmark_graph import scaled
from fairpass.datasets.options import FeatureScale
from fairpass.datasets.splits import stratified_split
from fairpass.datasets.tables import from_tables
from fairpass.files import sha256

# Every pair of a label and one of up to three groups occurs at least four times: any split has all of them.
PEOPLE = 24
THREE = ["x", "y", "z"] * 8


def people(**columns: Any) -> pd.DataFrame:
    table = {
        "name": [f"p{i}" for i in range(PEOPLE)],
        "age": np.linspace(20.0, 66.0, PEOPLE),
        "children": [0, 1, 2] * 8,
        "member": [True, False] * 12,
        "job": ["nurse", "clerk", "nurse", "smith"] * 6,
        "sex": ["F"] * 12 + ["M"] * 12,
        "paid": ["no", "yes"] * 12,
    }
    return pd.DataFrame(table | columns)


def ring() -> pd.DataFrame:
    return pd.DataFrame([(f"p{i}", f"p{(i + 1) % PEOPLE}") for i in range(PEOPLE)], columns=["a", "b"])


def build(nodes: Any = None, edges: Any = None, **options: Any) -> Data:
    arguments = {"label": "paid", "sensitive": "sex", "id": "name"} | options
    return from_tables(people() if nodes is None else nodes, ring() if edges is None else edges, **arguments)


def undirected(data: Data) -> set[tuple[int, int]]:
    return {(i, j) for i, j in data.edge_index.T.tolist() if i < j}


def same_graph(one: Data, other: Data) -> bool:
    tensors = ["x", "edge_index", "y", "sens", "train_mask", "val_mask", "test_mask"]
    lists = ["feature_names", "label_names", "group_names", "node_ids"]
    return all(torch.equal(one[key], other[key]) for key in tensors) and all(one[key] == other[key] for key in lists)


def test_contract() -> None:
    data = build()
    assert data.x.dtype == torch.float32
    assert data.x.shape == (PEOPLE, 6)
    assert data.feature_names == ["age", "children", "member", "job=clerk", "job=nurse", "job=smith"]
    assert data.edge_index.dtype == data.y.dtype == data.sens.dtype == torch.int64
    assert data.edge_index.shape == (2, 2 * PEOPLE)
    pairs = data.edge_index.T.tolist()
    assert pairs == sorted(pairs)
    assert data.y.tolist() == [0, 1] * 12
    assert data.label_names == ["no", "yes"]
    assert data.sens.tolist() == [0] * 12 + [1] * 12
    assert data.group_names == ["F", "M"]
    assert data.get("sens_column") is None
    assert data.node_ids == people()["name"].tolist()
    assert {data[f"{part}_mask"].dtype for part in ("train", "val", "test")} == {torch.bool}
    assert bool((data.train_mask ^ data.val_mask ^ data.test_mask).all())
    data.validate(raise_on_error=True)


# Features


def test_types_of_columns() -> None:
    table = people(
        nullable=pd.array([1, 2, 3] * 8, dtype="Int64"),
        maybe=pd.array([True, False, True] * 8, dtype="boolean"),
        level=pd.Categorical([3, 1, 20] * 8, categories=[20, 3, 1, 99]),
        yes_no=np.array([True, False] * 12, dtype=object),
        arrow=pd.array([5, 6, 5] * 8, dtype="int64[pyarrow]"),
    )
    data = build(table, features=["nullable", "maybe", "level", "yes_no", "arrow"], scale="minmax")
    assert data.feature_names == ["nullable", "maybe", "level=1", "level=3", "level=20", "yes_no", "arrow"]
    assert data.x[:3].tolist() == [[-1, 1, 0, 1, 0, 1, -1], [0, 0, 1, 0, 0, 0, 1], [1, 1, 0, 0, 1, 1, -1]]


@pytest.mark.parametrize("scale", ["minmax", "standard", "none"])
def test_scaling_is_that_of_the_benchmarks(scale: FeatureScale) -> None:
    data = build(features=["age", "children"], scale=scale)
    expected = scaled(people()[["age", "children"]], ["age", "children"], scale)
    assert torch.allclose(data.x, torch.tensor(expected.to_numpy(), dtype=torch.float32), atol=1e-6)


def test_by_default_numbers_are_standardised() -> None:
    assert torch.equal(build().x, build(scale="standard").x)
    assert build().provenance["options"]["scale"] == "standard"


@pytest.mark.parametrize("scale", ["minmax", "standard", "none"])
def test_only_numbers_are_scaled(scale: FeatureScale) -> None:
    data = build(scale=scale, keep_sensitive=True)
    assert set(data.x[:, 2:].unique().tolist()) == {0, 1}


def test_features_and_drop() -> None:
    assert build(features=["job"]).feature_names == ["job=clerk", "job=nurse", "job=smith"]
    assert build(features=["children", "age"]).feature_names == ["children", "age"]
    assert build(drop=["job", "member"]).feature_names == ["age", "children"]


def test_column_names_may_be_numbers() -> None:
    table = people().set_axis(range(7), axis=1)
    data = from_tables(table, ring(), label="6", sensitive="5", id="0")
    assert data.feature_names == ["1", "2", "3", "4=clerk", "4=nurse", "4=smith"]


def test_sensitive_attribute_as_feature() -> None:
    data = build(keep_sensitive=True, scale="standard")
    assert data.feature_names[data.sens_column] == "sex"
    assert torch.equal(data.x[:, data.sens_column], data.sens.float())
    assert build(keep_sensitive=True, features=["sex", "age"]).sens_column == 0
    three = build(people(sex=THREE), keep_sensitive=True)
    assert torch.equal(three.x[:, three.sens_column], three.sens.float())


def test_constant_column_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    tiny = [1e-200 * (row % 2) for row in range(len(people()))]  # so little that its variance is zero
    table = people(country="nl", zero=0.0, tiny=tiny)
    with caplog.at_level(logging.WARNING, logger="fairpass"):
        data = build(table)
    assert torch.equal(data.x, build().x)
    assert data.provenance["columns_left_out"] == ["country", "zero", "tiny"]
    assert "'country' is constant" in caplog.text


# Missing values


def with_gaps() -> pd.DataFrame:
    table = people()
    table.loc[[0, 5], "age"] = np.nan
    table.loc[1, "job"] = None
    return table


def test_missing_mean() -> None:
    data = build(with_gaps(), missing="mean", scale="standard")
    assert data.feature_names == build().feature_names
    age = with_gaps()["age"]
    expected = ((age - age.mean()) / age.std(ddof=0)).fillna(0.0)
    assert np.allclose(data.x[:, 0], expected, atol=1e-6)
    frequencies = with_gaps()["job"].value_counts(normalize=True).sort_index().to_numpy()
    assert np.allclose(data.x[1, 3:], frequencies)


def test_missing_indicator() -> None:
    data = build(with_gaps(), missing="indicator")
    assert data.feature_names[:2] == ["age", "age is missing"]
    assert data.feature_names[-1] == "job is missing"
    assert data.x[:, 1].nonzero().flatten().tolist() == [0, 5]
    assert data.x[:, -1].nonzero().flatten().tolist() == [1]
    kept = [i for i, name in enumerate(data.feature_names) if "missing" not in name]
    assert torch.equal(data.x[:, kept], build(with_gaps(), missing="mean").x)


def test_missing_drop() -> None:
    data = build(with_gaps(), missing="drop")
    assert data.feature_names == ["children", "member"]
    assert data.num_nodes == PEOPLE
    assert data.provenance["columns_left_out"] == ["age", "job"]


def test_missing_sensitive_unknown() -> None:
    data = build(people(sex=[None, *["F", "M"] * 11, "F"], paid=THREE), missing_sensitive="unknown")
    assert data.sens[0] == -1
    assert data.group_names == ["F", "M"]
    assert (data.sens[1:] >= 0).all()


def test_unknown_group_as_feature() -> None:
    table = people(sex=[None, *["F", "M"] * 11, "F"], paid=THREE)
    data = build(table, missing_sensitive="unknown", missing="indicator", keep_sensitive=True)
    assert data.feature_names[data.sens_column :] == ["sex", "sex is missing"]
    assert data.x[0, data.sens_column :].tolist() == pytest.approx([11 / 23, 1])
    assert torch.equal(data.x[1:, data.sens_column], data.sens[1:].float())


def test_node_without_label_stays_in_the_graph() -> None:
    labels = [1.0, 0.0] * 12
    labels[3] = np.nan
    data = build(people(paid=labels))
    assert data.y[3] == -1
    assert data.label_names == ["0", "1"]
    assert data.num_nodes == PEOPLE
    assert {(2, 3), (3, 4)} <= undirected(data)
    in_a_mask = data.train_mask | data.val_mask | data.test_mask
    assert torch.equal(in_a_mask, data.y >= 0)


# Labels and groups


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([-1, 1], ["-1", "1"]),
        ([10, 9], ["9", "10"]),
        ([True, False], ["False", "True"]),
        (["b", "a", "c"], ["a", "b", "c"]),
        ([2.5, 0.5], ["0.5", "2.5"]),
        ([1, "one"], ["1", "one"]),
        (list(pd.to_datetime(["2020-01-01", "2019-01-01"])), ["2019-01-01 00:00:00", "2020-01-01 00:00:00"]),
        (pd.Categorical(["lo", "hi"], categories=["lo", "hi", "none"]), ["hi", "lo"]),
    ],
)
def test_labels_and_groups_of_any_type(values: Any, names: list[str]) -> None:
    column = list(values) * (PEOPLE // len(values))
    half = ["u"] * 12 + ["v"] * 12
    as_label = build(people(paid=column, sex=half))
    assert as_label.label_names == names
    assert [as_label.label_names[code] for code in as_label.y[:2]] == [str(value) for value in column[:2]]
    as_group = build(people(sex=column, paid=half))
    assert as_group.group_names == names
    assert torch.equal(as_group.sens, as_label.y)


def test_positive_label() -> None:
    assert build(positive="no").label_names == ["yes", "no"]
    assert torch.equal(build(positive="no").y, 1 - build().y)
    assert torch.equal(build(positive="yes").y, build().y)
    assert build(people(paid=[0.0, 1.0] * 12), positive=0).label_names == ["1", "0"]


# Ids and edges


@pytest.mark.parametrize(
    "ids",
    [
        [f"p{i}" for i in range(PEOPLE)],
        list(range(100, 100 + PEOPLE)),
        [i * 0.5 for i in range(PEOPLE)],
        [i if i % 2 else f"p{i}" for i in range(PEOPLE)],
        list(pd.date_range("2020-01-01", periods=PEOPLE)),
        pd.Categorical([f"p{i}" for i in range(PEOPLE)]),
    ],
    ids=["text", "int", "float", "mixed", "date", "categorical"],
)
def test_ids_of_any_type(ids: Any) -> None:
    nodes = people(name=ids)
    edges = pd.DataFrame({"from": ids, "to": pd.Series(ids).to_numpy()[[*range(1, PEOPLE), 0]]})
    data = build(nodes, edges)
    assert undirected(data) == undirected(build())
    assert data.node_ids == list(ids)


def test_edge_columns_by_name() -> None:
    edges = ring().rename(columns={"a": "from", "b": "to"}).assign(weight=1.0)[["weight", "to", "from"]]
    assert same_graph(build(edges=edges, source="from", target="to"), build())


def test_row_numbers_as_ids() -> None:
    edges = pd.DataFrame([(i, (i + 1) % PEOPLE) for i in range(PEOPLE)])
    nodes = people().set_index("name", drop=False)  # the index does not matter
    data = build(nodes, edges, id=None, drop=["name"])
    assert torch.equal(data.edge_index, build().edge_index)
    assert data.node_ids == list(range(PEOPLE))


def test_self_loops_and_duplicates_are_merged_and_counted() -> None:
    extra = pd.DataFrame([("p0", "p1"), ("p1", "p0"), ("p3", "p3"), ("p3", "p3"), ("p0", "p2")], columns=["a", "b"])
    data = build(edges=pd.concat([ring(), extra]))
    assert data.provenance["self_loops_removed"] == 2
    assert data.provenance["duplicate_edges_merged"] == 2
    assert undirected(data) == undirected(build()) | {(0, 2)}
    assert build().provenance["self_loops_removed"] == build().provenance["duplicate_edges_merged"] == 0


def test_no_edges(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="fairpass"):
        data = build(edges=ring().head(0))
    assert data.edge_index.shape == (2, 0)
    assert "'edges' has no rows" in caplog.text


@examples(40)
@given(
    pairs=st.lists(st.tuples(st.integers(0, PEOPLE - 1), st.integers(0, PEOPLE - 1)), min_size=1, max_size=60),
    order=st.permutations(range(PEOPLE)),
)
def test_edges_are_a_simple_undirected_graph(pairs: list[tuple[int, int]], order: list[int]) -> None:
    edges = pd.DataFrame([(f"p{i}", f"p{j}") for i, j in pairs], columns=["a", "b"])
    data = build(people().iloc[order], edges)
    expected = {frozenset(pair) for pair in pairs if len(set(pair)) == 2}
    names = data.node_ids
    assert {frozenset((int(names[i][1:]), int(names[j][1:]))) for i, j in data.edge_index.T.tolist()} == expected
    assert data.edge_index.shape[1] == 2 * len(expected)
    assert data.edge_index.T.tolist() == sorted(data.edge_index.T.tolist())
    counts = data.provenance
    assert len(pairs) == len(expected) + counts["self_loops_removed"] + counts["duplicate_edges_merged"]


def test_many_edges_are_no_more_work_but_in_arrays() -> None:
    generator = np.random.default_rng(0)
    size = 20_000
    nodes = pd.DataFrame({"name": [f"n{i}" for i in range(size)], "x": generator.normal(size=size)})
    nodes["sex"], nodes["paid"] = generator.integers(2, size=(2, size))
    ends = nodes["name"].to_numpy()[generator.integers(size, size=(400_000, 2))]
    many, few = (pd.DataFrame(ends[:number], columns=["a", "b"]) for number in (400_000, 40_000))
    data = build(nodes, many)
    counts = data.provenance
    merged = counts["self_loops_removed"] + counts["duplicate_edges_merged"]
    assert data.edge_index.shape[1] == 2 * (400_000 - merged)
    assert calls(lambda: build(nodes, many)) < 1.2 * calls(lambda: build(nodes, few))


# Splits


def test_split_by_seed() -> None:
    data = build(seed=7, fractions=(0.4, 0.3, 0.3))
    split = stratified_split(data.y, data.sens, fractions=(0.4, 0.3, 0.3), seed=7)
    assert data.train_mask.tolist() == split.train.tolist()
    assert data.val_mask.tolist() == split.val.tolist()
    assert data.test_mask.tolist() == split.test.tolist()
    assert not torch.equal(build(seed=8).train_mask, build(seed=7).train_mask)


def test_split_by_column() -> None:
    words = ["train", "train", "valid", "validation", "test", "Test"]
    words += ["VAL", "val ", "", "", "train", "test"]
    labels = [*["no", "yes"] * 11, None, "yes"]
    data = build(people(part=[word or None for word in words] * 2, paid=labels), split="part")
    assert data.train_mask.nonzero().flatten().tolist() == [0, 1, 10, 12, 13]  # 22 has no label
    assert data.val_mask.nonzero().flatten().tolist() == [2, 3, 6, 7, 14, 15, 18, 19]
    assert data.test_mask.nonzero().flatten().tolist() == [4, 5, 11, 16, 17, 23]
    assert not any("part" in name for name in data.feature_names)


# Files


@pytest.fixture
def files(tmp_path: Path) -> dict[str, tuple[Path, Path]]:
    paths = {
        ending: (tmp_path / f"nodes.{ending}", tmp_path / f"edges.{ending}") for ending in ("csv", "tsv", "parquet")
    }
    for table, which in ((people(), 0), (ring(), 1)):
        table.to_csv(paths["csv"][which], index=False)
        table.to_csv(paths["tsv"][which], index=False, sep="\t")
        table.to_parquet(paths["parquet"][which], index=False)
    return paths


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_files_give_the_same_graph(files: dict[str, tuple[Path, Path]], ending: str) -> None:
    nodes, edges = files[ending]
    data = build(nodes, str(edges))
    assert same_graph(data, build())
    separator = {"csv": ",", "tsv": "\t", "parquet": None}[ending]
    used = {"separator": separator, "text_encoding": "utf-8", "decimal": None} if separator else {}
    assert data.provenance["nodes"] == {"source": str(nodes), "sha256": sha256(nodes), **used}
    assert data.provenance["edges"]["sha256"] == sha256(edges)
    assert same_graph(build(nodes, ring()), build())
    assert same_graph(build(people(), edges), build())


def test_ids_in_csv_files_are_text(tmp_path: Path) -> None:
    ids = [f"{i:03d}" for i in range(PEOPLE - 1)] + ["last"]
    people(name=ids).to_csv(tmp_path / "nodes.csv", index=False)
    (tmp_path / "edges.csv").write_text("a,b\n000,001\n007,010\n")  # would all be numbers here, and not there
    data = build(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    assert undirected(data) == {(0, 1), (7, 10)}
    assert data.node_ids == ids


@pytest.mark.parametrize("as_float", [False, True])
def test_whole_numbers_are_the_same_id_in_file_and_frame(tmp_path: Path, as_float: bool) -> None:
    ids = np.arange(PEOPLE) + 5
    (tmp_path / "edges.csv").write_text("a,b\n5,6\n7,28\n")
    nodes = people(name=ids.astype(float) if as_float else ids)
    assert undirected(build(nodes, tmp_path / "edges.csv")) == {(0, 1), (2, 23)}
    nodes.astype({"name": int}).to_csv(tmp_path / "nodes.csv", index=False)
    data = build(tmp_path / "nodes.csv", pd.DataFrame({"a": [5.0, 7.0], "b": [6.0, 28.0]}))
    assert undirected(data) == {(0, 1), (2, 23)}
    assert data.node_ids == ids.tolist()


def test_row_numbers_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("a,b\n0,1\n2,23\n")
    assert undirected(build(edges=tmp_path / "edges.csv", id=None, drop=["name"])) == {(0, 1), (2, 23)}


@pytest.mark.parametrize(("encoding", "signature"), [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("latin-1", b"")])
def test_text_encodings(tmp_path: Path, encoding: str, signature: bytes) -> None:
    table = people(job=["café", "bar"] * 12)
    path = tmp_path / "nodes.csv"
    path.write_bytes(signature + table.to_csv(index=False).encode(encoding))
    data = build(path, text_encoding=encoding)
    assert same_graph(data, build(table))


def test_gaps_and_flags_in_a_csv_file(tmp_path: Path) -> None:
    table = people()
    table["member"] = table["member"].astype(object)
    table.loc[4, ["member", "age"]] = None
    table.loc[7, "paid"] = None
    table.to_csv(tmp_path / "nodes.csv", index=False)
    assert same_graph(build(tmp_path / "nodes.csv", missing="indicator"), build(table, missing="indicator"))


# The same encoding for another table


def remembered(data: Data) -> dict[str, Any]:
    """The encoding as it comes back from a file."""
    stored: dict[str, Any] = json.loads(json.dumps(data.provenance))["encoding"]
    return stored


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": "standard", "missing": "indicator", "keep_sensitive": True, "positive": "no"},
        {"missing": "mean", "features": ["age", "job"]},
        {"missing": "drop"},
    ],
)
def test_encoding_of_the_same_table_is_the_same(options: dict[str, Any]) -> None:
    table = with_gaps() if "missing" in options else people()
    data = build(table, **options)
    again = build(table, encoding=remembered(data))
    assert torch.equal(again.x, data.x)
    assert torch.equal(again.y, data.y)
    assert torch.equal(again.sens, data.sens)
    assert again.get("sens_column") == data.get("sens_column")
    assert again.feature_names == data.feature_names
    assert again.provenance["encoding"] == data.provenance["encoding"]


def test_encoding_of_a_new_table_without_labels() -> None:
    encoding = remembered(build(keep_sensitive=True, scale="minmax"))
    new = people(age=1000.0, sex="M").drop(columns="paid").head(3)
    edges = pd.DataFrame({"a": ["p0"], "b": ["p2"]})
    data = build(new, edges, encoding=encoding)
    assert data.y.tolist() == [-1, -1, -1]
    assert data.sens.tolist() == [1, 1, 1]
    assert data.x[:, -1].tolist() == [1, 1, 1]
    assert data.x[0, 0] == pytest.approx(2 * (1000 - 20) / 46 - 1)
    assert not (data.train_mask | data.val_mask | data.test_mask).any()
    assert data.label_names == ["no", "yes"]


def test_labelled_nodes_of_a_new_table_are_for_testing() -> None:
    new = people(paid=["yes", None, *["yes"] * 22])
    data = build(new, encoding=remembered(build()))
    assert torch.equal(data.test_mask, data.y == 1)
    assert not (data.train_mask | data.val_mask).any()
    assert data.test_mask.sum() == PEOPLE - 1


def test_new_table_without_groups() -> None:
    data = build(people().drop(columns="sex"), encoding=remembered(build()), missing_sensitive="unknown")
    assert (data.sens == -1).all()
    assert torch.equal(data.x, build().x)


def test_new_gaps_are_filled_by_the_old_mean() -> None:
    encoding = remembered(build(missing="mean", scale="standard"))
    data = build(with_gaps(), encoding=encoding)
    assert data.x[0, 0] == pytest.approx(0, abs=1e-6)
    assert data.x[1, 3:].tolist() == pytest.approx([0.25, 0.5, 0.25])


def test_unknown_category_as_zeros(caplog: pytest.LogCaptureFixture) -> None:
    new = people(job=["pilot", *people()["job"][1:]])
    data = build(new, encoding=remembered(build()))
    assert data.x[0, 3:].tolist() == [0, 0, 0]
    assert torch.equal(data.x[1:], build().x[1:])
    assert (
        "column 'job': values that the fitted table does not have, which become zeros: 1, first 'pilot'" in caplog.text
    )


# Good manners


def test_tables_are_not_changed() -> None:
    nodes, edges = with_gaps().assign(country="nl"), ring()
    before = nodes.copy(deep=True), edges.copy(deep=True)
    encoding = remembered(build(nodes, missing="mean"))
    unchanged = json.dumps(encoding)
    build(nodes, edges, missing="indicator", keep_sensitive=True)
    build(nodes, edges, encoding=encoding)
    pd.testing.assert_frame_equal(nodes, before[0])
    pd.testing.assert_frame_equal(edges, before[1])
    assert json.dumps(encoding) == unchanged


def test_same_input_same_graph() -> None:
    assert same_graph(build(), build())


def test_provenance_is_json() -> None:
    provenance = build(positive="no", features=("age", "job")).provenance
    assert json.loads(json.dumps(provenance, allow_nan=False)) == provenance
    assert provenance["options"]["positive"] == "no"
    assert provenance["encoding"]["label_names"] == ["yes", "no"]
