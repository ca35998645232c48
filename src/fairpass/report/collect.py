"""From fitted models and their graph to the evidence of a report."""

import os
import platform
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from fairpass import __version__
from fairpass.datasets import describe, find_bias
from fairpass.datasets.graph_gain import graph_gain
from fairpass.errors import DataError, NotFittedError
from fairpass.files import finite, sha256
from fairpass.methods import Constant, NodeClassifier
from fairpass.methods.likeness import logits_of
from fairpass.metrics import paired_differences
from fairpass.report.breakdown import breakdowns
from fairpass.report.closer_look import bounds, neighbourhoods
from fairpass.report.evidence import MIN_GROUP, Evidence
from fairpass.report.measures import Predicted, TestNodes, flags, measure, threshold_counts
from fairpass.report.schema import Difference, GraphRecord, Method, Split, TriedPoint
from fairpass.training import Task, fingerprint
from fairpass.tuning import Point, pareto_front

_LIBRARIES = ("torch", "torch-geometric", "numpy", "scikit-learn", "fairlearn")
_RESAMPLES = 1000
_SPLITS = {"train": "training", "val": "validation", "safety": "safety check", "test": "test"}


def collect(
    data: Data,
    models: Mapping[str, Sequence[NodeClassifier]],
    *,
    title: str,
    question: str = "",
    chosen: str | None = None,
    points: Sequence[Point] = (),
    choice: str = "",
    promise: Mapping[str, Any] | None = None,
    identity: Mapping[str, Any] | None = None,
    model_file: str | os.PathLike[str] | None = None,
    favourable: str | None = None,
    min_group: int = MIN_GROUP,
    include_people: bool = False,
) -> Evidence:
    """Measure fitted models on the test nodes of their graph, and keep all that a report shows.

    Args:
        data: The graph; not modified.
        models: Fitted classifiers by the name to show, one for each seed. The first is the one that is delivered, and
            the report is about it; the others say how much another training changes.
        title: Title of the report.
        question: What the audit is to find out.
        chosen: Name of the method the report is about; by default the last that is not constant.
        points: The configurations that tuning tried.
        choice: How the chosen method or point was chosen, in a sentence.
        promise: The limit asked for and the verdict on it (`fairpass.metrics.promise`), if there was one.
        identity: Who made the model and for what: the texts of `[report]` in a settings file, by their key.
        model_file: The file of the delivered model; its name and SHA-256 are kept.
        favourable: With more than two labels, the one that people want; the figures of groups are about it alone.
        min_group: Groups with fewer people than this are in no table.
        include_people: Keep a few test nodes with their ids and neighbours, for the page to show.
    """
    chosen = _check(models, chosen)
    if min_group < 1:
        raise DataError(f"'min_group' must be positive (got {min_group})")
    task = Task(data)
    nodes = TestNodes.of(task, min_group)
    if not len(nodes.index):
        raise DataError(f"'min_group' must leave some test nodes (got {min_group}: every group has fewer)")
    if favourable is not None and favourable not in nodes.labels:
        raise DataError(f"'favourable' must be one of {', '.join(nodes.labels)} (got {favourable!r})")
    firsts = {name: runs[0] for name, runs in models.items()}
    logits = {name: logits_of(model, data) for name, model in firsts.items()}
    counts = np.bincount(nodes.y, minlength=len(nodes.labels))
    majority = (nodes.labels[int(counts.argmax())], float(counts.max() / counts.sum()))
    audited = _without_small_groups(data, task, min_group)
    statistics, libraries = describe(audited, leakage_auc=True), {name: version(name) for name in _LIBRARIES}
    predicted = {name: [Predicted(model, data, nodes) for model in runs] for name, runs in models.items()}
    delivered = predicted[chosen][0]
    found = Evidence(
        title=title,
        question=question,
        chosen=chosen,
        choice=choice,
        made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        data=_data(data, task, nodes, min_group),
        bias={
            "statistics": statistics.to_dict(),
            "findings": [found.to_dict() for found in find_bias(statistics)],
            "graph_gain": graph_gain(audited).to_dict(),
        },
        methods=[_method(name, runs, majority, min_group) for name, runs in predicted.items()],
        points=_points(points, firsts[chosen]),
        neighbourhoods=neighbourhoods(data, nodes, firsts, logits, chosen) if include_people else {},
        theory=bounds(task, logits, chosen, getattr(firsts[chosen], "alpha", None)),
        versions={"fairpass": __version__, "python": platform.python_version(), **libraries},
        breakdowns=breakdowns(data, delivered, _group_names(task), min_group),
        differences=_differences(chosen, {name: runs[0] for name, runs in predicted.items()}),
        promise=None if promise is None else _told(promise, min_group),
        identity=finite(dict(identity or {})),
        model_file=None if model_file is None else {"name": Path(model_file).name, "sha256": sha256(model_file)},
        favourable=favourable,
        min_group=min_group,
    )
    return found.checked()  # the graph's provenance, the promise and the identity are the caller's


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


def _group_names(task: Task) -> list[str]:
    return task.group_names or [str(group) for group in range(task.num_groups)]


def _without_small_groups(data: Data, task: Task, min_group: int) -> Data:
    """Return the graph with the nodes of small groups in no group, so that no statistic is about them."""
    names = _group_names(task)
    sizes = torch.bincount(task.sens[task.sens >= 0], minlength=len(names))
    if bool((sizes >= min_group).all()):
        return data
    kept = (sizes >= min_group).nonzero().flatten()
    places = torch.full((len(names) + 1,), -1)
    places[kept] = torch.arange(len(kept))
    audited = copy(data)
    audited.sens, audited.group_names = places[task.sens], [names[place] for place in kept.tolist()]
    return audited


def _told(promise: Mapping[str, Any], min_group: int) -> Any:
    """Return a promise without the counts of groups that are too small to be shown."""
    hidden = {"selected": None, "people": None}
    checks = [
        {**check, "counts": [each if each["people"] >= min_group else {**each, **hidden} for each in check["counts"]]}
        for check in promise["checks"]
    ]
    return finite({**promise, "checks": checks})


def _differences(chosen: str, predicted: Mapping[str, Predicted]) -> list[Difference]:
    """Return every metric of the chosen model minus that of each other, on the same test nodes."""
    own = predicted[chosen].sample()
    made: list[Difference] = []
    for name, other in predicted.items():
        if name != chosen and not isinstance(
            other.model, Constant
        ):  # the differences of a constant are 0 by definition
            found = paired_differences(own, other.sample(), resamples=_RESAMPLES)
            made.append({"against": name, "metrics": {key: finite(estimate) for key, estimate in found.items()}})
    return made


def _data(data: Data, task: Task, nodes: TestNodes, min_group: int) -> GraphRecord:
    groups = _group_names(task)
    splits: list[Split] = []
    for name in [name for name in _SPLITS if name in task.masks]:
        y, sens = task.y[task.masks[name]], task.sens[task.masks[name]]
        cells = [[int(((sens == g) & (y == c)).sum()) for c in range(len(nodes.labels))] for g in range(len(groups))]
        told = [counts if sum(counts) >= min_group else None for counts in cells]
        splits.append({"name": _SPLITS[name], "nodes": len(y), "labelled": int((y >= 0).sum()), "cells": told})
    return {
        "provenance": finite(data.get("provenance") or {}),
        "fingerprint": fingerprint(data),
        "nodes": task.num_nodes,
        "edges": task.edge_index.shape[1] // 2,
        "features": task.num_features,
        "labels": nodes.labels,
        "groups": groups,
        "small": nodes.small,
        "left_out": nodes.left_out,
        "splits": splits,
    }


def _method(name: str, predicted: Sequence[Predicted], majority: tuple[str, float], min_group: int) -> Method:
    first, runs = predicted[0].model, [measure(each) for each in predicted]
    return {
        "name": name,
        "method": first.name,
        "summary": first.summary,
        "is_reference": isinstance(first, Constant),
        "parameters": finite(first.hyperparameters),
        "training": finite(first.training.to_dict()),
        "flags": list(flags(first.name, runs, predicted[0].nodes.labels, majority)),
        "thresholds": threshold_counts(predicted[0], min_group),
        "runs": runs,
    }


def _points(points: Sequence[Point], chosen: NodeClassifier) -> list[TriedPoint]:
    front = pareto_front(points) if points else []
    settings = {"parameters": finite(chosen.hyperparameters), "training": finite(chosen.training.to_dict())}
    made: list[TriedPoint] = []
    for point in points:
        plain = finite(point.to_dict())
        # The chosen model was made from the point whose settings it has.
        same = all(settings[part].get(k) == v for part in settings for k, v in plain[part].items())
        marks = {"front": point in front, "chosen": point.method == chosen.name and same}
        made.append(finite({**plain, "utility": point.utility, "unfairness": point.unfairness, **marks}))
    return made
