import copy
from collections.abc import Callable
from typing import Any, cast, get_args

import pytest
import torch
from tests.methods.ingredients import small_graph
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from fairpass.datasets.graph import SplitName
from fairpass.errors import DataError
from fairpass.nn.operators import OperatorKind
from fairpass.training import Task, fingerprint
from fairpass.training.task import RememberedTask


def having(data: Data, **attributes: Any) -> Data:
    """Return the graph with some attributes replaced."""
    other = copy.copy(data)
    for name, value in attributes.items():
        other[name] = value
    return other


@pytest.mark.parametrize("pair", [("train", "val"), ("train", "test"), ("val", "test")])
def test_a_node_in_two_splits_is_refused(pair: tuple[str, str]) -> None:
    graph = small_graph()
    one, other = (f"{name}_mask" for name in pair)
    graph[other] = graph[other] | (graph[one] & (graph[one].cumsum(0) <= 3))
    with pytest.raises(DataError, match=rf"'data.{one}' and 'data.{other}' must have no node in common \(got 3\)"):
        Task(graph)


@pytest.mark.parametrize("name", ["y", "sens"])
def test_a_label_below_minus_one_is_refused(name: str) -> None:
    graph = small_graph()
    graph[name] = torch.where(torch.arange(graph.num_nodes or 0) == 3, -5, graph[name])
    with pytest.raises(DataError, match=rf"'data.{name}' must be -1 where it is not known, .* \(got -5\)"):
        Task(graph)


def test_tensors_and_sizes(data: Data) -> None:
    data.sens[0] = -1
    task = Task(data)
    assert (task.num_nodes, task.num_features, task.num_classes, task.num_groups) == (120, 4, 2, 2)
    assert task.group_sizes == (int((data.sens == 0).sum()), int((data.sens == 1).sum()))
    assert torch.equal(task.train_nodes, torch.nonzero(data.train_mask).flatten())
    assert task.device == torch.device("cpu")
    assert task.feature_names == data.feature_names


def test_types_are_those_that_networks_take(data: Data) -> None:
    narrow = having(data, x=data.x.double(), y=data.y.to(torch.int8), sens=data.sens.to(torch.int32))
    task = Task(narrow)
    assert (task.x.dtype, task.y.dtype, task.sens.dtype) == (torch.float32, torch.long, torch.long)
    assert torch.equal(task.x, data.x)
    assert narrow.x.dtype == torch.float64


def test_unlabelled_nodes_are_in_no_split(data: Data) -> None:
    data.y[::2] = -1
    task = Task(data)
    for split in ("train", "val", "test"):
        nodes = task.nodes(split)
        assert torch.equal(nodes, torch.nonzero(data[f"{split}_mask"] & (data.y >= 0)).flatten())
        assert len(nodes) < int(data[f"{split}_mask"].sum())


def test_operators_are_built_once(task: Task) -> None:
    for kind in get_args(OperatorKind):
        operator = task.operator(kind)
        assert operator.kind == kind
        assert task.operator(kind) is operator
    assert task.groups is task.groups


def test_a_new_graph_needs_features_and_edges_only(data: Data) -> None:
    task = Task(Data(x=data.x, edge_index=data.edge_index), need_masks=False)
    assert bool((task.y == -1).all())
    assert bool((task.sens == -1).all())
    assert (task.num_classes, task.masks) == (2, {})
    with pytest.raises(DataError, match="'sens' must name at least two groups"):
        _ = task.groups
    with pytest.raises(DataError, match=r"'data' must have 'test_mask' \(it is missing"):
        task.nodes("test")
    with pytest.raises(ValueError, match=r"'split' must be one of .* \(got 'dev'"):
        task.nodes(cast(SplitName, "dev"))


def spoiled(tensor: Tensor, value: float) -> Tensor:
    changed = tensor.clone()
    changed.view(-1)[0] = value
    return changed


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: d.to_dict(), r"must be a torch_geometric.data.Data \(got dict"),
        (lambda d: HeteroData(), r"must be a torch_geometric.data.Data \(got HeteroData"),
        (lambda d: Data(x=d.x), r"must have .* \(missing: edge_index, y, sens, train_mask, val_mask\)"),
        (lambda d: having(d, y=d.y.tolist()), r"'data.y' must be a tensor \(got list"),
        (lambda d: having(d, x=d.x[:, 0]), r"'data.x' must be .* shape \(N, d\), .* shape \(120,\)"),
        (lambda d: having(d, x=d.x[:, :0]), r"'data.x' must be .* shape \(N, d\), .* shape \(120, 0\)"),
        (lambda d: having(d, x=d.x.long()), "'data.x' must be floating point .*torch.int64"),
        (
            lambda d: having(d, x=d.x.half()),
            r"'data.x' must be float32 or float64 \(got float16\); 'data.x.float\(\)' returns float32$",
        ),
        (lambda d: having(d, x=d.x.bfloat16()), r"'data.x' must be float32 or float64 \(got bfloat16\)"),
        (lambda d: having(d, x=spoiled(d.x, torch.nan)), r"'data.x' must be finite \(got 1 NaN or infinite"),
        (lambda d: having(d, x=spoiled(d.x, -torch.inf)), r"'data.x' must be finite \(got 1 NaN or infinite"),
        (lambda d: having(d, x=spoiled(d.x.double(), 1e300)), r"'data.x' must be at most 3.4e\+38 .*\(got 1.0e\+300\)"),
        (lambda d: having(d, x=d.x.to_sparse()), r"'data.x' must be a dense tensor \(got torch.sparse_coo"),
        (
            lambda d: having(d, edge_weight=torch.full((d.num_edges,), 1e300, dtype=torch.float64)),
            "'data.edge_weight' must be positive and finite",
        ),
        (lambda d: having(d, edge_index=d.edge_index.T), "'edge_index' must be an integer tensor of shape"),
        (lambda d: having(d, edge_index=spoiled(d.edge_index, 120)), "must name nodes from 0 to 119"),
        (lambda d: having(d, y=d.y[:-1]), r"'data.y' must have shape \(120,\) \(got \(119,\)"),
        (lambda d: having(d, y=d.y.float()), r"'data.y' must be integer \(got torch.float32"),
        (lambda d: having(d, sens=d.sens == 1), r"'data.sens' must be integer \(got torch.bool"),
        (lambda d: having(d, val_mask=d.val_mask.long()), r"'data.val_mask' must be boolean \(got torch.int64"),
        (lambda d: having(d, test_mask=d.test_mask[:, None]), r"'data.test_mask' must have shape \(120,\)"),
        (lambda d: having(d, feature_names=["a"]), r"'data.feature_names' must name the 4 features \(got 1"),
        (lambda d: having(d, label_names=["a"]), r"'data.label_names' must name every index up to 1 \(got 1"),
        (lambda d: having(d, group_names=["a"]), r"'data.group_names' must name every index up to 1 \(got 1"),
        (lambda d: having(d, sens_column=4), r"'data.sens_column' must be a column of 'data.x', 0 to 3 \(got 4"),
    ],
)
def test_unsuitable_data(data: Data, spoil: Callable[[Data], Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Task(spoil(data))


def test_groups_are_numbered_without_gaps(data: Data) -> None:
    with pytest.raises(DataError, match="without gaps"):
        _ = Task(having(data, sens=data.sens * 2, group_names=["a", "b", "c"])).groups


def test_every_label_and_group_must_be_in_a_split(data: Data) -> None:
    Task(data).check_split("train")
    data.group_names = ["red", "blue"]
    only_red = having(data, val_mask=data.val_mask & (data.sens == 0))
    with pytest.raises(DataError, match=r"every group must occur in the 'val' split \(got none of blue"):
        Task(only_red).check_split("val")
    with pytest.raises(DataError, match=r"every label must occur in the 'train' split \(got none of 0, 1"):
        Task(having(data, y=torch.full_like(data.y, -1))).check_split("train")
    with pytest.raises(DataError, match=r"every group must occur in the 'val' split \(got none of 0, 1"):
        Task(having(data, sens=torch.full_like(data.sens, -1), group_names=[])).check_split("val")


def test_remembered_sizes_stand_in_for_a_graph(task: Task) -> None:
    remembered = RememberedTask(task.sizes())
    for name in ("num_features", "num_classes", "num_groups", "group_sizes", "sens_column", "label_names"):
        assert getattr(remembered, name) == getattr(task, name)
    assert remembered.sizes() == task.sizes()
    with pytest.raises(AttributeError):
        _ = remembered.x


def test_fingerprint_is_of_the_content(data: Data) -> None:
    same = copy.deepcopy(data)
    same.provenance = {"source": "elsewhere"}
    assert fingerprint(same) == fingerprint(data)
    others = [
        having(data, x=spoiled(data.x, 0.0)),
        having(data, x=data.x.double()),
        having(data, y=spoiled(data.y, -1)),
        having(data, sens=1 - data.sens),
        having(data, edge_index=data.edge_index[:, 1:]),
        having(data, train_mask=data.val_mask, val_mask=data.train_mask),
        having(data, sens_column=1),
        having(data, label_names=["0", "1", "2"]),
    ]
    assert len({fingerprint(graph) for graph in (data, *others)}) == len(others) + 1
