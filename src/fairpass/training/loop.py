"""The training loop: epochs, selection on validation, history, checkpoints; what an epoch does is up to the program."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import torch
import torch.utils.deterministic
from torch import Tensor

from fairpass.errors import FairpassError
from fairpass.training.checkpoint import Checkpoint
from fairpass.training.history import EpochRecord, History
from fairpass.training.monitor import EpochMonitor
from fairpass.training.program import Program
from fairpass.training.settings import Training
from fairpass.training.task import Task

Callback = Callable[[EpochRecord], None]

_memory: Any = torch.utils.deterministic  # its one setting has no type


class DivergedError(FairpassError, ArithmeticError):
    """Training gave no finite outputs to choose from."""


@dataclass
class FitState:
    """The epochs so far, and the one that validation prefers (-1: none yet) with the program's state after it."""

    training: Training
    history: History = field(default_factory=History)
    best_epoch: int = -1
    best_state: dict[str, Tensor] = field(default_factory=dict)

    @property
    def next_epoch(self) -> int:
        """Return the epoch to run next."""
        return len(self.history)

    @property
    def has_diverged(self) -> bool:
        """Return whether the last epoch's outputs were not finite."""
        return bool(self.history) and isnan(self.history[-1].selection)

    def add(self, record: EpochRecord) -> bool:
        """Append an epoch; return whether validation prefers it to all before."""
        self.history.append(record)
        if isnan(self.history.smoothed(record.epoch, self.training.window)):
            return False
        if self.best_epoch >= 0 and self._rank(record.epoch) <= self._rank(self.best_epoch):
            return False
        self.best_epoch = record.epoch
        return True

    def _rank(self, epoch: int) -> tuple[bool, float]:
        # A mean over fewer epochs than the window has may be a momentary peak.
        return epoch + 1 >= self.training.window, self.history.smoothed(epoch, self.training.window)

    @property
    def is_over(self) -> bool:
        """Return whether training ends here: all epochs done, patience exhausted, or outputs not finite."""
        patience, waited = self.training.patience, self.next_epoch - 1 - self.best_epoch
        out_of_patience = patience is not None and bool(self.history) and waited >= patience
        return self.next_epoch >= self.training.epochs or out_of_patience or self.has_diverged

    @property
    def selected(self) -> EpochRecord:
        """Return the record of the epoch whose state the fit keeps."""
        select_last = self.training.select == "last"
        if self.best_epoch < 0 or (select_last and self.has_diverged):
            raise DivergedError(
                f"training must give finite outputs (got nan at epoch {self.next_epoch - 1}; "
                "a smaller 'learning_rate' may help)"
            )
        return self.history[-1 if select_last else self.best_epoch]


@contextmanager
def seeded(seed: int, *, deterministic: bool) -> Iterator[None]:
    """Draw all random numbers inside from `seed`, and leave the caller's random state as it was."""
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    fill = _memory.fill_uninitialized_memory
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        if deterministic:
            torch.use_deterministic_algorithms(True)
            # Nothing here reads memory before it is written, and filling it takes a twentieth of the time.
            _memory.fill_uninitialized_memory = False
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before, warn_only=warn_only)
            _memory.fill_uninitialized_memory = fill


def train(
    program: Program,
    task: Task,
    training: Training,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> FitState:
    """Train `program` in place, leave the selected epoch's state in it, and return what happened.

    Must be called inside `seeded`. If `checkpoint` holds an interrupted run, continues it to the same result;
    on Ctrl-C the epochs so far are kept there. Training ends early once outputs are not finite; a finite
    epoch before can still be selected, and if there is none, `DivergedError` is raised.
    """
    monitor, state = EpochMonitor(task, training), FitState(training)
    if checkpoint is not None and checkpoint.restore(program, state):
        program.to(task.device)
    else:
        program.prepare(task, training)
        program.configure(training)
        if checkpoint is not None:
            checkpoint.keep(program, state)
    try:
        while not state.is_over:
            program.train()
            losses = {name: float(value) for name, value in program.epoch(task).items()}
            (measured,) = monitor(program.evaluate(task)[None])
            if state.add(EpochRecord(epoch=state.next_epoch, losses=losses, **measured)):
                state.best_state = {name: value.detach().clone() for name, value in program.state_dict().items()}
            if checkpoint is not None:
                checkpoint.keep(program, state)
            for callback in callbacks:
                callback(state.history[-1])
    except KeyboardInterrupt:
        if checkpoint is not None:
            checkpoint.write()
        raise
    if checkpoint is not None:
        checkpoint.remove()
    if state.selected.epoch < state.next_epoch - 1:
        program.load_state_dict(state.best_state)
    program.evaluated = None
    program.eval()
    program.finish(task)
    return state
