"""Graphs from descriptions made for the test: unknown labels and groups, missing categories, every kind of edges."""

import hashlib
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from fairpass.datasets.benchmark_graph import benchmark_graph, read_pairs
from fairpass.datasets.feature_graphs import nearest_neighbours, similarity_graph
from fairpass.datasets.options import FeatureScale
from fairpass.datasets.registry import (
    CodedColumn,
    EdgeFile,
    ExpectedStatistics,
    GraphSpec,
    NeighbourRecipe,
    SimilarityRecipe,
    SourceFile,
)
from fairpass.errors import DataError

ROWS = 40
LARGE_ID = 725731259612196864  # more than a float64 can hold exactly


def csv(rows: int = ROWS) -> bytes:
    """People with an id, a number, a category that is sometimes missing, a constant, a label and a group."""
    lines = ["id,age,town,planet,hired,sex"]
    for i in range(rows):
        town = ("", "Ulm", "Bonn")[i % 3]
        lines.append(f"{LARGE_ID + i},{20 + i * i % 17},{town},1,{i % 5 // 2 - 1},{'mfx'[i % 4 % 3]}")
    return "\n".join(lines).encode()


def text_edges() -> bytes:
    """A ring, with the first edge a second time, the other way round, and a loop."""
    pairs = [(i, (i + 1) % ROWS) for i in range(ROWS)] + [(1, 0), (3, 3)]
    return "\n".join(f"{LARGE_ID + i}\t{LARGE_ID + j}" for i, j in pairs).encode()


def file(path: str, content: bytes) -> SourceFile:
    return SourceFile(path=path, sha256=hashlib.sha256(content).hexdigest(), url="https://example.org/" + path)


SPEC = GraphSpec(
    name="people",
    title="People",
    table=file("people/people.csv", csv()),
    label=CodedColumn(column="hired", values=(0, 1), names=("no", "yes")),
    sensitive=CodedColumn(column="sex", values=("f", "m"), names=("female", "male")),
    dropped=("id",),
    one_hot=("town",),
    graph=EdgeFile(file=file("people/edges.txt", text_edges()), id_column="id"),
    labels_for_training=10,
    statistics=ExpectedStatistics(
        nodes=ROWS,
        features=5,
        undirected_edges=ROWS,
        label_homophily=0.5,
        sensitive_homophily=0.5,
        max_degree=2,
        labels=(16, 8),
        groups=(10, 20),
    ),
    summary="People.",
    source="a test",
    citation="none",
    licence="none",
    caveats=("not real",),
)
CONTENTS = {"people/people.csv": csv(), "people/edges.txt": text_edges()}


def changed(**values: Any) -> GraphSpec:
    return SPEC.model_copy(update=values)


def build(
    spec: GraphSpec = SPEC, *, scale: FeatureScale = "none", keep_sensitive: bool = True, split_seed: int = 0
) -> Data:
    graph = benchmark_graph(spec, CONTENTS, scale=scale, keep_sensitive=keep_sensitive, split_seed=split_seed)
    return graph.to_data()


def test_labels_and_groups() -> None:
    graph = build()
    assert graph.y.tolist() == [i % 5 // 2 - 1 if i % 5 // 2 else -1 for i in range(ROWS)]
    assert graph.sens.tolist() == [{"m": 1, "f": 0, "x": -1}["mfx"[i % 4 % 3]] for i in range(ROWS)]
    assert (graph.label_names, graph.group_names) == (["no", "yes"], ["female", "male"])


def test_several_values_of_one_code() -> None:
    hired = CodedColumn(column="hired", values=((-1, 0), 1), names=("not yet", "yes"))
    assert hired.codes == {-1: 0, 0: 0, 1: 1}
    assert build(changed(label=hired)).y.tolist() == [int(i % 5 // 2 == 2) for i in range(ROWS)]
    sex = CodedColumn(column="sex", values=("f", ("m", "x")), names=("female", "other"))
    assert build(changed(sensitive=sex)).sens.tolist() == [int("mfx"[i % 4 % 3] != "f") for i in range(ROWS)]


def test_nodes_of_unknown_label_or_group_are_in_the_graph_and_in_no_mask() -> None:
    graph = build()
    unknown = (graph.y < 0) | (graph.sens < 0)
    assert unknown.any()
    assert graph.edge_index[0].bincount().tolist() == [2] * ROWS
    assert not (graph.train_mask | graph.val_mask | graph.test_mask)[unknown].any()
    known = int((~unknown).sum())
    assert 0.9 * known <= int((graph.train_mask | graph.val_mask | graph.test_mask).sum()) <= known


def test_a_missing_category_is_all_zeros_and_the_rest_are_columns() -> None:
    graph = build()
    assert graph.feature_names == ["age", "planet", "sex", "town=Bonn", "town=Ulm"]
    towns = graph.x[:, 3:]
    assert towns[:3].tolist() == [[0, 0], [0, 1], [1, 0]]
    assert graph.sens_column == 2
    assert torch.equal(graph.x[:, 2], graph.sens.float())


@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_a_constant_column_stays_finite(scale: FeatureScale) -> None:
    graph = build(scale=scale)
    assert torch.isfinite(graph.x).all()
    assert graph.x[:, graph.feature_names.index("planet")].unique().numel() == 1


def test_edges_of_a_file_are_undirected_without_loops_and_duplicates() -> None:
    graph = build()
    expected = {(i, (i + 1) % ROWS) for i in range(ROWS)}
    expected |= {(j, i) for i, j in expected}
    assert set(map(tuple, graph.edge_index.T.tolist())) == expected
    assert graph.edge_index.shape[1] == len(expected)
    assert (graph.provenance["self_loops_removed"], graph.provenance["duplicate_edges_merged"]) == (1, 1)
    assert graph.provenance["graph"] == {"kind": "edge file", "file": "people/edges.txt"}
    assert [kept["path"] for kept in graph.provenance["files"]] == ["people/people.csv", "people/edges.txt"]


def test_an_edge_to_nobody() -> None:
    strange = {**CONTENTS, "people/edges.txt": b"1 2\n"}
    with pytest.raises(DataError, match="column 'source' of 'edges' names nodes that do not exist"):
        benchmark_graph(SPEC, strange, scale="none", keep_sensitive=True, split_seed=0)


def test_pairs_may_be_written_as_floats_and_large_ids_stay_exact() -> None:
    assert read_pairs(BytesIO(b"0.0e+00 1.0833e+04\n2.0 3.0\n")).tolist() == [[0, 10833], [2, 3]]
    assert read_pairs(BytesIO(f"{LARGE_ID + 1}\t{LARGE_ID}\n".encode())).tolist() == [[LARGE_ID + 1, LARGE_ID]]


def test_a_sensitive_attribute_that_is_no_feature() -> None:
    graph = build(changed(sensitive_is_feature=False))
    assert graph.get("sens_column") is None
    assert "sex" not in graph.feature_names
    assert graph.provenance["options"]["keep_sensitive"] is False
    assert torch.equal(graph.sens, build().sens)
    assert torch.equal(graph.x, build(keep_sensitive=False).x)


def test_recipes_join_rows_of_raw_and_of_standardised_features() -> None:
    raw = build().x.double().numpy()
    spread = raw.std(axis=0)
    standard = (raw - raw.mean(axis=0)) / np.where(spread > 0, spread, 1)
    for recipe, edges in (
        (SimilarityRecipe(threshold=0.8), similarity_graph(raw, 0.8)),
        (NeighbourRecipe(neighbours=3), nearest_neighbours(standard, 3)),
    ):
        graph = build(changed(graph=recipe), scale="standard", keep_sensitive=False)
        row, col = graph.edge_index
        assert graph.edge_index[:, row < col].T.tolist() == edges.tolist()


def test_files_and_where_they_are() -> None:
    assert [kept.path for kept in SPEC.files] == ["people/people.csv", "people/edges.txt"]
    in_one_file = changed(graph=EdgeFile())
    assert in_one_file.files == (SPEC.table,)
    assert not SPEC.embedded
    assert changed(table=SPEC.table.model_copy(update={"url": None}), graph=NeighbourRecipe(neighbours=3)).embedded


def test_split_rules() -> None:
    balanced = build(changed(split="balanced", labels_for_training=6))
    assert balanced.y[balanced.train_mask].bincount().tolist() == [3, 3]
    stratified = build(changed(labels_for_training=6))
    assert stratified.y[stratified.train_mask].bincount().tolist() == [4, 2]
    assert not torch.equal(stratified.train_mask, build(changed(labels_for_training=6), split_seed=1).train_mask)
    assert stratified.provenance["split"] == {"rule": "stratified", "labels_for_training": 6}
