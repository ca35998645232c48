"""One training epoch: exact GMMD over all nodes against PyG's GCN and against the paper's sample; and its growth."""

import gc
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from benchmarks.result import Cell, Result, Table
from benchmarks.timing import side_by_side
from fairpass.datasets import is_available, load, synthetic
from fairpass.kernels import Groups
from fairpass.nn import MLP, Adjacency, GMMDPropagation, GMMDSPropagation

# Nodes the paper draws from each group.
SAMPLED = {"german": 100, "bail": 200, "credit": 6000}


def run(quick: bool) -> Result:
    return Result("epochs", [_against_gcn(quick), _against_sample(quick), _growth(quick)])


class PyGGCN(nn.Module):
    """Two of PyG's own convolutions, as a user would write them."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, 16), GCNConv(16, classes)

    def forward(self, data: Data) -> Tensor:
        """Return the logits."""
        hidden = nn.functional.dropout(self.first(data.x, data.edge_index).relu(), 0.5, self.training)
        out: Tensor = self.second(hidden, data.edge_index)
        return out


class MessagePassing(nn.Module):
    """An MLP and a propagation layer, its graph and groups prepared once."""

    def __init__(self, data: Data, propagation: GMMDPropagation) -> None:
        super().__init__()
        self.mlp, self.propagation = MLP(data.x.shape[1], 2), propagation
        self.graph = propagation.prepare(data.edge_index, data.num_nodes)
        self.groups = Groups.of(data.sens)

    def forward(self, data: Data) -> Tensor:
        """Return the logits."""
        out: Tensor = self.propagation(self.mlp(data.x), self.graph, self.groups)
        return out


def epoch(model: nn.Module, data: Data) -> Callable[[], None]:
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


def _against_gcn(quick: bool) -> Table:
    rows: list[dict[str, Cell]] = []
    for name in _available():
        torch.manual_seed(0)
        data = load(name)
        models = {
            "PyG GCN": PyGGCN(data.x.shape[1], 2),
            "smoothing only": MessagePassing(data, GMMDPropagation(fair_steps=0)),
            "GMMD, 1 fair step": MessagePassing(data, GMMDPropagation(fair_steps=1)),
            "GMMD-S, 1 fair step": MessagePassing(data, GMMDSPropagation(fair_steps=1)),
            "GMMD, paper's step": MessagePassing(data, GMMDPropagation(step="paper", bandwidth="fixed", lambda_f=1.0)),
            "GMMD, 4 fair steps": MessagePassing(data, GMMDPropagation(fair_steps=4)),
        }
        taken = side_by_side(
            {key: epoch(model, data) for key, model in models.items()}, rounds=7 if quick else 25, budget=20.0
        )
        gcn = taken["PyG GCN"].least
        rows += [
            {"data": name, "model": key, "ms": 1000 * timing.least, "ratio to PyG GCN": timing.least / gcn}
            for key, timing in taken.items()
        ]
    return Table("One training epoch, K = 2, hidden width 16 (shortest of all rounds)", rows)


class DenseSample(nn.Module):
    """The paper's way: its step on `N_s` drawn nodes of each group, with dense kernel matrices."""

    def __init__(self, data: Data, size: int) -> None:
        super().__init__()
        self.mlp, self.size, self.sens = MLP(data.x.shape[1], 2), size, data.sens
        self.graph = Adjacency.from_edge_index(data.edge_index, data.num_nodes)

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
                "exact": epoch(MessagePassing(data, GMMDPropagation(fair_steps=1)), data),
                "dense": epoch(DenseSample(data, SAMPLED[name]), data),
            },
            rounds=5,
            budget=30.0,
        )
        rows.append(
            {
                "data": name,
                "exact over": data.num_nodes,
                "sampled from each group": SAMPLED[name],
                "exact, ms": 1000 * taken["exact"].least,
                "dense sample, ms": 1000 * taken["dense"].least,
                "times faster": taken["dense"].least / taken["exact"].least,
            }
        )
    return Table("Exact over all nodes against the paper's sample with dense kernels", rows)


def _growth(quick: bool) -> Table:
    rows: list[dict[str, Cell]] = []
    for nodes in (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000):
        # A process of its own: its peak memory is this size's alone.
        output = subprocess.run(
            [sys.executable, "-m", "benchmarks.epochs", str(nodes)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        seconds, gigabytes = map(float, output.split())
        rows.append(
            {
                "nodes": nodes,
                "epoch, s": seconds,
                "per node, us": 1e6 * seconds / nodes,
                "peak memory, GB": gigabytes,
            }
        )
    for row in rows:
        row["per node, ratio"] = float(row["per node, us"] or 0) / float(rows[0]["per node, us"] or 1)
    return Table("Growth: synthetic graphs, average degree 20, one fair step per layer", rows)


def _one_size(nodes: int) -> None:
    data = synthetic(nodes, avg_degree=20, seed=0)
    call = epoch(MessagePassing(data, GMMDPropagation(fair_steps=1)), data)
    gc.collect()
    timing = side_by_side({"epoch": call}, rounds=5)["epoch"]
    print(timing.least, _peak_gigabytes())


def _peak_gigabytes() -> float:
    """Return this process's own peak; `getrusage` would count what its parent held when it was started."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    _one_size(int(sys.argv[1]))
