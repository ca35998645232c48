"""What some experiments measure of a fitted model in addition to its evaluation, as plain JSON values."""

from collections.abc import Mapping
from math import isnan
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets.statistics import describe
from fairpass.methods import NodeClassifier
from fairpass.methods.likeness import evenly, likeness, logits_of
from fairpass.runs import Measure
from fairpass.theory import readout, theorem_4_1, theorem_4_2
from fairpass.training import Task

# Points of a training curve, pairs of nodes for a distribution, neighbours in a picture.
_POINTS, _PAIRS, _NEIGHBOURS = 100, 20_000, 12
_CURVES = ("loss", "AUC", "F1", "ACC", "DP", "EO", "mmd2", "similarity", "bound")
# The theorems' layers visit all pairs of nodes, in as many dimensions as there are features.
_THEOREM_NODES = 4_000


def curves(model: NodeClassifier, data: Data) -> dict[str, list[float | None]]:
    """Return the training curves on validation, evenly thinned to at most 100 epochs and the last."""
    history = model.history_
    step = -(-len(history) // _POINTS)
    rows = [history[i].flat() for i in sorted({*range(0, len(history), step), len(history) - 1})]
    names = ("epoch", *(name for name in _CURVES if name in rows[0]))
    return {name: [_short(row[name]) for row in rows] for name in names}


def statistics(model: NodeClassifier, data: Data) -> dict[str, Any]:
    return describe(data).to_dict()


def theorems(model: NodeClassifier, data: Data) -> dict[str, Any]:
    """Return the bounds of both theorems beside the bounded values, on the graph's features.

    A graph of more than 4,000 nodes is reduced to a random (but fixed) subgraph of this size. The read-out matrix is
    the one whose logits are nearest to the model's.
    """
    order = torch.randperm(data.num_nodes or 0, generator=torch.Generator().manual_seed(0))
    part = data.subgraph(order[:_THEOREM_NODES].sort().values)
    task = Task(part, need_masks=False)
    alpha = float(getattr(model, "alpha", 0.3))
    graph = (task.x, task.edge_index, task.sens)
    weights = readout(*graph, logits_of(model, part), alpha)
    bounds = {"4.1": theorem_4_1(*graph, weights, alpha), "4.2": theorem_4_2(*graph, alpha)}
    return {
        "nodes": task.num_nodes,
        "isolated": int((torch.bincount(task.edge_index[0], minlength=task.num_nodes) == 0).sum()),
        "alpha": alpha,
        **{name: {"measured": b.measured, "bound": b.bound, "holds": b.holds} for name, b in bounds.items()},
    }


@torch.no_grad()
def cases(model: NodeClassifier, data: Data) -> dict[str, Any]:
    """Return how similar a model finds nodes of different groups, and two neighbourhoods to look at."""
    logits = logits_of(model, data)
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.nonzero((data.sens == group) & (data.y >= 0)).flatten() for group in (0, 1))
    pairs = [nodes[torch.randint(len(nodes), (_PAIRS,), generator=generator)] for nodes in (first, second)]
    similarity = likeness(logits, *pairs)
    same = data.y[pairs[0]] == data.y[pairs[1]]
    return {
        "same label": _distribution(similarity[same]),
        "different label": _distribution(similarity[~same]),
        "neighbourhoods": [_neighbourhood(data, logits, label) for label in (0, 1)],
    }


def _distribution(values: Tensor) -> dict[str, Any]:
    counts = torch.histc(values, 20, 0.0, 1.0)
    return {"mean": _short(float(values.mean())), "histogram": [_short(x) for x in (counts / counts.sum()).tolist()]}


def _neighbourhood(data: Data, logits: Tensor, label: int) -> dict[str, Any]:
    """Return the node of a label with the best mixed neighbours, and some of them."""
    source, target = data.edge_index
    degree = torch.bincount(source, minlength=len(logits)).float()
    # How mixed the neighbours are: the least of the shares of either group and of either label.
    share = torch.ones_like(degree)
    for values in (data.sens, data.y):
        mean = torch.zeros_like(degree).index_add_(0, source, (values[target] == 1).float()) / degree.clamp(min=1)
        share = torch.minimum(share, torch.minimum(mean, 1 - mean))
    fits = (data.y == label) & (degree >= 6) & (degree <= 40)
    centre = int(torch.where(fits, share, torch.full_like(share, -1.0)).argmax())
    neighbours = target[source == centre]
    # The same for every model, so that their pictures can be compared.
    neighbours = neighbours[evenly(len(neighbours), _NEIGHBOURS)]
    similarity = likeness(logits, torch.tensor(centre), neighbours).tolist()
    pairs = zip(neighbours.tolist(), similarity, strict=True)
    shown = [{**_node(data, node), "similarity": _short(similar)} for node, similar in pairs]
    return {"centre": _node(data, centre), "neighbours": shown}


def _node(data: Data, node: int) -> dict[str, int]:
    return {"node": node, "label": int(data.y[node]), "group": int(data.sens[node])}


def _short(value: float | None) -> float | None:
    return None if value is None or isnan(value) else float(f"{value:.4g}")


EXTRA_MEASURES: Mapping[str, Measure] = {each.__name__: each for each in (curves, statistics, theorems, cases)}
