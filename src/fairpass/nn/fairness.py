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

    def curvature(self, F: Tensor) -> Tensor:
        """Return each node's bound on the Hessian, `(..., N, 1)`; 0 for nodes that take no part."""
        bound = self.lambda_f * self.discrepancy.curvature(self.alpha[..., None, None])
        return self._among_all(bound, F[..., :1])

    def stays_below(self, moved: Tensor, at_most: Tensor, F: Tensor, gained: Tensor) -> bool:
        """Return whether the term rose by no more than `gained` from `F` to `moved`, where it is `at_most` so much.

        Asks the cheapest question that decides: no value at all, then a rough one, then exact ones.
        """
        weight = self.lambda_f[..., 0, 0]
        if bool((at_most <= weight * self.discrepancy.least + gained).all()):
            return True
        rough, error = self.discrepancy.rough_value(self._taking_part(F), self.alpha)
        if bool((at_most <= weight * (rough - error) + gained).all()):
            return True
        return bool((self.value(moved) <= self.value(F) + gained).all())

    def _taking_part(self, F: Tensor) -> Tensor:
        return F if self.drawn is None else F[..., self.drawn, :]

    def _among_all(self, rows: Tensor, like: Tensor) -> Tensor:
        return rows if self.drawn is None else torch.zeros_like(like).index_copy(-2, self.drawn, rows)
