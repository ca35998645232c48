"""A graph in parts on disk is the whole graph again, and nothing else is taken for one."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairpass.datasets import load_arrays
from fairpass.datasets.graph import GraphArrays
from fairpass.datasets.parts import Manifest, balanced_offsets, join_parts, read_part, write_parts
from fairpass.documents import write_document
from fairpass.errors import DataError


@pytest.fixture(scope="module")
def german() -> GraphArrays:
    return load_arrays("german")


@pytest.fixture
def parts(german: GraphArrays, tmp_path: Path) -> Path:
    write_parts(german, tmp_path / "parts", 3)
    return tmp_path / "parts"


@pytest.mark.parametrize("number", [1, 2, 5])
def test_parts_join_to_the_same_graph(german: GraphArrays, tmp_path: Path, number: int) -> None:
    write_parts(german, tmp_path, number)
    joined = join_parts(tmp_path)
    order = np.lexsort((german.edge_index[1], german.edge_index[0]))
    for field in fields(GraphArrays):
        expected, found = getattr(german, field.name), getattr(joined, field.name)
        expected = expected[:, order] if field.name == "edge_index" else expected
        if isinstance(expected, np.ndarray):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
        elif field.name != "provenance":
            assert found == expected


def test_parts_have_about_the_same_number_of_nodes_and_edges(parts: Path) -> None:
    manifest = Manifest.read(parts)
    loads = [part["nodes"] + part["edges"] for part in manifest.statistics["parts"]]
    assert max(loads) < 1.05 * min(loads)
    assert sum(part["edges"] for part in manifest.statistics["parts"]) == manifest.num_edges


def test_every_part_has_a_node_however_the_edges_are_spread() -> None:
    assert balanced_offsets(np.array([1000, 0, 0, 0]), 3) == (0, 1, 2, 4)
    assert balanced_offsets(np.array([0, 0, 0, 1000]), 3) == (0, 2, 3, 4)
    assert balanced_offsets(np.zeros(3, np.int64), 3) == (0, 1, 2, 3)
    with pytest.raises(DataError, match="'parts' must be between 1 and the number of nodes, 3 \\(got 4\\)"):
        balanced_offsets(np.zeros(3, np.int64), 4)


def test_parts_are_mapped_into_memory(parts: Path) -> None:
    assert isinstance(read_part(parts, 0).x, np.memmap)


def test_a_changed_file_is_refused(parts: Path) -> None:
    path = parts / "part-0001" / "y.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    read_part(parts, 0)
    with pytest.raises(DataError, match=r"y\.npy' must be the file that the manifest names"):
        read_part(parts, 1)


def test_a_missing_part_is_named(parts: Path) -> None:
    (parts / "part-0002" / "halo.npy").unlink()
    with pytest.raises(DataError, match=r"must have all of its parts \('part-0002/halo.npy' is missing\)"):
        join_parts(parts)
    with pytest.raises(DataError, match="must have part 3"):
        read_part(parts, 3)


def test_a_directory_without_a_manifest_is_no_graph(parts: Path) -> None:
    (parts / "manifest.json").unlink()
    with pytest.raises(DataError, match="must be a directory of parts"):
        Manifest.read(parts)


def test_a_manifest_that_does_not_add_up_is_refused(parts: Path) -> None:
    path = parts / "manifest.json"
    stored = json.loads(path.read_text())
    write_document(path, {**stored, "offsets": [0, 10]})
    with pytest.raises(DataError, match="its parts do not add up"):
        Manifest.read(parts)
    path.write_text(json.dumps({**stored, "offsets": "all"}))
    with pytest.raises(DataError, match="must be a fairpass parts file"):
        Manifest.read(parts)


def test_arrays_that_do_not_fit_the_manifest_are_refused(german: GraphArrays, parts: Path) -> None:
    manifest = Manifest.read(parts)
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"offsets": (0, 10, 20, 10**9)}, r"x\.npy' must have shape"),
        ({"num_features": manifest.num_features + 1}, r"x\.npy' must have shape"),
        ({"offsets": (*manifest.offsets[:-1], manifest.offsets[-1] + 1)}, "must have shape"),
    )
    for changes, message in wrong:
        manifest.model_copy(update=changes).write(parts)
        with pytest.raises(DataError, match=message):
            join_parts(parts)
