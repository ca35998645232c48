"""Several processes on this machine."""

import mmap
import multiprocessing
import os
import pickle
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import reduction
from typing import Any

import torch
from torch_geometric.data import Data

from fairpass.lifetime import end_with_parent
from fairpass.parameters import MOST_JOBS, check_count
from fairpass.runs.executors.executor import Batch, Executor, Results, T, Work

_START_METHOD = "spawn"  # because a fork of a process with threads, as torch has, may hang


class Processes(Executor):
    """Several processes on this machine, each with its share of torch's threads. They end with this process."""

    def __init__(self, jobs: int) -> None:
        check_count("jobs", jobs, most=MOST_JOBS)
        self._jobs = jobs

    @property
    def jobs(self) -> int:
        """How many batches are computed at once."""
        return self._jobs

    def is_here(self, batches: int) -> bool:
        """Return whether so many batches are computed in this process, because another would not help."""
        return min(self.jobs, batches) <= 1

    def map(self, work: Work[Batch, T], data: Data, batches: Sequence[Batch]) -> Results[Batch, T]:
        """Yield each batch with its result, as soon as it is there."""
        if self.is_here(len(batches)):
            yield from super().map(work, data, batches)
            return
        lost = []
        with _pool(data, min(self.jobs, len(batches))) as submit:
            waiting = {submit(work, batch): batch for batch in batches}
            for done in as_completed(waiting):
                try:
                    yield waiting[done], done.result()
                except BrokenProcessPool:
                    lost.append(waiting[done])
        # A killed process (out of memory) breaks the pool, and every unfinished batch is lost. It is not known which
        # one was to blame, so each gets a process of its own, one after the other.
        for batch in lost:
            with _pool(data, 1) as submit:
                try:
                    yield batch, submit(work, batch).result()
                except BrokenProcessPool:
                    yield batch, None


@contextmanager
def _pool(data: Data, jobs: int) -> Iterator[Callable[..., "Future[Any]"]]:
    """Start processes that know the graph; yield a function that submits `work(data, batch)` to them."""
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context(_START_METHOD)
    graph = _Parcel(data)
    arguments: tuple[Any, int] = (graph, max(1, torch.get_num_threads() // jobs))
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=arguments)
    try:
        yield lambda work, batch: pool.submit(_call, work, batch)
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        graph.close()


class _Parcel:
    """A graph for spawned processes, in a temporary file without a name.

    As an argument it would be written to a pipe, which waits until the process has imported torch and reads it: they
    would start one after the other, and an interruption meanwhile would leave half a process. multiprocessing's own way
    for tensors is shared memory, and containers have little of that.
    """

    def __init__(self, data: Data) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 # closed by `close`
        pickle.dump(data, self.file)
        self.file.flush()

    def __reduce__(self) -> tuple[Any, ...]:
        if os.name != "posix":  # where files cannot be handed over like this
            self.file.seek(0)
            return bytes, (self.file.read(),)
        return _map_file, (reduction.DupFd(self.file.fileno()),)

    def close(self) -> None:
        self.file.close()


def _map_file(handle: Any) -> mmap.mmap:
    descriptor = handle.detach()
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)


_graph: Data


def _start(graph: bytes | mmap.mmap, threads: int) -> None:
    global _graph  # noqa: PLW0603 # set once per worker process
    end_with_parent()
    _graph = pickle.loads(graph)
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker silently


def _call(work: Work[Batch, T], batch: Batch) -> T:
    return work(_graph, batch)
