"""What makes a process one of several that train together: torchrun's variables, the process group, a clean end."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
import torch.distributed as dist

from fairpass.world import SharedWorld, inside

_torch: Any = dist  # some of its names have no type
PARENT = "FAIRPASS_PARENT"  # names the variable with the id of the process that called `launch`
_LOST = "the connection to another process was lost"


def is_worker() -> bool:
    """Return whether torchrun, or `launch`, started this process."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def local_device(device: str) -> str:
    """Return the device of this process: with GPUs, each process of a machine has its own."""
    return f"cuda:{os.environ['LOCAL_RANK']}" if device == "cuda" and is_worker() else device


@contextmanager
def joined() -> Iterator[SharedWorld]:
    """Join the processes that torchrun started, for as long as this lasts; losing one of them is a `ConnectionError`.

    Numbers on CPUs go through gloo, those on GPUs through NCCL.
    """
    _end_with_parent()
    # The agent's store outlives its workers. Those of each start must not find the addresses of the last ones.
    store, number, size = next(_torch.rendezvous("env://"))
    attempt = _torch.PrefixStore(f"start-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=attempt, rank=number, world_size=size)
    try:
        shared = SharedWorld()
        with inside(shared):
            yield shared
            shared.count(0)  # nobody leaves while others still wait for an answer
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error) or "Connection" in str(error):
            raise ConnectionError(_LOST) from error
        raise
    finally:
        with suppress(RuntimeError):
            dist.destroy_process_group()


def _end_with_parent() -> None:
    """End this process as soon as the one that started it is gone: nobody would wait for it."""
    # It may have been killed before we came here; who adopted us never ends.
    parent = int(os.environ.get(PARENT, os.getppid()))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
