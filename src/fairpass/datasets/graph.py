"""A graph as numpy arrays: what `load` and `from_tables` build before they make PyG's `Data`, and its edges.

The audit works on these arrays, so that it imports neither torch nor torch_geometric, which take seconds to load.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_array

from fairpass.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
AnyInts: TypeAlias = NDArray[np.signedinteger[Any]]
Graph: TypeAlias = "Data | GraphArrays"
Column: TypeAlias = "pd.Series[Any]"

SplitName = Literal["train", "val", "test", "safety"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
MASKS = tuple(f"{name}_mask" for name in SPLITS)  # a graph need not have the last one

# The label of an unlabelled node, and the group of a node whose group is unknown.
MISSING = -1
_NAMED = 5  # values in an error message


@dataclass(frozen=True)
class GraphArrays:
    """The attributes of a graph's `Data`, with numpy arrays in place of tensors."""

    x: NDArray[np.float32]
    edge_index: Ints
    y: Ints
    sens: Ints
    train_mask: Bools
    val_mask: Bools
    test_mask: Bools
    feature_names: list[str]
    sens_column: int | None
    label_names: list[str]
    group_names: list[str]
    provenance: dict[str, Any]
    node_ids: list[Any] | None = None
    edge_weight: NDArray[np.float32] | None = None
    safety_mask: Bools | None = None

    def to_data(self) -> "Data":
        import torch
        from torch_geometric.data import Data

        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.edge_weight is None:
            del values["edge_weight"]
        for name, value in values.items():
            if isinstance(value, np.ndarray):  # pandas gives out arrays that must not be written to
                values[name] = torch.from_numpy(value if value.flags.writeable else value.copy())
        return Data(**{name: value for name, value in values.items() if name != "safety_mask" or value is not None})


def array_of(graph: Graph, name: str) -> Any:
    """Return an attribute of a graph as a numpy array, None if the graph does not have it."""
    value = getattr(graph, name, None)
    return value if value is None or isinstance(value, np.ndarray) else value.detach().cpu().numpy()


def part_sizes(graph: Graph) -> dict[str, int]:
    """Return the number of nodes in each part of the split: "train", "val", "test" and, if there is one, "safety"."""
    masks = {part: array_of(graph, f"{part}_mask") for part in SPLITS}
    return {part: int(mask.sum()) for part, mask in masks.items() if mask is not None}


def listed(values: Iterable[Any]) -> str:
    """Return the first few values for an error message."""
    shown = [repr(value) for value in values]
    return ", ".join(shown[:_NAMED]) + (", ..." if len(shown) > _NAMED else "")


def first_missing(column: Column) -> str:
    missing = column.isna().to_numpy()
    return missing_text(int(missing.sum()), int(np.argmax(missing)))


def missing_text(count: int, first: int) -> str:
    return f"{count} missing, first in row {first}"


@dataclass(frozen=True, kw_only=True)
class RemovedEdges:
    """What makes a table of edges differ from the undirected graph that it becomes."""

    self_loops_removed: int
    duplicate_edges_merged: int
    one_way_pairs: int  # pairs of nodes whose edges all have the same direction


@dataclass(frozen=True)
class SimpleGraph(RemovedEdges):
    """An undirected graph, every edge in both directions and sorted, and what was removed from it."""

    edge_index: Ints
    edge_weight: Floats | None  # the sum over all edges between two nodes

    @property
    def mean_weight(self) -> float | None:
        """The mean weight of an edge, 1 if there is none; None without weights."""
        if self.edge_weight is None:
            return None
        return float(self.edge_weight.mean()) if len(self.edge_weight) else 1.0


def simple_graph(
    source: AnyInts, target: AnyInts, num_nodes: int, weight: Floats | None = None, *, mirrored: bool = False
) -> SimpleGraph:
    """Return the graph of the undirected edges `source[i] - target[i]`; PyG's `to_undirected` takes 5 times as long.

    The weights of repeated edges are added. If the edges are `mirrored`, the two directions of an edge are one edge and
    have the same weight, or the larger one counts.
    """
    loops = source == target
    if loops.any():
        source, target, weight = source[~loops], target[~loops], None if weight is None else weight[~loops]
    small = np.min_scalar_type(-num_nodes)  # the fewer bytes an end takes, the faster
    ends = source.astype(small, copy=False), target.astype(small, copy=False)
    entries = np.ones(len(source), dtype=bool) if weight is None else weight
    one_way = coo_array((entries, ends), shape=(num_nodes, num_nodes)).tocsr()
    one_way.sum_duplicates()  # sorts each row's columns as well
    back = one_way.T.tocsr()
    adjacency = one_way.maximum(back) if mirrored else one_way + back
    edge_index = np.empty((2, adjacency.nnz), dtype=np.int64)
    edge_index[0] = np.repeat(np.arange(num_nodes, dtype=small), np.diff(adjacency.indptr))
    edge_index[1] = adjacency.indices
    return SimpleGraph(
        edge_index=edge_index,
        edge_weight=None if weight is None else adjacency.data,
        self_loops_removed=int(loops.sum()),
        duplicate_edges_merged=len(source) - adjacency.nnz // 2,
        one_way_pairs=adjacency.nnz - one_way.nnz,
    )


def checked_ids(ids: Column) -> "pd.Index[Any]":
    """Return the ids of the nodes as an index; every node must have a unique id."""
    if ids.isna().any():
        raise DataError(f"column {ids.name!r} of 'nodes' must have an id for each node ({first_missing(ids)})")
    repeated = ids[ids.duplicated()].unique()
    if len(repeated):
        twice = f"{len(repeated)} occur more than once: {listed(repeated.tolist())}"
        raise DataError(f"the ids in column {ids.name!r} of 'nodes' must be unique ({twice})")
    index: pd.Index[Any] = pd.Index(ids)
    return index


def positions(ends: Column, ids: "pd.Index[Any]", *, allow_unknown: bool = False) -> Ints:
    """Return for one end of each edge its position among the ids of the nodes, -1 if it is no node and may be so."""
    if ends.isna().any() and not allow_unknown:
        raise missing_ends_error(str(ends.name), first_missing(ends))
    found = _places(ends, ids)
    unknown = ends[found < 0] if not allow_unknown else ends.head(0)
    if len(unknown):
        node = None if isinstance(ids, pd.RangeIndex) else ids[:1].tolist()[0]
        distinct = unknown.unique().tolist()
        first = int(unknown.index[0])
        raise unknown_ends_error(str(ends.name), distinct, len(distinct), len(unknown), first, node, len(ids))
    return found.astype(np.int64)


def _places(ends: Column, ids: "pd.Index[Any]") -> AnyInts:
    """Return the place of each value in an index, -1 if it has none."""
    if isinstance(ends.dtype, pd.StringDtype) and isinstance(ids.dtype, pd.StringDtype):
        try:  # for text, Arrow takes a fraction of pandas' time
            import pyarrow as pa
            from pyarrow import compute
        except ImportError:
            pass
        else:
            found = compute.index_in(pa.array(ends), value_set=pa.array(ids))
            return np.asarray(compute.fill_null(found, -1))
    return ids.get_indexer(pd.Index(ends))


def distinct_sorted(values: AnyInts) -> Ints:
    """Return the distinct values in increasing order; `np.unique` takes many times as long for large arrays."""
    in_order: Ints = np.sort(values, axis=None).astype(np.int64, copy=False)
    is_first: Bools = np.diff(in_order, prepend=in_order[:1] - 1) != 0
    return in_order[is_first]


def missing_ends_error(column: str, missing: str) -> DataError:
    return DataError(f"column {column!r} of 'edges' must have an id for each edge ({missing})")


def unknown_ends_error(
    column: str, examples: Sequence[Any], distinct: int, edges: int, first: int, node: Any, num_nodes: int
) -> DataError:
    """Return the error of edges whose end is no node; `node` is the id of one, None if nodes have none."""
    if node is None:
        expected = f"without 'id', an edge must name nodes by their row number, 0 to {num_nodes - 1}"
    else:
        end = examples[0]
        kinds = f" ({type(node).__name__}, not {type(end).__name__})" if type(node) is not type(end) else ""
        expected = f"the nodes have ids such as {node!r}{kinds}"
    return DataError(
        f"column {column!r} of 'edges' names nodes that do not exist ({distinct} ids, "
        f"{edges} edges, first in row {first}): {listed(examples)}; {expected} "
        f"(dangling='drop' leaves such edges out)"
    )
