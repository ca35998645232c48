"""What the processes of `--jobs` do.

This module imports nothing large: the processes watch their parent while they import what they need.
"""

import mmap
import os
import pickle
import signal
import traceback
from contextlib import suppress
from functools import cache, partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from fairpass.lifetime import end_with_parent

if TYPE_CHECKING:
    from torch_geometric.data import Data


def serve(pipe: Connection, graph: bytes | mmap.mmap, threads: int) -> None:
    """Answer each pair of a function and a batch with its result for the graph, until the pipe is closed."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker silently
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    load = cache(partial(_load, graph, threads))
    with suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes(), load))


def _load(graph: bytes | mmap.mmap, threads: int) -> "Data":
    import torch

    torch.set_num_threads(threads)
    return pickle.loads(graph)


def _answer(message: bytes, load: Any) -> bytes:
    """Return whether there was an error, and the error or the result.

    By plain pickle, tensors are sent as bytes. Multiprocessing sends them as descriptors of shared memory, and there
    are not enough of both for the models of a large search.
    """
    try:
        work, batch = pickle.loads(message)
        return pickle.dumps((False, work(load(), batch)))
    except Exception as error:
        error.add_note("".join(traceback.format_exception(error)))
        try:
            return pickle.dumps((True, error))
        except Exception:
            return pickle.dumps((True, RuntimeError(f"{type(error).__name__}: {error}")))


def map_file(handle: Any) -> mmap.mmap:
    """Map a file whose descriptor was passed on by the parent process."""
    descriptor = handle.detach()
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
