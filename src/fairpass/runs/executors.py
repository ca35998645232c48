"""Where batches of runs are computed: in this process, or in several."""

import multiprocessing
import pickle
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch_geometric.data import Data

from fairpass.parameters import MOST_JOBS, check_count

Batch = TypeVar("Batch")
T = TypeVar("T")
Work = Callable[[Data, Batch], T]
Results = Generator[tuple[Batch, T | None], None, None]
KILLED = "its process was killed (is there enough memory?)"


class Executor:
    """Computes one batch after the other in this process; subclasses compute several (`jobs`) at once, elsewhere."""

    jobs = 1

    def map(self, work: Work[Batch, T], data: Data, batches: Sequence[Batch]) -> Results[Batch, T]:
        """Yield each batch with `work(data, batch)`, in any order; None if its process was killed.

        Closing the generator early stops the work.
        """
        yield from ((batch, work(data, batch)) for batch in batches)


class Processes(Executor):
    """Several processes on this machine, each with its share of torch's threads."""

    def __init__(self, jobs: int) -> None:
        check_count("jobs", jobs, most=MOST_JOBS)
        self.jobs = jobs

    def map(self, work: Work[Batch, T], data: Data, batches: Sequence[Batch]) -> Results[Batch, T]:
        """Yield each batch with its result, as soon as it is there."""
        jobs = min(self.jobs, len(batches))
        if jobs <= 1:
            yield from super().map(work, data, batches)
            return
        lost = []
        with _pool(data, jobs) as submit:
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


def executor_for(jobs: int) -> Executor:
    return Executor() if jobs == 1 else Processes(jobs)


@contextmanager
def _pool(data: Data, jobs: int) -> Iterator[Callable[..., "Future[Any]"]]:
    """Start processes that know the graph; yield a function that submits `work(data, batch)` to them."""
    before = set(multiprocessing.active_children())
    # Spawned, because a fork of a process with threads, as torch has, may hang. The graph is pickled here, because
    # multiprocessing would put its tensors into shared memory, and containers have little of that.
    context = multiprocessing.get_context("spawn")
    arguments = (pickle.dumps(data), max(1, torch.get_num_threads() // jobs))
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=arguments)
    try:
        yield lambda work, batch: pool.submit(_call, work, batch)
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


_graph: Data


def _start(graph: bytes, threads: int) -> None:
    global _graph  # noqa: PLW0603 # set once per worker process
    _graph = pickle.loads(graph)
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker silently


def _call(work: Work[Batch, T], batch: Batch) -> T:
    return work(_graph, batch)
