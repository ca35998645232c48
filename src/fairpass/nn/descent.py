r"""Steps down :math:`\phi(F) = \frac{1}{2\gamma}\|F - Y\|^2 + \lambda_f h_f(F)` from `F = Y`: the fair half of a layer.

Each node has the step size :math:`1/(1/\gamma + c_i)` that its curvature `c` allows, so a plain gradient step from any
point lowers :math:`\phi` by at least :math:`\|\text{step}\|^2 / (2\,\text{size})`.
"""

import torch
from torch import Tensor

from fairpass.nn.fairness import FairnessTerm


def descend(Y: Tensor, size: Tensor, gamma: float | Tensor, term: FairnessTerm, steps: int) -> tuple[Tensor, Tensor]:
    """Take plain gradient steps; return where they led, and a bound on the fairness term there.

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
        return moved, value - change.sum((-2, -1)) / 2


def descend_with_momentum(
    Y: Tensor, size: Tensor, gamma: float | Tensor, term: FairnessTerm, steps: int
) -> tuple[Tensor, Tensor]:
    r"""Take gradient steps with Nesterov's momentum, which go about twice as far; arguments as for `descend`.

    A step starts ahead of where the last one ended, at :math:`F + \frac{k}{k+3}(F - F_{before})`. It may overshoot,
    so :math:`\phi` is compared at the end: where it is not below its start, the first step alone is taken, which always
    lowers it.
    """
    first, bound = descend(Y, size, gamma, term, 1)
    if steps == 1:
        return first, bound
    before, moved = Y, first
    for k in range(1, steps):
        ahead = torch.lerp(before, moved, 1 + k / (k + 3))
        gradient, _ = term.gradient(ahead)
        before, moved = moved, torch.addcmul(ahead, size, gradient + (ahead - Y) / gamma, value=-1)
    with torch.no_grad():
        value = term.constant_value(moved)
        # What the first step is known to have reached, distance included.
        reached = bound + ((first - Y).square() / gamma).sum((-2, -1)) / 2
        lowered = value + ((moved - Y).square() / gamma).sum((-2, -1)) / 2 <= reached
    if bool(lowered.all()):
        return moved, value
    return torch.where(lowered[..., None, None], moved, first), torch.where(lowered, value, bound)
