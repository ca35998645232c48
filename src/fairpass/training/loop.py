"""The one training loop: epochs, selection on validation, history, checkpoints.

It is the same for every method; what an epoch does is the `Program`'s business.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from fairpass.kernels import Discrepancy
from fairpass.metrics.quick import NAMES, Quick, selection
from fairpass.metrics.threshold import best_threshold
from fairpass.training.checkpoint import Checkpoint
from fairpass.training.history import EpochRecord, History
from fairpass.training.program import Program, scores
from fairpass.training.settings import Training
from fairpass.training.task import Task

Callback = Callable[[EpochRecord], None]


@dataclass
class Progress:
    """Where a fit stands: all that must survive an interruption, besides parameters, optimizers and random state."""

    history: History = field(default_factory=History)
    best_epoch: int = -1
    best_selection: float = -float("inf")
    best_threshold: float | None = 0.5
    best_state: dict[str, Tensor] = field(default_factory=dict)

    @property
    def next_epoch(self) -> int:
        """Return the epoch to run next."""
        return len(self.history)


@contextmanager
def seeded(seed: int, *, deterministic: bool) -> Iterator[None]:
    """Draw all random numbers from `seed` inside, and leave the caller's random state as it was."""
    before = torch.are_deterministic_algorithms_enabled()
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(deterministic or before)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before)


def train(
    program: Program,
    task: Task,
    training: Training,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> Progress:
    """Train `program` in place, leave the selected epoch's parameters in it, and return what happened.

    Must be called inside `seeded`. If `checkpoint` holds an interrupted run, continues it to the same result; on
    Ctrl-C the run so far is kept there.
    """
    watch = _Watch(task, training)
    progress = Progress()
    if checkpoint is None or not checkpoint.restore(program, progress, training):
        program.prepare(task, training)
        program.configure(training)
    try:
        while progress.next_epoch < training.epochs and not _out_of_patience(progress, training):
            program.train()
            losses = program.epoch(task)
            record = watch.observe(program, progress.next_epoch, losses)
            _keep_if_best(program, progress, record, training)
            progress.history.append(record)
            for callback in callbacks:
                callback(record)
            if checkpoint is not None and checkpoint.is_due(progress.next_epoch):
                checkpoint.save(program, progress)
    except KeyboardInterrupt:
        if checkpoint is not None:
            checkpoint.save(program, progress)
        raise
    program.load_state_dict(progress.best_state)
    program.eval()
    if checkpoint is not None:
        checkpoint.remove()
    return progress


def _out_of_patience(progress: Progress, training: Training) -> bool:
    return training.patience is not None and progress.next_epoch - 1 - progress.best_epoch >= training.patience


def _keep_if_best(program: Program, progress: Progress, record: EpochRecord, training: Training) -> None:
    if training.select == "last" or record.selection > progress.best_selection or not progress.best_state:
        progress.best_epoch, progress.best_selection = record.epoch, record.selection
        progress.best_threshold = record.threshold
        progress.best_state = {name: value.detach().clone() for name, value in program.state_dict().items()}


class _Watch:
    """Measures an epoch on the validation nodes, and the discrepancy of the outputs over all nodes."""

    def __init__(self, task: Task, training: Training) -> None:
        task.check_split("train")
        task.check_split("val")
        self.task, self.training = task, training
        self.nodes = task.nodes("val")
        self.y, self.sens = task.y[self.nodes], task.sens[self.nodes]
        self.quick = Quick(self.y, self.sens, num_classes=task.num_classes)
        self.discrepancy = Discrepancy(task.groups) if training.track_discrepancy else None

    @torch.no_grad()
    def observe(self, program: Program, epoch: int, losses: dict[str, float]) -> EpochRecord:
        program.eval()
        logits = program(self.task)
        on_validation = scores(logits[self.nodes].softmax(-1))
        threshold = self._threshold(on_validation)
        self.quick.threshold = 0.5 if threshold is None else threshold
        numbers = self.quick(on_validation)
        return EpochRecord(
            epoch=epoch,
            losses=losses,
            metrics=dict(zip(NAMES, numbers.tolist(), strict=True)),
            selection=float(selection(numbers)),
            threshold=threshold,
            discrepancy=self._discrepancy(logits) if self.discrepancy is not None else {},
        )

    def _threshold(self, on_validation: Tensor) -> float | None:
        if on_validation.dim() > 1:
            return None
        if isinstance(self.training.threshold, str):
            return best_threshold(self.y, on_validation, sens=self.sens, objective=self.training.threshold)
        return self.training.threshold

    def _discrepancy(self, logits: Tensor) -> dict[str, float]:
        """Return MMD^2 and the inter-group similarity of the logits, the kernel as wide as they are spread."""
        spread = 2 * (logits - logits.mean(0)).square().sum(-1).mean()
        alpha = 1 / spread.clamp(min=1e-12)
        similar = self.task.groups.similarities(logits, alpha)
        between = similar.sum() - similar.trace()
        count = len(similar)
        mmd2 = count * similar.trace() - similar.sum()
        return {"mmd2": float(mmd2), "similarity": float(between / (count * (count - 1)))}
