"""A benchmark graph is one description: adding one takes a TOML file next to its tables, and nothing else."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairpass.datasets import GraphArrays, load, load_arrays, names, register, registry
from fairpass.errors import DataError

NODES = "who,age,town,sex,hired\n" + "".join(
    f"{100 + i},{20 + i % 7},{('Ulm', 'Bonn')[i % 2]},{'fm'[i // 2 % 2]},{i % 3 // 2}\n" for i in range(48)
)
EDGES = "".join(f"{100 + i} {100 + (i + 1) % 48}\n" for i in range(48))

DESCRIPTION = """
title = "Offices"
summary = "Nodes are people in two towns."
source = "a test"
citation = "none"
licence = "CC0"
caveats = ["It is made up."]
dropped = ["who"]
one_hot = ["town"]
labels_for_training = 12

[table]
path = "people.csv"
sha256 = "{nodes}"

[label]
column = "hired"
values = [0, 1]
names = ["no", "yes"]

[sensitive]
column = "sex"
values = ["f", "m"]
names = ["female", "male"]

[graph]
kind = "edge file"
id_column = "who"

[graph.file]
path = "friends.txt"
sha256 = "{edges}"

[statistics]
nodes = 48
features = 4
undirected_edges = 48
label_homophily = 0.333
sensitive_homophily = 0.5
max_degree = 2
labels = [32, 16]
groups = [24, 24]
"""


@pytest.fixture
def description(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "people.csv").write_text(NODES)
    (tmp_path / "friends.txt").write_text(EDGES)
    hashes = [hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("people.csv", "friends.txt")]
    path = tmp_path / "offices.toml"
    path.write_text(DESCRIPTION.format(nodes=hashes[0], edges=hashes[1]))
    known = dict(registry._specs())
    yield path
    registry._specs().clear()
    registry._specs().update(known)


def test_add_a_data_set(tmp_path: Path, description: Path) -> None:
    spec = register(description)
    assert spec.name == "offices"
    assert "offices" in names()
    data = load("offices")
    assert data.x.shape == (48, 4)
    assert data.feature_names == ["age", "sex", "town=Bonn", "town=Ulm"]
    assert data.edge_index.shape == (2, 2 * (spec.statistics.undirected_edges or 0))
    assert tuple(data.y.bincount().tolist()) == spec.statistics.labels
    assert tuple(data.sens.bincount().tolist()) == spec.statistics.groups
    assert int(data.train_mask.sum()) == 12
    assert (data.label_names, data.group_names) == (["no", "yes"], ["female", "male"])
    assert data.provenance["title"] == "Offices"
    arrays = load_arrays("offices")
    assert isinstance(arrays, GraphArrays)
    assert arrays.edge_index.tolist() == data.edge_index.tolist()


def test_statistics_that_were_not_measured(description: Path) -> None:
    text = description.read_text()
    description.write_text(text[: text.index("[statistics]")] + "[statistics]\nnodes = 48\n")
    assert register(description).statistics.model_dump(exclude_none=True) == {"nodes": 48}
    assert load("offices").num_nodes == 48


def test_a_registered_graph_is_not_part_of_the_package(description: Path) -> None:
    assert not register(description).embedded


def test_files_are_checked(tmp_path: Path, description: Path) -> None:
    register(description)
    (tmp_path / "friends.txt").write_text("100 101\n")
    with pytest.raises(DataError, match=r"friends\.txt' is not the published Offices file \(expected SHA-256"):
        load("offices")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("labels_for_training", "labels_for_trainig", "there is no key 'labels_for_trainig': did you mean"),
        ('licence = "CC0"\n', "", "'licence' is missing"),
        ("labels_for_training = 12", 'labels_for_training = "many"', "'labels_for_training' must be"),
    ],
)
def test_a_wrong_description(description: Path, old: str, new: str, message: str) -> None:
    text = description.read_text()
    assert old in text
    description.write_text(text.replace(old, new))
    with pytest.raises(DataError, match=f"the description of the graph 'offices' is wrong: .*{message}"):
        register(description)
