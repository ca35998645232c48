"""What the training loop asks of a method: how an epoch goes, and how logits are computed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from fairpass.errors import DataError
from fairpass.nn.calibration import GroupEstimator
from fairpass.nn.layers import node_norms, norm_statistics
from fairpass.training.settings import Training
from fairpass.training.task import Task
from fairpass.world import world

# Against which nodes a node is scored after training, and what happens if its group is not known.
ReferenceName = Literal["fitted", "batch"]
UnknownGroup = Literal["none", "estimate", "error"]


class Program(nn.Module, ABC):
    """Everything a method trains: its networks as submodules, its optimizers, its epoch.

    A subclass builds its networks in `__init__`, and overrides what differs for it:

    - `forward(task)`: the logits `(N, C)` of any graph; in evaluation mode it must be deterministic;
    - `loss(logits, task)`: for methods with one loss and one optimizer, which the default `epoch` is for; or
    - `configure(training)` and `epoch(task)`: for methods with several;
    - `prepare(task, training)` and `finish(task)`: what comes before the first epoch and after the last;
    - `score(task, ...)`: if its output for a node depends on more nodes than those nearby.

    All that an interrupted fit or a stored model needs later must be in `state_dict`: parameters, and buffers for the
    rest. Random numbers come from PyTorch's global generators, and the settings of optimizers are plain numbers: these
    are kept with an interrupted fit, nothing else is.
    """

    optimizers: dict[str, Optimizer]
    # Logits of the evaluation after the last epoch, with gradient, if the next epoch can start from them.
    evaluated: Tensor | None = None
    # The names of all learning rates, the one to lower first if training diverges.
    rates: Sequence[str] = ("learning_rate",)

    @abstractmethod
    def forward(self, task: Task) -> Tensor:
        """Return the logits of all nodes, `(N, C)`."""

    @property
    def is_random(self) -> bool:
        """Whether `forward` gives other logits in training than in evaluation (dropout, sampling)."""
        return True

    def loss(self, logits: Tensor, task: Task) -> Tensor:
        """Return the loss, given what `forward` returned; by default cross-entropy."""
        return cross_entropy(logits, task)

    def configure(self, training: Training) -> None:
        """Make the optimizers; called once, after `prepare` or when an interrupted fit was restored."""
        self.optimizers = {"all": adam(self, training)}

    def prepare(self, task: Task, training: Training) -> None:
        """Do what comes before the first epoch (pre-training, debiasing the graph); by default nothing.

        It is not repeated when an interrupted fit continues, nor when a model is loaded: its results must be in
        parameters or in buffers. A buffer whose shape depends on the graph is registered in `__init__` without content
        (`self.register_buffer("edges", None)`) and assigned here; `load_state_dict` gives it the stored shape.
        """

    def epoch(self, task: Task) -> dict[str, float]:
        """Train for one epoch; return the losses by name, the main one first."""
        return {"loss": float(self.step(task))}

    def step(self, task: Task) -> Tensor:
        """Take one step of the optimizer; return the loss, one for each member of a population."""
        optimizer = self.optimizers["all"]
        optimizer.zero_grad()
        logits, self.evaluated = self.evaluated, None
        loss = self.loss(self(task) if logits is None else logits, task)
        # Members have no parameter in common: the gradient of the sum of their losses is that of each.
        torch.autograd.backward(loss.sum())
        world().add_gradients(self.parameters())
        optimizer.step()
        return loss.detach()

    @property
    def carries_logits(self) -> bool:
        """Whether an epoch's training pass has the same logits as the evaluation before it."""
        return type(self).epoch is Program.epoch and not self.is_random

    def evaluate(self, task: Task) -> Tensor:
        """Return the logits in evaluation mode; the next epoch starts from them if it can."""
        if self.training:
            self.eval()
        with torch.set_grad_enabled(self.carries_logits):
            logits: Tensor = self(task)
        self.evaluated = logits if logits.requires_grad else None
        return logits.detach()

    @torch.no_grad()
    def finish(self, task: Task) -> None:
        """Do what comes after the last epoch, with the selected epoch's parameters in place.

        By default normalisations keep the statistics of the fitted graph. Results must be in buffers, as for `prepare`.
        """
        if node_norms(self):
            with norm_statistics(self, "keep"):
                self(task)

    @property
    def keeps_reference(self) -> bool:
        """Whether everything is kept that a node's score needs in addition to the node and its neighbours."""
        return not any(norm.is_empty for norm in node_norms(self))

    def score(self, task: Task, reference: ReferenceName, unknown_group: UnknownGroup) -> Tensor:
        """Return the logits of nodes to be scored after training, `(N, C)`.

        With the reference `"fitted"`, what depends on many nodes at once is taken from the fitted graph, so that a
        node's score depends on the node and its neighbours alone; with `"batch"`, from the nodes of this graph.
        `unknown_group` is for methods that need the groups at prediction; see `group_shares`.
        """
        with norm_statistics(self, reference):
            logits: Tensor = self(task)
        return logits

    def check_state(self) -> None:
        """Raise `ValueError` if buffers that were read from a file do not fit the program."""
        for norm in node_norms(self):
            norm.check()

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Restore a state; unlike parameters, buffers take the stored type and shape."""
        for prefix, module in self.named_modules():
            for name, current in module._buffers.items():
                stored = state_dict.get(f"{prefix}.{name}" if prefix else name)
                like = None if current is None else (current.shape, current.dtype)
                if stored is not None and like != (stored.shape, stored.dtype):
                    setattr(module, name, stored.clone())
        return super().load_state_dict(state_dict, strict, assign)


def adam(module: nn.Module, training: Training) -> Adam:
    # With a few small tensors the calls take most of the time: one fused call where there is one, else the plain loop.
    fused = all(parameter.device.type in ("cpu", "cuda") for parameter in module.parameters())
    rate, decay = training.learning_rate, training.weight_decay
    return Adam(module.parameters(), lr=rate, weight_decay=decay, foreach=False, fused=fused)


def cross_entropy(logits: Tensor, task: Task) -> Tensor:
    """Return the cross-entropy on the training nodes, one number for each problem of the batch."""
    chosen, y = logits.index_select(-2, task.train_nodes), task.train_labels
    if world().is_shared:
        total = nn.functional.cross_entropy(chosen, y, reduction="sum")
        return world().joint_loss(total / task.train_count)
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


def group_shares(task: Task, num_groups: int, unknown_group: UnknownGroup, estimator: GroupEstimator) -> Tensor:
    """Return the probability that each node is in each group of the fitted graph, `(N, G)`.

    It is 1 for a node's own group. If that is not known, `unknown_group` decides: `"none"` gives a row of zeros, so
    that no group's correction is applied; `"estimate"` the estimator's probabilities; `"error"` raises `DataError`.
    """
    largest = int(task.sens.max())
    if largest >= num_groups:
        raise DataError(f"'data.sens' must be one of the {num_groups} groups of the fitted graph (got {largest})")
    unknown = task.sens < 0
    shares = nn.functional.one_hot(task.sens.clamp(min=0), num_groups).to(task.x)
    shares[unknown] = 0.0
    if unknown_group == "none" or not bool(unknown.any()):
        return shares
    if unknown_group == "error":
        got = f"got {int(unknown.sum())} unknown"
        raise DataError(f"'data.sens' must be known for every node with unknown_group='error' ({got})")
    if estimator.is_empty:
        raise DataError("'unknown_group' cannot be 'estimate': this model was stored without an estimate of the groups")
    return torch.where(unknown[:, None], estimator(task.x), shares)
