"""Several real processes that share a graph, for tests.

They are forked from a server that has imported everything once: a process of its own would take seconds to start.
"""

import os
import traceback
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed
from tests.trial import forked

from fairpass.distributed.processes import joined
from fairpass.world import SharedWorld

_torch: Any = torch.distributed  # some of its names have no type
TIMEOUT = 600  # seconds, for machines that are busy with other things


def crew(size: int, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return what `work(shared, *arguments)` returns in each of `size` processes."""
    store = _torch.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    members, ends = [], []
    try:
        for rank in range(size):
            here, there = forked.Pipe(duplex=False)
            members.append(forked.Process(target=_member, args=(rank, size, store.port, there, work, arguments)))
            ends.append(here)
            members[-1].start()
            there.close()
        found = []
        for rank, end in enumerate(ends):
            if not end.poll(TIMEOUT):
                raise TimeoutError(f"process {rank} of {size} did not answer")
            succeeded, result = end.recv()
            if not succeeded:
                raise RuntimeError(f"process {rank} of {size} failed:\n{result}")
            found.append(result)
        return found
    finally:
        for member in members:
            member.kill()
            member.join()


def _member(rank: int, size: int, port: int, answer: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store is that of the test
        "GLOO_SOCKET_IFNAME": "lo",
    }
    torch.set_num_threads(1)
    try:
        with joined() as shared:
            result = _in(shared, work, arguments)
        answer.send((True, result))
    except BaseException:
        answer.send((False, traceback.format_exc()))


def _in(shared: SharedWorld, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return work(shared, *arguments)
