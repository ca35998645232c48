"""Pokec-z and Pokec-n: their descriptions, and their loader on small files of the same format."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fairpass.datasets import load, register, registry
from fairpass.datasets.registry import EdgeFile, GraphSpec, SourceFile, graph_spec
from fairpass.errors import DataError

NAMES = ("pokec-z", "pokec-n")
# The first columns of the published tables; all after them are 0 or 1.
COLUMNS = (
    "user_id,public,completion_percentage,gender,region,AGE,I_am_working_in_field,spoken_languages_indicator,anglicky,"
    "nemecky,hobbies_indicator,pocuvanie hudby,sex,slobodny(a),sci-fi"
)
FEATURES = len(COLUMNS.split(",")) - 2  # all but the id and the label
USERS = 90
# As published: both of many friendships' directions, ids in no order, some users without friends.
FRIENDS = [(i, (i + step) % 80) for i in range(80) for step in (1, 7)] + [(i + 1, i) for i in range(40)] + [(5, 5)]


def user_id(i: int) -> int:
    return (i * 131_071 + 1) % 1_632_803


def field(i: int) -> int:
    return (-1, -1, 0, 1, 0, 2, 3, -1, 4, 0)[i % 10]


def table() -> str:
    generator = np.random.default_rng(0)
    rows = [COLUMNS]
    for i in range(USERS):
        known = [user_id(i), i % 2, 12 + i % 60, f"{i // 3 % 2}.0", i // 2 % 2, f"{i % 4 * 10}.0", field(i)]
        answers = generator.integers(0, 2, FEATURES + 2 - len(known))
        rows.append(",".join(map(str, [*known, *answers])))
    return "\n".join(rows) + "\n"


def edges() -> str:
    return "".join(f"{user_id(i)}\t{user_id(j)}\n" for i, j in FRIENDS)


@pytest.fixture(params=NAMES)
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GraphSpec]:
    """The published description, with the checksums of small files that are in the data directory `tmp_path`."""
    spec = graph_spec(request.param)
    assert isinstance(spec.graph, EdgeFile)
    assert spec.graph.file is not None
    known = dict(registry._specs())
    nodes, links = written(tmp_path, spec.table, table()), written(tmp_path, spec.graph.file, edges())
    yield register(spec.model_copy(update={"table": nodes, "graph": spec.graph.model_copy(update={"file": links})}))
    registry._specs().clear()
    registry._specs().update(known)


def written(directory: Path, file: SourceFile, text: str) -> SourceFile:
    path = directory / file.path
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    found = hashlib.sha256(text.encode()).hexdigest()
    return file.model_copy(update={"sha256": found, "size": len(text)})


def test_labels_groups_and_features(small: GraphSpec, tmp_path: Path) -> None:
    graph = load(small.name, scale="published", data_dir=tmp_path)
    assert graph.y.tolist() == [min(field(i), 1) for i in range(USERS)]
    assert set(graph.y.tolist()) == {-1, 0, 1}
    assert graph.sens.tolist() == [i // 2 % 2 for i in range(USERS)]
    assert graph.x.shape == (USERS, FEATURES)
    assert {"user_id", "I_am_working_in_field"}.isdisjoint(graph.feature_names)
    assert graph.feature_names[graph.sens_column] == "region"
    assert graph.x[:, graph.feature_names.index("AGE")].tolist() == [10 * (i % 4) for i in range(USERS)]
    assert graph.x[:, graph.feature_names.index("gender")].tolist() == [i // 3 % 2 for i in range(USERS)]
    assert load(small.name, keep_sensitive=False, data_dir=tmp_path).num_features == FEATURES - 1


def test_friendships_are_undirected(small: GraphSpec, tmp_path: Path) -> None:
    graph = load(small.name, data_dir=tmp_path)
    expected = {frozenset(pair) for pair in FRIENDS if pair[0] != pair[1]}
    assert {frozenset(pair) for pair in graph.edge_index.T.tolist()} == expected
    assert graph.edge_index.shape == (2, 2 * len(expected))
    assert graph.provenance["self_loops_removed"] == 1
    assert graph.provenance["duplicate_edges_merged"] == len(FRIENDS) - 1 - len(expected)
    assert graph.edge_index[0].bincount(minlength=USERS)[80:].sum() == 0, "users without friends stay"


def test_the_split(small: GraphSpec, tmp_path: Path) -> None:
    graph = load(small.name, data_dir=tmp_path)
    masks = torch.stack([graph.train_mask, graph.val_mask, graph.test_mask])
    assert torch.equal(masks.sum(dim=0), (graph.y >= 0).long())
    assert graph.provenance["split"] == {"rule": "stratified", "labels_for_training": 500}
    shares = [graph.y[mask].double().mean().item() for mask in masks]
    assert shares == pytest.approx([4 / 7] * 3, abs=0.05)


def test_a_friendship_of_a_user_who_is_not_in_the_table(small: GraphSpec, tmp_path: Path) -> None:
    assert isinstance(small.graph, EdgeFile)
    assert small.graph.file is not None
    links = written(tmp_path, small.graph.file, edges() + f"{user_id(0)}\t4\n")
    register(small.model_copy(update={"graph": small.graph.model_copy(update={"file": links})}))
    with pytest.raises(DataError, match=r"names nodes that do not exist \(1 ids, 1 edges, first in row 201\): 4"):
        load(small.name, data_dir=tmp_path)


# From the literature: PyGDebias and FairGNN (which both leave region out of the features, and count lines as edges).
PUBLISHED: dict[str, dict[str, Any]] = {
    "pokec-z": {
        "shape": (67_796, 276 + 1),
        "edges": 617_958,
        "lines": 882_765,
        "sha256": [
            "62f299e688cc07c29fa36f0d4c0f1c15137bd0fdced5931eec15e724e4bda3cd",
            "a34945943c13a8790439c2230bfb00e6573bb82fe781ccc30a295276b825acf8",
        ],
        "sizes": [38_608_131, 11_351_174],
    },
    "pokec-n": {
        "shape": (66_569, 265 + 1),
        "edges": 517_047,
        "lines": 729_129,
        "sha256": [
            "2b236a694fe861c826333d5174d8bf779c787072c73c40c185990d93c8ae9a3c",
            "bab0f431bae94a91a142b03e7f49f53acf981db403d6d38f788cabe51ab17546",
        ],
        "sizes": [36_477_998, 10_280_603],
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_the_description(name: str) -> None:
    spec, published = graph_spec(name), PUBLISHED[name]
    assert [file.sha256 for file in spec.files] == published["sha256"]
    assert [file.size for file in spec.files] == published["sizes"]
    found = spec.statistics.model_dump(exclude_none=True)
    nodes, features = published["shape"]
    assert found == {"nodes": nodes, "features": features, "undirected_edges": published["edges"]}
    assert any(f"{published['lines']:,} edges" in caveat for caveat in spec.caveats)
    assert "not on the whole" in spec.caveats[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_published_files(name: str) -> None:
    if not registry.is_available(name):
        pytest.skip(f"the files of {name} are not here: set FAIRPASS_DATA or run `fairpass datasets fetch {name}`")
    graph, published = load(name), PUBLISHED[name]
    assert graph.x.shape == published["shape"]
    assert torch.isfinite(graph.x).all()
    assert graph.edge_index.shape[1] == 2 * published["edges"]
    loops, merged = (graph.provenance[key] for key in ("self_loops_removed", "duplicate_edges_merged"))
    assert published["edges"] + loops + merged == published["lines"]
    assert set(graph.y.tolist()) == {-1, 0, 1}
    assert set(graph.sens.tolist()) == {0, 1}
    assert graph.train_mask.sum() == 500
