"""What the training loop asks of a method: how an epoch goes, and how logits are read off."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from fairpass.nn.norm import node_norms, norm_statistics
from fairpass.training.scoring import ReferenceName, UnknownGroup
from fairpass.training.settings import Training
from fairpass.training.task import Task


class Program(nn.Module, ABC):
    """Everything a method trains: its networks as submodules, its optimizers, its epoch.

    A subclass builds its networks in `__init__`, and says what is particular to it:

    - `forward(task)`: the logits `(N, C)` of any graph; in evaluation mode it must be deterministic.
    - `loss(logits, task)`: for methods with one loss and one optimizer, which is all the default `epoch` needs; or
    - `configure(training)` and `epoch(task)`: for methods with several; and
    - `prepare(task, training)`: what comes before the first epoch; and
    - `finish(task)`: what comes after the last; and
    - `score(task, ...)`: if its output for a node depends on other nodes than those nearby.

    All that an interrupted fit or a stored model needs later must be in `state_dict`: parameters, and buffers
    for the rest. Random numbers come from PyTorch's global generators, and the settings of optimizers are
    plain numbers: these are kept with an interrupted fit, nothing else is.
    """

    optimizers: dict[str, Optimizer]
    evaluated: Tensor | None = None
    """Logits of the evaluation after the last epoch, with gradient, if the next epoch can start from them."""

    def configure(self, training: Training) -> None:
        """Make the optimizers; called once, after `prepare` or when an interrupted fit was put back."""
        self.optimizers = {"all": adam(self, training)}

    def prepare(self, task: Task, training: Training) -> None:
        """Do what comes before the first epoch (pre-training, debiasing the graph); by default nothing.

        It is not repeated when an interrupted fit goes on, nor when a model is loaded: what it finds must
        live in parameters or in buffers. A buffer whose shape depends on the graph is registered in
        `__init__` without content and assigned here; `load_state_dict` gives it the stored shape::

            def __init__(self):
                self.register_buffer("edges", None)

            def prepare(self, task, training):
                self.edges = debiased(task.edge_index)
        """

    @torch.no_grad()
    def finish(self, task: Task) -> None:
        """Do what comes after the last epoch, with the selected epoch's parameters in place.

        By default normalisations keep the statistics of the fitted graph. What it finds must live in buffers, as for
        `prepare`.
        """
        if node_norms(self):
            with norm_statistics(self, "keep"):
                self(task)

    @property
    def keeps_reference(self) -> bool:
        """Return whether everything is kept that a node's score needs in addition to the node and its neighbours."""
        return all(norm.is_fitted for norm in node_norms(self))

    def score(self, task: Task, reference: ReferenceName, unknown_group: UnknownGroup) -> Tensor:
        """Return the logits of nodes to be scored after training, `(N, C)`.

        Args:
            task: the graph.
            reference: `"fitted"`: what depends on many nodes at once is as it was on the fitted graph, so that a node's
                score depends on the node and its neighbours alone; `"batch"`: it is that of this graph's nodes.
            unknown_group: for methods that need the groups at prediction; see `group_shares`.
        """
        with norm_statistics(self, reference):
            logits: Tensor = self(task)
        return logits

    def check_state(self) -> None:
        """Raise `ValueError` if buffers that were read from a file do not fit the program."""
        for norm in node_norms(self):
            norm.check()

    @property
    def carries_logits(self) -> bool:
        """Return whether an epoch's training pass has the very logits of the evaluation before it."""
        return type(self).epoch is Program.epoch and not self.is_random

    def epoch(self, task: Task) -> dict[str, float]:
        """Train for one epoch; return the losses by name, the first of them the main one."""
        optimizer = self.optimizers["all"]
        optimizer.zero_grad()
        logits, self.evaluated = self.evaluated, None
        loss = self.loss(self(task) if logits is None else logits, task)
        torch.autograd.backward(loss)
        optimizer.step()
        return {"loss": float(loss.detach())}

    def loss(self, logits: Tensor, task: Task) -> Tensor:
        """Return the loss to be minimised, given what `forward` returned; by default cross-entropy."""
        return cross_entropy(logits, task)

    @property
    def is_random(self) -> bool:
        """Return whether `forward` gives other logits in training than in evaluation (dropout, sampling)."""
        return True

    @abstractmethod
    def forward(self, task: Task) -> Tensor:
        """Return the logits of all nodes, `(N, C)`."""

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Put a state back; unlike parameters, buffers take whatever type and shape was stored."""
        for prefix, module in self.named_modules():
            for name, current in module._buffers.items():
                stored = state_dict.get(f"{prefix}.{name}" if prefix else name)
                if stored is None:
                    continue
                if current is None or (current.shape, current.dtype) != (stored.shape, stored.dtype):
                    setattr(module, name, stored.clone())
        return super().load_state_dict(state_dict, strict, assign)


def adam(module: nn.Module, training: Training) -> Adam:
    """Return Adam over a module's parameters with the settings' rate and decay."""
    # Of a handful of tiny tensors the time goes into calls: one for all, where there is one, else the plain loop.
    fused = all(parameter.device.type in ("cpu", "cuda") for parameter in module.parameters())
    return Adam(
        module.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay, foreach=False, fused=fused
    )


def cross_entropy(logits: Tensor, task: Task) -> Tensor:
    """Return the cross-entropy on the training nodes, one number for each problem of the batch."""
    chosen, y = logits.index_select(-2, task.train_nodes), task.train_labels
    if chosen.dim() == 2:
        return nn.functional.cross_entropy(chosen, y)
    losses = nn.functional.cross_entropy(chosen.movedim(-1, 1), y.expand(chosen.shape[:-1]), reduction="none")
    return losses.mean(-1)


def two_logits(logit: Tensor) -> Tensor:
    """Return a single logit `(N, 1)` as two, `(N, 2)`, with the same probabilities."""
    return torch.cat([torch.zeros_like(logit), logit], -1)


def scores(probabilities: Tensor) -> Tensor:
    """Return what metrics take: the positive class's probability `(N,)`, or all `(N, C)` if more than two."""
    return probabilities[..., 1] if probabilities.shape[-1] == 2 else probabilities
