"""One step of training: what each part of GMMD costs, and exact over all nodes against the paper's sample."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from benchmarks.fits import PyGGCN
from benchmarks.result import Cell, Result, Table
from benchmarks.timing import side_by_side
from fairpass.datasets import is_available, load
from fairpass.methods import GMMD, GMMDS
from fairpass.nn import MLP, SparseOperator
from fairpass.training import Task

# Nodes the paper draws from each group.
SAMPLED = {"german": 100, "bail": 200, "credit": 6000}


def run(quick: bool) -> Result:
    return Result("epochs", [_parts(quick), _against_sample(quick)])


def gmmd_epoch(model: GMMD, task: Task) -> Callable[[], object]:
    """Return an epoch of a classifier's training, without the evaluation that a fit adds: one step of Adam."""
    program = model.build(task)
    program.prepare(task, model.training)
    program.configure(model.training)
    return lambda: program.epoch(task)


def epoch(model: nn.Module, data: Data) -> Callable[[], object]:
    """Return one step of Adam on the training nodes."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    nodes = torch.nonzero(data.train_mask).flatten()

    def call() -> None:
        optimizer.zero_grad()
        loss: Tensor = nn.functional.cross_entropy(model(data)[nodes], data.y[nodes])
        loss.backward()  # type: ignore[no-untyped-call] # torch's own
        optimizer.step()

    return call


def _available() -> list[str]:
    return [name for name in ("german", "credit", "bail") if is_available(name)]


def _parts(quick: bool) -> Table:
    rows: list[dict[str, Cell]] = []
    for name in _available():
        torch.manual_seed(0)
        data = load(name)
        task = Task(data)
        models = {
            "smoothing only": GMMD(fair_steps=0),
            "GMMD, 1 fair step": GMMD(fair_steps=1),
            "GMMD, 4 fair steps": GMMD(),
            "GMMD-S, 1 fair step": GMMDS(fair_steps=1),
            "paper's step": GMMD(step="paper", bandwidth="fixed", lambda_f=1.0),
        }
        calls = {"PyG GCN": epoch(PyGGCN(data.x.shape[1], 2), data)}
        calls |= {key: gmmd_epoch(model, task) for key, model in models.items()}
        taken = side_by_side(calls, rounds=7 if quick else 25, budget=20.0)
        gcn = taken["PyG GCN"].least
        rows += [
            {"data": name, "model": key, "ms": 1000 * timing.least, "ratio to PyG GCN": timing.least / gcn}
            for key, timing in taken.items()
        ]
    return Table("One step of training from random weights, K = 2, hidden width 16 (shortest of all rounds)", rows)


class DenseSample(nn.Module):
    """The paper's way: its step on `N_s` drawn nodes of each group, with dense kernel matrices, in two columns."""

    def __init__(self, data: Data, size: int) -> None:
        super().__init__()
        self.mlp, self.size, self.sens = MLP(data.x.shape[1], 2), size, data.sens
        self.graph = SparseOperator.from_edge_index(data.edge_index, data.num_nodes)

    def forward(self, data: Data) -> Tensor:
        """Return the logits."""
        x_in = self.mlp(data.x)
        parts = [torch.nonzero(self.sens == group).flatten() for group in (0, 1)]
        drawn = [nodes[torch.randperm(len(nodes))[: self.size]] for nodes in parts]
        chosen = torch.cat(drawn)
        u = torch.cat(
            [torch.full((len(nodes),), sign / len(nodes)) for nodes, sign in zip(drawn, (1, -1), strict=True)]
        )
        F: Tensor = x_in
        for _ in range(2):
            smoothed = 0.5 * (self.graph @ F) + 0.5 * x_in
            taking_part = F[chosen]
            P = -u[:, None] * u * torch.exp(-0.3 * torch.cdist(taking_part, taking_part).square())
            message = P @ taking_part - P.sum(1, keepdim=True) * taking_part
            F = smoothed.index_add(0, chosen, 4 * 0.5 * 0.3 * message)
        return F


def _against_sample(quick: bool) -> Table:
    rows: list[dict[str, Cell]] = []
    for name in _available():
        if quick and name == "credit":
            continue
        torch.manual_seed(0)
        data = load(name)
        taken = side_by_side(
            {
                "exact": gmmd_epoch(GMMD(fair_steps=1), Task(data)),
                "paper": gmmd_epoch(GMMD(step="paper", bandwidth="fixed", lambda_f=1.0), Task(data)),
                "dense": epoch(DenseSample(data, SAMPLED[name]), data),
            },
            rounds=3 if name == "credit" else 25,
            budget=15.0,
        )
        dense = taken["dense"].least
        rows.append(
            {
                "data": name,
                "exact over": data.num_nodes,
                "sampled from each group": SAMPLED[name],
                "dense sample, ms": 1000 * dense,
                "exact, ms": 1000 * taken["exact"].least,
                "ratio": taken["exact"].least / dense,
                "exact with the paper's step, ms": 1000 * taken["paper"].least,
                "its ratio": taken["paper"].least / dense,
            }
        )
    return Table(
        "Exact over all nodes (one column) against the paper's dense sample (two columns), one fair step", rows
    )
