"""The graph of nearest neighbours, against all pairs and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fairpass.datasets import feature_graphs as module
from fairpass.datasets.feature_graphs import NEIGHBOURS, nearest_neighbours
from fairpass.errors import DataError


def by_all_pairs(rows: NDArray[np.float64], neighbours: int) -> set[tuple[int, int]]:
    """The same graph from the whole matrix of distances, sorted by distance and then by row number."""
    edges = set()
    for i, row in enumerate(rows):
        distance = np.round(np.sqrt(((rows - row) ** 2).sum(axis=1)), 9)
        order = sorted((float(d), j) for j, d in enumerate(distance) if j != i)
        edges |= {(min(i, j), max(i, j)) for _, j in order[:neighbours]}
    return edges


def as_set(edges: NDArray[np.int64]) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in edges}


@given(st.integers(0, 10_000), st.integers(2, 60), st.integers(1, 5), st.data())
def test_agrees_with_all_pairs(seed: int, count: int, columns: int, data: st.DataObject) -> None:
    neighbours = data.draw(st.integers(1, count - 1))
    generator = np.random.default_rng(seed)
    # Whole numbers make many ties and duplicates.
    whole = generator.integers(0, 3, (count, columns)).astype(float)
    for rows in (whole, generator.normal(size=(count, columns))):
        edges = nearest_neighbours(rows, neighbours)
        assert as_set(edges) == by_all_pairs(rows, neighbours)
        assert edges.dtype == np.int64
        assert (edges[:, 0] < edges[:, 1]).all()
        assert edges.tolist() == sorted(edges.tolist())


def test_on_a_line() -> None:
    assert nearest_neighbours([[0.0], [1.0], [3.0], [7.0]], 1).tolist() == [[0, 1], [1, 2], [2, 3]]


def test_of_equal_rows_the_first_are_the_neighbours() -> None:
    equal = np.ones((500, 3))
    assert nearest_neighbours(equal, 2).tolist() == [[0, j] for j in range(1, 500)] + [[1, j] for j in range(2, 500)]


def test_small_blocks_give_the_same_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 4)).round(1)
    expected = nearest_neighbours(rows, 5)
    monkeypatch.setattr(module, "_BLOCK_VALUES", 500)
    np.testing.assert_array_equal(nearest_neighbours(rows, 5), expected)


def test_near_rows_far_from_the_origin() -> None:
    """The fast search rounds such distances to nothing; the exact ones decide."""
    rows = 1e4 + np.random.default_rng(0).normal(size=(200, 3))
    assert as_set(nearest_neighbours(rows, 4)) == by_all_pairs(rows, 4)


def test_the_rows_are_not_changed() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 2))
    before = rows.copy()
    nearest_neighbours(rows, 3)
    np.testing.assert_array_equal(rows, before)


def test_the_recipe_names_the_number_of_neighbours() -> None:
    assert NEIGHBOURS.format(neighbours=10) == "nearest neighbours graph 1, neighbours 10"


@pytest.mark.parametrize("neighbours", [0, -1, 3, 9])
def test_a_wrong_number_of_neighbours(neighbours: int) -> None:
    with pytest.raises(
        DataError, match=rf"'neighbours' must be at least 1 and less than the 3 rows \(got {neighbours}\)"
    ):
        nearest_neighbours(np.eye(3), neighbours)


def test_wrong_rows() -> None:
    with pytest.raises(DataError, match=r"'features' must be finite .*got nan in row 1, column 0"):
        nearest_neighbours([[1.0], [np.nan]], 1)
    with pytest.raises(DataError, match=r"'features' must be a matrix with at least 2 rows"):
        nearest_neighbours([[1.0]], 1)
