"""What the training loop asks of a method: how an epoch goes, and how logits are read off."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from fairpass.training.settings import Training
from fairpass.training.task import Task


class Program(nn.Module, ABC):
    """Everything a method trains: its networks as submodules, its optimizers, its epoch.

    A subclass builds its networks in `__init__`, and says what is particular to it:

    - `forward(task)`: the logits `(N, C)` of any graph; in evaluation mode it must be deterministic.
    - `loss(task)`: for methods with one loss and one optimizer, which is all the default `epoch` needs; or
    - `configure(training)` and `epoch(task)`: for methods with several.
    """

    optimizers: dict[str, Optimizer]

    def configure(self, training: Training) -> None:
        """Make the optimizers; called once before the first epoch."""
        self.optimizers = {"all": adam(self, training)}

    def prepare(self, task: Task, training: Training) -> None:
        """Do what comes before the first epoch (pre-training, debiasing the graph); by default nothing."""

    def epoch(self, task: Task) -> dict[str, float]:
        """Train for one epoch; return the losses by name, the first of them the main one."""
        optimizer = self.optimizers["all"]
        optimizer.zero_grad()
        loss = self.loss(task)
        loss.backward()
        optimizer.step()
        return {"loss": float(loss.detach())}

    def loss(self, task: Task) -> Tensor:
        """Return the loss to be minimised; by default cross-entropy on the training nodes."""
        return cross_entropy(self(task), task)

    @abstractmethod
    def forward(self, task: Task) -> Tensor:
        """Return the logits of all nodes, `(N, C)`."""


def adam(module: nn.Module, training: Training) -> Adam:
    """Return Adam over a module's parameters with the settings' rate and decay."""
    # `foreach=False`: for a handful of tiny tensors the plain loop is the fastest.
    return Adam(module.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay, foreach=False)


def cross_entropy(logits: Tensor, task: Task) -> Tensor:
    """Return the cross-entropy on the training nodes."""
    return nn.functional.cross_entropy(logits[task.train_nodes], task.y[task.train_nodes])


def two_logits(logit: Tensor) -> Tensor:
    """Return a single logit `(N, 1)` as two, `(N, 2)`, with the same probabilities."""
    return torch.cat([torch.zeros_like(logit), logit], -1)


def scores(probabilities: Tensor) -> Tensor:
    """Return what metrics take: the positive class's probability `(N,)`, or all `(N, C)` if there are more than two."""
    return probabilities[..., 1] if probabilities.shape[-1] == 2 else probabilities
