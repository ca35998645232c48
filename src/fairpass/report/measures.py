"""What is kept of one fitted model: its evaluation, and the counts behind the page's tables and charts."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from torch import Tensor
from torch_geometric.data import Data

from fairpass.files import finite
from fairpass.methods import NodeClassifier
from fairpass.training import History, Task
from fairpass.training.program import scores

_RESAMPLES = 200
_BINS = 20
_EPOCHS_KEPT = 100
# Thresholds between 0 and 1 that can be tried on the page; fewer with many groups, which would make the page large.
_STEPS, _STEPS_OF_MANY_GROUPS, _MANY_GROUPS = 1000, 200, 8


@dataclass(frozen=True)
class TestNodes:
    """The labelled test nodes: indices, labels, groups, and their names.

    Nodes of unknown group, if any, are one more group after the `known` ones.
    """

    index: Tensor
    y: NDArray[np.int64]
    group: NDArray[np.int64]
    labels: list[str]
    groups: list[str]
    known: int

    __test__ = False  # the name looks like a test to pytest

    @classmethod
    def of(cls, task: Task) -> "TestNodes":
        """Return the test nodes of a graph; labels and groups without names are named by their numbers."""
        index = task.nodes("test")
        labels = task.label_names or [str(label) for label in range(task.num_classes)]
        groups = task.group_names or [str(group) for group in range(task.num_groups)]
        group, known = task.sens[index].numpy(), len(groups)
        if (group < 0).any():
            group, groups = np.where(group < 0, known, group), [*groups, "of unknown group"]
        return cls(index, task.y[index].numpy(), group, labels, groups, known)


def measure(model: NodeClassifier, data: Data, nodes: TestNodes) -> dict[str, Any]:
    """Return the record of one run: the predictions for the test nodes, counted in several ways."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # the page says so instead
        evaluation = model.evaluate(data, undefined="nan", bootstrap=_RESAMPLES).to_dict()
    every = model.predict_proba(data)
    predicted = model.decide(data, every, nodes.index).numpy()
    values = scores(every[nodes.index]).numpy().reshape(len(nodes.y), -1)
    return {
        "seed": model.training.seed,
        "epoch": model.epoch_,
        "epochs": len(model.history_),
        "threshold": model.threshold_,
        "group_thresholds": None if model.group_thresholds_ is None else model.group_thresholds_.to_dict(),
        "evaluation": finite(evaluation),
        "predicted": np.bincount(predicted, minlength=len(nodes.labels)).tolist(),
        "confusion": _confusion(nodes, predicted),
        "histograms": _histograms(nodes, values),
        "history": _thinned(model.history_, model.epoch_),
    }


def _confusion(nodes: TestNodes, predicted: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Count the nodes of each group by true label (rows) and predicted label (columns)."""
    counts = np.zeros((len(nodes.groups), len(nodes.labels), len(nodes.labels)), dtype=np.int64)
    np.add.at(counts, (nodes.group, nodes.y, predicted), 1)
    return [{"group": group, "counts": rows.tolist()} for group, rows in zip(nodes.groups, counts, strict=True)]


def _histograms(nodes: TestNodes, values: NDArray[Any]) -> list[dict[str, Any]]:
    """Count the scores of each group in equal bins, for the positive label or for each."""
    labels = nodes.labels[1:] if values.shape[1] == 1 else nodes.labels
    edges = np.linspace(0, 1, _BINS + 1)
    return [
        {"label": label, "group": group, "counts": np.histogram(column[nodes.group == number], edges)[0].tolist()}
        for label, column in zip(labels, values.T, strict=True)
        for number, group in enumerate(nodes.groups)
    ]


def threshold_counts(model: NodeClassifier, data: Data, nodes: TestNodes) -> dict[str, Any] | None:
    """Return the counts behind the metrics at every threshold the page offers; None without a single threshold.

    `thresholds` holds the steps and the model's own threshold. In `cells`, for each pair of group and label,
    `counts[k]` nodes have a score above the first `k` thresholds and no other. So the counts at every threshold are
    exact, and no score of a single node is disclosed.
    """
    if model.threshold_ is None:
        return None
    steps = _STEPS if len(nodes.groups) <= _MANY_GROUPS else _STEPS_OF_MANY_GROUPS
    thresholds = np.unique([*(np.arange(steps + 1) / steps), model.threshold_])
    values = model.predict_proba(data)[nodes.index, 1].numpy()
    # In the scores' own precision, in which a model compares them.
    above = np.searchsorted(thresholds.astype(values.dtype), values, side="left")
    counts = np.zeros((len(nodes.groups), 2, len(thresholds) + 1), dtype=np.int64)
    np.add.at(counts, (nodes.group, nodes.y, above), 1)
    cells = [
        {"group": group if number < nodes.known else None, "label": label, "counts": counts[number, label].tolist()}
        for number, group in enumerate(nodes.groups)
        for label in (0, 1)
    ]
    return {"thresholds": thresholds.tolist(), "own": model.threshold_, "cells": cells}


def _thinned(history: History, selected: int) -> dict[str, list[Any]]:
    """Return the columns of at most a hundred epochs, the first, the last and the selected one among them."""
    last = len(history) - 1
    evenly = np.linspace(0, last, min(last + 1, _EPOCHS_KEPT - 1)).round().astype(int)
    rows = [history[epoch].flat() for epoch in sorted({*evenly.tolist(), selected})]
    names = [name for name in rows[0] if name not in {"selection", "threshold", "bound"}]
    return {name: [_rounded(row.get(name)) for row in rows] for name in names}


def _rounded(value: float | None) -> float | int | None:
    if value is None or isinstance(value, int):
        return value
    return float(f"{value:.4g}") if math.isfinite(value) else None
