"""The theorems' bounds beside what they bound, on the audited graph."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.kernels import intergroup_similarity, mmd2
from fairpass.methods import NodeClassifier
from fairpass.methods.likeness import logits_of
from fairpass.nn.fairness import spread
from fairpass.report.measures import finite
from fairpass.theory import Bound, RepresentationBound, readout, theorem_4_1, theorem_4_2
from fairpass.training import Task

# The kernel sums of the theorems' two layers are over features, of many dimensions, so every pair of nodes is
# visited: for Bail's 19,000 nodes with 18 features that took 23 s on one core, for German's 1,000 with 27 0.15 s.
_MOST_NODES = 8_000
_ALPHA = 0.3


def bounds(data: Data, task: Task, models: Mapping[str, NodeClassifier], chosen: str) -> dict[str, Any]:
    """Return both theorems on the features, and for each model how near the groups' logits are.

    `theorems` is empty where they do not apply, and `note` says why.
    """
    logits = {name: logits_of(model, data) for name, model in models.items()}
    alpha = float(getattr(models[chosen], "alpha", _ALPHA))
    theorems, note = [], ""
    if task.num_groups != 2:
        note = f"The theorems speak of two groups; this graph has {task.num_groups}."
    elif task.num_nodes > _MOST_NODES:
        note = f"The theorems' two layers take every pair of nodes; they are left out above {_MOST_NODES:,} nodes."
    else:
        graph = (task.x, task.edge_index, task.sens)
        if task.num_classes == 2:
            theorems.append(_theorem("4.1", theorem_4_1(*graph, readout(*graph, logits[chosen], alpha), alpha)))
        theorems.append(_theorem("4.2", theorem_4_2(*graph, alpha)))
        isolated = int((torch.bincount(task.edge_index[0], minlength=task.num_nodes) == 0).sum())
        if isolated:
            note = f"Nodes without a neighbour: {isolated:,}. The theorems assume that every node has one."
    return {
        "alpha": alpha,
        "theorems": theorems,
        "note": note,
        "methods": [{"name": name, **_apart(values, task)} for name, values in logits.items()],
    }


@torch.no_grad()
def _apart(logits: Tensor, task: Task) -> dict[str, float | None]:
    """Return how far apart the groups' logits are, the kernel being as wide as all logits are spread."""
    width = 1 / float(spread(logits, None).clamp(min=1e-12))
    similarity = float(intergroup_similarity(logits, task.sens, width))
    mmd = max(round(float(mmd2(logits, task.sens, width)), 9), 0.0)  # equal logits are not 0 apart by rounding
    bound = float(RepresentationBound(task.x, task.groups)(similarity)) if task.num_groups == 2 else None
    return {"mmd2": mmd, "similarity": similarity, "bound": bound}


def _theorem(name: str, bound: Bound) -> dict[str, Any]:
    plain = {"theorem": name, "measured": bound.measured, "bound": bound.bound, "holds": bound.holds}
    made: dict[str, Any] = finite({**plain, "ratio": bound.ratio, "terms": dict(bound.terms)})
    return made
