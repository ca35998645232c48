"""Many programs of one shape trained as one: a leading axis of members through every operation.

A member's epochs are those it would have had alone, up to the order in which numbers are added: it starts from its own
parameters, draws from its own generator, has its own learning rate and weight decay, and stops when it would have
stopped. Only the cost is shared.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor, nn

from fairpass.nn.members import members
from fairpass.training.history import EpochRecord
from fairpass.training.loop import Progress
from fairpass.training.member_adam import MemberAdam
from fairpass.training.program import Program
from fairpass.training.settings import Training
from fairpass.training.task import Task
from fairpass.training.watch import Watch

# Settings that the members of a population share; the others may differ.
COMMON_SETTINGS = ("device", "threshold", "track_discrepancy", "deterministic")

OnEpoch = Callable[[int, EpochRecord], None]


@dataclass
class Member:
    """One program of a population.

    Attributes:
        program: as it was built; at the end it has the parameters of the selected epoch.
        training: its settings.
        generator: where its random numbers come from.
        progress: what has happened so far; `best_state` stays empty until the end.
    """

    program: Program
    training: Training
    generator: Generator
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self.progress = Progress(self.training.window)

    @property
    def is_over(self) -> bool:
        """Return whether it has nothing more to do."""
        return self.progress.is_over(self.training)


def train_population(population: Sequence[Member], task: Task, *, on_epoch: OnEpoch | None = None) -> None:
    """Train all members in place, and leave in each the parameters of its selected epoch.

    Args:
        population: whose programs have one shape, and whose settings agree in `COMMON_SETTINGS`.
        task: the graph.
        on_epoch: called with a member's index and the record of each of its epochs.
    """
    watch = Watch(task, population[0].training)
    for member in population:
        member.program.prepare(task, member.training)
    active = list(range(len(population)))
    together = stack([member.program for member in population]).to(task.device)
    optimizer = MemberAdam(together, [member.training for member in population])
    best = {name: value.detach().clone() for name, value in together.named_parameters()}
    logits: Tensor | None = None
    while active:
        losses = _epoch(together, optimizer, logits, [population[i].generator for i in active], task)
        logits = _logits(together, task)
        for i, loss, seen in zip(active, losses, watch(logits.detach()), strict=True):
            progress = population[i].progress
            record = EpochRecord(epoch=progress.next_epoch, losses={"loss": loss}, **seen)
            progress.history.append(record)
            if on_epoch is not None:
                on_epoch(i, record)
        _keep_best(best, together, population, active)
        going_on = [row for row, i in enumerate(active) if not population[i].is_over]
        if len(going_on) < len(active):
            _finish(together, best, population, active, task)
            rows = torch.tensor(going_on, dtype=torch.long, device=task.device)
            _take(together, rows)
            optimizer.take(together, rows)
            active = [active[row] for row in going_on]
            logits = None


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
    """Keep only some members."""
    for module in together.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = nn.Parameter(parameter.detach()[rows])
        for name in _per_member(module):
            setattr(module, name, getattr(module, name)[rows])


def _epoch(
    together: Program, optimizer: MemberAdam, logits: Tensor | None, generators: Sequence[Generator], task: Task
) -> list[float]:
    """Train for one epoch; `logits` may be those of the evaluation before, if they are the same in training."""
    together.train()
    optimizer.zero_grad()
    with members(generators):
        if logits is None or not logits.requires_grad:
            logits = together(task)
        losses = together.loss(logits, task)
    # The members' losses have no parameter in common: the gradient of their sum is that of each.
    torch.autograd.backward(losses.sum())
    optimizer.step()
    out: list[float] = losses.detach().tolist()
    return out


def _logits(together: Program, task: Task) -> Tensor:
    """Return the logits in evaluation, with gradient if the next epoch can start from them."""
    together.eval()
    with torch.set_grad_enabled(not together.is_random):
        logits: Tensor = together(task)
    return logits


def _keep_best(best: dict[str, Tensor], together: Program, population: Sequence[Member], active: Sequence[int]) -> None:
    rows, improved = [], []
    for row, i in enumerate(active):
        progress = population[i].progress
        if progress.note_best():
            rows.append(row)
            improved.append(i)
    if rows:
        for name, value in together.named_parameters():
            best[name][improved] = value.detach()[rows]


def _finish(
    together: Program, best: dict[str, Tensor], population: Sequence[Member], active: Sequence[int], task: Task
) -> None:
    """Give the members that are over their selected epoch's parameters."""
    last = dict(together.named_parameters())
    for row, i in enumerate(active):
        member = population[i]
        if member.is_over:
            use_last = member.training.select == "last" or member.progress.best_epoch < 0
            state = {name: last[name][row] if use_last else best[name][i] for name in last}
            chosen = {name: value.detach().clone() for name, value in state.items()}
            member.program.load_state_dict({**member.program.state_dict(), **chosen})
            member.program.eval()
            if member.progress.best_epoch >= 0:
                member.program.finish(task)
