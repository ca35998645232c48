"""Whether a graph has what methods need, checked before any work is done with it."""

import logging
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fairpass.errors import DataError
from fairpass.nn.operators import check_edge_index
from fairpass.nn.validation import check_precision

if TYPE_CHECKING:
    from torch_geometric.data import Data

logger = logging.getLogger(__name__)

_MASKS = ("train_mask", "val_mask", "test_mask")
# Edges that are compared at once: a few such vectors for all edges of a large graph would not fit into memory.
_EDGES_AT_ONCE = 1 << 22


def check_data(data: "Data", for_training: bool) -> None:
    """Raise `DataError` with what is wrong with a graph; training needs labels, groups and masks."""
    _check_kind(data)
    needed = ["x", "edge_index", *(["y", "sens", "train_mask", "val_mask"] if for_training else [])]
    lacking = [name for name in needed if data.get(name) is None]
    if "edge_index" in lacking and data.get("adj_t") is not None:
        raise DataError("'data' must have 'edge_index' (got 'adj_t' instead; leave the transform ToSparseTensor out)")
    if lacking:
        raise DataError(f"'data' must have {', '.join(needed)} (missing: {', '.join(lacking)})")
    given = {name: data[name] for name in ("x", "edge_index", "y", "sens", *_MASKS) if data.get(name) is not None}
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise DataError(f"'data.{name}' must be a tensor (got {type(value).__name__})")
    x, edge_index = given.pop("x"), given.pop("edge_index")
    _check_features(x, least=2 if for_training else 1)
    try:
        check_edge_index(edge_index, len(x))
    except ValueError as error:
        raise DataError(f"'data' is not a graph: {error}") from None
    for name, value in given.items():
        if value.shape != (len(x),):
            raise DataError(f"'data.{name}' must have shape ({len(x)},) (got {tuple(value.shape)})")
        is_mask = name in _MASKS
        if (value.dtype == torch.bool) != is_mask or value.is_floating_point() or value.is_complex():
            raise DataError(f"'data.{name}' must be {'boolean' if is_mask else 'integer'} (got {value.dtype})")
    _check_names(data, x.shape[1])
    if for_training:
        _warn_of_one_way_edges(edge_index, len(x))


def _check_kind(data: object) -> None:
    """Raise `DataError` unless this is one graph with nodes and edges of one kind each."""
    from torch_geometric.data import Batch, Data, HeteroData

    if isinstance(data, HeteroData):
        raise DataError(
            "'data' must be a torch_geometric.data.Data (got HeteroData; its 'to_homogeneous()' returns a Data, "
            "if all nodes have the same features)"
        )
    if isinstance(data, Batch):
        raise DataError(f"'data' must be one graph (got a Batch of {data.num_graphs})")
    if not isinstance(data, Data):
        raise DataError(f"'data' must be a torch_geometric.data.Data (got {type(data).__name__})")


def _check_features(x: Tensor, least: int) -> None:
    if x.dim() != 2 or x.shape[0] < least or x.shape[1] < 1 or not x.is_floating_point():
        raise DataError(
            f"'data.x' must be floating point features of shape (N, d), N at least {least} "
            f"(got shape {tuple(x.shape)}, {x.dtype})"
        )
    try:
        check_precision("data.x", x)
    except ValueError as error:
        raise DataError(f"{error}; 'data.x.float()' returns float32") from None
    bad = int((~torch.isfinite(x)).sum())
    if bad:
        raise DataError(f"'data.x' must be finite (got {bad} NaN or infinite entries)")


def _check_names(data: "Data", features: int) -> None:
    """Raise `DataError` if there are names, but not one for each feature, label or group."""
    names = data.get("feature_names") or ()
    if names and len(names) != features:
        raise DataError(f"'data.feature_names' must name the {features} features (got {len(names)} names)")
    for what, values in (("label_names", data.get("y")), ("group_names", data.get("sens"))):
        names = data.get(what) or ()
        if names and values is not None and int(values.max()) >= len(names):
            raise DataError(f"'data.{what}' must name every index up to {int(values.max())} (got {len(names)} names)")
    column = data.get("sens_column")
    if column is not None and not (isinstance(column, int) and 0 <= column < features):
        raise DataError(f"'data.sens_column' must be a column of 'data.x', 0 to {features - 1} (got {column})")


def _warn_of_one_way_edges(edge_index: Tensor, nodes: int) -> None:
    """Log a warning if there are edges with one direction only: methods take them, but they are rarely intended.

    Sorting the edges takes a while, and most graphs have both directions. So the first test is whether
    `r'(A - A')s = 0` for two random vectors of integers, which a directed graph has almost no chance to pass.
    """
    generator = torch.Generator().manual_seed(0)
    r, s = torch.randint(-(2**62), 2**62, (2, nodes), generator=generator).to(edge_index.device)
    difference = 0
    for part in torch.split(edge_index, _EDGES_AT_ONCE, 1):
        source, target = part.long()
        difference += int((r[source] * s[target] - r[target] * s[source]).sum())
    if difference % 2**64 == 0:
        return
    source, target = edge_index.long()
    forth, back = source * nodes + target, target * nodes + source
    one_way = int((~torch.isin(forth.unique(), back)).sum())
    if one_way:  # none if an edge is there twice in one direction and once in the other
        logger.warning(
            "'data.edge_index' has %s edges with one direction only: messages go along it and not back, and GMMD's "
            "layers need not lower their objective (torch_geometric.transforms.ToUndirected adds the other direction)",
            f"{one_way:,}",
        )
