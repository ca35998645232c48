"""A graph from the rows of a table: rows that are similar, or the nearest rows, become neighbours."""

import hashlib
import logging
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpass.datasets.download import user_directory
from fairpass.datasets.graph import Bools, Floats, Ints, distinct_sorted
from fairpass.errors import DataError
from fairpass.files import PathLike, write_bytes

# What determines a graph together with the features: its name in the cache. Increase the version (1) whenever the same
# table would give another graph.
SIMILARITY = "similarity graph 1, threshold {threshold}"
NEIGHBOURS = "nearest neighbours graph 1, neighbours {neighbours}"

_STORED = np.dtype("<i4")
_BLOCK_VALUES = 2**22  # values of candidate pairs that are held at once (32 MB)
_LARGEST_VALUE = 1e150  # the square of a distance must not overflow
_SLACK = 1e-9  # the tree rounds differently; with a slightly larger radius no candidate is lost
_DECIMALS = 9  # distances that agree to these are equal: the lower row number wins, on every machine
# The search computes |x|^2 - 2xy + |y|^2, which loses this fraction of the rows' norms for near neighbours.
_SEARCH_ERROR = 1e-6

logger = logging.getLogger(__name__)


def similarity_graph(features: ArrayLike, threshold: float) -> Ints:
    r"""Return the undirected edges of the similarity graph, shape [E, 2], i < j, in lexicographic order.

    The recipe of the benchmark graphs (Agarwal et al. 2021, https://arxiv.org/abs/2102.13186):

        s_ij = 1 / (1 + ||x_i - x_j||),    m_i = max_{j != i} s_ij,    i -> j  wherever  s_ij > t m_i,

    and the graph is the union of both directions; t is the `threshold`. The published code computes the N x N matrix of
    s; here a k-d tree proposes a few candidates per row, which are compared in the published arithmetic. Memory grows
    with the number of edges, not with the square of the number of rows.
    """
    return undirected_edges(directed_pairs(features, threshold))


def undirected_edges(pairs: Ints) -> Ints:
    """Return each edge of `pairs` (shape [P, 2], in any direction) once: i < j, sorted, no self-loops."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    base = int(pairs.max(initial=0)) + 1
    codes = distinct_sorted((low * base + high)[low < high])
    return np.stack(np.divmod(codes, base), axis=1)


def directed_pairs(features: ArrayLike, threshold: float) -> Ints:
    """Return every i -> j with s_ij > t m_i, shape [P, 2], ordered by i (arguments as `similarity_graph`)."""
    from scipy.spatial import minkowski_distance

    if not 0 < threshold <= 1:
        raise DataError(f"'threshold' must be in (0, 1] (got {threshold})")
    rows, pairs = _checked_rows(features), []
    largest = np.zeros(len(rows))  # m_i; all candidates of a row are in one block
    for i, j in _candidates(rows, threshold):
        similarity = 1 / (1 + minkowski_distance(rows[i], rows[j]))
        np.maximum.at(largest, i, similarity)
        near = similarity > threshold * largest[i]
        pairs.append(np.stack([i[near], j[near]], axis=1))
    return np.concatenate(pairs)


def _candidates(rows: Floats, threshold: float) -> Iterator[tuple[Ints, Ints]]:
    """Yield blocks of pairs (i, j), j != i, that contain all pairs of the recipe and i's nearest neighbours."""
    from scipy.spatial import KDTree

    tree = KDTree(rows)
    # Of the two nearest rows one is the row itself, or a duplicate with distance 0.
    nearest = np.ravel(tree.query(rows, k=[2])[0])
    # With d_i the distance to the nearest other row, s_ij > t m_i means ||x_i - x_j|| < (1 + d_i) / t - 1.
    radius = ((1 + nearest) / threshold - 1) * (1 + _SLACK) + _SLACK
    counts = tree.query_ball_point(rows, radius, return_length=True)
    block_of_row = np.cumsum(counts) * rows.shape[1] // _BLOCK_VALUES
    for block in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(block_of_row)) + 1):
        found = tree.query_ball_point(rows[block], radius[block], return_sorted=False)
        i = np.repeat(block, counts[block])
        j = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=len(i))
        yield i[i != j], j[i != j]


def nearest_neighbours(features: ArrayLike, neighbours: int) -> Ints:
    """Return the undirected edges between each row and its nearest rows, shape [E, 2], i < j, in lexicographic order.

    The distance is Euclidean. Among rows at equal distance, the lowest row numbers win. Two rows are joined if one of
    them is a neighbour of the other. Memory grows with the number of edges, not with the square of the number of rows.
    """
    from sklearn.neighbors import NearestNeighbors

    rows = _checked_rows(features)
    if not 1 <= neighbours < len(rows):
        raise DataError(f"'neighbours' must be at least 1 and less than the {len(rows)} rows (got {neighbours})")
    search = NearestNeighbors(algorithm="brute").fit(rows)
    tolerance = _SEARCH_ERROR * (1 + float(np.linalg.norm(rows, axis=1).max()))
    width = min(2 * neighbours + 1, len(rows))
    pairs, pending = [], np.arange(len(rows))
    while len(pending):
        undecided = []
        for block in np.array_split(pending, -(-len(pending) * width * rows.shape[1] // _BLOCK_VALUES)):
            candidates = search.kneighbors(rows[block], width, return_distance=False)
            nearest, decided = _among_candidates(rows, block, candidates, neighbours, tolerance)
            i = np.repeat(block[decided], neighbours)
            pairs.append(np.stack([i, nearest[decided].ravel()], axis=1))
            undecided.append(block[~decided])
        pending = np.concatenate(undecided)
        width = min(2 * width, len(rows))
    return undirected_edges(np.concatenate(pairs))


def _among_candidates(
    rows: Floats, block: Ints, candidates: NDArray[Any], neighbours: int, tolerance: float
) -> tuple[Ints, Bools]:
    """Return the neighbours of the rows in `block` among their candidates, and whether the candidates suffice."""
    from scipy.spatial import minkowski_distance

    distance = np.round(minkowski_distance(rows[block][:, None], rows[candidates]), _DECIMALS)
    farthest = distance.max(axis=1)
    distance[candidates == block[:, None]] = np.inf  # a row is not its own neighbour
    order = np.lexsort((candidates, distance), axis=1)[:, :neighbours]
    last = np.take_along_axis(distance, order[:, -1:], axis=1)[:, 0]
    # The last neighbour may be as near as a row that is not a candidate.
    decided = (last + tolerance < farthest) | (candidates.shape[1] == len(rows))
    return np.take_along_axis(candidates, order, axis=1), decided


def _checked_rows(features: ArrayLike) -> Floats:
    rows = np.ascontiguousarray(features, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] < 1:
        raise DataError(f"'features' must be a matrix with at least 2 rows and 1 column (got {np.shape(features)})")
    usable = np.abs(rows) < _LARGEST_VALUE  # false for NaN as well
    if not usable.all():
        row, column = np.argwhere(~usable)[0]
        got = f"(got {rows[row, column]} in row {row}, column {column})"
        raise DataError(f"'features' must be finite and below {_LARGEST_VALUE:g} in absolute value {got}")
    return rows


def cached_edges(
    features: ArrayLike, recipe: str, build: Callable[[ArrayLike], Ints], *, cache_dir: PathLike | None = None
) -> Ints:
    """Return `build(features)`, undirected edges of shape [E, 2], from disk if they were built before.

    `recipe` is what the edges depend on apart from the features. A damaged or foreign cache file is rebuilt; a cache
    that cannot be written costs only a warning. Processes may share a cache: a file is complete or absent, and the same
    key means the same content.
    """
    rows = np.ascontiguousarray(features, dtype="<f8")
    key = hashlib.sha256(f"{recipe}, shape {rows.shape}\n".encode() + rows.tobytes()).digest()
    path = user_directory("graphs", "FAIRPASS_CACHE", cache_dir) / f"{key.hex()}.graph"
    try:
        stored = path.read_bytes()
        content = stored[len(key) :]
        # The key makes the intact file of another graph fail as well.
        if stored[: len(key)] == hashlib.sha256(key + content).digest():
            return np.frombuffer(content, dtype=_STORED).reshape(-1, 2).astype(np.int64)
        logger.warning("The cached graph %s is damaged and is built again", path)
    except FileNotFoundError:
        pass
    except OSError as error:
        logger.warning("The cached graph %s cannot be read and is built again: %s", path, error)
    edges = build(features)
    content = edges.astype(_STORED).tobytes()
    try:
        write_bytes(path, hashlib.sha256(key + content).digest() + content)
    except OSError as error:
        logger.warning("The graph could not be cached in %s: %s", path.parent, error)
    return edges
