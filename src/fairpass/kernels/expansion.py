"""What sums need of an expansion in waves, whichever waves it has."""

from typing import Protocol

from torch import Tensor


class Waves(Protocol):
    """The waves of an expansion; their moments are laid out `(B, ..., m, m_left)`."""

    def gradient(self, moments: Tensor) -> Tensor:
        """Return the moments of all first derivatives, `(B, d, ...)`."""

    def divergence(self, moments: Tensor) -> Tensor:
        """Return the moments `(B, q, ...)` of the divergence of a field with moments `(B, d, q, ...)`."""


class Expanded(Protocol):
    """Some points, of which sums are taken by way of their moments."""

    @property
    def box(self) -> Waves:
        """Return the waves."""

    def moments(self, strengths: Tensor) -> Tensor:
        """Return the moments of strengths `(B, q, n)`; the moments of disjoint sets add up."""

    def evaluate(self, moments: Tensor) -> Tensor:
        """Return the sums that belong to moments `(B, q, ...)` at every point, `(B, q, n)`."""

    def gram(self, moments: Tensor) -> Tensor:
        """Return the quadratic forms of the strengths, `(B, q, q)`."""
