"""Fitting and evaluating a classifier on a graph that several processes share.

Every process makes the same calls inside one shared world (see `fairpass.world`), and has the same fitted classifier
afterwards, whose file is like any other.
"""

from collections.abc import Sequence
from typing import Any

import torch

from fairpass.datasets.graph import SplitName
from fairpass.distributed.task import PartTask
from fairpass.errors import DataError
from fairpass.methods.base import FilePath, NodeClassifier
from fairpass.metrics import Evaluation, evaluate
from fairpass.metrics.inputs import Undefined
from fairpass.training.loop import Callback
from fairpass.training.program import scores
from fairpass.world import world


def check_in_parts(model: NodeClassifier) -> None:
    """Raise `DataError` if a classifier cannot be trained on a graph in parts as it is."""
    from fairpass.methods.registry import method, names

    if not model.trains_in_parts:
        able = [name for name in names() if method(name).trains_in_parts]
        raise DataError(f"'method' must be one of {', '.join(able)} for a graph in parts (got {model.name!r})")
    encoder, backbone = getattr(model, "encoder", "mlp"), getattr(model, "backbone", "gcn")
    if encoder not in (kinds := ("mlp", "linear", "gcn", "sage")):
        raise DataError(f"'encoder' must be one of {', '.join(kinds)} for a graph in parts (got {encoder!r})")
    if backbone == "gat":
        raise DataError("'backbone' must not be 'gat' for a graph in parts: attention is not exchanged")
    if (sample := getattr(model, "sample", None)) is not None:
        raise DataError(f"'sample' must be None for a graph in parts, all of whose nodes take part (got {sample})")
    if model.postprocess != "none":
        raise DataError(f"'postprocess' must be 'none' for a graph in parts (got {model.postprocess!r})")


def fit_in_parts(
    model: NodeClassifier,
    task: PartTask,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: FilePath | None = None,
    save_to: FilePath | None = None,
) -> None:
    """Fit a classifier; arguments as for `NodeClassifier.fit`, and the first process has the files."""
    check_in_parts(model)
    kept = model.train_on(task, model.describe(task, task.manifest.graph), callbacks, checkpoint)
    if world().rank == 0:
        model.keep(save_to, kept)


@torch.no_grad()
def evaluate_in_parts(
    model: NodeClassifier, task: PartTask, split: SplitName = "test", *, undefined: Undefined = "error"
) -> Evaluation:
    """Return the accuracy and fairness on a split's labelled nodes of all processes."""
    program = model.program_.eval()
    reference: Any = "fitted" if program.keeps_reference else "batch"
    own = task.nodes(split)
    probabilities = program.score(task, reference, "none").softmax(-1)[own]
    y, sens, all_scores = map(world().gather, (task.y[own], task.sens[own], scores(probabilities)))
    if not len(y):
        raise DataError(f"'{split}_mask' must hold labelled nodes (got none)")
    return evaluate(
        y.cpu(),
        all_scores.cpu(),
        sens=sens.cpu(),
        threshold=0.5 if model.threshold_ is None else model.threshold_,
        group_names=task.group_names or None,
        label_names=task.label_names or None,
        undefined=undefined,
    )
