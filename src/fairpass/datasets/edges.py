"""Edges between ids, as an undirected graph without self-loops or duplicates."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_array

from fairpass.datasets.column_encoding import first_missing, listed
from fairpass.errors import DataError


@dataclass(frozen=True)
class SimpleGraph:
    """An undirected graph, every edge in both directions and sorted, and what was removed from it."""

    edge_index: NDArray[np.int64]
    self_loops_removed: int
    duplicate_edges_merged: int


def simple_graph(
    source: NDArray[np.signedinteger[Any]], target: NDArray[np.signedinteger[Any]], num_nodes: int
) -> SimpleGraph:
    """Return the graph of the undirected edges `source[i] - target[i]`, shape [E] each.

    Done by scipy's sparse matrices: PyG's `to_undirected` sorts all edges, which took five times as long
    for ten million of them.
    """
    loops = source == target
    if loops.any():
        source, target = source[~loops], target[~loops]
    small = np.min_scalar_type(-num_nodes)  # the fewer bytes an end takes, the faster
    rows = np.concatenate([source, target], dtype=small, casting="unsafe")
    columns = np.concatenate([target, source], dtype=small, casting="unsafe")
    marks = np.ones(len(rows), dtype=bool)
    adjacency = coo_array((marks, (rows, columns)), shape=(num_nodes, num_nodes)).tocsr()
    adjacency.sum_duplicates()  # sorts each row's columns as well
    del rows, columns, marks
    edge_index = np.empty((2, adjacency.nnz), dtype=np.int64)
    edge_index[0] = np.repeat(np.arange(num_nodes, dtype=small), np.diff(adjacency.indptr))
    edge_index[1] = adjacency.indices
    return SimpleGraph(
        edge_index=edge_index,
        self_loops_removed=int(loops.sum()),
        duplicate_edges_merged=len(source) - adjacency.nnz // 2,
    )


def checked_ids(ids: "pd.Series[Any]") -> "pd.Index[Any]":
    """Return the ids of the nodes as an index; every node must have a unique id."""
    if ids.isna().any():
        raise DataError(f"column {ids.name!r} of 'nodes' must have an id for each node ({first_missing(ids)})")
    repeated = ids[ids.duplicated()].unique()
    if len(repeated):
        raise DataError(
            f"the ids in column {ids.name!r} of 'nodes' must be unique "
            f"({len(repeated)} occur more than once: {listed(repeated.tolist())})"
        )
    index: pd.Index[Any] = pd.Index(ids)
    return index


def positions(ends: "pd.Series[Any]", ids: "pd.Index[Any]") -> NDArray[np.int64]:
    """Return for one end of each edge its position among the ids of the nodes."""
    if ends.isna().any():
        raise DataError(f"column {ends.name!r} of 'edges' must have an id for each edge ({first_missing(ends)})")
    found = ids.get_indexer(pd.Index(ends))
    unknown = ends[found < 0]
    if len(unknown):
        raise DataError(
            f"column {ends.name!r} of 'edges' names nodes that do not exist ({unknown.nunique()} ids, "
            f"{len(unknown)} edges, first in row {unknown.index[0]}): {listed(unknown.unique().tolist())}; "
            f"{_expected(ids, unknown)}"
        )
    return found.astype(np.int64)


def _expected(ids: "pd.Index[Any]", unknown: "pd.Series[Any]") -> str:
    if isinstance(ids, pd.RangeIndex):
        return f"without 'id', an edge must name nodes by their row number, 0 to {len(ids) - 1}"
    (node,), (end,) = ids[:1].tolist(), unknown.head(1).tolist()
    kinds = type(node).__name__, type(end).__name__
    return f"the nodes have ids such as {node!r}" + (f" ({kinds[0]}, not {kinds[1]})" if kinds[0] != kinds[1] else "")
