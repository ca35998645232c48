"""The training loop: epochs, what is measured at each, selection on validation; the program says what an epoch does."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isnan, nan, sqrt
from threading import RLock
from typing import Any

import torch
import torch.utils.deterministic
from torch import Tensor

from fairpass.errors import DataError, FairpassError, NotFiniteError
from fairpass.metrics.split_metrics import SplitMetrics, ThresholdSearch, selection
from fairpass.nn.fairness import spread
from fairpass.theory import RepresentationBound
from fairpass.training.checkpoint import Checkpoint
from fairpass.training.history import EpochRecord, History
from fairpass.training.program import Program, scores
from fairpass.training.settings import Training
from fairpass.training.task import Task
from fairpass.world import world

Callback = Callable[[EpochRecord], None]

_memory: Any = torch.utils.deterministic  # its one setting has no type
_LARGEST = 1e12  # logits beyond this are scaled down before their distances are taken


class DivergedError(FairpassError, ArithmeticError):
    """Training gave no finite outputs to choose from."""


@dataclass
class FitState:
    """The epochs so far, and the one that validation prefers (-1: none yet) with the program's state after it."""

    training: Training
    rates: Sequence[str] = ("learning_rate",)  # all learning rates, the one to lower first
    history: History = field(default_factory=History)
    best_epoch: int = -1
    best_state: dict[str, Tensor] = field(default_factory=dict)

    @property
    def has_diverged(self) -> bool:
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
        done, patience = len(self.history), self.training.patience
        out_of_patience = patience is not None and done > 0 and done - 1 - self.best_epoch >= patience
        return done >= self.training.epochs or out_of_patience or self.has_diverged

    @property
    def selected(self) -> EpochRecord:
        """The record of the epoch whose state the fit keeps."""
        select_last = self.training.select == "last"
        if self.best_epoch < 0 or (select_last and self.has_diverged):
            smaller = [f"a smaller '{name}'" for name in self.rates]
            advice = ", or ".join([f"{smaller[0]} may help", *smaller[1:]])
            got = f"got nan at epoch {len(self.history) - 1}; {advice}"
            raise DivergedError(f"training must give finite outputs ({got})")
        return self.history[-1 if select_last else self.best_epoch]


class EpochMonitor:
    """Measures the logits of an epoch, of many models at once, with one `threshold` and `track_discrepancy`."""

    def __init__(self, task: Task, training: Training) -> None:
        task.check_split("train")
        task.check_split("val")
        self.task, self.training = task, training
        self.nodes = task.nodes("val")
        self._sizes = world().sizes(len(self.nodes))
        y, sens = (world().gather(each[self.nodes], self._sizes) for each in (task.y, task.sens))
        labels, groups = task.label_names, task.group_names
        try:
            self.metrics = SplitMetrics(y, sens, num_classes=task.num_classes, label_names=labels, group_names=groups)
        except DataError as error:
            raise DataError(f"the 'val' split cannot be measured: {error}") from None
        self.search = None
        if isinstance(training.threshold, str) and task.num_classes == 2:
            self.search = ThresholdSearch(y, sens, training.threshold)
        # Theorem 4.2 is about two groups only.
        self.bound = RepresentationBound(task.x, task.groups) if task.num_groups == 2 else None

    @torch.no_grad()
    def __call__(self, logits: Tensor) -> list[dict[str, Any]]:
        """Return for each of `(B, N, C)` logits the fields of an `EpochRecord` apart from epoch and losses."""
        # One node without an output makes the epoch useless; nan is never selected.
        tracked, is_finite = self.training.track_discrepancy, logits.isfinite().flatten(1).all(1)
        own_facts = [~is_finite]
        if tracked:  # also the largest entry, and whether two logits are not opposite
            own_facts += [logits.abs().amax((1, 2)).where(is_finite, 0.0), logits.sum(-1).any(-1)]
        facts = world().largest(torch.stack([each.to(logits) for each in own_facts]))
        broken = facts[0].bool()
        own = scores(logits.index_select(1, self.nodes).softmax(-1))
        on_validation = world().gather(own.movedim(1, 0), self._sizes).movedim(0, 1)
        if bool(broken.any()):
            on_validation[broken] = nan
        thresholds = self._thresholds(on_validation, broken)
        if thresholds is not None:
            self.metrics.threshold = thresholds[:, None]
        numbers = self.metrics(on_validation)
        found = self._discrepancy(logits, broken, *facts[1:]) if tracked else [{} for _ in logits]
        columns: dict[str, list[Any]] = {
            "metrics": [dict(zip(SplitMetrics.names, row, strict=True)) for row in numbers.tolist()],
            "selection": selection(numbers).tolist(),
            "threshold": [None] * len(logits) if thresholds is None else thresholds.tolist(),
            "discrepancy": found,
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _thresholds(self, on_validation: Tensor, broken: Tensor) -> Tensor | None:
        if self.task.num_classes > 2:
            return None
        if self.search is not None:
            return self.search(on_validation.nan_to_num(0.5)).masked_fill(broken, 0.5)
        fixed = torch.tensor(self.training.threshold, dtype=torch.float64, device=broken.device)
        return fixed.expand(len(broken))

    def _discrepancy(self, logits: Tensor, broken: Tensor, largest: Tensor, mixed: Tensor) -> list[dict[str, float]]:
        """Return how far apart the groups' logits are, for a kernel as wide as the spread of all logits."""
        if bool(broken.any()):
            logits = logits.masked_fill(broken[:, None, None], 0.0)
        # The squares of huge logits overflow. The kernel's width follows the logits, so scaling changes nothing.
        largest = largest.masked_fill(broken, 0.0)[:, None, None]
        if bool((largest > _LARGEST).any()):
            logits = logits / (largest / _LARGEST).clamp(min=1.0)
        if logits.shape[-1] == 2 and not bool(mixed.masked_fill(broken, 0.0).any()):
            # Opposite logits, as GMMD has them, lie on a line: one column has their distances, at less cost.
            logits = sqrt(2) * logits[..., 1:]
        similar = self.task.groups.similarities(logits, 1 / spread(logits).clamp(min=1e-12))
        count, within, everywhere = similar.shape[-1], similar.diagonal(0, -2, -1).sum(-1), similar.sum((-2, -1))
        similarity = ((everywhere - within) / (count * (count - 1))).masked_fill(broken, nan)
        columns = {"mmd2": (count * within - everywhere).masked_fill(broken, nan), "similarity": similarity}
        if self.bound is not None:
            columns["bound"] = self.bound(similarity)
        return [dict(zip(columns, row, strict=True)) for row in torch.stack(list(columns.values()), 1).tolist()]


# PyTorch's generators and its deterministic flag belong to the process: fits in several threads take turns.
_turn = RLock()


def _renew_turn() -> None:
    """Free the turn in a forked process: the thread that had it is not there."""
    global _turn  # noqa: PLW0603 # there is one for the process
    _turn = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_turn)


@contextmanager
def seeded(seed: int, *, deterministic: bool) -> Iterator[None]:
    """Draw all random numbers inside from `seed`, and leave the caller's random state as it was.

    Threads take turns: inside, no other thread is in such a block. It does not matter whether the caller has turned
    gradients off, or has set a default device.
    """
    as_usual = torch.inference_mode(False), torch.enable_grad(), torch.device("cpu")
    with _turn, as_usual[0], as_usual[1], as_usual[2], torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        before = torch.are_deterministic_algorithms_enabled()
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        fill = _memory.fill_uninitialized_memory
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


def _epoch(program: Program, task: Task) -> tuple[dict[str, float], Tensor]:
    """Return the losses of an epoch and the logits after it; all nan if the method noticed that it has diverged."""
    try:
        losses = {name: float(value) for name, value in program.epoch(task).items()}
        return losses, program.evaluate(task)
    except NotFiniteError:
        if world().size > 1:  # the others may be waiting for this process
            raise
        return {"loss": nan}, task.x.new_full((len(task.x), task.num_classes), nan)


def train(
    program: Program,
    task: Task,
    training: Training,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> FitState:
    """Train `program` in place, leave the selected epoch's state in it, and return what happened.

    Must be called inside `seeded`. If `checkpoint` holds an interrupted run, continues it to the same result; on Ctrl-C
    the epochs so far are kept there. Its file stays: who keeps the result removes it then. Training ends early once
    outputs are not finite; a finite epoch before can still be selected, and without one, `DivergedError` is raised.
    """
    monitor, state = EpochMonitor(task, training), FitState(training, program.rates)
    if checkpoint is not None and checkpoint.restore(program, state):
        program.to(task.device)
    else:
        program.prepare(task, training)
        program.configure(training)
        if checkpoint is not None:
            checkpoint.keep(program, state)
    try:
        while not state.is_over:
            if program.evaluated is None:  # else the epoch has its logits already: no mode to change in many modules
                program.train()
            losses, logits = _epoch(program, task)
            (measured,) = monitor(logits[None])
            if state.add(EpochRecord(epoch=len(state.history), losses=losses, **measured)):
                state.best_state = {name: value.detach().clone() for name, value in program.state_dict().items()}
            if checkpoint is not None:
                checkpoint.keep(program, state)
            for callback in callbacks:
                callback(state.history[-1])
    except KeyboardInterrupt:
        if checkpoint is not None:
            checkpoint.write()
        raise
    if state.selected.epoch < len(state.history) - 1:
        program.load_state_dict(state.best_state)
    program.evaluated = None
    program.eval()
    program.finish(task)
    return state
