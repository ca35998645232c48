"""Several processes on this machine."""

import multiprocessing
import os
import pickle
import signal
import tempfile
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import reduction, resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any, Self

import torch
from torch_geometric.data import Data

from fairpass.lifetime import indivisible
from fairpass.parameters import MOST_JOBS, check_count
from fairpass.runs.executors import worker
from fairpass.runs.executors.executor import Batch, Executor, Results, T, Work

Lost = Generator[tuple[Batch, T | None], None, list[Batch]]
_BROKEN = (BrokenProcessPool, BrokenPipeError)  # the second if a process is killed before it has read its task
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
        """Return whether this number of batches is computed in this process, as others would not help."""
        return min(self.jobs, batches) <= 1

    def map(self, work: Work[Batch, T], data: Data, batches: Sequence[Batch]) -> Results[Batch, T]:
        """Yield each batch with its result, as soon as it is done."""
        if self.is_here(len(batches)):
            yield from super().map(work, data, batches)
            return
        waiting = deque(batches)
        while waiting:
            lost = yield from self._together(work, data, waiting)
            yield from _one_at_a_time(work, data, lost)

    def _together(self, work: Work[Batch, T], data: Data, waiting: deque[Batch]) -> Lost[Batch, T]:
        """Compute batches until all are done, or a process is killed; return those that were being computed then.

        A killed process (out of memory) breaks the whole pool. Only as many batches are submitted as there are
        processes, so those that are still in `waiting` cannot be the cause.
        """
        running: dict[Future[Any], Batch] = {}
        lost: list[Batch] = []
        jobs = min(self.jobs, len(waiting))
        with _Pool(data, jobs) as pool:
            while not lost and (waiting or running):
                try:
                    while waiting and len(running) < jobs:
                        running[pool.submit(work, waiting[0])] = waiting[0]
                        waiting.popleft()
                except _BROKEN:
                    lost.append(waiting.popleft())
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    try:
                        yield running[each], each.result()
                    except BrokenProcessPool:
                        lost.append(running[each])
                    del running[each]
        return [*lost, *running.values()]


def _one_at_a_time(work: Work[Batch, T], data: Data, batches: Sequence[Batch]) -> Results[Batch, T]:
    """Compute batches one by one, to find out which one gets its process killed."""
    left = deque(batches)
    while left:
        with _Pool(data, 1) as pool:
            while left:
                batch = left.popleft()
                try:
                    yield batch, pool.submit(work, batch).result()
                except _BROKEN:
                    yield batch, None
                    break


class _Pool:
    """Processes that have the graph. The end of a `with` block ends them all; after an error, whatever they do."""

    def __init__(self, data: Data, jobs: int) -> None:
        self._data, self._jobs = data, jobs

    # An interruption in the middle of these methods could leave a process that nobody ends.
    @indivisible
    def __enter__(self) -> Self:
        _start_tracker()
        self._context, self._graph = _Context(), _Parcel(self._data)
        arguments: tuple[Any, int] = (self._graph, max(1, torch.get_num_threads() // self._jobs))
        context: Any = self._context
        self._pool = ProcessPoolExecutor(self._jobs, mp_context=context, initializer=worker.start, initargs=arguments)
        # Start all processes before the thread that looks after them, which crashes if one is killed while another one
        # is added. There is no public setting for this.
        setattr(self._pool, "_safe_to_dynamically_spawn_children", False)  # noqa: B010 # mypy does not know it
        return self

    @indivisible
    def submit(self, work: Work[Batch, T], batch: Batch) -> "Future[T]":
        """Compute `work(data, batch)`. The first call starts the processes."""
        with _blocked():
            return self._pool.submit(worker.call, work, batch)

    @indivisible
    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._context.kill_all()
        self._pool.shutdown(cancel_futures=True)
        self._context.kill_all()  # a pool that breaks while it starts forgets some of its processes
        self._graph.close()


class _Context:
    """A context of multiprocessing that remembers the processes it has made."""

    def __init__(self) -> None:
        self._context: Any = multiprocessing.get_context(_START_METHOD)
        self._made: list[BaseProcess] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Process(self, **options: Any) -> BaseProcess:  # noqa: N802 # as multiprocessing calls it
        self._made.append(self._context.Process(**options))
        return self._made[-1]

    def kill_all(self) -> None:
        for each in self._made:
            if each.pid is not None and each.is_alive():
                each.kill()
                each.join()


@contextmanager
def _blocked() -> Iterator[None]:
    """Block Ctrl-C in the processes that are started here until they are ready: it would interrupt their imports."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_tracker() -> None:
    """Start multiprocessing's tracker of resources, which otherwise starts with the first process.

    It must not get the SIGHUP that a closed terminal sends to all its processes: it would end, be started again, and
    print a traceback for everything that it does not know.
    """
    if not hasattr(signal, "pthread_sigmask"):
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        resource_tracker.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # starting it has unblocked others


class _Parcel:
    """A graph for spawned processes, in a temporary file without a name.

    As an argument it would be written to a pipe, which blocks until the process has imported torch and reads it: the
    processes would start one after the other, and an interruption meanwhile could leave one half started. For tensors,
    multiprocessing uses shared memory, of which containers have little.
    """

    def __init__(self, data: Data) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 # closed by `close`
        pickle.dump(data, self.file)
        self.file.flush()

    def __reduce__(self) -> tuple[Any, ...]:
        if os.name != "posix":  # file descriptors cannot be passed on there
            self.file.seek(0)
            return bytes, (self.file.read(),)
        return worker.map_file, (reduction.DupFd(self.file.fileno()),)

    def close(self) -> None:
        self.file.close()
