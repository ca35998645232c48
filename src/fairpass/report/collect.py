"""From fitted models and their graph to the evidence of a report."""

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from torch_geometric.data import Data

from fairpass import __version__
from fairpass.datasets import describe, find_bias
from fairpass.datasets.graph_gain import graph_gain
from fairpass.errors import NotFittedError
from fairpass.files import finite
from fairpass.methods import Constant, NodeClassifier
from fairpass.methods.likeness import logits_of
from fairpass.report.closer_look import bounds, neighbourhoods
from fairpass.report.evidence import Evidence
from fairpass.report.measures import TestNodes, flags, measure, threshold_counts
from fairpass.training import Task, fingerprint
from fairpass.tuning import Point, pareto_front

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
        data: The graph; not modified.
        models: Fitted classifiers by the name to show, one for each seed. Tables are over all seeds; charts, group
            tables and the threshold are of the first.
        title: Title of the report.
        question: What the audit is to find out.
        chosen: Name of the method the report is about; by default the last that is not constant.
        points: The configurations that tuning tried.
        choice: How the chosen method or point was chosen, in a sentence.
    """
    chosen = _check(models, chosen)
    task = Task(data)
    nodes = TestNodes.of(task)
    firsts = {name: runs[0] for name, runs in models.items()}
    logits = {name: logits_of(model, data) for name, model in firsts.items()}
    counts = np.bincount(nodes.y, minlength=len(nodes.labels))
    majority = (nodes.labels[int(counts.argmax())], float(counts.max() / counts.sum()))
    statistics, libraries = describe(data, leakage_auc=True), {name: version(name) for name in _LIBRARIES}
    return Evidence(
        title=title,
        question=question,
        chosen=chosen,
        choice=choice,
        made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        data=_data(data, task, nodes),
        bias={
            "statistics": statistics.to_dict(),
            "findings": [found.to_dict() for found in find_bias(statistics)],
            "graph_gain": graph_gain(data).to_dict(),
        },
        methods=[_method(name, runs, data, nodes, majority) for name, runs in models.items()],
        points=_points(points, firsts[chosen]),
        neighbourhoods=neighbourhoods(data, nodes, firsts, logits, chosen),
        theory=bounds(task, logits, chosen, getattr(firsts[chosen], "alpha", None)),
        versions={"fairpass": __version__, "python": platform.python_version(), **libraries},
    )


def _check(models: Mapping[str, Sequence[NodeClassifier]], chosen: str | None) -> str:
    if not models or not all(models.values()):
        raise ValueError(f"'models' must have a fitted classifier for each name (got {dict(models)!r})")
    for name, runs in models.items():
        if not all(hasattr(model, "program_") for model in runs):
            raise NotFittedError(f"'models' must be fitted ({name!r} has one that is not)")
    if chosen is None:
        useful = [name for name, runs in models.items() if not isinstance(runs[0], Constant)]
        return (useful or list(models))[-1]
    if chosen not in models:
        raise ValueError(f"'chosen' must be one of {', '.join(models)} (got {chosen!r})")
    return chosen


def _data(data: Data, task: Task, nodes: TestNodes) -> dict[str, Any]:
    groups = nodes.groups[: nodes.known]
    splits = []
    for name in [name for name in _SPLITS if name in task.masks]:
        y, sens = task.y[task.masks[name]], task.sens[task.masks[name]]
        cells = [[int(((sens == g) & (y == c)).sum()) for c in range(len(nodes.labels))] for g in range(len(groups))]
        splits.append({"name": _SPLITS[name], "nodes": len(y), "labelled": int((y >= 0).sum()), "cells": cells})
    return {
        "provenance": finite(data.get("provenance") or {}),
        "fingerprint": fingerprint(data),
        "nodes": task.num_nodes,
        "edges": task.edge_index.shape[1] // 2,
        "features": task.num_features,
        "labels": nodes.labels,
        "groups": groups,
        "splits": splits,
    }


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
        "flags": list(flags(first.name, runs, nodes.labels, majority)),
        "thresholds": threshold_counts(first, data, nodes),
        "runs": runs,
    }


def _points(points: Sequence[Point], chosen: NodeClassifier) -> Any:
    front = pareto_front(points) if points else []
    settings = {"parameters": finite(chosen.hyperparameters), "training": finite(chosen.training.to_dict())}
    made = []
    for point in points:
        plain = finite(point.to_dict())
        # The chosen model was made from the point whose settings it has.
        same = all(settings[part].get(k) == v for part in settings for k, v in plain[part].items())
        marks = {"front": point in front, "chosen": point.method == chosen.name and same}
        made.append({**plain, **finite({"utility": point.utility, "unfairness": point.unfairness}), **marks})
    return made
