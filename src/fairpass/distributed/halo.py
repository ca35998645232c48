"""The nodes of other processes that a process needs, and the exchange of their columns."""

import torch
from torch import Tensor

from fairpass.world import SharedWorld


class Halo:
    """Which rows are sent to which process, agreed once; `fetch` then returns the halo's rows of any matrix.

    Args:
        shared: the processes.
        offsets: the first node of every process, and the number of nodes.
        numbers: the nodes of other processes that this one needs, increasing.
    """

    def __init__(self, shared: SharedWorld, offsets: tuple[int, ...], numbers: Tensor) -> None:
        self.shared, self.count = shared, len(numbers)
        owners = torch.bucketize(numbers, torch.tensor(offsets[1:-1]), right=True)
        self._expected = torch.bincount(owners, minlength=shared.size).tolist()
        asked = shared.exchange(torch.tensor(self._expected), [1] * shared.size, [1] * shared.size)
        self._sizes = asked.tolist()
        # Numbers are sorted, so they are in the order of their owners.
        wanted = shared.exchange(numbers, self._expected, self._sizes)
        self.sent = wanted - shared.first_node  # the own rows that others need, one process after the other

    def fetch(self, rows: Tensor) -> Tensor:
        """Return the halo's rows of a matrix whose own rows are given, without gradient."""
        return self.shared.exchange(rows.detach().index_select(0, self.sent), self._sizes, self._expected)

    def extend(self, rows: Tensor) -> Tensor:
        """Return the own rows of a matrix, followed by the halo's, without gradient."""
        return rows.detach() if self.shared.size == 1 else torch.cat([rows.detach(), self.fetch(rows)])
