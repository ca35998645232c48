import os
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray
from scipy.spatial import distance_matrix
from tests.drawing import examples

from fairpass.datasets import feature_graphs
from fairpass.datasets.feature_graphs import directed_pairs, similarity_graph, undirected_edges
from fairpass.errors import DataError

DROPPED = {
    "german": ["GoodCustomer", "OtherLoansAtStore", "PurposeOfLoan"],
    "credit": ["NoDefaultNextMonth", "Single"],
    "bail": ["RECID"],
}


def published_features(name: str) -> NDArray[np.float64]:
    directory = os.environ.get("FAIRPASS_DATA", "")
    path = Path(directory) / f"{name}.csv"
    if not directory or not path.exists():
        pytest.skip(
            f"{name}.csv is not in FAIRPASS_DATA; get it from the NIFTY repository "
            f"(github.com/chirag126/nifty, dataset/{name}/) and set FAIRPASS_DATA to its directory"
        )
    table = pd.read_csv(path).drop(columns=DROPPED[name])
    if name == "german":
        table["Gender"] = (table["Gender"] == "Female").astype(int)
        for column in ("Age", "LoanAmount", "LoanDuration"):
            low, high = table[column].min(), table[column].max()
            table[column] = 2 * (table[column] - low) / (high - low) - 1
    return table.to_numpy(dtype=np.float64)


@pytest.mark.parametrize(
    ("name", "threshold", "directed", "undirected", "max_degree"),
    [
        ("german", 0.8, 24_970, 21_742, 286),
        ("credit", 0.7, 200_526, 137_377, 536),
        ("bail", 0.6, 403_977, 311_870, 5_391),
    ],
)
def test_published_graphs(name: str, threshold: float, directed: int, undirected: int, max_degree: int) -> None:
    features = published_features(name)
    pairs = directed_pairs(features, threshold)
    edges = undirected_edges(pairs)
    assert len(pairs) == directed
    assert edges.shape == (undirected, 2)
    degrees = np.bincount(edges.ravel(), minlength=len(features))
    assert degrees.max() == max_degree
    assert degrees.min() >= 1


def dense_pairs(features: NDArray[np.float64], threshold: float) -> NDArray[np.int64]:
    """The recipe as published, with its N x N matrix."""
    similarities = 1 / (1 + distance_matrix(features, features))
    pairs = []
    for i, row in enumerate(similarities):
        second_largest = np.sort(row)[-2]  # the largest is the row's similarity to itself
        pairs += [(i, j) for j in np.flatnonzero(row > threshold * second_largest) if j != i]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def dense_graph(features: NDArray[np.float64], threshold: float) -> NDArray[np.int64]:
    edges = sorted({(min(i, j), max(i, j)) for i, j in dense_pairs(features, threshold).tolist()})
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


shapes = st.tuples(st.integers(2, 40), st.integers(1, 11))
thresholds = st.one_of(st.sampled_from([0.5, 0.6, 0.7, 0.8, 1.0]), st.floats(0.01, 1))
# Few integer values: duplicate rows, ties at the threshold, constant columns.
grid_tables = shapes.flatmap(lambda shape: npst.arrays(np.float64, shape, elements=st.integers(-2, 2)))
real_tables = shapes.flatmap(lambda shape: npst.arrays(np.float64, shape, elements=st.floats(-1e6, 1e6)))
tiny_tables = grid_tables.map(lambda table: 1e-12 * table)
far_tables = grid_tables.map(lambda table: 1e9 + table)


@examples(300)
@given(st.one_of(grid_tables, real_tables, tiny_tables, far_tables), thresholds)
def test_equals_the_dense_recipe(features: NDArray[np.float64], threshold: float) -> None:
    before = features.copy()
    edges = similarity_graph(features, threshold)
    assert edges.dtype == np.int64
    np.testing.assert_array_equal(edges, dense_graph(features, threshold))
    np.testing.assert_array_equal(features, before)


def test_equals_the_dense_recipe_on_a_larger_table() -> None:
    rng = np.random.default_rng(0)
    features = np.concatenate(
        [rng.normal(size=(300, 4)), rng.integers(0, 3, size=(300, 4)), 100 * rng.standard_cauchy((9, 4))]
    )
    for threshold in (0.5, 0.8, 0.99):
        np.testing.assert_array_equal(similarity_graph(features, threshold), dense_graph(features, threshold))


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    features = np.random.default_rng(1).normal(size=(200, 3))
    whole = directed_pairs(features, 0.6)
    monkeypatch.setattr(feature_graphs, "_BLOCK_VALUES", 1)
    np.testing.assert_array_equal(directed_pairs(features, 0.6), whole)


def test_memory_is_bounded() -> None:
    features = np.random.default_rng(2).normal(size=(20_000, 3))
    tracemalloc.start()
    similarity_graph(features, 0.95)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000**2 / 4  # bytes: an N x N matrix of bits would already be half of that


def test_a_duplicate_is_the_nearest_neighbour() -> None:
    # Rows 0 and 1 are equal, so m = 1 for both, and row 2 (s = 1/2) is near only by its own measure.
    edges = similarity_graph([[0.0], [0.0], [1.0]], 0.9)
    assert edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert directed_pairs([[0.0], [0.0], [1.0]], 0.9).tolist() == [[0, 1], [1, 0], [2, 0], [2, 1]]


def test_the_comparison_is_strict() -> None:
    # s_01 = 1/2 and s_02 = 1/4 is exactly half of it.
    assert [0, 2] not in directed_pairs([[0.0], [1.0], [-3.0]], 0.5).tolist()
    assert [0, 2] in directed_pairs([[0.0], [1.0], [-3.0]], 0.49).tolist()


@pytest.mark.parametrize(("near", "far", "threshold"), [(0.5, 2 / 3, 0.9), (4.25, 7.750000000000001, 0.6)])
def test_rounding_at_the_threshold_is_the_published_one(near: float, far: float, threshold: float) -> None:
    # Row 2 is beyond the radius of row 0, but rounding lets it in.
    assert far > (1 + near) / threshold - 1
    assert 1 / (1 + far) > threshold * (1 / (1 + near))
    assert [0, 2] in directed_pairs([[0.0], [near], [-far]], threshold).tolist()


def test_threshold_one_has_no_edges() -> None:
    assert similarity_graph(np.eye(3), 1).shape == (0, 2)


def test_undirected_edges() -> None:
    pairs = np.array([[3, 1], [1, 3], [2, 2], [0, 3], [1, 2]])
    assert undirected_edges(pairs).tolist() == [[0, 3], [1, 2], [1, 3]]


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1, float("nan")])
def test_threshold_out_of_range(threshold: float) -> None:
    with pytest.raises(DataError, match=r"'threshold' must be in \(0, 1\] \(got "):
        similarity_graph(np.eye(3), threshold)


@pytest.mark.parametrize("shape", [(1, 3), (0, 3), (3, 0), (3,), (2, 2, 2)])
def test_not_a_table(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="'features' must be a matrix with at least 2 rows and 1 column"):
        similarity_graph(np.zeros(shape), 0.5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_unusable_values(value: float) -> None:
    features = np.zeros((4, 3))
    features[2, 1] = value
    with pytest.raises(DataError, match=r"'features' must be finite .* in row 2, column 1"):
        similarity_graph(features, 0.5)
