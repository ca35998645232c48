"""Many programs of one shape trained as one: a leading axis of members through every operation.

A member's epochs are those it would have had alone, up to the order in which numbers are added: it has its own
parameters, generator, learning rate and weight decay, and stops when it would have stopped. Only the cost is shared.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import torch
from torch import Generator, Tensor, nn

from fairpass.nn.layers import members
from fairpass.training.history import EpochRecord
from fairpass.training.loop import EpochMonitor, FitState
from fairpass.training.program import Program
from fairpass.training.settings import Training
from fairpass.training.task import Task

# Settings that the members of a population share; the others may differ.
COMMON_SETTINGS = ("device", "threshold", "track_discrepancy", "deterministic")
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # as in `torch.optim.Adam`

OnEpoch = Callable[[int, EpochRecord], None]


@dataclass
class Member:
    """One program of a population, its settings, and the generator of its random numbers."""

    program: Program
    training: Training
    generator: Generator
    state: FitState = field(init=False)

    def __post_init__(self) -> None:
        self.state = FitState(self.training, self.program.rates)


def train_population(population: Sequence[Member], task: Task, *, on_epoch: OnEpoch | None = None) -> None:
    """Train all members in place, and leave in each the parameters of its selected epoch.

    Their programs must have one shape, and their settings agree in `COMMON_SETTINGS`. `on_epoch` is called with a
    member's index and the record of each of its epochs.
    """
    monitor = EpochMonitor(task, population[0].training)
    for member in population:
        member.program.prepare(task, member.training)
    together = stack([member.program for member in population]).to(task.device)
    optimizer: Any = MemberAdam(together, [member.training for member in population])
    together.optimizers = {"all": optimizer}
    best = {name: value.detach().clone() for name, value in together.named_parameters()}
    active = list(range(len(population)))
    while active:
        if together.evaluated is None:
            together.train()
        with members([population[i].generator for i in active]):
            losses = together.step(task).tolist()
        improved = []
        for row, measured in enumerate(monitor(together.evaluate(task))):
            state = population[active[row]].state
            record = EpochRecord(epoch=len(state.history), losses={"loss": losses[row]}, **measured)
            if state.add(record):
                improved.append(row)
            if on_epoch is not None:
                on_epoch(active[row], record)
        if improved:
            places = [active[row] for row in improved]
            for name, value in together.named_parameters():
                best[name][places] = value.detach()[improved]
        for row, i in enumerate(active):
            if population[i].state.is_over:
                last = {name: value[row] for name, value in together.named_parameters()}
                _finish(population[i], last, {name: value[i] for name, value in best.items()}, task)
        going_on = [row for row, i in enumerate(active) if not population[i].state.is_over]
        if len(going_on) < len(active):
            rows = torch.tensor(going_on, dtype=torch.long, device=task.device)
            _take(together, rows)
            optimizer.take(together, rows)
            active = [active[row] for row in going_on]


def stack(programs: Sequence[Program]) -> Program:
    """Return one program whose parameters, and hyper-parameters that may differ, have a leading axis of members.

    A module names the latter in `per_member`; they become tensors `(B, 1, 1)`.
    """
    together = copy.deepcopy(programs[0])
    for path, module in together.named_modules():
        alike = [program.get_submodule(path) for program in programs]
        for name in module._parameters:
            module._parameters[name] = nn.Parameter(torch.stack([getattr(m, name).detach() for m in alike]))
        for name in _per_member(module):
            setattr(module, name, torch.tensor([getattr(m, name) for m in alike])[:, None, None])
    return together


def _per_member(module: nn.Module) -> list[str]:
    names: Sequence[str] = getattr(module, "per_member", ())
    return [name for name in names if getattr(module, name) is not None]


def _take(together: Program, rows: Tensor) -> None:
    together.evaluated = None
    for module in together.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = nn.Parameter(parameter.detach()[rows])
        for name in _per_member(module):
            setattr(module, name, getattr(module, name)[rows])


def _finish(member: Member, last: dict[str, Tensor], best: dict[str, Tensor], task: Task) -> None:
    """Give a member whose training has ended the parameters of its selected epoch."""
    has_finite = member.state.best_epoch >= 0
    chosen = best if member.training.select == "validation" and has_finite else last
    parameters = {name: value.detach().clone() for name, value in chosen.items()}
    member.program.load_state_dict({**member.program.state_dict(), **parameters})
    member.program.eval()
    if has_finite:
        member.program.finish(task)


class MemberAdam:
    """PyTorch's Adam for parameters with a leading axis of members, each with its own rate and weight decay."""

    def __init__(self, module: nn.Module, trainings: Sequence[Training]) -> None:
        self.parameters = list(module.parameters())
        like = self.parameters[0]
        self._rates = like.new_tensor([training.learning_rate for training in trainings])
        self._decays = like.new_tensor([training.weight_decay for training in trainings])
        self._steps = 0
        self._means = [torch.zeros_like(p) for p in self.parameters]
        self._squares = [torch.zeros_like(p) for p in self.parameters]

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        self._steps += 1
        unbias_mean, unbias_square = 1 - _BETA1**self._steps, sqrt(1 - _BETA2**self._steps)
        for parameter, mean, square in zip(self.parameters, self._means, self._squares, strict=True):
            if parameter.grad is None:
                continue
            per_row = (-1, *[1] * (parameter.dim() - 1))
            gradient = parameter.grad + self._decays.reshape(per_row) * parameter
            mean.lerp_(gradient, 1 - _BETA1)
            square.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
            rate = self._rates.reshape(per_row) / unbias_mean
            parameter.sub_(rate * (mean / (square.sqrt() / unbias_square + _EPSILON)))

    def take(self, module: nn.Module, rows: Tensor) -> None:
        """Go on with some of the members, whose parameters `module` has now."""
        self.parameters = list(module.parameters())
        self._rates, self._decays = self._rates[rows], self._decays[rows]
        self._means = [mean[rows] for mean in self._means]
        self._squares = [square[rows] for square in self._squares]
