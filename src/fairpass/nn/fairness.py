"""The fairness term of one layer: weight, kernel parameter and nodes fixed, ready to be descended."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from fairpass.kernels import Discrepancy, Groups


class Term(Protocol):
    """What a layer asks of its fairness term: of the nodes' own, or of one that was kept."""

    @property
    def was_damped(self) -> bool:
        """Return whether the layer is known to have failed to lower the objective."""

    def gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradient, `(..., N, c)`, and the value as a constant."""

    def curvature(self, F: Tensor) -> Tensor:
        """Return each node's bound on the Hessian, `(..., N, 1)`."""

    def accepts(self, limit: Tensor, moved: Tensor) -> tuple[Tensor, Tensor]:
        """Return whether the value at `moved` is at most `limit`, and the value; one for each problem."""

    def stays_below(self, moved: Tensor, at_most: Tensor, F: Tensor, gained: Tensor, *, is_exact: bool) -> Tensor:
        """Return whether the value grew by at most `gained` from `F` to `moved`.

        There it is at most `at_most`, and just that if `is_exact`.
        """


@dataclass(frozen=True)
class FairnessTerm:
    """`lambda_f h_f`, over all nodes or over some that were drawn.

    Attributes:
        discrepancy: `h_f` of the nodes that take part.
        alpha: kernel parameter, one for each problem of the batch.
        lambda_f: weight, `(..., 1, 1)`.
        drawn: indices of the nodes that take part; None means all.
    """

    discrepancy: Discrepancy
    alpha: Tensor
    lambda_f: Tensor
    drawn: Tensor | None = None
    was_damped: ClassVar[bool] = False

    def value(self, F: Tensor) -> Tensor:
        """Return `lambda_f h_f(F)`, one number for each problem."""
        return self.lambda_f[..., 0, 0] * self.discrepancy.value(self._taking_part(F), self.alpha)

    def gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradient, `(..., N, c)`, and the value as a constant."""
        gradient, value = self.discrepancy.gradient(self._taking_part(F), self.alpha)
        return self._among_all(self.lambda_f * gradient, F), self.lambda_f[..., 0, 0] * value

    def constant_value(self, F: Tensor) -> Tensor:
        """Return `lambda_f h_f(F)` without gradient, which takes no evaluation at the nodes."""
        return self.lambda_f[..., 0, 0] * self.discrepancy.constant_value(self._taking_part(F), self.alpha)

    def accepts(self, limit: Tensor, moved: Tensor) -> tuple[Tensor, Tensor]:
        """Return whether the value at `moved` is at most `limit`, and the value."""
        value = self.constant_value(moved)
        return value <= limit, value

    def curvature(self, F: Tensor) -> Tensor:
        """Return each node's bound on the Hessian, `(..., N, 1)`; 0 for nodes that take no part."""
        bound = self.lambda_f * self.discrepancy.curvature(self.alpha[..., None, None])
        return self._among_all(bound, F[..., :1])

    def stays_below(self, moved: Tensor, at_most: Tensor, F: Tensor, gained: Tensor, *, is_exact: bool) -> Tensor:
        """Return whether the term grew by at most `gained` from `F` to `moved`; `at_most` bounds its value at `moved`.

        One answer for each problem of the batch. Mostly bounds decide; if not, values are computed, one at a time.
        """
        weight = self.lambda_f[..., 0, 0]
        below: Tensor = at_most <= weight * self.discrepancy.least + gained
        if bool(below.all()):
            return below
        at_least = weight * self.discrepancy.at_least(self._taking_part(F), self.alpha)
        below = at_most <= at_least + gained
        if not is_exact and not bool(below.all()):
            at_most = self.constant_value(moved)
            below = at_most <= at_least + gained
        if bool(below.all()):
            return below
        return at_most <= self.constant_value(F) + gained

    def _taking_part(self, F: Tensor) -> Tensor:
        return F if self.drawn is None else F[..., self.drawn, :]

    def _among_all(self, rows: Tensor, like: Tensor) -> Tensor:
        return rows if self.drawn is None else torch.zeros_like(like).index_copy(-2, self.drawn, rows)


def spread(F: Tensor, drawn: Tensor | None) -> Tensor:
    """Return twice the mean squared distance to the mean of the nodes that take part, one number for each problem."""
    points = F.detach() if drawn is None else F.detach()[..., drawn, :]
    return 2 * (points - points.mean(-2, keepdim=True)).square().sum(-1).mean(-1)


def draw(groups: Groups, sample: int | None, seed: int | None) -> Tensor | None:
    """Return the nodes that take part in the fairness term; None means all.

    These are the nodes of known group or, if sampled, so many of each group, by a seed or, without one, at random.
    """
    if sample is None:
        if int(groups.sizes.sum()) == groups.membership.shape[-2]:
            return None
        weights = groups.membership.sum(-1)
        drawn = torch.nonzero(weights if weights.dim() == 1 else weights.sum(0)).flatten()
        return drawn if len(drawn) else None  # if nobody is compared, all may take part
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    parts = []
    for column in groups.membership.T:
        nodes = torch.nonzero(column).flatten()
        shuffle = torch.randperm(len(nodes), generator=generator).to(nodes.device)
        parts.append(nodes[shuffle[:sample]])
    return torch.cat(parts).sort().values
