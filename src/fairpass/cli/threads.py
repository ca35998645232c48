"""How many threads to compute with."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_geometric.data import Data

# Below this many nodes threads wait for each other longer than they work: on German (1,000 nodes), GMMD takes half
# the time with one thread that it takes with two, and a hundredth if another program uses one of the two cores.
_WORTH_SHARING = 5_000


def choose_threads(data: "Data") -> None:
    """Compute with one thread if a graph is small, unless the user has said how many (OMP_NUM_THREADS)."""
    import torch

    if data.num_nodes < _WORTH_SHARING and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
