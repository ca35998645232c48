"""A graph as methods see it: checked, on the right device, its operators built once."""

import hashlib
import logging
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fairpass.datasets.graph import MASKS, SPLITS, SplitName
from fairpass.errors import DataError, some_of
from fairpass.kernels import Groups
from fairpass.kernels.mmd import INTEGERS
from fairpass.nn.calibration import GroupEstimator
from fairpass.nn.operators import OperatorKind, SparseOperator, check_edge_index
from fairpass.nn.validation import check_choice, check_precision
from fairpass.parameters import LARGEST, MOST_CLASSES, SMALLEST
from fairpass.training.tensors import raw_bytes, to_json
from fairpass.world import world

if TYPE_CHECKING:
    from torch_geometric.data import Data

logger = logging.getLogger(__name__)

_SIZES = ("num_features", "num_classes", "num_groups", "group_sizes", "sens_column")
_NAMES = ("feature_names", "label_names", "group_names")
# Edges that are compared at once: a few such vectors for all edges of a large graph would not fit into memory.
_EDGES_AT_ONCE = 1 << 22


class Task:
    """The tensors of one graph, and what is derived from them once and used at every epoch.

    Args:
        data: a PyG `Data` with `x`, `edge_index`, `y` (negative: unlabelled), `sens` (negative: unknown), masks and, if
            the edges have weights, `edge_weight`. Its tensors are used, not copied: nothing may write to them.
        device: where the tensors go.
        need_masks: False to predict on a new graph, where missing labels and groups are all unknown.
    """

    def __init__(self, data: "Data", device: str | torch.device = "cpu", *, need_masks: bool = True) -> None:
        _check_data(data, need_masks)
        unknown = torch.full((len(data.x),), -1, device=device)
        weight = data.get("edge_weight")
        self.x: Tensor = _placed(data.x, device, torch.get_default_dtype())
        self.edge_index: Tensor = _placed(data.edge_index, device, torch.long)
        self.edge_weight: Tensor | None = None if weight is None else _placed(weight, device, self.x.dtype)
        self.y: Tensor = _placed(data.y if data.get("y") is not None else unknown, device, torch.long)
        self.sens: Tensor = _placed(data.sens if data.get("sens") is not None else unknown, device, torch.long)
        self.masks: dict[str, Tensor] = {
            name: _placed(data[f"{name}_mask"], device, torch.bool) for name in SPLITS if f"{name}_mask" in data
        }
        self.feature_names, self.label_names, self.group_names = (list[str](data.get(name) or ()) for name in _NAMES)
        self.sens_column: int | None = data.get("sens_column")
        self.num_nodes, self.num_features = self.x.shape
        self.num_classes = max(2, len(self.label_names), int(self.y.max()) + 1)
        self.num_groups = max(2, len(self.group_names), int(self.sens.max()) + 1)
        self._check_sizes()
        self._operators: dict[OperatorKind, SparseOperator] = {}
        self.provenance: dict[str, Any] | None = data.get("provenance")
        self.cache: dict[Any, Any] = {}  # what methods derive from the graph once

    def _check_sizes(self) -> None:
        """Raise `DataError` if there are more labels or groups than a network is built for."""
        for what, where, number in (("labels", "y", self.num_classes), ("groups", "sens", self.num_groups)):
            if number > MOST_CLASSES:
                raise DataError(f"'data.{where}' must have at most {MOST_CLASSES:,} {what} (got {number:,})")

    @property
    def device(self) -> torch.device:
        return self.x.device

    def operator(self, kind: OperatorKind) -> SparseOperator:
        """Return the graph's operator for a backbone with the weights of the edges, built at the first call."""
        if kind not in self._operators:
            if kind == "gat" and self.edge_weight is not None:
                raise DataError("'data.edge_weight' must not be given to attention, which would ignore it")
            self._operators[kind] = SparseOperator.from_edge_index(
                self.edge_index, self.num_nodes, kind, edge_weight=self.edge_weight, dtype=self.x.dtype
            )
        return self._operators[kind]

    @cached_property
    def groups(self) -> Groups:
        try:
            return Groups.of(self.sens, self.x.dtype)
        except ValueError as error:
            raise DataError(str(error)) from None

    @cached_property
    def group_sizes(self) -> tuple[int, ...]:
        return tuple(self.groups.sizes.tolist())

    @cached_property
    def group_estimator(self) -> GroupEstimator:
        """An estimate of the groups from the features; the validation nodes calibrate it."""
        estimator = GroupEstimator()
        estimator.fit(self.x, self.sens, self.masks["val"], self.num_groups, self.sens_column)
        return estimator

    @cached_property
    def train_nodes(self) -> Tensor:
        return self.nodes("train")

    @cached_property
    def train_count(self) -> int:
        """The number of training nodes of all processes."""
        return world().count(len(self.train_nodes))

    @cached_property
    def train_labels(self) -> Tensor:
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
            present = world().total(torch.bincount(values[values >= 0], minlength=count)).tolist()
            lacking = [names[i] if names else str(i) for i in range(count) if not present[i]]
            if lacking:
                raise DataError(f"every {what} must occur in the '{split}' split (got none of {some_of(lacking)})")

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
    for name in ("x", "edge_index", "edge_weight", "y", "sens", *MASKS):
        if data.get(name) is not None:
            digest.update(name.encode())
            digest.update(raw_bytes(data[name]))
    for name in (*_NAMES, "sens_column"):
        digest.update(to_json([name, data.get(name)]).encode())
    return digest.hexdigest()


def _check_data(data: "Data", for_training: bool) -> None:
    _check_kind(data)
    needed = ["x", "edge_index", *(["y", "sens", "train_mask", "val_mask"] if for_training else [])]
    lacking = [name for name in needed if data.get(name) is None]
    if "edge_index" in lacking and data.get("adj_t") is not None:
        raise DataError("'data' must have 'edge_index' (got 'adj_t' instead; leave the transform ToSparseTensor out)")
    if lacking:
        raise DataError(f"'data' must have {', '.join(needed)} (missing: {', '.join(lacking)})")
    known = ("x", "edge_index", "edge_weight", "y", "sens", *MASKS)
    given = {name: data[name] for name in known if data.get(name) is not None}
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise DataError(f"'data.{name}' must be a tensor (got {type(value).__name__})")
        if value.layout != torch.strided:
            raise DataError(f"'data.{name}' must be a dense tensor (got {value.layout}; 'to_dense()' returns one)")
    x, edge_index = given.pop("x"), given.pop("edge_index")
    _check_features(x, least=2 if for_training else 1)
    try:
        check_edge_index(edge_index, len(x))
    except ValueError as error:
        raise DataError(f"'data' is not a graph: {error}") from None
    if "edge_weight" in given:
        _check_weights(given.pop("edge_weight"), edge_index.shape[1])
    for name, value in given.items():
        if value.shape != (len(x),):
            raise DataError(f"'data.{name}' must have shape ({len(x)},) (got {tuple(value.shape)})")
        is_mask = name in MASKS
        if value.dtype not in ((torch.bool,) if is_mask else INTEGERS):
            raise DataError(f"'data.{name}' must be {'boolean' if is_mask else 'integer'} (got {value.dtype})")
        if not is_mask and (lowest := int(value.min())) < -1:
            raise DataError(f"'data.{name}' must be -1 where it is not known, and at least 0 elsewhere (got {lowest})")
    _check_names(data, x.shape[1])
    if for_training:
        _check_splits({name: value for name, value in given.items() if name in MASKS})
        _warn_of_one_way_edges(edge_index, len(x))


def _check_kind(data: object) -> None:
    from torch_geometric.data import Batch, Data, HeteroData

    if isinstance(data, HeteroData):
        hint = "its 'to_homogeneous()' returns a Data, if all nodes have the same features"
        raise DataError(f"'data' must be a torch_geometric.data.Data (got HeteroData; {hint})")
    if isinstance(data, Batch):
        raise DataError(f"'data' must be one graph (got a Batch of {data.num_graphs})")
    if not isinstance(data, Data):
        raise DataError(f"'data' must be a torch_geometric.data.Data (got {type(data).__name__})")


def _check_features(x: Tensor, least: int) -> None:
    if x.dim() != 2 or x.shape[0] < least or x.shape[1] < 1 or not x.is_floating_point():
        got = f"shape {tuple(x.shape)}, {x.dtype}"
        raise DataError(f"'data.x' must be floating point features of shape (N, d), N at least {least} (got {got})")
    try:
        check_precision("data.x", x)
    except ValueError as error:
        raise DataError(f"{error}; 'data.x.float()' returns float32") from None
    bad = int((~torch.isfinite(x)).sum())
    if bad:
        raise DataError(f"'data.x' must be finite (got {bad} NaN or infinite entries)")
    used = torch.get_default_dtype()
    if x.dtype != used and bool(torch.isinf(x.to(used)).any()):
        got = f"(got {float(x.abs().max()):.1e})"
        raise DataError(f"'data.x' must be at most {torch.finfo(used).max:.1e} in absolute value {got}")


def _placed(values: Tensor, device: str | torch.device, dtype: torch.dtype) -> Tensor:
    values = values.detach().to(device, dtype)
    if not values.is_inference():
        return values
    with torch.inference_mode(False):  # no gradient can be computed with a tensor made in inference mode
        return values.clone()


def _check_weights(weight: Tensor, edges: int) -> None:
    if weight.shape != (edges,) or not weight.is_floating_point():
        got = f"shape {tuple(weight.shape)}, {weight.dtype}"
        raise DataError(f"'data.edge_weight' must be a floating point number for each of {edges} edges (got {got})")
    weight = weight.to(torch.get_default_dtype())  # in which it is used
    if bad := int((~(weight > 0) | torch.isinf(weight)).sum()):
        raise DataError(f"'data.edge_weight' must be positive and finite (got {bad} others)")
    beyond = weight[(weight < SMALLEST) | (weight > LARGEST)]
    if len(beyond):
        limits = f"at least {SMALLEST:g} and at most {LARGEST:g}"
        raise DataError(f"'data.edge_weight' must be {limits} (got {len(beyond)} others, such as {beyond[0]:g})")


def _check_splits(masks: dict[str, Tensor]) -> None:
    """Raise `DataError` if a node is in two splits: it would be judged by what it was trained with."""
    for (one, first), (other, second) in combinations(masks.items(), 2):
        if shared := int((first & second).sum()):
            raise DataError(f"'data.{one}' and 'data.{other}' must have no node in common (got {shared:,})")


def _check_names(data: "Data", features: int) -> None:
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
    # Edges with one direction only are rarely intended. Sorting takes a while, and most graphs have both directions. So
    # the first test is whether `r'(A - A')s = 0` for two random vectors of integers; a directed graph hardly passes it.
    generator = torch.Generator().manual_seed(0)
    r, s = torch.randint(-(2**62), 2**62, (2, nodes), generator=generator, device="cpu").to(edge_index.device)
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
