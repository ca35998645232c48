"""What the processes of `--jobs` do.

This module imports nothing large: the processes watch their parent while they import what they need.
"""

import mmap
import os
import pickle
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairpass.lifetime import end_with_parent

if TYPE_CHECKING:
    from torch_geometric.data import Data

_graph: "Data"


def start(graph: bytes | mmap.mmap, threads: int) -> None:
    """Get ready: import what is needed, and read the graph."""
    global _graph  # noqa: PLW0603 # set once per worker process
    end_with_parent()
    import torch

    _graph = pickle.loads(graph)
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker silently
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def call(work: "Callable[[Data, Any], Any]", batch: Any) -> Any:
    return work(_graph, batch)


def map_file(handle: Any) -> mmap.mmap:
    """Map a file whose descriptor was passed on by the parent process."""
    descriptor = handle.detach()
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
