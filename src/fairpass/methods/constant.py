"""The constant classifier: perfectly fair, and the least a result must beat."""

import torch
from torch import Tensor

from fairpass.methods.base import NodeClassifier
from fairpass.methods.networks import ClosedForm
from fairpass.training import Program, Task, Training


class Constant(NodeClassifier):
    """Predicts the same for every node: the frequencies of the labels among training and validation nodes."""

    name = "constant"
    summary = "the most frequent label for every node; its group differences are 0"
    recommended_training = Training(epochs=1)
    learns_by_epochs = False

    def build(self, task: Task) -> Program:
        """Return a program that knows only frequencies."""
        return _Frequencies(task.num_classes)


class _Frequencies(ClosedForm):
    logits: Tensor

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("logits", torch.zeros(num_classes))

    def epoch(self, task: Task) -> dict[str, float]:
        # Validation is included because the benchmarks' training labels are balanced by design.
        seen = task.y[(task.masks["train"] | task.masks["val"]) & (task.y >= 0)]
        counts = torch.bincount(seen, minlength=len(self.logits)).to(self.logits)
        self.logits.copy_((counts / counts.sum()).clamp(min=1e-6).log())
        return {"loss": float(-self.logits[seen].mean())}

    def forward(self, task: Task) -> Tensor:
        return self.logits.expand(task.num_nodes, -1)
