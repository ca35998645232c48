"""Many classes: what an epoch takes, how far the sliced message is off, and whether the model is as fair."""

import statistics
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Data

from benchmarks.epochs import epoch
from benchmarks.result import Cell, Result, Table
from benchmarks.timing import side_by_side
from fairpass.kernels import Discrepancy, Groups
from fairpass.kernels.directions import Rule, default_directions, draw
from fairpass.kernels.dispatch import Backend
from fairpass.nn import MLP, GMMDPropagation
from fairpass.nn.fairness import spread

Floats = NDArray[np.float64]
MakeRule = Callable[[int, int, int], Rule]  # of dimension, number of directions, seed
NODES = 20_000


def run(quick: bool) -> Result:
    return Result("classes", [_epochs(quick), _rules(quick), _directions(quick), _fairness(quick)])


def planted(nodes: int, classes: int, seed: int = 0, degree: int = 20) -> Data:
    """Return a graph with any number of labels, whose shares, features and edges differ by group.

    Seven of ten edges join nodes of the same label, eight of ten nodes of the same group; the features of a label are a
    normal cloud, which is elsewhere and has another shape in the other group.
    """
    random = np.random.default_rng(seed)
    sens = (random.random(nodes) < 0.3).astype(np.int64)
    shares = random.dirichlet(np.full(classes, 4.0), 2)
    y = (random.random((nodes, 1)) > shares[sens].cumsum(1)[:, :-1]).sum(1)
    centres, shift = 2 * random.normal(size=(classes, classes)), random.normal(size=classes)
    shapes = np.eye(classes) + 0.3 * random.normal(size=(2, classes, classes)) / classes**0.5
    noise = np.einsum("nij,nj->ni", shapes[sens], random.normal(size=(nodes, classes)))
    x = centres[y] + noise + 0.3 * sens[:, None] * shift
    source = random.integers(nodes, size=nodes * degree // 2)
    label = np.where(random.random(len(source)) < 0.7, y[source], random.integers(classes, size=len(source)))
    group = np.where(random.random(len(source)) < 0.8, sens[source], 1 - sens[source])
    # A random node of the chosen label and group: the nodes sorted by these are one cell after another.
    cell, order = y * 2 + sens, np.argsort(y * 2 + sens, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=2 * classes))
    sizes = np.diff(ends, prepend=0)
    chosen = label * 2 + group
    place = ends[chosen] - sizes[chosen] + (random.random(len(source)) * sizes[chosen]).astype(np.int64)
    target = order[np.minimum(place, nodes - 1)]
    edges = torch.from_numpy(np.stack([np.r_[source, target], np.r_[target, source]]))
    part = torch.from_numpy(random.permutation(nodes) < nodes // 2)
    return Data(
        x=torch.from_numpy(x).float(),
        y=torch.from_numpy(y),
        sens=torch.from_numpy(sens),
        edge_index=edges,
        train_mask=part,
        num_nodes=nodes,
    )


class Centred(nn.Module):
    """An MLP and a propagation layer on `c - 1` columns, in which the softmax sees all there is to see."""

    def __init__(self, data: Data, classes: int, propagation: GMMDPropagation) -> None:
        super().__init__()
        self.mlp, self.propagation = MLP(data.x.shape[1], classes), propagation
        self.graph = propagation.prepare(data.edge_index, data.num_nodes)
        self.groups = Groups.of(data.sens)
        complement = np.linalg.qr(np.c_[np.ones(classes), np.eye(classes)[:, 1:]])[0][:, 1:]
        self.basis = torch.from_numpy(complement).float()

    def columns(self, data: Data) -> Tensor:
        """Return the representations, `(N, c - 1)`."""
        out: Tensor = self.propagation(self.mlp(data.x) @ self.basis, self.graph, self.groups)
        return out

    def forward(self, data: Data) -> Tensor:
        """Return the logits."""
        return self.columns(data) @ self.basis.T


def _epochs(quick: bool) -> Table:
    nodes = 2000 if quick else NODES
    calls: dict[str, Callable[[], object]] = {}
    for classes in (3, 4, 5, 10):
        torch.manual_seed(0)
        data = planted(nodes, classes)
        calls[f"{classes}"] = epoch(Centred(data, classes, GMMDPropagation()), data)
    taken = side_by_side(calls, rounds=5 if quick else 15, budget=60.0)
    data = planted(nodes, 5)
    all_pairs = epoch(Centred(data, 5, GMMDPropagation(backend="tiled")), data)
    taken |= side_by_side({"5, all pairs": all_pairs}, rounds=1)
    rows: list[dict[str, Cell]] = [
        {
            "nodes": nodes,
            "classes": name,
            "directions": _count(int(name) - 1) if name in ("5", "10") else None,
            "epoch, ms": 1000 * timing.least,
            "ratio to 3 classes": timing.least / taken["3"].least,
        }
        for name, timing in taken.items()
    ]
    return Table("One training epoch by number of classes, K = 2, 4 fair steps (shortest of all rounds)", rows)


def _count(d: int) -> int:
    """Return the default number of directions, in complete sets."""
    return len(draw(d, default_directions(d)).weights)


def states(d: int, nodes: int, seed: int) -> list[tuple[int, Tensor, Tensor, float]]:
    """Return what a layer works on before and after some of its fair steps: steps, points, groups, `alpha`."""
    data = planted(nodes, d + 1, seed)
    basis = np.linalg.qr(np.c_[np.ones(d + 1), np.eye(d + 1)[:, 1:]])[0][:, 1:]
    x_in = data.x.double() @ torch.from_numpy(basis)
    found = []
    for steps in (0, 1, 4):
        F = GMMDPropagation(K=1, fair_steps=steps, backend="exact")(x_in, data.edge_index, data.sens)
        found.append((steps, F, data.sens, 0.3 / float(spread(F, None))))
    return found


def message(points: Tensor, sens: Tensor, alpha: float, rule: Rule) -> Tensor:
    """Return the gradient of the discrepancy of two groups with the kernel of any rule, in float64."""
    u = Groups.of(sens, torch.float64).membership @ torch.tensor([1.0, -1.0], dtype=torch.float64)
    frequencies = (2 * alpha) ** 0.5 * torch.from_numpy(rule.frequencies)
    angles, weights = points @ frequencies.T, torch.from_numpy(rule.weights)
    cosines, sines = angles.cos(), angles.sin()
    slopes = (cosines * (weights * (u @ sines)) - sines * (weights * (u @ cosines))) @ frequencies
    gradient: Tensor = 2 * u[:, None] * slopes
    return gradient


def orthogonal_features(d: int, count: int, seed: int) -> Rule:
    """Return orthogonal random features: random rotations, lengths drawn as those of normal vectors."""
    random = np.random.default_rng(seed)
    lengths = np.sqrt(random.chisquare(d, count))
    return Rule(lengths[:, None] * _rotated(random, count, d), np.full(count, 1 / count), 0.0)


def random_sets(d: int, count: int, seed: int) -> Rule:
    """Return the radii and weights of the library's rule with directions from random rotations."""
    rule = draw(d, count)
    directions = _rotated(np.random.default_rng(seed), len(rule.weights), d)
    return rule._replace(frequencies=np.linalg.norm(rule.frequencies, axis=1, keepdims=True) * directions)


def _rotated(random: np.random.Generator, count: int, d: int) -> Floats:
    q = np.linalg.qr(random.normal(size=(-(-count // d), d, d)))[0]
    return np.asarray(q.reshape(-1, d)[:count])


RULES: Mapping[str, MakeRule] = {
    "orthogonal random features": orthogonal_features,
    "random orthogonal sets": random_sets,
    "chosen orthogonal sets": draw,
}


def _errors(d: int, counts: Sequence[int], rule: MakeRule, quick: bool, wide: float = 1.0) -> list[dict[str, Cell]]:
    """Return a row for each number of directions: the message's relative error in percent, by fair steps taken."""
    rows: list[dict[str, Cell]] = []
    cases = [state for seed in range(1 if quick else 2) for state in states(d, 500 if quick else 1500, seed)]
    exact = [
        Discrepancy(Groups.of(sens, torch.float64), backend="dense").gradient(points, wide * alpha)[0]
        for _, points, sens, alpha in cases
    ]
    for count in counts:
        found: dict[int, list[float]] = {}
        for seed in range(1 if quick else 3):
            drawn = rule(d, count, seed)
            for (steps, points, sens, alpha), wanted in zip(cases, exact, strict=True):
                error = message(points, sens, wide * alpha, drawn) - wanted
                found.setdefault(steps, []).append(100 * float(error.norm() / wanted.norm()))
        row: dict[str, Cell] = {"d": d, "directions": len(drawn.weights)}
        row |= {f"after {steps}, %": statistics.fmean(errors) for steps, errors in found.items()}
        rows.append(row | {"largest, %": max(map(max, found.values()))})
    return rows


def _rules(quick: bool) -> Table:
    rows: list[dict[str, Cell]] = []
    for d in (4,) if quick else (4, 9, 19):
        for wide in (1.0, 10.0):
            for name, rule in RULES.items():
                count = _count(d)
                first: dict[str, Cell] = {"rule": name, "alpha x spread": 0.3 * wide}
                rows += [first | row for row in _errors(d, [count], rule, quick, wide)]
    return Table("Relative error of the message after 0, 1 and 4 fair steps, by rule, at the same cost", rows)


def _directions(quick: bool) -> Table:
    rows: list[dict[str, Cell]] = []
    for d in (4,) if quick else (4, 9):
        default = default_directions(d)
        rows += _errors(d, [round(factor * default) for factor in (0.25, 0.5, 1, 2, 4, 8)], draw, quick)
    return Table("Relative error of the message after 0, 1 and 4 fair steps as the directions grow", rows)


def _fairness(quick: bool) -> Table:
    nodes, rounds = (500, 10) if quick else (2000, 80)
    backends: dict[str, Backend | None] = {"no fair steps": None, "all pairs": "exact", "sliced": "sliced"}
    rows: list[dict[str, Cell]] = []
    for name, backend in backends.items():
        found: list[tuple[float, float, float]] = []
        for seed in range(1 if quick else 3):
            data = planted(nodes, 5, seed)
            torch.manual_seed(seed)
            layer = GMMDPropagation(fair_steps=0) if backend is None else GMMDPropagation(backend=backend)
            model = Centred(data, 5, layer)
            step = epoch(model, data)
            for _ in range(rounds):
                step()
            found.append(_measure(model, data))
        accuracy, parity, discrepancy = (statistics.fmean(column) for column in zip(*found, strict=True))
        rows.append(
            {"kernel sums": name, "seeds": len(found), "ACC": accuracy, "largest DP": parity, "MMD^2": discrepancy}
        )
    title = f"A model of five classes on a planted graph of {nodes} nodes after {rounds} epochs, nodes not trained on"
    return Table(title, rows)


@torch.no_grad()
def _measure(model: Centred, data: Data) -> tuple[float, float, float]:
    """Return accuracy and largest difference of rates in percent on nodes not trained on, and the exact `MMD^2`."""
    model.eval()
    columns = model.columns(data).double()
    held_out = ~data.train_mask
    chosen = (columns.float() @ model.basis.T).argmax(-1)[held_out]
    sens, y = data.sens[held_out], data.y[held_out]
    rates = [torch.bincount(chosen[sens == group], minlength=5) / (sens == group).sum() for group in (0, 1)]
    alpha = 0.3 / float(spread(columns, None))
    return (
        100 * float((chosen == y).double().mean()),
        100 * float((rates[0] - rates[1]).abs().max()),
        float(Discrepancy(Groups.of(data.sens, torch.float64), backend="exact").value(columns, alpha)),
    )
