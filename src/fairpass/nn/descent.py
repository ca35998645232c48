r"""Steps down :math:`\phi(F) = \frac{1}{2\gamma}\|F - Y\|^2 + \lambda_f h_f(F)` from `F = Y`: the fair half of a layer.

Each node has the step size :math:`1/(1/\gamma + c_i)` that its curvature `c` allows, so a plain gradient step from any
point lowers :math:`\phi` by at least :math:`\|\text{step}\|^2 / (2\,\text{size})`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from fairpass.nn.fairness import Term

# Steps with momentum are longer than the bound allows by this factor.
_LONGER = 2.0


class Descent(NamedTuple):
    """Where the steps ended: the point, a bound on the fairness term there, and whether the bound is its value."""

    moved: Tensor
    at_most: Tensor
    is_exact: bool


def descend(Y: Tensor, size: Tensor, gamma: float | Tensor, term: Term, steps: int) -> Descent:
    """Take plain gradient steps.

    Args:
        Y: where to start, `(..., N, c)`.
        size: of each node's steps, `(..., N, 1)`.
        gamma: weight of the distance to `Y`.
        term: `lambda_f h_f`.
        steps: number of steps, at least 1.
    """
    moved, pull = Y, torch.zeros_like(Y)
    for _ in range(steps):
        before, start = moved, pull
        gradient, value = term.gradient(moved)
        moved = torch.addcmul(moved, size, gradient + pull, value=-1)
        pull = (moved - Y) / gamma
    with torch.no_grad():
        change = gamma * (pull.square() - start.square()) + (moved - before).square() / size
        return Descent(moved, value - change.sum((-2, -1)) / 2, is_exact=False)


def descend_with_momentum(Y: Tensor, size: Tensor, gamma: float | Tensor, term: Term, steps: int) -> Descent:
    r"""Take longer gradient steps with momentum, which go several times as far; arguments as for `descend`.

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
        reached = start - (size * slope.square()).sum((-2, -1)) / 2
        lowered, value = term.accepts(reached - ((moved - Y).square() / gamma).sum((-2, -1)) / 2, moved)
    if bool(lowered.all()):
        return Descent(moved, value, is_exact=True)
    plain = torch.addcmul(Y, size, slope, value=-1)
    bound = reached - ((plain.detach() - Y.detach()).square() / gamma).sum((-2, -1)) / 2
    moved = torch.where(lowered[..., None, None], moved, plain)
    return Descent(moved, torch.where(lowered, value, bound), is_exact=False)
