"""How many threads to compute with."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_geometric.data import Data

# Below this many nodes threads wait for each other longer than they work: on German (1,000 nodes) an epoch of GMMD
# took 33 ms with one thread and 77 ms with two, and over a second with two when other programs used the cores, too.
_WORTH_SHARING = 5_000


def choose_threads(data: "Data") -> None:
    """Compute with one thread if a graph is small, unless the user has said how many (OMP_NUM_THREADS)."""
    import torch

    if data.num_nodes < _WORTH_SHARING and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
