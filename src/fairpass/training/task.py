"""A graph as methods see it: checked, on the right device, its operators built once."""

import hashlib
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.kernels import Groups
from fairpass.nn import Adjacency, Structure
from fairpass.nn.adjacency import Kind
from fairpass.nn.convolution import Backbone, Operator

SplitName = Literal["train", "val", "test"]


class Task:
    """The tensors of one graph, and what is derived from them once and used at every epoch.

    Args:
        data: a PyG `Data` with `x`, `edge_index`, `y` (negative: unlabelled), `sens` (negative: unknown) and the masks
            `train_mask`, `val_mask`, `test_mask`.
        device: where the tensors go.
        need_masks: whether training and validation masks must be there (False to predict on a new graph).
    """

    def __init__(self, data: Data, device: str | torch.device = "cpu", *, need_masks: bool = True) -> None:
        _check_data(data, need_masks)
        nodes = int(data.x.shape[0])
        absent = torch.full((nodes,), -1)
        self.x: Tensor = data.x.to(device)
        self.edge_index: Tensor = data.edge_index.to(device)
        self.y: Tensor = (data.y if data.get("y") is not None else absent).to(device)
        self.sens: Tensor = data.sens.to(device)
        self.masks: dict[str, Tensor] = {
            name: data[f"{name}_mask"].to(device) for name in ("train", "val", "test") if f"{name}_mask" in data
        }
        self.num_nodes, self.num_features = nodes, int(data.x.shape[1])
        self.num_classes = max(2, len(data.get("label_names") or ()), int(self.y.max()) + 1)
        self.num_groups = max(2, len(data.get("group_names") or ()), int(self.sens.max()) + 1)
        self.feature_names: list[str] = list(data.get("feature_names") or ())
        self.label_names: list[str] = list(data.get("label_names") or ())
        self.group_names: list[str] = list(data.get("group_names") or ())
        self.sens_column: int | None = data.get("sens_column")
        self._operators: dict[Any, Adjacency] = {}

    @property
    def device(self) -> torch.device:
        """Return where the tensors are."""
        return self.x.device

    def adjacency(self, kind: Kind = "gcn", epsilon: float = 0.0) -> Adjacency:
        """Return the graph's operator of this kind, built at the first call."""
        key = (kind, epsilon)
        if key not in self._operators:
            self._operators[key] = Adjacency.from_edge_index(
                self.edge_index, self.num_nodes, kind, epsilon=epsilon, dtype=self.x.dtype
            )
        return self._operators[key]

    def operator(self, backbone: Backbone) -> Operator:
        """Return what a backbone's convolutions multiply with."""
        return self.structure if backbone == "gat" else self.adjacency(backbone)

    @cached_property
    def structure(self) -> Structure:
        """Return the graph's structure for attention."""
        return Structure(self.edge_index, self.num_nodes)

    @cached_property
    def groups(self) -> Groups:
        """Return the sensitive groups."""
        try:
            return Groups.of(self.sens, self.x.dtype)
        except ValueError as error:
            raise DataError(str(error)) from None

    @cached_property
    def train_nodes(self) -> Tensor:
        """Return the labelled training nodes' indices."""
        return self.nodes("train")

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Return the number of nodes of each group."""
        return tuple(self.groups.sizes.tolist())

    def nodes(self, split: SplitName) -> Tensor:
        """Return the indices of a split's labelled nodes."""
        if split not in self.masks:
            raise DataError(f"'data' must have '{split}_mask' (it is missing)")
        return torch.nonzero(self.masks[split] & (self.y >= 0)).flatten()

    def check_split(self, split: SplitName) -> None:
        """Raise `DataError` unless every label and every known group occurs in a split."""
        nodes = self.nodes(split)
        for what, values, count, names in (
            ("label", self.y[nodes], self.num_classes, self.label_names),
            ("group", self.sens[nodes], self.num_groups, self.group_names),
        ):
            present = set(values.unique().tolist())
            lacking = [names[i] if i < len(names) else str(i) for i in range(count) if i not in present]
            if lacking:
                raise DataError(f"every {what} must occur in the '{split}' split (got none of {', '.join(lacking)})")


def _check_data(data: Data, need_masks: bool) -> None:
    if not isinstance(data, Data):
        raise DataError(f"'data' must be a torch_geometric.data.Data (got {type(data).__name__})")
    needed = ["x", "edge_index", "sens", *(["y", "train_mask", "val_mask"] if need_masks else [])]
    lacking = [name for name in needed if data.get(name) is None]
    if lacking:
        raise DataError(f"'data' must have {', '.join(needed)} (missing: {', '.join(lacking)})")
    nodes = data.x.shape[0] if data.x.dim() == 2 else -1
    if nodes < 2 or not data.x.is_floating_point():
        raise DataError(
            f"'data.x' must be floating point features of shape (N, d) (got {tuple(data.x.shape)}, {data.x.dtype})"
        )
    if not bool(torch.isfinite(data.x).all()):
        raise DataError(f"'data.x' must be finite (got {int((~torch.isfinite(data.x)).sum())} NaN or infinite entries)")
    for name in ("y", "sens", "train_mask", "val_mask", "test_mask"):
        value = data.get(name)
        if value is None:
            continue
        if value.shape != (nodes,):
            raise DataError(f"'data.{name}' must have shape ({nodes},) (got {tuple(value.shape)})")
        if (value.dtype == torch.bool) != name.endswith("mask") or value.is_floating_point():
            raise DataError(f"'data.{name}' must be {'boolean' if name.endswith('mask') else 'integer'} (got {value.dtype})")


def fingerprint(data: Data) -> str:
    """Return a hash of everything a fit depends on, the same for equal graphs."""
    digest = hashlib.sha256()
    for name in ("x", "edge_index", "y", "sens", "train_mask", "val_mask", "test_mask"):
        value = data.get(name)
        if value is not None:
            digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
            digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
