"""The graphs and classifiers of the tests of training in parts, and what the processes do with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairpass import methods
from fairpass.datasets.graph import GraphArrays, simple_graph
from fairpass.distributed.operator import PartOperator
from fairpass.distributed.task import PartTask
from fairpass.methods import NodeClassifier
from fairpass.methods.in_parts import evaluate_in_parts, fit_in_parts
from fairpass.nn.operators import OperatorKind
from fairpass.training import Training
from fairpass.world import SharedWorld

Array = NDArray[np.float32]
EPOCHS = 3


def awkward_graph(classes: int = 2, groups: int = 2, nodes: int = 240, *, weighted: bool = False) -> GraphArrays:
    """Return a graph whose parts differ in all they can: sizes, groups, labels, and whether nodes have neighbours."""
    random = np.random.default_rng(classes + 10 * groups)
    group = random.integers(groups, size=nodes)
    group[: nodes // 3] = 0  # the first parts lack the other groups
    label = (random.integers(classes, size=nodes) + (group == 0)) % classes
    x = random.normal(size=(nodes, 5)).astype(np.float32) + label[:, None] + 0.5 * group[:, None]
    source, target = random.integers(nodes - 20, size=(2, 4 * nodes))  # the last 20 have no neighbour
    source[: 3 * nodes] = random.integers(5, size=3 * nodes)  # a few have very many, so that parts have uneven sizes
    made = simple_graph(source, target, nodes, random.uniform(0.5, 2, len(source)) if weighted else None)
    split = random.integers(3, size=nodes)
    split[-nodes * 2 // 5 :] = 3  # the last part has no labels
    sens = np.where(random.random(nodes) < 0.05, -1, group)
    return GraphArrays(
        x=x.astype(np.float32),
        edge_index=made.edge_index,
        y=np.where(split == 3, -1, label),
        sens=sens,
        train_mask=split == 0,
        val_mask=split == 1,
        test_mask=split == 2,
        feature_names=[f"f{i}" for i in range(5)],
        sens_column=None,
        label_names=[f"l{i}" for i in range(classes)],
        group_names=[f"g{i}" for i in range(groups)],
        provenance={"title": "awkward"},
        edge_weight=None if made.edge_weight is None else made.edge_weight.astype(np.float32),
    )


def classifiers() -> dict[str, NodeClassifier]:
    """Return what can be trained in parts: every method, encoder, scale and criterion once."""
    fair, plain = Training(epochs=EPOCHS, learning_rate=0.03), Training(epochs=EPOCHS, threshold="accuracy")
    return {
        "gmmd": methods.GMMD(training=fair),
        "gmmd linear minmax": methods.GMMD(encoder="linear", scale="minmax", training=fair),
        "gmmd gcn norm": methods.GMMD(encoder="gcn", norm=True, num_layers=3, scale="standard", training=fair),
        "gmmd sage": methods.GMMD(encoder="sage", backbone="sage", momentum=False, training=fair),
        "gmmd eo": methods.GMMD(criterion="eo", training=fair),
        "gmmd paper's step": methods.GMMD(step="paper", lambda_f=0.1, bandwidth="fixed", columns="all", training=fair),
        "gmmd-s": methods.GMMDS(training=fair),
        "gcn": methods.GCN(dropout=0.0, training=plain),
        "gin": methods.GIN(dropout=0.0, training=plain),
        "sage": methods.SAGE(dropout=0.0, training=plain),
        "mlp": methods.MLPClassifier(dropout=0.0, training=plain),
        "mmd": methods.MMD(dropout=0.0, training=plain),
        "fmp": methods.FMP(training=plain),
    }


def fit_all(shared: SharedWorld, directory: Path, names: list[str], out: Path) -> dict[str, Any]:
    """Fit classifiers in parts; process 0 saves them. Return what each process knows of them."""
    task = PartTask(directory, shared)
    found = {}
    for name in names:
        model = classifiers()[name]
        fit_in_parts(model, task)
        if shared.rank == 0:
            model.save(out / f"{name}.safetensors")
        evaluation = evaluate_in_parts(model, task, undefined="nan")
        found[name] = (model.epoch_, model.threshold_, model.history_.to_list(), evaluation.to_dict())
    return found


def fit_as_the_command_does(shared: SharedWorld, directory: Path, out: Path, epochs: int, hidden: int) -> None:
    """Do what `fairpass train DIRECTORY --epochs EPOCHS --set hidden=HIDDEN` does; process 0 saves the model."""
    model = methods.GMMD(hidden=hidden, training=methods.GMMD.recommended_training.but(epochs=epochs))
    fit_in_parts(model, PartTask(directory, shared), save_to=out)


def fit_with_dropout(shared: SharedWorld, directory: Path) -> list[dict[str, Any]]:
    model = methods.GCN(dropout=0.5, training=Training(epochs=EPOCHS))
    fit_in_parts(model, PartTask(directory, shared))
    return model.history_.to_list()


def read(shared: SharedWorld, directories: list[Path]) -> str:
    """Return the error of a process that reads a part of its own directory."""
    try:
        PartTask(directories[shared.rank % len(directories)], shared)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def products(shared: SharedWorld, directory: Path, kind: OperatorKind, x: Array, grad: Array) -> tuple[Array, Array]:
    """Return the own rows of a product, and of its gradient; as arrays, because tensors are sent as files."""
    task = PartTask(directory, shared)
    operator = task.operator(kind)
    assert isinstance(operator, PartOperator)
    rows = slice(shared.first_node, shared.first_node + task.num_nodes)
    own = torch.from_numpy(x[rows]).requires_grad_()
    out = operator @ own
    (back,) = torch.autograd.grad(out, own, torch.from_numpy(grad[rows]))
    return out.detach().numpy(), back.numpy()


def sums(shared: SharedWorld, sizes: list[int]) -> dict[str, Any]:
    """Return what each operation of a world makes of the rows 0, 1, 2, ..., of which each process has some."""
    first = sum(sizes[: shared.rank])
    rows = torch.arange(first, first + sizes[shared.rank], dtype=torch.float64)[:, None].requires_grad_()
    mean = shared.mean(rows, 0)
    loss = shared.joint_loss(((rows - mean) ** 3).sum())
    torch.autograd.backward(loss)
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.full((2,), float(shared.rank + 1))
    shared.add_gradients([weight])
    return {
        "mean": float(mean),
        "loss": float(loss),
        "gradient": None if rows.grad is None else rows.grad.numpy(),
        "bounds": [float(end) for end in shared.bounds(rows, 0)],
        "count": shared.count(len(rows)),
        "before": shared.before(len(rows)),
        "sizes": shared.sizes(len(rows)),
        "mean square": shared.mean_square(batch_of_points(rows.detach())).tolist(),
        "known sizes": _messages_of(shared, lambda: shared.gather(rows.detach(), sizes)),
        "unknown sizes": _messages_of(shared, lambda: shared.gather(rows.detach())),
        "gathered": shared.gather(rows.detach())[:, 0].tolist(),
        "flags": shared.gather(rows.detach()[:, 0] > 2).tolist(),
        "weight": weight.grad.tolist(),
        "smallest": int(shared.smallest(torch.tensor(shared.rank + 5))),
        "broadcast": shared.broadcast(b"first" if shared.rank == 0 else None),
        "nothing": shared.broadcast(None),
    }


def batch_of_points(rows: torch.Tensor) -> torch.Tensor:
    """Return two problems of points in the plane; those of the second are far from the origin."""
    points = torch.cat([rows, rows.square()], 1)
    return torch.stack([points, 1e6 + points])


def _messages_of(shared: SharedWorld, call: Callable[[], object]) -> int:
    before = shared.messages.total()
    call()
    return shared.messages.total() - before


def disagree(shared: SharedWorld) -> str:
    """Return the error that every process gets if one fails."""

    def work() -> None:
        if shared.rank == 1:
            raise ValueError("'x' must be right (process 1 says)")

    try:
        shared.agree(work)
    except Exception as error:
        return str(error)
    return "no error"
