"""From fitted models and their graph to the evidence of a report."""

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from fairpass import __version__
from fairpass.datasets import describe, find_bias
from fairpass.datasets.graph_gain import graph_gain
from fairpass.errors import NotFittedError
from fairpass.methods import Constant, NodeClassifier
from fairpass.report.bounds import bounds
from fairpass.report.evidence import Evidence
from fairpass.report.flags import flags
from fairpass.report.measures import TestNodes, finite, group_names, label_names, measure, threshold_counts
from fairpass.report.neighbourhoods import neighbourhoods
from fairpass.report.points import described
from fairpass.training import Task, fingerprint
from fairpass.tuning import Point

_LIBRARIES = ("torch", "torch-geometric", "numpy", "scikit-learn", "fairlearn")
_SPLITS = {"train": "training", "val": "validation", "test": "test"}


def collect(
    data: Data,
    models: Mapping[str, Sequence[NodeClassifier]],
    *,
    title: str,
    question: str = "",
    chosen: str | None = None,
    points: Sequence[Point] = (),
    choice: str = "",
) -> Evidence:
    """Measure fitted models on the test nodes of their graph, and keep all that a report shows.

    Args:
        data: the graph; not modified.
        models: fitted classifiers by the name to show, one for each seed. Tables are over all seeds; charts,
            group tables and the threshold are of the first.
        title: of the report.
        question: what the audit is to find out.
        chosen: name of the method the report speaks for; by default the last that is not constant.
        points: the configurations that tuning tried.
        choice: how the chosen method or point was chosen, in a sentence.
    """
    chosen = _check(models, chosen)
    task = Task(data)
    nodes = TestNodes.of(task)
    firsts = {name: runs[0] for name, runs in models.items()}
    counts = np.bincount(nodes.y, minlength=len(nodes.labels))
    majority = (nodes.labels[int(counts.argmax())], float(counts.max() / counts.sum()))
    statistics = describe(data, leakage_auc=True)
    return Evidence(
        title=title,
        question=question,
        chosen=chosen,
        choice=choice,
        made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        data=_data(data, task),
        bias={
            "statistics": statistics.to_dict(),
            "findings": [found.to_dict() for found in find_bias(statistics)],
            "graph_gain": graph_gain(data).to_dict(),
        },
        methods=[_method(name, runs, data, nodes, majority) for name, runs in models.items()],
        points=described(points, firsts[chosen]),
        neighbourhoods=neighbourhoods(data, task, nodes, firsts, chosen),
        theory=bounds(data, task, firsts, chosen),
        versions={
            "fairpass": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        },
    )


def _check(models: Mapping[str, Sequence[NodeClassifier]], chosen: str | None) -> str:
    """Return the name of the method to speak for, or raise if models are missing or not fitted."""
    if not models or not all(models.values()):
        raise ValueError(f"'models' must have a fitted classifier for each name (got {dict(models)!r})")
    for name, runs in models.items():
        for model in runs:
            if not hasattr(model, "program_"):
                raise NotFittedError(f"'models' must be fitted ({name!r} has one that is not)")
    if chosen is None:
        useful = [name for name, runs in models.items() if not isinstance(runs[0], Constant)]
        return (useful or list(models))[-1]
    if chosen not in models:
        raise ValueError(f"'chosen' must be one of {', '.join(models)} (got {chosen!r})")
    return chosen


def _data(data: Data, task: Task) -> dict[str, Any]:
    labels, groups = label_names(task), group_names(task)
    return {
        "provenance": finite(data.get("provenance") or {}),
        "fingerprint": fingerprint(data),
        "nodes": task.num_nodes,
        "edges": task.edge_index.shape[1] // 2,
        "features": task.num_features,
        "labels": labels,
        "groups": groups,
        "splits": [_split(name, shown, task, labels, groups) for name, shown in _SPLITS.items() if name in task.masks],
    }


def _split(name: str, shown: str, task: Task, labels: Sequence[str], groups: Sequence[str]) -> dict[str, Any]:
    """Return how many nodes a split has, and how many of each group and label."""
    inside = task.masks[name]
    cells = [
        [int((inside & (task.sens == group) & (task.y == label)).sum()) for label in range(len(labels))]
        for group in range(len(groups))
    ]
    labelled = torch.count_nonzero(inside & (task.y >= 0))
    return {"name": shown, "nodes": int(inside.sum()), "labelled": int(labelled), "cells": cells}


def _method(
    name: str, models: Sequence[NodeClassifier], data: Data, nodes: TestNodes, majority: tuple[str, float]
) -> dict[str, Any]:
    first = models[0]
    runs = [measure(model, data, nodes) for model in models]
    return {
        "name": name,
        "method": first.name,
        "summary": first.summary,
        "is_reference": isinstance(first, Constant),
        "parameters": finite(first.hyperparameters),
        "training": finite(first.training.to_dict()),
        "flags": flags(first.name, runs, nodes.labels, majority),
        "thresholds": threshold_counts(first, data, nodes),
        "runs": runs,
    }
