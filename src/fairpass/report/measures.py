"""What is kept of one fitted model: its evaluation, and the counts that the page's tables and charts need."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from torch import Tensor
from torch_geometric.data import Data

from fairpass.methods import NodeClassifier
from fairpass.training import History, Task
from fairpass.training.program import scores

_RESAMPLES = 200
_BINS = 20
_EPOCHS_KEPT = 100
# Thresholds between 0 and 1 that can be tried on the page; fewer where many groups would make it heavy.
_STEPS, _STEPS_OF_MANY_GROUPS, _MANY_GROUPS = 1000, 200, 8


@dataclass(frozen=True)
class TestNodes:
    """The labelled test nodes: their indices, labels and groups, and what these are called.

    Nodes of unknown group, if there are any, are one more group after the `known` ones.
    """

    index: Tensor
    y: NDArray[np.int64]
    group: NDArray[np.int64]
    labels: list[str]
    groups: list[str]
    known: int

    __test__ = False  # to pytest the name looks like a test

    @classmethod
    def of(cls, task: Task) -> "TestNodes":
        """Return the test nodes of a graph."""
        index = task.nodes("test")
        group = task.sens[index].numpy()
        groups = group_names(task)
        known = len(groups)
        if (group < 0).any():
            group, groups = np.where(group < 0, known, group), [*groups, "of unknown group"]
        return cls(index, task.y[index].numpy(), group, label_names(task), groups, known)


def label_names(task: Task) -> list[str]:
    """Return the names of the labels, or their numbers if they have none."""
    return task.label_names or [str(label) for label in range(task.num_classes)]


def group_names(task: Task) -> list[str]:
    """Return the names of the groups, or their numbers if they have none."""
    return task.group_names or [str(group) for group in range(task.num_groups)]


def measure(model: NodeClassifier, data: Data, nodes: TestNodes) -> dict[str, Any]:
    """Return the record of one run: what the model predicts for the test nodes, counted in several ways."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # the page says so instead
        evaluation = model.evaluate(data, undefined="nan", bootstrap=_RESAMPLES).to_dict()
    every = model.predict_proba(data)
    probabilities = every[nodes.index]
    predicted = model.decide(data, every, nodes.index).numpy()
    values = scores(probabilities).numpy().reshape(len(nodes.y), -1)
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
    """Return for each group how many nodes of each true label (rows) were predicted to be of each (columns)."""
    classes = len(nodes.labels)
    made = []
    for number, group in enumerate(nodes.groups):
        inside = nodes.group == number
        pairs = nodes.y[inside] * classes + predicted[inside]
        counts = np.bincount(pairs, minlength=classes**2).reshape(classes, classes)
        made.append({"group": group, "counts": counts.tolist()})
    return made


def _histograms(nodes: TestNodes, values: NDArray[Any]) -> list[dict[str, Any]]:
    """Return for each group how its scores are spread over equal bins, for the positive label or for each."""
    labels = nodes.labels[1:] if values.shape[1] == 1 else nodes.labels
    edges = np.linspace(0, 1, _BINS + 1)
    return [
        {
            "label": label,
            "group": group,
            "counts": np.histogram(column[nodes.group == number], edges)[0].tolist(),
        }
        for label, column in zip(labels, values.T, strict=True)
        for number, group in enumerate(nodes.groups)
    ]


def threshold_counts(model: NodeClassifier, data: Data, nodes: TestNodes) -> dict[str, Any] | None:
    """Return what decides the metrics at every threshold the page offers; None if there is no single threshold.

    `thresholds` has the steps and the model's own threshold among them. In `cells`, for each pair of group and
    label, `counts[k]` nodes have a score above the first `k` thresholds and no other. So the counts at any of the
    thresholds are exact, and no node's score is given away.
    """
    if model.threshold_ is None:
        return None
    steps = _STEPS if len(nodes.groups) <= _MANY_GROUPS else _STEPS_OF_MANY_GROUPS
    thresholds = np.unique([*(np.arange(steps + 1) / steps), model.threshold_])
    values = model.predict_proba(data)[nodes.index, 1].numpy()
    # In the scores' own precision, for that is how a model compares them.
    above = np.searchsorted(thresholds.astype(values.dtype), values, side="left")
    cells = [
        {
            "group": group if number < nodes.known else None,
            "label": label,
            "counts": np.bincount(
                above[(nodes.group == number) & (nodes.y == label)], minlength=len(thresholds) + 1
            ).tolist(),
        }
        for number, group in enumerate(nodes.groups)
        for label in (0, 1)
    ]
    return {"thresholds": thresholds.tolist(), "own": model.threshold_, "cells": cells}


def _thinned(history: History, selected: int) -> dict[str, list[Any]]:
    """Return the columns of at most a hundred epochs, the first, the last and the selected among them."""
    last = len(history) - 1
    evenly = np.linspace(0, last, min(last + 1, _EPOCHS_KEPT - 1)).round().astype(int)
    kept = sorted({*evenly.tolist(), selected})
    rows = [history[epoch].flat() for epoch in kept]
    names = [name for name in rows[0] if name not in {"selection", "threshold", "bound"}]
    return {name: [_short(row.get(name)) for row in rows] for name in names}


def _short(value: float | None) -> float | int | None:
    if value is None or isinstance(value, int):
        return value
    return float(f"{value:.4g}") if math.isfinite(value) else None


def finite(value: Any) -> Any:
    """Return plain values with None in the place of what JSON cannot hold."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
