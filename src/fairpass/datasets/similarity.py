"""A graph from a table: rows that are nearly as alike as a row's nearest neighbour become its neighbours.

The recipe of the benchmark graphs (Agarwal et al. 2021, https://arxiv.org/abs/2102.13186):

    s_ij = 1 / (1 + ||x_i - x_j||),    m_i = max_{j != i} s_ij,    i -> j  wherever  s_ij > t m_i,

and the graph is the union of both directions. The published code holds the N x N matrix of s; here a k-d tree
proposes a few candidates per row, and the comparison itself is made on those, in the published arithmetic.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree, minkowski_distance

from fairpass.errors import DataError

# Raise it whenever the same table would give another graph.
RECIPE_VERSION = 1

# How many numbers of candidate pairs are held at once (32 MB).
_BLOCK_VALUES = 2**22

# The square of a distance must stay a float64.
_LARGEST_VALUE = 1e150

# The tree rounds in its own way; with a radius a little larger no candidate is lost to that.
_SLACK = 1e-9


def recipe(threshold: float) -> str:
    """Return what, with the features, determines the graph: its name in the cache."""
    return f"similarity graph {RECIPE_VERSION}, threshold {float(threshold).hex()}"


def build_graph(features: ArrayLike, threshold: float) -> NDArray[np.int64]:
    """Return the undirected edges of the similarity graph, shape [E, 2], i < j, in lexicographic order.

    Memory grows with the number of edges, not with the square of the number of rows.

    Args:
        features: The rows to connect, shape [N, d], N >= 2; columns count as they are (scale them before).
        threshold: The t of the recipe, 0 < t <= 1; a smaller one gives more edges.
    """
    return undirected_edges(directed_pairs(features, threshold))


def undirected_edges(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each edge of `pairs` (shape [P, 2], in any direction) once: i < j, sorted, no self-loops."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    base = int(pairs.max(initial=0)) + 1
    codes = np.unique((low * base + high)[low < high])
    return np.stack(np.divmod(codes, base), axis=1)


def directed_pairs(features: ArrayLike, threshold: float) -> NDArray[np.int64]:
    """Return every i -> j with s_ij > t m_i, shape [P, 2], ordered by i (arguments as `build_graph`)."""
    rows = _validated(features, threshold)
    pairs = []
    largest = np.zeros(len(rows))  # m_i; all candidates of a row are in one block
    for i, j in _candidates(rows, threshold):
        similarity = 1 / (1 + minkowski_distance(rows[i], rows[j]))
        np.maximum.at(largest, i, similarity)
        near = similarity > threshold * largest[i]
        pairs.append(np.stack([i[near], j[near]], axis=1))
    return np.concatenate(pairs)


def _candidates(rows: NDArray[np.float64], threshold: float) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield blocks of pairs (i, j), j != i, that hold all pairs of the recipe and i's nearest neighbours.

    With d_i the distance to the nearest other row, s_ij > t m_i means ||x_i - x_j|| < (1 + d_i) / t - 1.
    """
    tree = KDTree(rows)
    # Of the two nearest rows one is the row itself, or as good as it: a duplicate, with distance 0.
    nearest = np.ravel(tree.query(rows, k=[2])[0])
    radius = ((1 + nearest) / threshold - 1) * (1 + _SLACK) + _SLACK
    counts = tree.query_ball_point(rows, radius, return_length=True)
    block_of_row = np.cumsum(counts) * rows.shape[1] // _BLOCK_VALUES
    for block in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(block_of_row)) + 1):
        found = tree.query_ball_point(rows[block], radius[block], return_sorted=False)
        i = np.repeat(block, counts[block])
        j = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=len(i))
        yield i[i != j], j[i != j]


def _validated(features: ArrayLike, threshold: float) -> NDArray[np.float64]:
    if not 0 < threshold <= 1:
        raise DataError(f"'threshold' must be in (0, 1] (got {threshold})")
    return checked_rows(features)


def checked_rows(features: ArrayLike) -> NDArray[np.float64]:
    """Return the rows as float64, once it is known that distances between them can be computed."""
    rows = np.ascontiguousarray(features, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] < 1:
        raise DataError(
            f"'features' must be a matrix with at least 2 rows and 1 column (got shape {np.shape(features)})"
        )
    usable = np.abs(rows) < _LARGEST_VALUE  # false for NaN as well
    if not usable.all():
        row, column = np.argwhere(~usable)[0]
        raise DataError(
            f"'features' must be finite and below {_LARGEST_VALUE:g} in absolute value "
            f"(got {rows[row, column]} in row {row}, column {column})"
        )
    return rows
