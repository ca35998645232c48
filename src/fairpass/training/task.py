"""A graph as methods see it: checked, on the right device, its operators built once."""

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor

from fairpass.errors import DataError
from fairpass.kernels import Groups
from fairpass.nn.group_estimator import GroupEstimator
from fairpass.nn.operators import OperatorKind, SparseOperator
from fairpass.nn.validation import check_choice
from fairpass.training.data_checks import check_data
from fairpass.training.tensors import raw_bytes, to_json

if TYPE_CHECKING:
    from torch_geometric.data import Data

SplitName = Literal["train", "val", "test"]

# What a program may be built from.
_SIZES = ("num_features", "num_classes", "num_groups", "group_sizes", "sens_column")
_NAMES = ("feature_names", "label_names", "group_names")


class Task:
    """The tensors of one graph, and what is derived from them once and used at every epoch.

    Args:
        data: a PyG `Data` with `x`, `edge_index`, `y` (negative: unlabelled), `sens` (negative: unknown) and
            the masks `train_mask`, `val_mask`, `test_mask`. Its tensors are used, not copied: nothing may
            write to them.
        device: where the tensors go.
        need_masks: whether labels, groups, training and validation masks must be there (False to predict on a
            new graph, where labels and groups that are missing are all unknown).
    """

    def __init__(self, data: "Data", device: str | torch.device = "cpu", *, need_masks: bool = True) -> None:
        check_data(data, need_masks)
        unknown = torch.full((len(data.x),), -1)
        self.x: Tensor = data.x.to(device, torch.get_default_dtype())
        self.edge_index: Tensor = data.edge_index.to(device, torch.long)
        self.y: Tensor = (data.y if data.get("y") is not None else unknown).to(device, torch.long)
        self.sens: Tensor = (data.sens if data.get("sens") is not None else unknown).to(device, torch.long)
        self.masks: dict[str, Tensor] = {
            name: data[f"{name}_mask"].to(device) for name in get_args(SplitName) if f"{name}_mask" in data
        }
        self.feature_names, self.label_names, self.group_names = (list[str](data.get(name) or ()) for name in _NAMES)
        self.sens_column: int | None = data.get("sens_column")
        self.num_nodes, self.num_features = self.x.shape
        self.num_classes = max(2, len(self.label_names), int(self.y.max()) + 1)
        self.num_groups = max(2, len(self.group_names), int(self.sens.max()) + 1)
        self._operators: dict[OperatorKind, SparseOperator] = {}

    @property
    def device(self) -> torch.device:
        """Return where the tensors are."""
        return self.x.device

    def operator(self, kind: OperatorKind) -> SparseOperator:
        """Return the graph's operator for a backbone, built at the first call."""
        if kind not in self._operators:
            self._operators[kind] = SparseOperator.from_edge_index(
                self.edge_index, self.num_nodes, kind, dtype=self.x.dtype
            )
        return self._operators[kind]

    @cached_property
    def groups(self) -> Groups:
        """Return the sensitive groups."""
        try:
            return Groups.of(self.sens, self.x.dtype)
        except ValueError as error:
            raise DataError(str(error)) from None

    @cached_property
    def group_sizes(self) -> tuple[int, ...]:
        """Return the number of nodes of each group."""
        return tuple(self.groups.sizes.tolist())

    @cached_property
    def group_estimator(self) -> GroupEstimator:
        """Return an estimate of the groups from the features; the validation nodes calibrate it."""
        estimator = GroupEstimator()
        estimator.fit(self.x, self.sens, self.masks["val"], self.num_groups, self.sens_column)
        return estimator

    @cached_property
    def train_nodes(self) -> Tensor:
        """Return the indices of the labelled training nodes."""
        return self.nodes("train")

    @cached_property
    def train_labels(self) -> Tensor:
        """Return their labels."""
        return self.y[self.train_nodes]

    def nodes(self, split: SplitName) -> Tensor:
        """Return the indices of a split's labelled nodes."""
        check_choice("split", split, SplitName)
        if split not in self.masks:
            raise DataError(f"'data' must have '{split}_mask' (it is missing)")
        return torch.nonzero(self.masks[split] & (self.y >= 0)).flatten()

    def check_split(self, split: SplitName) -> None:
        """Raise `DataError` unless every label and every group occurs in a split."""
        nodes = self.nodes(split)
        for what, values, count, names in (
            ("label", self.y[nodes], self.num_classes, self.label_names),
            ("group", self.sens[nodes], self.num_groups, self.group_names),
        ):
            present = torch.bincount(values[values >= 0], minlength=count).tolist()
            lacking = [names[i] if names else str(i) for i in range(count) if not present[i]]
            if lacking:
                raise DataError(f"every {what} must occur in the '{split}' split (got none of {', '.join(lacking)})")

    def sizes(self) -> dict[str, Any]:
        """Return what a program may be built from, as plain data; see `RememberedTask`."""
        return {name: getattr(self, name) for name in (*_SIZES, *_NAMES)} | {"group_sizes": list(self.group_sizes)}


class RememberedTask(Task):
    """A graph's sizes and names without the graph: enough to build the program of a stored model."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        vars(self).update(sizes, group_sizes=tuple(sizes["group_sizes"]))


def fingerprint(data: "Data") -> str:
    """Return a hash of everything a fit depends on, the same for equal graphs."""
    digest = hashlib.sha256()
    for name in ("x", "edge_index", "y", "sens", "train_mask", "val_mask", "test_mask"):
        if data.get(name) is not None:
            digest.update(name.encode())
            digest.update(raw_bytes(data[name]))
    for name in (*_NAMES, "sens_column"):
        digest.update(to_json([name, data.get(name)]).encode())
    return digest.hexdigest()
