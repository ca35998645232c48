"""What is kept of one fitted model: its evaluation, the counts behind the page's tables and charts, and warnings."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from torch import Tensor
from torch_geometric.data import Data

from fairpass.files import finite
from fairpass.methods import Constant, NodeClassifier
from fairpass.metrics import Evaluation, evaluate
from fairpass.metrics.catalog import UNFAIRNESS
from fairpass.metrics.inputs import Sample
from fairpass.report.schema import Confusion, Histogram, Run, ThresholdCell, ThresholdCounts
from fairpass.report.text import listed, percent
from fairpass.training import History, Task
from fairpass.training.program import scores

# An AUC below this is hardly better than the 0.5 of random scores; an interval this wide cannot tell fair from unfair.
_WEAK_AUC, _WIDE = 0.55, 0.1
_RESAMPLES = 200
_BINS = 20
_EPOCHS_KEPT = 100
_BOTH: tuple[Literal[0], Literal[1]] = (0, 1)
# Thresholds between 0 and 1 that can be tried on the page; fewer with many groups, which would make the page large.
_STEPS, _STEPS_OF_MANY_GROUPS, _MANY_GROUPS = 1000, 200, 8


@dataclass(frozen=True)
class TestNodes:
    """The labelled test nodes: indices, labels, groups, and their names.

    Groups with fewer than `min_group` of them are not told apart: they are in one more group after the `known` ones,
    together with nodes of unknown group. If even these together are fewer, they are left out, because everything about
    them could be computed from the totals and the other groups.
    """

    task: Task
    index: Tensor
    y: NDArray[np.int64]
    group: NDArray[np.int64]
    labels: list[str]
    groups: list[str]
    known: int
    small: list[str]  # names of the groups that are too small to be told apart
    unknown: int  # nodes of unknown group
    left_out: int  # nodes that no figure is about

    __test__ = False  # the name looks like a test to pytest

    @classmethod
    def of(cls, task: Task, min_group: int = 1) -> "TestNodes":
        index = task.nodes("test")
        labels = task.label_names or [str(label) for label in range(task.num_classes)]
        names = task.group_names or [str(group) for group in range(task.num_groups)]
        group = task.sens[index].numpy()
        unknown = int((group < 0).sum())
        sizes = np.bincount(group[group >= 0], minlength=len(names))
        is_small = sizes < min_group
        kept, small = ([name for name, hide in zip(names, is_small, strict=True) if hide == each] for each in (0, 1))
        places = np.append(np.where(is_small, len(kept), np.cumsum(~is_small) - 1), len(kept))
        group = places[group]  # an unknown group, -1, has the last place
        others, left_out = int((group == len(kept)).sum()), 0
        if 0 < others < min_group:
            index, group, left_out = index[torch.from_numpy(group < len(kept))], group[group < len(kept)], others
        elif others:
            kept = [*kept, "of unknown group" if not sizes[is_small].sum() else "of small or unknown group"]
        known = int((~is_small).sum())
        return cls(task, index, task.y[index].numpy(), group, labels, kept, known, small, unknown, left_out)

    @property
    def sens(self) -> NDArray[np.int64]:
        """The group of each node, negative if it is unknown or too small."""
        return np.where(self.group < self.known, self.group, -1)


class Predicted:
    """What a fitted model says of the test nodes."""

    def __init__(self, model: NodeClassifier, data: Data, nodes: TestNodes) -> None:
        every = model.predict_proba(data)
        self.model, self.nodes, self.scores = model, nodes, scores(every[nodes.index])
        self.labels = model.decide(data, every, nodes.index).numpy()

    @property
    def columns(self) -> NDArray[np.float64]:
        """Scores `[N, C]`, one column for each label."""
        values = self.scores.numpy().astype(np.float64)
        return np.stack([1 - values, values], axis=1) if values.ndim == 1 else values

    def sample(self) -> Sample:
        """Return the decisions as the metrics take them."""
        nodes = self.nodes
        names = (nodes.groups[: nodes.known], nodes.labels)
        return Sample(nodes.y, self.labels, nodes.sens, *names, self.scores)

    def evaluate(self) -> Evaluation:
        by_group = self.model.group_thresholds_ is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # the page says so instead
            return evaluate(
                self.nodes.y,
                self.scores,
                sens=self.nodes.sens,
                threshold=0.5 if self.model.threshold_ is None else self.model.threshold_,
                decisions=self.labels if by_group else None,
                group_names=self.nodes.groups[: self.nodes.known],
                label_names=self.nodes.labels,
                undefined="nan",
                bootstrap=_RESAMPLES,
            )


def measure(predicted: Predicted) -> Run:
    """Return the record of one run: the predictions for the test nodes, counted in several ways."""
    model, nodes = predicted.model, predicted.nodes
    # Scores of each group in equal bins, for the positive label or for each.
    columns, labels = predicted.columns, nodes.labels
    first = 1 if len(labels) == 2 else 0
    edges = np.linspace(0, 1, _BINS + 1)
    histograms: list[Histogram] = [
        {
            "label": labels[place],
            "group": group,
            "counts": np.histogram(columns[nodes.group == number, place], edges)[0].tolist(),
        }
        for place in range(first, len(labels))
        for number, group in enumerate(nodes.groups)
    ]
    rules = model.group_thresholds_
    return {
        "seed": model.training.seed,
        "epoch": model.epoch_,
        "epochs": len(model.history_),
        "threshold": model.threshold_,
        "group_thresholds": None if rules is None else rules.to_dict(),
        "evaluation": finite(predicted.evaluate().to_dict()),
        "predicted": np.bincount(predicted.labels, minlength=len(labels)).tolist(),
        "confusion": confusions(nodes.y, predicted.labels, nodes.group, nodes.groups, len(labels)),
        "histograms": histograms,
        "history": _thinned(model.history_, model.epoch_),
    }


def confusions(
    y: NDArray[np.int64], predicted: NDArray[np.int64], group: NDArray[np.int64], names: Sequence[str], labels: int
) -> list[Confusion]:
    """Return the nodes of each group by true label (rows) and predicted label (columns); a negative group is none."""
    counts = np.zeros((len(names), labels, labels), dtype=np.int64)
    known = group >= 0
    np.add.at(counts, (group[known], y[known], predicted[known]), 1)
    return [{"group": name, "counts": each.tolist()} for name, each in zip(names, counts, strict=True)]


def threshold_counts(predicted: Predicted, min_group: int) -> ThresholdCounts | None:
    """Return the counts behind the metrics at every threshold the page offers; None without a single threshold.

    `thresholds` holds the steps and the model's own threshold. In `cells`, for each pair of group and label,
    `counts[k]` nodes have a score above the first `k` thresholds and no other. So the counts at every threshold are
    exact. A group with fewer than `min_group` nodes of a label counts for the totals only.
    """
    model, nodes = predicted.model, predicted.nodes
    if model.threshold_ is None:
        return None
    steps = _STEPS if len(nodes.groups) <= _MANY_GROUPS else _STEPS_OF_MANY_GROUPS
    thresholds = np.unique([*(np.arange(steps + 1) / steps), model.threshold_])
    values = predicted.scores.numpy()
    # In the scores' own precision, in which a model compares them.
    above = np.searchsorted(thresholds.astype(values.dtype), values, side="left")
    counts = np.zeros((len(nodes.groups), 2, len(thresholds) + 1), dtype=np.int64)
    np.add.at(counts, (nodes.group, nodes.y, above), 1)
    told = [number < nodes.known and int(counts[number].sum(-1).min()) >= min_group for number in range(len(counts))]
    hidden = counts[[not each for each in told]].sum(0)
    parts: list[tuple[str | None, Any]] = [(n, counts[i]) for i, n in enumerate(nodes.groups) if told[i]]
    parts += [(None, hidden)] if hidden.any() else []
    cells: list[ThresholdCell] = [
        {"group": group, "label": label, "counts": of_group[label].tolist()}
        for group, of_group in parts
        for label in _BOTH
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


def interval(run: Run, key: str) -> tuple[float | None, float | None]:
    """Return the ends of a metric's confidence interval in one run."""
    ends = run["evaluation"]["intervals"].get(key) or {"low": None, "high": None}
    return ends["low"], ends["high"]


def flags(method: str, runs: Sequence[Run], labels: Sequence[str], majority: tuple[str, float]) -> Iterator[str]:
    """Yield warnings about a method, the most serious first; the model is that of the first run.

    `majority` is the most frequent label of the test nodes, and its share.
    """
    if method == Constant.name:
        yield "predicts the same for every node: it is fair, but of no use, and here for comparison"
        return
    first = runs[0]["evaluation"]
    if constant := [run for run in runs if run["evaluation"]["near_constant"]]:
        predicted = constant[0]["predicted"]
        most = max(range(len(labels)), key=predicted.__getitem__)
        where = "" if len(runs) == 1 else f" in {len(constant)} of {len(runs)} trainings"
        everybody = percent(predicted[most] / sum(predicted), 0)
        yield f"predicts {labels[most]!r} for {everybody} % of the nodes{where}: its fairness is not informative"
    label, share = majority
    if first["acc"] <= share:
        yield f"is not more accurate than giving {label!r} to every node, which is right for {percent(share)} %"
    if first["auc"] is not None and first["auc"] < _WEAK_AUC:
        yield f"ranks the nodes hardly better than chance (AUC {percent(first['auc'])})"
    if undefined := [m.symbol for m in UNFAIRNESS if first[m.key] is None]:
        yield f"has no {listed(undefined)} here: a group, or a label within a group, is missing from the test nodes"
    wide = []
    for metric in UNFAIRNESS:
        low, high = interval(runs[0], metric.key)
        if low is not None and high is not None and high - low >= _WIDE:
            wide.append(f"{metric.symbol} from {percent(low)} to {percent(high)}")
    if wide:
        yield f"is measured on few nodes: the 95 % intervals are wide, {listed(wide)}"
