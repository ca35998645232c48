"""A graph from a table: every row is joined to the rows nearest to it."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import minkowski_distance
from sklearn.neighbors import NearestNeighbors

from fairpass.datasets.similarity import checked_rows, undirected_edges
from fairpass.errors import DataError

# Raise it whenever the same table would give another graph.
RECIPE_VERSION = 1

# How many numbers of candidate pairs are held at once (32 MB).
_BLOCK_VALUES = 2**22

# Distances that agree to this many decimals are equal: the lower row number wins, on every machine.
_DECIMALS = 9

# The search computes |x|^2 - 2xy + |y|^2, which loses this share of the rows' norms for near neighbours.
_SEARCH_ERROR = 1e-6


def recipe(neighbours: int) -> str:
    """Return what, with the features, determines the graph: its name in the cache."""
    return f"nearest neighbours graph {RECIPE_VERSION}, neighbours {neighbours}"


def nearest_neighbours(features: ArrayLike, neighbours: int) -> NDArray[np.int64]:
    """Return the undirected edges between each row and its nearest rows, shape [E, 2], i < j, in lexicographic order.

    The distance is Euclidean. Of rows at equal distance, those with the lowest numbers are the neighbours. Two
    rows are joined if one of them is a neighbour of the other. Memory grows with the number of edges, not with
    the square of the number of rows.

    Args:
        features: The rows to connect, shape [N, d]; columns count as they are (scale them before).
        neighbours: How many neighbours each row has, at least 1 and less than N.
    """
    rows = checked_rows(features)
    if not 1 <= neighbours < len(rows):
        raise DataError(f"'neighbours' must be at least 1 and less than the {len(rows)} rows (got {neighbours})")
    search = NearestNeighbors(algorithm="brute").fit(rows)
    tolerance = _SEARCH_ERROR * (1 + float(np.linalg.norm(rows, axis=1).max()))
    width = min(2 * neighbours + 1, len(rows))
    pairs = []
    pending = np.arange(len(rows))
    while len(pending):
        blocks = np.array_split(pending, -(-len(pending) * width * rows.shape[1] // _BLOCK_VALUES))
        undecided = []
        for block in blocks:
            nearest, decided = _among_candidates(rows, block, search, width, neighbours, tolerance)
            i = np.repeat(block[decided], neighbours)
            pairs.append(np.stack([i, nearest[decided].ravel()], axis=1))
            undecided.append(block[~decided])
        pending = np.concatenate(undecided)
        width = min(2 * width, len(rows))
    return undirected_edges(np.concatenate(pairs))


def _among_candidates(
    rows: NDArray[np.float64],
    block: NDArray[np.int64],
    search: NearestNeighbors,
    width: int,
    neighbours: int,
    tolerance: float,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the neighbours of the rows in `block` among `width` candidates each, and whether these are enough.

    They are not enough if the last neighbour may be as near as a row that is no candidate.
    """
    candidates = search.kneighbors(rows[block], width, return_distance=False)
    distance = np.round(minkowski_distance(rows[block][:, None], rows[candidates]), _DECIMALS)
    farthest = distance.max(axis=1)
    distance[candidates == block[:, None]] = np.inf  # a row is not its own neighbour
    order = np.lexsort((candidates, distance), axis=1)[:, :neighbours]
    last = np.take_along_axis(distance, order[:, -1:], axis=1)[:, 0]
    decided = (last + tolerance < farthest) | (width == len(rows))
    return np.take_along_axis(candidates, order, axis=1), decided
