"""Whether a graph is what methods need, found out before any work is done with it."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.nn.adjacency import check_edge_index

_MASKS = ("train_mask", "val_mask", "test_mask")


def check_data(data: Data, for_training: bool) -> None:
    """Raise `DataError` with what is wrong with a graph; to train on it takes labels, groups and masks."""
    if not isinstance(data, Data):
        raise DataError(f"'data' must be a torch_geometric.data.Data (got {type(data).__name__})")
    needed = ["x", "edge_index", *(["y", "sens", "train_mask", "val_mask"] if for_training else [])]
    lacking = [name for name in needed if data.get(name) is None]
    if lacking:
        raise DataError(f"'data' must have {', '.join(needed)} (missing: {', '.join(lacking)})")
    for name in ("x", "edge_index", "y", "sens", *_MASKS):
        value = data.get(name)
        if value is not None and not isinstance(value, Tensor):
            raise DataError(f"'data.{name}' must be a tensor (got {type(value).__name__})")
    _check_features(data.x)
    nodes, features = data.x.shape
    try:
        check_edge_index(data.edge_index, nodes)
    except ValueError as error:
        raise DataError(f"'data' is not a graph: {error}") from None
    for name in ("y", "sens", *_MASKS):
        if data.get(name) is not None:
            _check_vector(name, data[name], nodes)
    _check_names(data, features)


def _check_features(x: Tensor) -> None:
    if x.dim() != 2 or x.shape[0] < 2 or x.shape[1] < 1 or not x.is_floating_point():
        raise DataError(
            "'data.x' must be floating point features of shape (N, d), N at least 2 "
            f"(got shape {tuple(x.shape)}, {x.dtype})"
        )
    bad = int((~torch.isfinite(x)).sum())
    if bad:
        raise DataError(f"'data.x' must be finite (got {bad} NaN or infinite entries)")


def _check_vector(name: str, value: Tensor, nodes: int) -> None:
    if value.shape != (nodes,):
        raise DataError(f"'data.{name}' must have shape ({nodes},) (got {tuple(value.shape)})")
    is_mask = name in _MASKS
    if (value.dtype == torch.bool) != is_mask or value.is_floating_point() or value.is_complex():
        raise DataError(f"'data.{name}' must be {'boolean' if is_mask else 'integer'} (got {value.dtype})")


def _check_names(data: Data, features: int) -> None:
    """Raise `DataError` if there are names, but not one for each feature, label or group."""
    names = data.get("feature_names") or ()
    if names and len(names) != features:
        raise DataError(f"'data.feature_names' must name the {features} features (got {len(names)} names)")
    for what, values in (("label_names", data.get("y")), ("group_names", data.get("sens"))):
        names = data.get(what) or ()
        if names and values is not None and int(values.max()) >= len(names):
            raise DataError(f"'data.{what}' must name every index up to {int(values.max())} (got {len(names)} names)")
    column = data.get("sens_column")
    if column is not None and not 0 <= column < features:
        raise DataError(f"'data.sens_column' must be a column of 'data.x', 0 to {features - 1} (got {column})")
