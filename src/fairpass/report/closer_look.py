"""How fitted models see the audited graph: a few test nodes with their neighbours, and the theorems' bounds."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from fairpass.files import finite
from fairpass.kernels import intergroup_similarity, mmd2
from fairpass.methods import NodeClassifier
from fairpass.methods.likeness import evenly, likeness
from fairpass.nn.fairness import spread
from fairpass.report.measures import TestNodes
from fairpass.report.schema import Case, Distance, Neighbour, Neighbourhoods, Person, Theorem, Theory
from fairpass.theory import Bound, RepresentationBound, readout, theorem_4_1, theorem_4_2
from fairpass.training import Task

_CASES = 8
_NEIGHBOURS = 25
# The kernel sums of the theorems' two layers are over features, of many dimensions, so they visit every pair of nodes:
# for Bail's 19,000 nodes with 18 features that took 23 s on one core, for German's 1,000 with 27 0.15 s.
_MOST_NODES = 8_000
_ALPHA = 0.3


def neighbourhoods(
    data: Data, nodes: TestNodes, models: Mapping[str, NodeClassifier], logits: Mapping[str, Tensor], chosen: str
) -> Neighbourhoods:
    """Return nodes of each group that the chosen model gets right and wrong, each with its neighbours."""
    predicted = {name: model.predict(data).tolist() for name, model in models.items()}
    source, target = nodes.task.edge_index

    def described(node: int) -> Person:
        ids, label, group = data.get("node_ids"), int(nodes.task.y[node]), int(nodes.task.sens[node])
        return {
            "id": str(node if ids is None else ids[node]),
            "label": label if label >= 0 else None,
            "group": group if group >= 0 else None,
            "predicted": {name: values[node] for name, values in predicted.items()},
        }

    cases: list[Case] = []
    for node in _examples(
        nodes, np.asarray(predicted[chosen]), np.bincount(source.numpy(), minlength=nodes.task.num_nodes)
    ):
        neighbours = target[source == node]
        alike = {name: likeness(values, torch.tensor(node), neighbours) for name, values in logits.items()}
        order = alike[chosen].argsort(descending=True, stable=True)
        shown: list[Neighbour] = [
            {
                **described(int(neighbours[i])),
                "similarity": {name: round(float(values[i]), 3) for name, values in alike.items()},
            }
            for i in order[evenly(len(order), _NEIGHBOURS)].tolist()
        ]
        cases.append({"centre": described(node), "degree": len(neighbours), "neighbours": shown})
    return {"methods": list(models), "cases": cases}


def _examples(nodes: TestNodes, predicted: NDArray[np.int64], degrees: NDArray[np.int64]) -> list[int]:
    """Return for each group and label a node of typical degree that is predicted wrongly and one that is not."""
    index = nodes.index.numpy()
    right = predicted[index] == nodes.y
    found = []
    # Wrong ones first: an audit asks about these.
    for is_right, label, group in product((False, True), range(len(nodes.labels)), range(nodes.known)):
        candidates = index[(right == is_right) & (nodes.y == label) & (nodes.group == group)]
        candidates = candidates[degrees[candidates] > 0]
        if candidates.size:
            typical = np.median(degrees[candidates])
            found.append(int(candidates[np.abs(degrees[candidates] - typical).argmin()]))
    return found[:_CASES]


def bounds(task: Task, logits: Mapping[str, Tensor], chosen: str, alpha: float | None) -> Theory:
    """Return both theorems on the features, and for each model how near the groups' logits are.

    `theorems` is empty where they do not apply, and `note` says why.
    """
    alpha = _ALPHA if alpha is None else alpha
    theorems: list[Theorem] = []
    note = ""
    if task.num_groups != 2:
        note = f"The theorems are about two groups; this graph has {task.num_groups}."
    elif task.num_nodes > _MOST_NODES:
        note = f"The theorems' two layers visit every pair of nodes; they are left out above {_MOST_NODES:,} nodes."
    else:
        graph = (task.x, task.edge_index, task.sens)
        if task.num_classes == 2:
            theorems.append(_theorem("4.1", theorem_4_1(*graph, readout(*graph, logits[chosen], alpha), alpha)))
        theorems.append(_theorem("4.2", theorem_4_2(*graph, alpha)))
        isolated = int((torch.bincount(task.edge_index[0], minlength=task.num_nodes) == 0).sum())
        if isolated:
            note = f"Nodes without a neighbour: {isolated:,}. The theorems assume that every node has one."
    methods = [_distance(name, values, task) for name, values in logits.items()]
    return {"alpha": alpha, "theorems": theorems, "note": note, "methods": methods}


@torch.no_grad()
def _distance(name: str, logits: Tensor, task: Task) -> Distance:
    """Return how far apart the groups' logits are; the kernel is as wide as the spread of all logits."""
    width = 1 / float(spread(logits, None).clamp(min=1e-12))
    similarity = float(intergroup_similarity(logits, task.sens, width))
    mmd = max(round(float(mmd2(logits, task.sens, width)), 9), 0.0)  # rounding must not separate equal logits
    bound = float(RepresentationBound(task.x, task.groups)(similarity)) if task.num_groups == 2 else None
    return {"name": name, "mmd2": mmd, "similarity": similarity, "bound": bound}


def _theorem(name: str, found: Bound) -> Theorem:
    return {
        "theorem": name,
        "measured": finite(found.measured),
        "bound": finite(found.bound),
        "holds": found.holds,
        "ratio": finite(found.ratio),
        "terms": finite(dict(found.terms)),
    }
