"""Whole fits: the default GMMD until it stops by itself, against the training that one would write with PyG."""

import statistics
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from benchmarks.result import Cell, Result, Table
from benchmarks.timing import clock
from fairpass.datasets import is_available, load
from fairpass.methods import GMMD
from fairpass.training import EpochRecord

# Epochs of the one, then as many of the other: what disturbs one disturbs both, and each has warm caches.
SLICE = 10
# Epochs at the start and at the end of a fit that are also compared on their own.
ENDS = 20


def run(quick: bool) -> Result:
    names = [name for name in ("german", "credit", "bail") if is_available(name)]
    return Result("fits", [_against_gcn(names[:1] if quick else names)])


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


class Peer:
    """The GCN's training: in each epoch a step of Adam, then the accuracy on the validation nodes."""

    def __init__(self, data: Data) -> None:
        self.data, self.now = data, clock()
        self.model = PyGGCN(data.x.shape[1], 2)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01, weight_decay=5e-4)
        self.steps: list[float] = []
        self.validations: list[float] = []

    @property
    def epochs(self) -> list[float]:
        """Return how long each epoch took, in seconds."""
        return [sum(parts) for parts in zip(self.steps, self.validations, strict=True)]

    def epoch(self) -> None:
        """Train for one epoch, and keep how long its two parts took."""
        start = self.now()
        self._step()
        between = self.now()
        self._validate()
        self.steps.append(between - start)
        self.validations.append(self.now() - between)

    def _step(self) -> None:
        data, chosen = self.data, self.data.train_mask
        self.model.train()
        self.optimizer.zero_grad()
        loss: Tensor = nn.functional.cross_entropy(self.model(data)[chosen], data.y[chosen])
        loss.backward()  # type: ignore[no-untyped-call] # torch's own
        self.optimizer.step()

    @torch.no_grad()
    def _validate(self) -> float:
        data, chosen = self.data, self.data.val_mask
        self.model.eval()
        return float((self.model(data).argmax(-1) == data.y)[chosen].float().mean())


class InTurns:
    """Keeps how long each epoch of a fit took, and after every few of them lets the peer have as many."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.now = peer, clock()
        self.epochs: list[float] = []
        self._start = self.now()

    def __call__(self, record: EpochRecord) -> None:
        """Note the end of an epoch; the peer's turn is not counted."""
        self.epochs.append(self.now() - self._start)
        if len(self.epochs) % SLICE == 0:
            self.catch_up()
        self._start = self.now()

    def catch_up(self) -> None:
        """Let the peer train for as many epochs as the fit."""
        # A fit uses deterministic algorithms, a user's own training does not.
        before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(False)
        while len(self.peer.steps) < len(self.epochs):
            self.peer.epoch()
        torch.use_deterministic_algorithms(before)


def _against_gcn(names: list[str]) -> Table:
    rows: list[dict[str, Cell]] = []
    for name in names:
        torch.manual_seed(0)
        data = load(name)
        _warm_up(data)
        turns = InTurns(Peer(data))
        GMMD().fit(data, callbacks=[turns])
        turns.catch_up()
        mine, theirs = turns.epochs, turns.peer.epochs
        rows.append(
            {
                "data": name,
                "epochs": len(mine),
                "fit, s": sum(mine),
                "GMMD, ms": 1000 * statistics.fmean(mine),
                "PyG GCN, ms": 1000 * statistics.fmean(theirs),
                "ratio": sum(mine) / sum(theirs),
                f"first {ENDS}": _ratio(mine, theirs, slice(1, ENDS + 1)),
                f"last {ENDS}": _ratio(mine, theirs, slice(-ENDS, None)),
                "ratio without GCN's validation": sum(mine) / sum(turns.peer.steps),
            }
        )
    return Table("Whole fits: default GMMD (4 fair steps) against PyG's GCN, mean over all epochs", rows)


def _ratio(mine: list[float], theirs: list[float], part: slice) -> float:
    return sum(mine[part]) / sum(theirs[part])


def _warm_up(data: Data) -> None:
    """Call everything once: what a process does at the first call belongs to no epoch."""
    peer: Callable[[], None] = Peer(data).epoch
    peer()
    GMMD(training=GMMD.default_training().but(epochs=2)).fit(data)
