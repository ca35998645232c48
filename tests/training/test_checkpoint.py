import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.trial import Trial
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, RMSprop
from torch_geometric.data import Data

from fairpass.datasets import synthetic
from fairpass.errors import ModelFileError
from fairpass.methods import GCN, GMMD
from fairpass.training import (
    Checkpoint,
    EpochRecord,
    FitState,
    History,
    Program,
    Task,
    Training,
    checkpoint,
    seeded,
    train,
)
from fairpass.training.program import cross_entropy

EPOCHS = 8
TRAINING = Training(epochs=EPOCHS)


class Mixed(Program):
    """Optimizers with states of all kinds, a batch normalisation, dropout, and a falling learning rate."""

    def __init__(self, interrupt_in: int | None = None) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(4, 2) for _ in range(5))
        self.norm = nn.BatchNorm1d(4)
        self.interrupt_in = interrupt_in
        self.register_buffer("start", None)
        self.epochs_run = 0

    def prepare(self, task: Task, training: Training) -> None:
        self.start = torch.rand(task.num_nodes, 1)

    def configure(self, training: Training) -> None:
        rate = training.learning_rate
        adam = Adam([*self.parts[0].parameters(), *self.norm.parameters()], lr=rate, betas=(0.8, 0.99))
        self.optimizers = {
            "adam": adam,
            "adamw": AdamW(self.parts[1].parameters(), lr=rate, amsgrad=True),
            "sgd": SGD(self.parts[2].parameters(), lr=rate, momentum=0.9),
            "plain": SGD(self.parts[3].parameters(), lr=rate),
            "rmsprop": RMSprop(self.parts[4].parameters(), lr=rate, momentum=0.5, centered=True),
        }

    def epoch(self, task: Task) -> dict[str, float]:
        total = 0.0
        for name, optimizer in self.optimizers.items():
            self.zero_grad()
            loss = cross_entropy(self(task), task)
            torch.autograd.backward(loss)
            optimizer.step()
            optimizer.param_groups[0]["lr"] *= 0.9
            total += float(loss.detach())
            if name == "sgd" and self.epochs_run == self.interrupt_in:
                raise KeyboardInterrupt  # some parameters of this epoch are already updated
        self.epochs_run += 1
        return {"loss": total}

    def forward(self, task: Task) -> Tensor:
        start = self.start
        assert isinstance(start, Tensor)
        x = nn.functional.dropout(self.norm(task.x), 0.5, self.training)
        logits: Tensor = sum((part(x) for part in self.parts), start[: task.num_nodes])
        return logits


def run(task: Task, store: Checkpoint | None = None, interrupt_in: int | None = None) -> tuple[Mixed, FitState]:
    with seeded(3, deterministic=True):
        program = Mixed(interrupt_in)
        return program, train(program, task, TRAINING, checkpoint=store)


def same_state(first: Program, second: Program) -> bool:
    states = first.state_dict(), second.state_dict()
    return states[0].keys() == states[1].keys() and all(torch.equal(states[0][k], states[1][k]) for k in states[0])


@pytest.mark.parametrize("epoch", range(EPOCHS))
def test_an_interruption_within_any_epoch_changes_nothing(task: Task, tmp_path: Path, epoch: int) -> None:
    expected, whole = run(task)
    path = tmp_path / "fit"
    with pytest.raises(KeyboardInterrupt):
        run(task, Checkpoint(path, "this"), interrupt_in=epoch)
    assert path.exists()
    program, progress = run(task, Checkpoint(path, "this"))
    assert program.epochs_run == EPOCHS - epoch  # no more than needed
    assert progress.history == whole.history
    assert progress.best_epoch == whole.best_epoch
    assert same_state(program, expected)
    assert path.exists()  # until the result is kept


def test_a_fit_can_be_interrupted_again_and_again(task: Task, tmp_path: Path) -> None:
    expected, whole = run(task)
    path = tmp_path / "fit"
    for _ in range(EPOCHS - 1):  # each gets one epoch further
        with pytest.raises(KeyboardInterrupt):
            run(task, Checkpoint(path, "this"), interrupt_in=1)
    program, progress = run(task, Checkpoint(path, "this"))
    assert progress.history == whole.history
    assert same_state(program, expected)


def test_optimizers_come_back_with_the_same_types(task: Task, tmp_path: Path) -> None:
    path = tmp_path / "fit"
    with pytest.raises(KeyboardInterrupt):
        run(task, Checkpoint(path, "this"), interrupt_in=3)
    program = Mixed()
    with seeded(0, deterministic=True):
        assert Checkpoint(path, "this").restore(program, FitState(TRAINING))
    adam = program.optimizers["adam"]
    assert adam.param_groups[0]["betas"] == (0.8, 0.99)
    assert adam.param_groups[0]["lr"] == pytest.approx(TRAINING.learning_rate * 0.9**3)
    state = adam.state[next(program.parts[0].parameters())]
    assert isinstance(state["step"], Tensor)
    assert float(state["step"]) == 3
    assert not program.optimizers["plain"].state


def test_what_is_kept_does_not_follow_the_program(task: Task, tmp_path: Path) -> None:
    store = Checkpoint(tmp_path / "fit", "this", every=100)
    program, progress = Mixed(), FitState(TRAINING)
    program.prepare(task, TRAINING)
    program.configure(TRAINING)
    store.keep(program, progress)
    kept = {name: value.clone() for name, value in program.state_dict().items()}
    program.epoch(task)
    store.write()
    other = Mixed()
    with seeded(0, deterministic=True):
        store.restore(other, FitState(TRAINING))
    assert all(torch.equal(value, kept[name]) for name, value in other.state_dict().items())


def test_is_written_before_the_first_epoch_then_every_few(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    def note(path: Path, kind: str, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        written.append(header["epochs"])

    monkeypatch.setattr(checkpoint, "write_tensors", note)
    run(task, Checkpoint(tmp_path / "fit", "this", every=3))
    assert written == [0, 3, 6]
    written.clear()
    clock = iter(range(0, 10_000, 25))
    monkeypatch.setattr(checkpoint, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    run(task, Checkpoint(tmp_path / "fit", "this", every=1000, seconds=60))
    assert written == [0, 3, 6]  # three epochs are the first 75 seconds


def test_a_path_that_cannot_be_written_is_found_out_before_training(data: Data, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    epochs = History()
    with pytest.raises(OSError, match="file"):
        GCN(training=TRAINING).fit(data, callbacks=[epochs.append], checkpoint=tmp_path / "file" / "fit")
    assert not epochs


def test_a_failed_writing_leaves_the_old_file(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Checkpoint(tmp_path / "fit", "this")
    store.write()  # nothing is kept yet, so nothing is written
    assert not list(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        run(task, store, interrupt_in=2)
    before = store.path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("fairpass.training.tensors.write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        store.write()
    assert store.path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [store.path]


@pytest.mark.parametrize(
    "other",
    [
        lambda: GCN(hidden=8, training=TRAINING),
        lambda: GCN(training=TRAINING.but(epochs=9)),
        lambda: GCN(training=TRAINING.but(learning_rate=0.02)),
        lambda: GMMD(training=TRAINING),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(data: Data, tmp_path: Path, other: Callable[[], GCN]) -> None:
    path = tmp_path / "fit"
    with pytest.raises(KeyboardInterrupt):
        GCN(training=TRAINING).fit(data, callbacks=[_interrupt], checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match=r"must be a checkpoint of this very fit .*remove it to start again"):
        other().fit(data, checkpoint=path)
    assert path.read_bytes() == before


def _interrupt(_: Any) -> None:
    raise KeyboardInterrupt


def test_a_file_that_is_no_checkpoint_is_refused(data: Data, tmp_path: Path) -> None:
    model = GCN(training=TRAINING).fit(data)
    path = model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"must be a fairpass checkpoint file \(got fairpass model"):
        model.fit(data, checkpoint=path)
    path.write_text("no checkpoint")
    with pytest.raises(ModelFileError, match=r"must be a fairpass checkpoint file \(damaged or not one"):
        model.fit(data, checkpoint=path)


def test_every_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'every' must be at least 1 \(got 0"):
        Checkpoint(tmp_path / "fit", "this", every=0)


def fit_until_killed(path: str) -> None:
    def kill(record: EpochRecord) -> None:
        if record.epoch == 27:
            os.kill(os.getpid(), signal.SIGKILL)

    data = synthetic(120, avg_degree=6, num_features=4, group_fraction=0.5)
    model = GMMD(fair_steps=1, sample=20, dropout=0.5, training=Training(epochs=30))
    model.fit(data, callbacks=[kill], checkpoint=path)


def test_a_killed_fit_goes_on_to_the_same_result(data: Data, tmp_path: Path) -> None:
    path = tmp_path / "fits" / "fit"
    outcome = Trial([str(path)], path.parent, fit_until_killed).outcome()
    assert outcome.code == -signal.SIGKILL
    assert list(path.parent.iterdir()) == [path]
    fits = []
    for file in (None, path):
        rest = History()
        model = GMMD(fair_steps=1, sample=20, dropout=0.5, training=Training(epochs=30))
        fits.append(model.fit(data, callbacks=[rest.append], checkpoint=file))
    assert rest[0].epoch == 25  # where it was last written
    assert fits[0].history_ == fits[1].history_
    assert torch.equal(fits[0].predict_proba(data), fits[1].predict_proba(data))
    assert not list(path.parent.iterdir())
