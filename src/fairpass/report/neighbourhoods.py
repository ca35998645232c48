"""The case study: a few test nodes with their neighbours, and how similar each model finds them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from fairpass.methods import NodeClassifier
from fairpass.methods.likeness import evenly, likeness, logits_of
from fairpass.report.measures import TestNodes
from fairpass.training import Task

_CASES = 8
_NEIGHBOURS = 25


def neighbourhoods(
    data: Data, task: Task, nodes: TestNodes, models: Mapping[str, NodeClassifier], chosen: str
) -> dict[str, Any]:
    """Return nodes that the chosen model gets right and wrong in each group, each with its neighbours."""
    logits = {name: logits_of(model, data) for name, model in models.items()}
    predicted = {name: model.predict(data).tolist() for name, model in models.items()}
    source, target = task.edge_index
    cases = []
    for node in _examples(nodes, np.asarray(predicted[chosen]), np.bincount(source.numpy(), minlength=task.num_nodes)):
        neighbours = target[source == node]
        alike = {name: likeness(values, torch.tensor(node), neighbours) for name, values in logits.items()}
        order = alike[chosen].argsort(descending=True, stable=True)
        cases.append(
            {
                "centre": _described(node, data, task, predicted),
                "degree": len(neighbours),
                "neighbours": [
                    {
                        **_described(int(neighbours[i]), data, task, predicted),
                        "similarity": {name: round(float(values[i]), 3) for name, values in alike.items()},
                    }
                    for i in order[evenly(len(order), _NEIGHBOURS)].tolist()
                ],
            }
        )
    return {"methods": list(models), "cases": cases}


def _examples(nodes: TestNodes, predicted: NDArray[np.int64], degrees: NDArray[np.int64]) -> list[int]:
    """Return for each group and label a node that is predicted right and one that is not, of ordinary degree."""
    index = nodes.index.numpy()
    right = predicted[index] == nodes.y
    connected = degrees[index] > 0
    found = []
    # Those that are wrong first: they are what an audit asks about.
    for is_right in (False, True):
        for label in range(len(nodes.labels)):
            for group in range(nodes.known):
                wanted = connected & (right == is_right) & (nodes.y == label) & (nodes.group == group)
                if wanted.any():
                    candidates = index[wanted]
                    ordinary = np.median(degrees[candidates])
                    found.append(int(candidates[np.abs(degrees[candidates] - ordinary).argmin()]))
    half = _CASES // 2
    wrong = [node for node in found if predicted[node] != nodes.y[index == node][0]][:half]
    return wrong + [node for node in found if node not in wrong][: _CASES - len(wrong)]


def _described(node: int, data: Data, task: Task, predicted: Mapping[str, list[int]]) -> dict[str, Any]:
    """Return what the page says of a node; labels and groups are numbers, and None if they are not known."""
    ids = data.get("node_ids")
    label, group = int(task.y[node]), int(task.sens[node])
    return {
        "id": str(node if ids is None else ids[node]),
        "label": label if label >= 0 else None,
        "group": group if group >= 0 else None,
        "predicted": {name: values[node] for name, values in predicted.items()},
    }
