"""Any college's file of Facebook100."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.io import loadmat, savemat
from scipy.sparse import coo_array, csc_array

from fairpass.datasets import fetch, graph_spec, is_available, load
from fairpass.datasets.download import data_directory
from fairpass.errors import DataError

PEOPLE = 60
FRIENDS = [(i, (i + step) % PEOPLE) for i in range(PEOPLE) for step in (1, 4)]


def local_info() -> Any:
    """Status, gender, major, second major, dorm, class year and high school; 0 is missing."""
    i = np.arange(PEOPLE)
    year = np.where(i % 10 == 0, 0, 2001 + i % 6)
    return np.stack([1 + i % 2, i % 3, 10 * (i % 4), 7 * (i % 3), i, year, 50_000 + i], axis=1).astype(np.uint16)


def friends() -> Any:
    rows, columns = np.array(FRIENDS).T
    pairs = (np.concatenate([rows, columns]), np.concatenate([columns, rows]))
    return csc_array(coo_array((np.ones(2 * len(FRIENDS)), pairs), shape=(PEOPLE, PEOPLE)))


def write(path: Path, **changes: Any) -> Path:
    matrices = {"A": friends(), "local_info": local_info()} | changes
    savemat(path, {name: matrix for name, matrix in matrices.items() if matrix is not None})
    return path


@pytest.fixture
def college(tmp_path: Path) -> Path:
    return write(tmp_path / "Small_Town 7.mat")


def test_a_small_college(college: Path) -> None:
    graph = load(college, scale="none")
    years, genders = local_info()[:, 5], local_info()[:, 1]
    assert np.median(years[years > 0]) == 2004
    assert graph.y.tolist() == np.where(years == 0, -1, years >= 2004).tolist()
    assert graph.sens.tolist() == (genders.astype(int) - 1).tolist()
    assert (graph.label_names, graph.group_names) == (["before 2004", "2004 or later"], ["gender 1", "gender 2"])
    assert graph.feature_names == [
        *("status=1", "status=2", "major=10", "major=20", "major=30", "second_major=7", "second_major=14")
    ]
    assert graph.x[0].tolist() == [1, 0, 0, 0, 0, 0, 0], "an unknown major has no column"
    assert graph.x[5].tolist() == [0, 1, 1, 0, 0, 0, 1]
    assert {frozenset(pair) for pair in graph.edge_index.T.tolist()} == {frozenset(pair) for pair in FRIENDS}
    assert graph.edge_index.shape == (2, 2 * len(FRIENDS))
    assert not (graph.train_mask | graph.val_mask | graph.test_mask)[(graph.y < 0) | (graph.sens < 0)].any()


def test_provenance(college: Path) -> None:
    graph = load(str(college), split_seed=3)
    provenance = graph.provenance
    content = college.read_bytes()
    file = {"path": college.name, "sha256": hashlib.sha256(content).hexdigest(), "url": None, "size": len(content)}
    assert provenance["files"] == [file]
    assert (provenance["name"], provenance["title"]) == ("small-town-7", "Facebook100, Small_Town 7")
    assert provenance["options"] == {"scale": "standard", "keep_sensitive": False, "split_seed": 3}
    assert provenance["split"] == {"rule": "stratified", "labels_for_training": 500}
    assert (provenance["licence"], provenance["caveats"]) == (
        graph_spec("reed98").licence,
        [caveat.replace("2007", "2004") for caveat in graph_spec("reed98").caveats],
    )
    assert not torch.equal(graph.test_mask, load(college).test_mask)


def test_a_college_needs_no_download_and_is_not_part_of_the_package(college: Path) -> None:
    assert is_available(college)
    assert fetch(college) == []
    assert not graph_spec(college).embedded
    assert graph_spec(college).statistics.nodes is None


def test_a_median_between_two_years(tmp_path: Path) -> None:
    people = local_info()
    people[:, 5] = [2005, 2006, 2007, 2008] * (PEOPLE // 4)
    graph = load(write(tmp_path / "even.mat", local_info=people))
    assert graph.label_names == ["before 2007", "2007 or later"]
    assert graph.y.tolist() == [0, 0, 1, 1] * (PEOPLE // 4)


@pytest.mark.parametrize("name", ['"quoted"', "{year}", "ü"])
def test_any_name_of_a_file(tmp_path: Path, name: str) -> None:
    assert load(write(tmp_path / f"{name}.mat")).provenance["title"] == f"Facebook100, {name}"


@pytest.mark.parametrize("name", ["reed98", "amherst41", "johns-hopkins55"])
def test_a_published_college_by_its_file_and_by_its_name(name: str) -> None:
    if not is_available(name):
        pytest.skip(f"the files of {name} are not here: set FAIRPASS_DATA or run `fairpass datasets fetch {name}`")
    path = data_directory() / graph_spec(name).table.path
    by_file, by_name = load(path), load(name)
    years = loadmat(path)["local_info"][:, 5]
    assert by_file.y.tolist() == np.where(years == 0, -1, years >= 2007).tolist()
    for attribute in ("x", "edge_index", "y", "sens", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(by_file[attribute], by_name[attribute]), attribute
    for attribute in ("feature_names", "label_names", "group_names"):
        assert by_file[attribute] == by_name[attribute]
    differ = {key for key, value in by_name.provenance.items() if by_file.provenance[key] != value}
    assert differ == {"title", "source", "files", "graph"}
    assert by_file.provenance["files"][0]["sha256"] == by_name.provenance["files"][0]["sha256"]


def changed(column: int, value: Any) -> Any:
    people = local_info()
    people[:, column] = value
    return people


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": None}, r"'A' \[N, N\] and 'local_info' \[N, 7\] \(got A missing, local_info \(60, 7\)\)"),
        ({"local_info": None}, r"\(got A \(60, 60\), local_info missing\)"),
        ({"local_info": local_info()[:, :6]}, r"\(got A \(60, 60\), local_info \(60, 6\)\)"),
        ({"A": friends()[:50, :50]}, r"\(got A \(50, 50\), local_info \(60, 7\)\)"),
        ({"local_info": local_info().astype(str).astype(object)}, "must have numbers"),
        ({"local_info": changed(5, 0)}, "at least two class years"),
        ({"local_info": changed(5, 2007)}, "at least two class years"),
        ({"local_info": changed(5, 2000 + (np.arange(PEOPLE) > 50))}, "class years before their median, 2000"),
        ({"local_info": changed(1, 2)}, "the genders 1 and 2"),
    ],
)
def test_another_matlab_file(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "other.mat", **changes)
    with pytest.raises(DataError, match=rf"other\.mat' is not a college's file of Facebook100: .*{message}"):
        load(path)


@pytest.mark.parametrize("kept", [0, 3, 200, 2_000], ids=["empty", "3 bytes", "200 bytes", "2000 bytes"])
def test_a_truncated_file(college: Path, kept: int) -> None:
    college.write_bytes(college.read_bytes()[:kept])
    with pytest.raises(DataError, match=r"7\.mat' is not a college's file of Facebook100: it "):
        load(college)


def test_no_matlab_file(tmp_path: Path) -> None:
    path = tmp_path / "table.mat"
    path.write_text("name,age\nA,1\n" * 100)
    with pytest.raises(DataError, match="it cannot be read as a MATLAB file"):
        load(path)
    with pytest.raises(DataError, match=r"nowhere\.mat' cannot be read \(No such file or directory\)"):
        load("nowhere.mat")
