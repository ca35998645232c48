"""What sums need of an expansion in waves, whichever waves it has."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from torch import Tensor

Made = TypeVar("Made")


def chunks(
    count: int, step: int, kept: list[Made] | None, make: Callable[[slice], Made]
) -> Iterator[tuple[slice, Made]]:
    """Yield `step` of `count` points at a time with their features; with a list `kept`, these are made once."""
    for i, start in enumerate(range(0, count, step)):
        rows = slice(start, start + step)
        if kept is None:
            yield rows, make(rows)
            continue
        if len(kept) == i:
            kept.append(make(rows))
        yield rows, kept[i]


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
