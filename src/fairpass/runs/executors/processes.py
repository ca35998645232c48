"""Several processes on this machine."""

import multiprocessing
import os
import pickle
import signal
import tempfile
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import connection, reduction, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Self

import torch
from torch_geometric.data import Data

from fairpass.lifetime import indivisible
from fairpass.parameters import MOST_JOBS, check_count
from fairpass.runs.executors import worker
from fairpass.runs.executors.executor import Batch, Executor, Results, T, Work

_START_METHOD = "spawn"  # because a fork of a process with threads, as torch has, may hang
_ENDING = 5.0  # seconds that an idle process may take to end


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
        """Yield each batch with its result, as soon as it is done.

        If a process is killed, its batch is computed again at the end, alone: there may not have been enough memory
        for several. It yields None if that process is killed, too.
        """
        if self.is_here(len(batches)):
            yield from super().map(work, data, batches)
            return
        lost = yield from _compute(work, data, batches, min(self.jobs, len(batches)))
        for batch in lost:
            killed = yield from _compute(work, data, [batch], 1)
            if killed:
                yield batch, None


def _compute(
    work: Work[Batch, T], data: Data, batches: Sequence[Batch], jobs: int
) -> Generator[tuple[Batch, T], None, list[Batch]]:
    """Yield batches with their results; return those whose process was killed."""
    waiting, lost = deque(batches), list[Batch]()
    with _Workers[Batch](data, jobs) as workers:
        while waiting or workers.busy:
            while waiting and len(workers.busy) < jobs:
                if not workers.give(work, batch := waiting.popleft()):
                    lost.append(batch)
            for batch, answer in workers.answers():
                if answer is None:
                    lost.append(batch)
                else:
                    yield batch, _result(answer)
    return lost


def _result(answer: bytes) -> Any:
    is_error, found = pickle.loads(answer)
    if is_error:
        raise found
    return found


class _Workers(Generic[Batch]):
    """Processes that have the graph. The end of a `with` block ends them: after an error, whatever they do.

    `ProcessPoolExecutor` will not do. All its processes share two pipes, and a process that is killed while it sends a
    result leaves the others and the pool waiting forever; it also loses sight of processes that are being started. So
    each process has a pipe of its own here, whose end says that the process has ended.
    """

    def __init__(self, data: Data, jobs: int) -> None:
        self._data, self._threads = data, max(1, torch.get_num_threads() // jobs)
        self._all: list[tuple[BaseProcess, Connection]] = []
        self._idle: list[Connection] = []
        self.busy: dict[Connection, Batch] = {}

    # An interruption in the middle of these methods could leave a process that nobody ends.
    @indivisible
    def __enter__(self) -> Self:
        if hasattr(signal, "SIGHUP"):
            # A closed terminal sends it to all processes. The tracker of multiprocessing would end, be started again,
            # and print a traceback for everything that it does not know.
            with _blocked(signal.SIGHUP):
                resource_tracker.ensure_running()
        self._graph = _Parcel(self._data)
        return self

    @indivisible
    def __exit__(self, kind: object, *_: object) -> None:
        for process, pipe in self._all:
            if kind is not None:
                process.kill()
            pipe.close()  # which ends a process that waits for work
        for process, _pipe in self._all:
            process.join(_ENDING)
            process.kill()
            process.join()
        self._graph.close()

    def give(self, work: Work[Batch, T], batch: Batch) -> bool:
        """Let a process compute a batch; return False if it was killed before it got it."""
        message = pickle.dumps((work, batch))
        while True:
            is_new = not self._idle
            try:
                pipe = self._start() if is_new else self._idle.pop()
                pipe.send_bytes(message)
            except (BrokenPipeError, ConnectionResetError):
                if is_new:
                    return False
            else:
                self.busy[pipe] = batch
                return True

    def answers(self) -> Iterator[tuple[Batch, bytes | None]]:
        """Wait until a process has an answer, or was killed (None)."""
        ready = connection.wait([*self.busy]) if self.busy else []  # for nothing it would wait forever
        for pipe in [each for each in self.busy if each in ready]:
            batch, answer = self.busy.pop(pipe), None
            try:
                answer = pipe.recv_bytes()
                self._idle.append(pipe)
            except (EOFError, OSError):
                pass
            yield batch, answer

    @indivisible
    def _start(self) -> Connection:
        context: Any = multiprocessing.get_context(_START_METHOD)
        here, there = multiprocessing.Pipe()
        process = context.Process(target=worker.serve, args=(there, self._graph, self._threads))
        with there, _blocked(signal.SIGINT):  # until it is ready: a traceback of its start is of no use
            process.start()
        self._all.append((process, here))
        return here


@contextmanager
def _blocked(number: signal.Signals) -> Iterator[None]:
    """Block a signal in this thread, and in the processes that are started here until they unblock it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
