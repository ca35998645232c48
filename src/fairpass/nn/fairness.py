r"""The fair half of a layer: steps down :math:`\phi(F) = \frac{1}{2\gamma}\|F - Y\|^2 + \lambda_f h_f(F)` from `F = Y`.

The fairness term :math:`\lambda_f h_f` is that of the nodes themselves, recorded in a reference, or replayed from one.
Each node has the step size :math:`1/(1/\gamma + c_i)` that its curvature `c` allows, so a plain gradient step from any
point lowers :math:`\phi` by at least :math:`\|\text{step}\|^2 / (2\,\text{size})`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from fairpass.kernels import Discrepancy, Groups
from fairpass.kernels.field import KINDS, Field, field_of
from fairpass.nn.validation import LateBuffers, check_buffers
from fairpass.world import world

_FIELD_TENSORS = tuple(dict.fromkeys(name for kind in KINDS for name in kind.__dataclass_fields__))
_LONGER = 2.0  # steps with momentum are longer than the bound on the curvature allows by this factor


@dataclass
class FairnessTerm:
    """`lambda_f h_f` with fixed weight and kernel, over all nodes or over some that were drawn."""

    discrepancy: Discrepancy  # `h_f` of the nodes that take part
    alpha: Tensor  # one for each problem of the batch
    lambda_f: Tensor  # (..., 1, 1)
    drawn: Tensor | None = None  # indices of the nodes that take part; None means all
    was_damped: ClassVar[bool] = False  # whether the layer is known to have failed to lower the objective

    def gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradient, `(..., N, c)`, and the value as a constant."""
        gradient, value = self.discrepancy.gradient(self._taking_part(F), self.alpha)
        return self._among_all(self.lambda_f * gradient, F), self.lambda_f[..., 0, 0] * value

    def value(self, F: Tensor) -> Tensor:
        """Return `lambda_f h_f(F)` for each problem, without gradient, which needs no evaluation at the nodes."""
        return self.lambda_f[..., 0, 0] * self.discrepancy.constant_value(self._taking_part(F), self.alpha)

    def curvature(self, F: Tensor) -> Tensor:
        """Return each node's bound on the Hessian, `(..., N, 1)`; 0 for nodes that take no part."""
        bound = self.lambda_f * self.discrepancy.curvature(self.alpha[..., None, None])
        return self._among_all(bound, F[..., :1])

    def accepts(self, limit: Tensor, moved: Tensor) -> tuple[Tensor, Tensor]:
        """Return whether the value at `moved` is at most `limit`, and the value; one for each problem."""
        value = self.value(moved)
        return value <= limit, value

    def stays_below(self, moved: Tensor, at_most: Tensor, F: Tensor, gained: Tensor, *, is_exact: bool) -> Tensor:
        """Return for each problem whether the term grew by at most `gained` from `F` to `moved`.

        `at_most` bounds its value at `moved`, and equals it if `is_exact`. Mostly bounds decide; if they do not, values
        are computed, one at a time.
        """
        weight = self.lambda_f[..., 0, 0]
        below: Tensor = at_most <= weight * self.discrepancy.least + gained
        if bool(below.all()):
            return below
        at_least = weight * self.discrepancy.at_least(self._taking_part(F), self.alpha)
        below = at_most <= at_least + gained
        if not is_exact and not bool(below.all()):
            at_most = self.value(moved)
            below = at_most <= at_least + gained
        return below if bool(below.all()) else at_most <= self.value(F) + gained

    def _taking_part(self, F: Tensor) -> Tensor:
        return F if self.drawn is None else F[..., self.drawn, :]

    def _among_all(self, rows: Tensor, like: Tensor) -> Tensor:
        return rows if self.drawn is None else torch.zeros_like(like).index_copy(-2, self.drawn, rows)


class ReferenceLayer(LateBuffers):
    """One layer's kernel parameter, weight, decisions and fields."""

    alpha: Tensor
    lambda_f: Tensor
    accepted: Tensor  # whether its steps with momentum were accepted
    lowered: Tensor  # whether it lowered the objective, so that it was not damped

    def __init__(self, steps: int) -> None:
        super().__init__("alpha", "lambda_f", "accepted", "lowered")
        self.fields = nn.ModuleList(LateBuffers(*_FIELD_TENSORS) for _ in range(steps))

    def record_field(self, number: int, field: Field) -> None:
        for name, value in vars(field).items():
            setattr(self.fields[number], name, value)

    def recorded_fields(self) -> list[Field]:
        return [field_of(tensors) for stored in self.fields if (tensors := dict(stored.named_buffers()))]

    def check(self, channels: int) -> None:
        check_buffers(self, dict.fromkeys(self._buffers, ()))
        for field in self.recorded_fields():
            if field.dimension != channels:
                raise ValueError(f"a kernel field must be of {channels} dimensions (got {field.dimension})")


class Reference(LateBuffers):
    """What is kept of the fitted graph: its groups, and the fields in which its nodes moved; empty until recorded.

    In the fair layers every node is moved by all others, through a few kernel sums, so a score would depend on who else
    is scored. Kept with the model, these sums move a new node as if it were among the fitted ones.
    """

    scales: Tensor | None  # the weight of a node of each group, see `Groups`
    layers: Any  # a ModuleList of ReferenceLayer

    def __init__(self, layers: int, steps: int) -> None:
        super().__init__("scales")
        self.layers = nn.ModuleList(ReferenceLayer(steps) for _ in range(layers))

    def __iter__(self) -> Iterator[ReferenceLayer]:
        return iter(self.layers)

    def groups(self, shares: Tensor, probabilities: Tensor | None = None) -> Groups:
        """Return other nodes in the groups of the fitted graph; see :meth:`~fairpass.kernels.Groups.of_others`."""
        if self.scales is None:
            raise ValueError("a reference must be recorded before it is used (it is empty)")
        return Groups.of_others(self.scales.to(shares), shares, probabilities)

    def check(self, channels: int, columns: int) -> None:
        """Raise `ValueError` unless the buffers fit layers on this many columns and this many groups (and labels)."""
        check_buffers(self, {"scales": (columns,)})
        for layer in self:
            layer.check(channels)


class RecordedTerm(FairnessTerm):
    """A fairness term that records what it does to the nodes in a layer of a reference."""

    def __init__(self, term: FairnessTerm, layer: ReferenceLayer) -> None:
        super().__init__(term.discrepancy, term.alpha, term.lambda_f, term.drawn)
        layer.alpha, layer.lambda_f = self.alpha.detach().clone(), self.lambda_f.detach().reshape(()).clone()
        layer.accepted = layer.lowered = torch.tensor(True)
        self._layer, self._steps = layer, count()

    def gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        self._layer.record_field(next(self._steps), self.discrepancy.field(self._taking_part(F), self.alpha))
        return super().gradient(F)

    def accepts(self, limit: Tensor, moved: Tensor) -> tuple[Tensor, Tensor]:
        self._layer.accepted, value = super().accepts(limit, moved)
        return self._layer.accepted, value

    def stays_below(self, moved: Tensor, at_most: Tensor, F: Tensor, gained: Tensor, *, is_exact: bool) -> Tensor:
        self._layer.lowered = super().stays_below(moved, at_most, F, gained, is_exact=is_exact)
        return self._layer.lowered


class ReplayedTerm:
    """The fairness term of nodes that move in the recorded fields of a layer; its decisions are repeated."""

    def __init__(self, layer: ReferenceLayer, discrepancy: Discrepancy) -> None:
        self.layer, self.discrepancy = layer, discrepancy
        self._fields = iter(layer.recorded_fields())
        self.was_damped = not bool(layer.lowered)

    def gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        # The value is not known, and nothing depends on it.
        field = next(self._fields, None)
        if field is None:
            raise ValueError("a reference must have a kernel field for every step (got fewer)")
        gradient = self.discrepancy.gradient_in(field, F)
        return self.layer.lambda_f.to(F) * gradient, F.new_zeros(())

    def curvature(self, F: Tensor) -> Tensor:
        return self.layer.lambda_f.to(F) * self.discrepancy.curvature(self.layer.alpha.to(F))

    def accepts(self, limit: Tensor, moved: Tensor) -> tuple[Tensor, Tensor]:
        return self.layer.accepted.to(moved.device), limit

    def stays_below(self, moved: Tensor, at_most: Tensor, F: Tensor, gained: Tensor, *, is_exact: bool) -> Tensor:
        return self.layer.lowered.to(moved.device)


Term = FairnessTerm | ReplayedTerm


class Descent(NamedTuple):
    """Where the steps ended: the point, a bound on the fairness term there, and whether the bound is its value."""

    moved: Tensor
    at_most: Tensor
    is_exact: bool


def descend(Y: Tensor, size: Tensor, gamma: float | Tensor, term: Term, steps: int, *, momentum: bool) -> Descent:
    """Take at least one gradient step from `Y` `(..., N, c)`; `size` `(..., N, 1)` is that of each node's steps."""
    if momentum and steps > 1:
        return _descend_with_momentum(Y, size, gamma, term, steps)
    moved, pull = Y, torch.zeros_like(Y)
    for _ in range(steps):
        before, start = moved, pull
        gradient, value = term.gradient(moved)
        moved = torch.addcmul(moved, size, gradient + pull, value=-1)
        pull = (moved - Y) / gamma
    with torch.no_grad():
        change = gamma * (pull.square() - start.square()) + (moved - before).square() / size
        return Descent(moved, value - world().total(change.sum((-2, -1))) / 2, is_exact=False)


def _descend_with_momentum(Y: Tensor, size: Tensor, gamma: float | Tensor, term: Term, steps: int) -> Descent:
    r"""Take longer gradient steps with momentum, which go several times as far.

    Step `k = 0, 1, ...` starts ahead of where the last one ended, at :math:`F + \frac{k}{k+1}(F - F_{before})`, and is
    twice as long as the bound on the curvature allows: the true curvature is mostly below half of the bound. Such steps
    may overshoot, so :math:`\phi` is compared at the end. Where it is not below what one plain step is known to reach,
    that plain step is taken, which always lowers it.
    """
    slope, start = term.gradient(Y)
    before, moved = Y, torch.addcmul(Y, size, slope, value=-_LONGER)
    for k in range(1, steps):
        ahead = torch.lerp(before, moved, 1 + k / (k + 1))
        gradient, _ = term.gradient(ahead)
        before, moved = moved, torch.addcmul(ahead, size, gradient + (ahead - Y) / gamma, value=-_LONGER)
    with torch.no_grad():
        one_step, all_steps = world().total(
            torch.stack([(size * slope.square()).sum((-2, -1)), ((moved - Y).square() / gamma).sum((-2, -1))])
        )
        reached = start - one_step / 2
        lowered, value = term.accepts(reached - all_steps / 2, moved)
    if bool(lowered.all()):
        return Descent(moved, value, is_exact=True)
    plain = torch.addcmul(Y, size, slope, value=-1)
    bound = reached - world().total(((plain.detach() - Y.detach()).square() / gamma).sum((-2, -1))) / 2
    moved = torch.where(lowered[..., None, None], moved, plain)
    return Descent(moved, torch.where(lowered, value, bound), is_exact=False)


def spread(F: Tensor, drawn: Tensor | None = None) -> Tensor:
    """Return twice the mean squared distance to the mean of the nodes that take part, one number for each problem."""
    points = F.detach() if drawn is None else F.detach()[..., drawn, :]
    return 2 * world().mean_square(points)


def draw(groups: Groups, sample: int | None, seed: int | None) -> Tensor | None:
    """Return the nodes that take part in the fairness term; None means all.

    These are the nodes of known group or, with `sample`, that many of each group. Without a seed the draw uses
    PyTorch's global generator.
    """
    if sample is None:
        if int(groups.sizes.sum()) == groups.num_nodes:
            return None
        weights = groups.membership.sum(-1)
        drawn = torch.nonzero(weights if weights.dim() == 1 else weights.sum(0)).flatten()
        # If there is nothing to compare, all may take part.
        return drawn if world().count(len(drawn)) else None
    if world().is_shared:
        raise ValueError(f"'sample' must be None for a graph in parts, which all nodes take part in (got {sample})")
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    parts = []
    for column in groups.membership.T:
        nodes = torch.nonzero(column).flatten()
        parts.append(nodes[torch.randperm(len(nodes), generator=generator).to(nodes.device)[:sample]])
    return torch.cat(parts).sort().values
