"""What is kept of one fitted model: its evaluation, the counts behind the page's tables and charts, and warnings."""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from torch import Tensor
from torch_geometric.data import Data

from fairpass.files import finite
from fairpass.methods import Constant, NodeClassifier
from fairpass.metrics.catalog import UNFAIRNESS
from fairpass.report.text import listed, percent
from fairpass.training import History, Task
from fairpass.training.program import scores

# An AUC below this is hardly better than the 0.5 of random scores; an interval this wide cannot tell fair from unfair.
_WEAK_AUC, _WIDE = 0.55, 0.1
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

    task: Task
    index: Tensor
    y: NDArray[np.int64]
    group: NDArray[np.int64]
    labels: list[str]
    groups: list[str]
    known: int

    __test__ = False  # the name looks like a test to pytest

    @classmethod
    def of(cls, task: Task) -> "TestNodes":
        index = task.nodes("test")
        labels = task.label_names or [str(label) for label in range(task.num_classes)]
        groups = task.group_names or [str(group) for group in range(task.num_groups)]
        group, known = task.sens[index].numpy(), len(groups)
        if (group < 0).any():
            group, groups = np.where(group < 0, known, group), [*groups, "of unknown group"]
        return cls(task, index, task.y[index].numpy(), group, labels, groups, known)


def measure(model: NodeClassifier, data: Data, nodes: TestNodes) -> dict[str, Any]:
    """Return the record of one run: the predictions for the test nodes, counted in several ways."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # the page says so instead
        evaluation = model.evaluate(data, undefined="nan", bootstrap=_RESAMPLES).to_dict()
    every = model.predict_proba(data)
    predicted = model.decide(data, every, nodes.index).numpy()
    # Nodes of each group by true label (rows) and predicted label (columns).
    confusion = np.zeros((len(nodes.groups), len(nodes.labels), len(nodes.labels)), dtype=np.int64)
    np.add.at(confusion, (nodes.group, nodes.y, predicted), 1)
    # Scores of each group in equal bins, for the positive label or for each.
    values = scores(every[nodes.index]).numpy().reshape(len(nodes.y), -1)
    edges, labels = np.linspace(0, 1, _BINS + 1), nodes.labels[1:] if values.shape[1] == 1 else nodes.labels
    histograms = [
        {"label": label, "group": group, "counts": np.histogram(column[nodes.group == place], edges)[0].tolist()}
        for label, column in zip(labels, values.T, strict=True)
        for place, group in enumerate(nodes.groups)
    ]
    rules = model.group_thresholds_
    return {
        "seed": model.training.seed,
        "epoch": model.epoch_,
        "epochs": len(model.history_),
        "threshold": model.threshold_,
        "group_thresholds": None if rules is None else rules.to_dict(),
        "evaluation": finite(evaluation),
        "predicted": np.bincount(predicted, minlength=len(nodes.labels)).tolist(),
        "confusion": [{"group": g, "counts": c.tolist()} for g, c in zip(nodes.groups, confusion, strict=True)],
        "histograms": histograms,
        "history": _thinned(model.history_, model.epoch_),
    }


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


def _rounded(value: Any) -> Any:
    return finite(float(f"{value:.4g}")) if isinstance(value, float) else value


def mean_interval(runs: Sequence[dict[str, Any]], key: str) -> tuple[float | None, float | None]:
    """Return the ends of a metric's confidence interval, each the mean of the runs' ends."""
    found = [run["evaluation"]["intervals"].get(key) for run in runs]
    known = [(ends["low"], ends["high"]) for ends in found if ends and None not in (ends["low"], ends["high"])]
    low, high = (fmean(ends) for ends in zip(*known, strict=True)) if known else (None, None)
    return low, high


def flags(
    method: str, runs: Sequence[dict[str, Any]], labels: Sequence[str], majority: tuple[str, float]
) -> Iterator[str]:
    """Yield warnings about the runs of a method, the most serious first.

    `majority` is the most frequent label of the test nodes, and its share.
    """
    if method == Constant.name:
        yield "predicts the same for every node: it is fair, but of no use, and here for comparison"
        return
    if constant := [run for run in runs if run["evaluation"]["near_constant"]]:
        predicted = constant[0]["predicted"]
        most = max(range(len(labels)), key=predicted.__getitem__)
        where = "" if len(runs) == 1 else f" in {len(constant)} of {len(runs)} runs"
        everybody = percent(predicted[most] / sum(predicted), 0)
        yield f"predicts {labels[most]!r} for {everybody} % of the nodes{where}: its fairness is not informative"
    label, share = majority
    if _mean(runs, "acc") <= share:
        yield f"is not more accurate than giving {label!r} to every node, which is right for {percent(share)} %"
    if (auc := _mean(runs, "auc")) < _WEAK_AUC:
        yield f"ranks the nodes hardly better than chance (AUC {percent(auc)})"
    if undefined := [m.symbol for m in UNFAIRNESS if any(run["evaluation"][m.key] is None for run in runs)]:
        yield f"has no {listed(undefined)} here: a group, or a label within a group, is missing from the test nodes"
    wide = []
    for metric in UNFAIRNESS:
        low, high = mean_interval(runs, metric.key)
        if low is not None and high is not None and high - low >= _WIDE:
            wide.append(f"{metric.symbol} from {percent(low)} to {percent(high)}")
    if wide:
        yield f"is measured on few nodes: the 95 % intervals are wide, {listed(wide)}"


def _mean(runs: Sequence[dict[str, Any]], key: str) -> float:
    values = [run["evaluation"][key] for run in runs]
    return math.nan if None in values else fmean(values)
