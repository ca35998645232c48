"""A Ray cluster: tasks on many machines, tried again if one of them is lost."""

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import torch
from torch_geometric.data import Data

from fairpass import __version__
from fairpass.errors import DataError, FairpassError
from fairpass.runs.executors.executor import Batch, Executor, Results, T, Work

logger = logging.getLogger(__name__)

RETRIES = 3  # of a task whose process or machine was lost
_REACHABLE = 10.0  # seconds until an address without an answer counts as wrong
_CANCELLING, _CANCEL_AGAIN = 30.0, 0.5  # seconds that tasks have to end, and between two tries
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage statistics are sent
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a future default, without which Ray warns
    "RAY_task_oom_retries": str(RETRIES),  # unlimited by default
}


class RayCluster(Executor):
    """Tasks on a Ray cluster, one processor each, `jobs` of them at once (None: as many as there are processors).

    Without an `address`, Ray is started on this machine, and stopped by `close`. With one, this process connects to an
    existing cluster: `"ray://HOST:PORT"` or `"auto"`. If this process already uses Ray, that connection is used.

    The graph is sent to the cluster once for each call of `map`. A task whose process or machine is lost is run again
    elsewhere, up to three times. Every machine must have the same version of fairpass.
    """

    shares_disk = False

    def __init__(self, jobs: int | None = None, address: str | None = None) -> None:
        self._ray = _library()
        self._limit, self.address = jobs, address
        self._is_ours = False

    @property
    def jobs(self) -> int:
        """How many batches are computed at once."""
        if self._limit is not None:
            return self._limit
        self._start()
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def is_here(self, batches: int) -> bool:
        """Return that nothing is computed in this process."""
        return False

    def map(self, work: Work[Batch, T], data: Data, batches: Sequence[Batch]) -> Results[Batch, T]:
        """Yield each batch with its result, as soon as it is done."""
        if not batches:
            return
        self._start()
        ray = self._ray
        lost = tuple(
            getattr(ray.exceptions, name) for name in ("WorkerCrashedError", "NodeDiedError", "ObjectLostError")
        )
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_call)
        shared = ray.put(work), ray.put(data)
        todo, running = list(reversed(batches)), dict[Any, Batch]()
        try:
            while todo or running:
                while todo and (self._limit is None or len(running) < self._limit):
                    batch = todo.pop()
                    running[task.remote(__version__, *shared, batch)] = batch
                done = ray.wait([*running])[0][0]
                batch = running.pop(done)
                try:
                    result = ray.get(done)
                except (*lost, ray.exceptions.OutOfMemoryError):
                    result = None
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from error  # what the work itself raised
                except ray.exceptions.RayError as error:
                    raise FairpassError(f"Ray could not run a task: {_first_line(error)}") from error
                yield batch, result
        finally:
            self._cancel([*running])

    def close(self) -> None:
        """Disconnect, and stop Ray if it was started here."""
        if self._is_ours:
            self._is_ours = False
            self._ray.shutdown()

    def _cancel(self, tasks: Sequence[Any]) -> None:
        """Cancel tasks until they have ended: Ray can miss one that is just being sent to a worker."""
        end = time.monotonic() + _CANCELLING
        with suppress(Exception):  # a cluster that is gone runs nothing
            while tasks and time.monotonic() < end:
                for each in tasks:
                    with suppress(Exception):  # of this one only
                        self._ray.cancel(each, force=True)
                tasks = self._ray.wait(tasks, num_returns=len(tasks), timeout=_CANCEL_AGAIN)[1]
            if tasks:
                logger.warning("Ray has not ended %d cancelled tasks in %.0f s", len(tasks), _CANCELLING)

    def _start(self) -> None:
        ray = self._ray
        if ray.is_initialized():
            return
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if self.address is None:
            # A cluster that ends with this command needs no dashboard.
            settings |= {"address": "local", "num_cpus": self._limit, "include_dashboard": False}
        else:
            _check_reachable(self.address)
            settings["address"] = self.address
        try:
            with _own_handler():
                ray.init(**settings)
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            wanted = "a Ray cluster to connect to" if self.address else "a Ray that can be started here"
            raise DataError(f"'executor' must be {wanted} ({_first_line(error)})") from error
        self._is_ours = True


def _call(version: str, work: Work[Batch, T], data: Data, batch: Batch) -> T:
    if version != __version__:
        raise DataError(f"every machine of the Ray cluster must have fairpass {version} (one has {__version__})")
    torch.set_num_threads(1)  # the processor that Ray reserves for a task
    return work(data, batch)


def _library() -> Any:
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)  # Ray reads them when it is imported
    try:
        ray = import_module("ray")
    except ImportError as error:
        hint = f"pip install 'fairpass[ray]' ({error})"
        raise DataError(f"Ray must be installed to use it as 'executor': {hint}") from None
    # Ray prints on stdout that a worker died, also without `log_to_driver`. Records say so, and stdout is for results.
    with suppress(ImportError):
        vars(import_module("ray._private.worker"))["print_to_stdstream"] = lambda *_, **__: None
    return ray


@contextmanager
def _own_handler() -> Iterator[None]:
    """Keep our handler of SIGTERM, which Ray replaces."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)


def _check_reachable(address: str) -> None:
    """Raise `DataError` within seconds if nothing answers at the address; Ray would try for minutes."""
    text = (os.environ.get("RAY_ADDRESS", "") if address == "auto" else address).removeprefix("ray://")
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        return  # Ray looks for the cluster itself, and reports if there is none
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACHABLE).close()
    except (OSError, OverflowError) as error:
        raise DataError(f"'executor' must be a Ray cluster that can be reached (got {address!r}: {error})") from None


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
