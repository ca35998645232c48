"""Processes that share the work on one graph."""

import multiprocessing
import pickle
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from typing import TypeVar

import torch
from torch_geometric.data import Data

A = TypeVar("A")
T = TypeVar("T")


class Workers:
    """Processes that know the graph, and that end at once when they are no longer needed.

    Args:
        data: the graph.
        jobs: number of processes; each gets its share of torch's threads.
        caller_works: whether the caller is one of them, with its share of the threads until the others have ended.
    """

    def __init__(self, data: Data, jobs: int, *, caller_works: bool = False) -> None:
        # Pickled here, because multiprocessing would put the tensors into shared memory, of which containers
        # have little.
        graph = pickle.dumps(data)
        self._threads = torch.get_num_threads()
        threads = max(1, self._threads // jobs)
        self._before = set(multiprocessing.active_children())
        # Spawned, because a fork of a process with threads, as torch has, may hang.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(
            jobs - caller_works, mp_context=context, initializer=_start, initargs=(graph, threads)
        )
        if caller_works:
            torch.set_num_threads(threads)

    def submit(self, function: Callable[[Data, A], T], argument: A) -> "Future[T]":
        """Have `function(data, argument)` called in one of the processes."""
        return self._pool.submit(_call, function, argument)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for process in set(multiprocessing.active_children()) - self._before:
                process.terminate()
        self._pool.shutdown(cancel_futures=True)
        torch.set_num_threads(self._threads)


_graph: Data


def _start(graph: bytes, threads: int) -> None:
    global _graph  # noqa: PLW0603 # what a worker knows, it knows for good
    _graph = pickle.loads(graph)
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker without a word


def _call(function: Callable[[Data, A], T], argument: A) -> T:
    return function(_graph, argument)
