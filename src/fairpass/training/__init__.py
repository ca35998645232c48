"""The training loop, and what it asks of a method."""

from fairpass.training.checkpoint import Checkpoint
from fairpass.training.history import EpochRecord, History
from fairpass.training.loop import Callback, DivergedError, FitState, seeded, train
from fairpass.training.program import Program
from fairpass.training.settings import Training
from fairpass.training.task import Task, fingerprint

__all__ = [
    "Callback",
    "Checkpoint",
    "DivergedError",
    "EpochRecord",
    "FitState",
    "History",
    "Program",
    "Task",
    "Training",
    "fingerprint",
    "seeded",
    "train",
]
