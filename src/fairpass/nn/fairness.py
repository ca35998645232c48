"""The fairness term of one layer: weight, kernel parameter and nodes fixed, ready to be descended."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fairpass.kernels import Discrepancy


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

    def curvature(self, F: Tensor) -> Tensor:
        """Return each node's bound on the Hessian, `(..., N, 1)`; 0 for nodes that take no part."""
        bound = self.lambda_f * self.discrepancy.curvature(self.alpha[..., None, None])
        return self._among_all(bound, F[..., :1])

    def stays_below(self, moved: Tensor, at_most: Tensor, F: Tensor, gained: Tensor) -> Tensor:
        """Return whether the term grew by at most `gained` from `F` to `moved`; `at_most` bounds its value at `moved`.

        One answer for each problem of the batch. Mostly bounds decide; if not, both values are computed, as one.
        """
        weight = self.lambda_f[..., 0, 0]
        below: Tensor = at_most <= weight * self.discrepancy.least + gained
        if not bool(below.all()):
            below = at_most <= weight * self.discrepancy.at_least(self._taking_part(F), self.alpha) + gained
        if bool(below.all()):
            return below
        both = torch.stack([self._taking_part(F), self._taking_part(moved)])
        before, after = self.discrepancy.constant_value(both, self.alpha).unbind()
        return weight * (after - before) <= gained

    def _taking_part(self, F: Tensor) -> Tensor:
        return F if self.drawn is None else F[..., self.drawn, :]

    def _among_all(self, rows: Tensor, like: Tensor) -> Tensor:
        return rows if self.drawn is None else torch.zeros_like(like).index_copy(-2, self.drawn, rows)


def spread(F: Tensor, drawn: Tensor | None) -> Tensor:
    """Return twice the mean squared distance to the mean of the nodes that take part, one number for each problem."""
    points = F.detach() if drawn is None else F.detach()[..., drawn, :]
    return 2 * (points - points.mean(-2, keepdim=True)).square().sum(-1).mean(-1)
