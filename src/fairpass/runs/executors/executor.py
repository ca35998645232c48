"""The interface of executors, implemented for this process."""

from collections.abc import Callable, Generator, Sequence
from typing import Self, TypeVar

from torch_geometric.data import Data

Batch = TypeVar("Batch")
T = TypeVar("T")
Work = Callable[[Data, Batch], T]
Results = Generator[tuple[Batch, T | None], None, None]
KILLED = "its process was killed (is there enough memory?)"


class Executor:
    """Computes one batch after the other in this process; subclasses compute several (`jobs`) at once, elsewhere.

    Use it with `with` if it may be on a cluster: the end of the block disconnects it.
    """

    shares_disk = True  # whether files that `work` writes are on this machine

    @property
    def jobs(self) -> int:
        """How many batches are computed at once."""
        return 1

    def is_here(self, batches: int) -> bool:
        """Return whether this number of batches is computed in this process, where callbacks can be called."""
        return True

    def map(self, work: Work[Batch, T], data: Data, batches: Sequence[Batch]) -> Results[Batch, T]:
        """Yield each batch with `work(data, batch)`, in any order; None if its process was killed.

        Closing the generator early stops the work.
        """
        yield from ((batch, work(data, batch)) for batch in batches)

    def close(self) -> None:
        """Release what is kept between calls of `map`; it may still be called afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
