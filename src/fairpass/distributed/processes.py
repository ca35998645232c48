"""Join the processes that train together: torchrun's variables, the process group, a clean end."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
import torch.distributed as dist

from fairpass.lifetime import end_with_parent
from fairpass.world import SharedWorld, inside

_torch: Any = dist  # some of its names have no type
_LOST = "the connection to another process was lost"


def is_worker() -> bool:
    """Return whether torchrun, or `launch`, started this process."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def local_device(device: str) -> str:
    """Return the device of this process: with GPUs, each process of a machine has its own."""
    return f"cuda:{os.environ['LOCAL_RANK']}" if device == "cuda" and is_worker() else device


@contextmanager
def joined() -> Iterator[SharedWorld]:
    """Join the processes that torchrun started for the duration of a block; losing one of them is a `ConnectionError`.

    Tensors on CPUs are exchanged by gloo, those on GPUs by NCCL.
    """
    end_with_parent()
    # The agent's store outlives its workers. After a restart they must not find the addresses of earlier workers.
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
