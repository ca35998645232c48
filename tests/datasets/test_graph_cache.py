import hashlib
import logging
import multiprocessing
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import platformdirs
import pytest
from numpy.typing import ArrayLike, NDArray

from fairpass.datasets.feature_graphs import NEIGHBOURS, SIMILARITY, cached_edges, nearest_neighbours, similarity_graph
from fairpass.errors import DataError

FEATURES = np.random.default_rng(0).normal(size=(50, 3))
EDGES = similarity_graph(FEATURES, 0.7)


# The thresholds of the graphs built so far.
BUILT: list[float] = []


def cached_graph(
    features: NDArray[np.float64], threshold: float, *, cache_dir: str | os.PathLike[str] | None = None
) -> NDArray[np.int64]:
    def build(rows: ArrayLike) -> NDArray[np.int64]:
        BUILT.append(threshold)
        return similarity_graph(rows, threshold)

    return cached_edges(features, SIMILARITY.format(threshold=threshold.hex()), build, cache_dir=cache_dir)


@pytest.fixture(autouse=True)
def builds() -> list[float]:
    BUILT.clear()
    return BUILT


def only_file(directory: Path) -> Path:
    (path,) = directory.iterdir()  # and no temporary file beside it
    return path


def test_built_once(tmp_path: Path, builds: list[float]) -> None:
    directory = tmp_path / "not" / "there" / "yet"
    for _ in range(2):
        edges = cached_graph(FEATURES, 0.7, cache_dir=directory)
        assert edges.dtype == np.int64
        np.testing.assert_array_equal(edges, EDGES)
    assert builds == [0.7]
    assert only_file(directory).stat().st_size == 32 + 8 * len(EDGES)


def test_result_may_be_changed(tmp_path: Path) -> None:
    for _ in range(2):
        edges = cached_graph(FEATURES, 0.7, cache_dir=tmp_path)
        edges += 1
    np.testing.assert_array_equal(cached_graph(FEATURES, 0.7, cache_dir=tmp_path), EDGES)


def test_a_graph_without_edges(tmp_path: Path, builds: list[float]) -> None:
    for _ in range(2):
        assert cached_graph(FEATURES, 1.0, cache_dir=tmp_path).shape == (0, 2)
    assert len(builds) == 1


def test_key_is_the_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builds: list[float]) -> None:
    def build(features: NDArray[np.float64], threshold: float = 0.7) -> int:
        cached_graph(features, threshold, cache_dir=tmp_path)
        return len(builds)

    assert build(FEATURES) == 1
    # The same numbers in another memory layout are the same table.
    assert build(np.asfortranarray(FEATURES)) == 1
    changed = FEATURES.copy()
    changed[49, 2] = np.nextafter(changed[49, 2], 9)
    assert build(changed) == 2
    assert build(FEATURES.reshape(75, 2)) == 3
    assert build(FEATURES, np.nextafter(0.7, 1)) == 4
    monkeypatch.setitem(globals(), "SIMILARITY", SIMILARITY.replace("graph 1", "graph 2"))
    assert build(FEATURES) == 5
    cached_edges(
        FEATURES, NEIGHBOURS.format(neighbours=3), partial(nearest_neighbours, neighbours=3), cache_dir=tmp_path
    )
    assert len(list(tmp_path.iterdir())) == 6


def test_similarity_graphs_cached_by_earlier_versions_are_found(tmp_path: Path) -> None:
    key = hashlib.sha256(b"similarity graph 1, threshold 0x1.6666666666666p-1, shape (50, 3)\n" + FEATURES.tobytes())
    cached_graph(FEATURES, 0.7, cache_dir=tmp_path)
    assert only_file(tmp_path).name == f"{key.hexdigest()}.graph"


def flip_a_bit(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


def flip_a_bit_of_the_checksum(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_bit,
        flip_a_bit_of_the_checksum,
        lambda content: content[:-8],
        lambda content: content[:20],
        lambda content: b"",
        lambda content: content + bytes(8),
        lambda content: b"a file of somebody else's, long enough to hold a checksum and some edges",
    ],
    ids=["bit", "checksum", "truncated", "header only", "empty", "longer", "foreign"],
)
def test_a_bad_file_is_rebuilt(
    tmp_path: Path, builds: list[float], caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes]
) -> None:
    cached_graph(FEATURES, 0.7, cache_dir=tmp_path)
    path = only_file(tmp_path)
    good = path.read_bytes()
    path.write_bytes(damage(good))
    np.testing.assert_array_equal(cached_graph(FEATURES, 0.7, cache_dir=tmp_path), EDGES)
    assert len(builds) == 2
    assert "is damaged and is built again" in caplog.text
    assert only_file(tmp_path).read_bytes() == good


def test_the_file_of_another_graph_is_rebuilt(tmp_path: Path) -> None:
    cached_graph(FEATURES, 0.7, cache_dir=tmp_path / "this")
    cached_graph(FEATURES, 0.9, cache_dir=tmp_path / "other")
    only_file(tmp_path / "this").write_bytes(only_file(tmp_path / "other").read_bytes())
    np.testing.assert_array_equal(cached_graph(FEATURES, 0.7, cache_dir=tmp_path / "this"), EDGES)


def test_a_directory_in_the_place_of_the_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cached_graph(FEATURES, 0.7, cache_dir=tmp_path)
    path = only_file(tmp_path)
    path.unlink()
    path.mkdir()
    np.testing.assert_array_equal(cached_graph(FEATURES, 0.7, cache_dir=tmp_path), EDGES)
    assert "cannot be read and is built again" in caplog.text


def test_an_unwritable_cache_is_only_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocked = tmp_path / "a file, not a directory"
    blocked.touch()
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(cached_graph(FEATURES, 0.7, cache_dir=blocked / "graphs"), EDGES)
    assert "could not be cached" in caplog.text


def test_where_graphs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def user_cache_dir(name: str) -> str:
        return str(tmp_path / "user" / name)

    monkeypatch.setattr(platformdirs, "user_cache_dir", user_cache_dir)
    monkeypatch.delenv("FAIRPASS_CACHE", raising=False)
    cached_graph(FEATURES, 0.7)
    assert only_file(tmp_path / "user" / "fairpass" / "graphs").is_file()
    monkeypatch.setenv("FAIRPASS_CACHE", str(tmp_path / "environment"))
    cached_graph(FEATURES, 0.7)
    assert only_file(tmp_path / "environment").is_file()
    cached_graph(FEATURES, 0.7, cache_dir=tmp_path / "argument")
    assert only_file(tmp_path / "argument").is_file()


def test_errors_are_not_cached(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'threshold' must be in"):
        cached_graph(FEATURES, 2.0, cache_dir=tmp_path)
    with pytest.raises(DataError, match="'features' must be finite"):
        cached_graph(FEATURES * np.nan, 0.7, cache_dir=tmp_path)
    assert not list(tmp_path.iterdir())


def build_and_count(directory: str) -> int:
    """Read and remove the cached graph again and again, while another process does the same."""
    correct = 0
    for _ in range(50):
        correct += np.array_equal(cached_graph(FEATURES, 0.7, cache_dir=directory), EDGES)
        for path in Path(directory).glob("*.graph"):
            path.unlink(missing_ok=True)
    return correct


def test_two_processes_at_once(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(build_and_count, [str(tmp_path)] * 2, chunksize=1) == [50, 50]
