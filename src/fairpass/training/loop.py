"""The one training loop: epochs, selection on validation, history, checkpoints.

It is the same for every method; what an epoch does is the `Program`'s business.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isnan, nan

import torch
from torch import Tensor

from fairpass.errors import FairpassError
from fairpass.metrics.quick import NAMES, Quick, selection
from fairpass.metrics.threshold import best_threshold
from fairpass.theory import RepresentationBound
from fairpass.training.checkpoint import Checkpoint
from fairpass.training.history import EpochRecord, History
from fairpass.training.program import Program, scores
from fairpass.training.settings import Training
from fairpass.training.task import Task

Callback = Callable[[EpochRecord], None]


class DivergedError(FairpassError, ArithmeticError):
    """Training gave no finite outputs to choose from."""


@dataclass
class Progress:
    """Where a fit stands: what must survive an interruption besides program, optimizers and random state.

    Attributes:
        history: the epochs so far.
        best_epoch: the one that validation prefers; -1 as long as there is none.
        best_state: the program as it was then.
    """

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

    def add(self, record: EpochRecord, program: Program) -> None:
        """Append an epoch, and keep its state if validation prefers it to all before."""
        best = self.history[self.best_epoch].selection if self.best_epoch >= 0 else -float("inf")
        self.history.append(record)
        if record.selection > best:
            self.best_epoch = record.epoch
            self.best_state = {name: value.detach().clone() for name, value in program.state_dict().items()}

    def is_over(self, training: Training) -> bool:
        """Return whether there is nothing more to do: epochs done, patience lost, or no way back from nan."""
        waited = self.next_epoch - 1 - self.best_epoch
        out_of_patience = training.patience is not None and bool(self.history) and waited >= training.patience
        return self.next_epoch >= training.epochs or out_of_patience or self.has_diverged

    def selected(self, training: Training) -> EpochRecord:
        """Return the record of the epoch that the fit ends with."""
        if self.best_epoch < 0 or (training.select == "last" and self.has_diverged):
            raise DivergedError(
                f"training must give finite outputs (got nan at epoch {self.next_epoch - 1}; "
                "a smaller 'learning_rate' may help)"
            )
        return self.history[-1 if training.select == "last" else self.best_epoch]


@contextmanager
def seeded(seed: int, *, deterministic: bool) -> Iterator[None]:
    """Draw all random numbers from `seed` inside, and leave the caller's random state as it was."""
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        if deterministic:
            torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before, warn_only=warn_only)


def train(
    program: Program,
    task: Task,
    training: Training,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> Progress:
    """Train `program` in place, leave the selected epoch's state in it, and return what happened.

    Must be called inside `seeded`. If `checkpoint` holds an interrupted run, continues it to the same result;
    on Ctrl-C the epochs so far are kept there. Training ends early once outputs are not finite; a finite
    epoch before can still be selected, and if there is none, that is a `DivergedError`.
    """
    watch = _Watch(task, training)
    progress = Progress()
    if checkpoint is not None and checkpoint.restore(program, progress, training):
        program.to(task.device)
    else:
        program.prepare(task, training)
        program.configure(training)
        if checkpoint is not None:
            checkpoint.keep(program, progress)
    try:
        while not progress.is_over(training):
            program.train()
            losses = program.epoch(task)
            progress.add(watch.observe(program, progress.next_epoch, losses), program)
            if checkpoint is not None:
                checkpoint.keep(program, progress)
            for callback in callbacks:
                callback(progress.history[-1])
    except KeyboardInterrupt:
        if checkpoint is not None:
            checkpoint.write()
        raise
    if checkpoint is not None:
        checkpoint.remove()
    if progress.selected(training).epoch < progress.next_epoch - 1:
        program.load_state_dict(progress.best_state)
    program.eval()
    return progress


class _Watch:
    """Measures an epoch on the validation nodes, and the discrepancy of the outputs over all nodes."""

    def __init__(self, task: Task, training: Training) -> None:
        task.check_split("train")
        task.check_split("val")
        self.task, self.training = task, training
        self.nodes = task.nodes("val")
        self.y, self.sens = task.y[self.nodes], task.sens[self.nodes]
        self.quick = Quick(self.y, self.sens, num_classes=task.num_classes)
        # Theorem 4.2 speaks of two groups only.
        self.bound = RepresentationBound(task.x, task.groups) if task.num_groups == 2 else None

    @torch.no_grad()
    def observe(self, program: Program, epoch: int, losses: dict[str, float]) -> EpochRecord:
        program.eval()
        logits = program(self.task)
        if not bool(logits.isfinite().all()):
            # One node without an output is enough to make the epoch useless; nan is what nobody selects.
            logits = torch.full_like(logits, nan)
        on_validation = scores(logits[self.nodes].softmax(-1))
        threshold = self._threshold(on_validation)
        self.quick.threshold = 0.5 if threshold is None else threshold
        numbers = self.quick(on_validation)
        return EpochRecord(
            epoch=epoch,
            losses={name: float(value) for name, value in losses.items()},
            metrics=dict(zip(NAMES, numbers.tolist(), strict=True)),
            selection=float(selection(numbers)),
            threshold=threshold,
            discrepancy=self._discrepancy(logits) if self.training.track_discrepancy else {},
        )

    def _threshold(self, on_validation: Tensor) -> float | None:
        if on_validation.dim() > 1:
            return None
        if not isinstance(self.training.threshold, str):
            return self.training.threshold
        if bool(on_validation.isnan().any()):
            return 0.5
        return best_threshold(self.y, on_validation, sens=self.sens, objective=self.training.threshold)

    def _discrepancy(self, logits: Tensor) -> dict[str, float]:
        """Return how far apart the groups' logits are, the kernel being as wide as all logits are spread."""
        if bool(logits.isnan().any()):
            similar = logits.new_full([self.task.num_groups] * 2, nan)
        else:
            spread = 2 * (logits - logits.mean(0)).square().sum(-1).mean()
            similar = self.task.groups.similarities(logits, 1 / spread.clamp(min=1e-12))
        count, within, everywhere = len(similar), similar.trace(), similar.sum()
        similarity = (everywhere - within) / (count * (count - 1))
        found = {"mmd2": float(count * within - everywhere), "similarity": float(similarity)}
        return found if self.bound is None else {**found, "bound": float(self.bound(similarity))}
