"""Starting the processes that train together: torchrun's elastic agent, in this process."""

import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairpass.errors import DataError, FairpassError
from fairpass.files import scratch_directory, write_text
from fairpass.lifetime import STARTED_BY

MAX_RESTARTS = 10
_PROBLEM = "FAIRPASS_PROBLEM"  # names the file for a worker's message to who started it


class WorkerError(FairpassError):
    """Processes that train together ended without a result."""


def launch(workers: int, arguments: Sequence[str]) -> None:
    """Run `python -m fairpass` with these arguments in several processes, and wait for their end.

    If one is killed, the agent ends the others and starts all again: they continue from their last checkpoint. A
    user's mistake or a full disk would recur at every restart. So the worker writes the message to a file, and all
    workers exit with code 0, so that the agent does not restart them; here it is raised as a `DataError`.
    """
    from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in [*logging.root.manager.loggerDict]:  # each has a level of its own
        if name.startswith("torch.distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # every restart would be a dozen lines
    with scratch_directory() as folder:
        problem = folder / "problem.txt"
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=workers,
            run_id=f"fairpass-{os.getpid()}",
            logs_specs=DefaultLogsSpecs(str(folder)),
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            max_restarts=MAX_RESTARTS,
            monitor_interval=0.1,
        )
        if hasattr(config, "signals_to_handle"):  # older versions of PyTorch give no choice
            # What is ignored stays so: with `nohup` a command outlives its terminal.
            ignored = {each for each in signal.valid_signals() if signal.getsignal(each) == signal.SIG_IGN}
            names = config.signals_to_handle.split(",")
            config.signals_to_handle = ",".join(name for name in names if getattr(signal, name, None) not in ignored)
        received = None
        try:
            with _environment(_variables(workers, problem)), _own_handlers():
                elastic_launch(config, sys.executable)("-m", "fairpass", *arguments)
        except SignalException as error:
            received = error.sigval
        except ChildFailedError as error:
            failed = min(error.failures)
            code = error.failures[failed].exitcode
            again = f"they were started {MAX_RESTARTS + 1} times"
            raise WorkerError(
                f"the workers ended without a result ({again}, worker {failed} with code {code})"
            ) from None
        if received is not None:
            signal.raise_signal(received)  # the workers are gone: now it is for whoever handled it before
            raise WorkerError(f"the workers were ended by {received.name}")
        if problem.exists():
            raise DataError(problem.read_text(encoding="utf-8"))


def _variables(workers: int, problem: Path) -> dict[str, str]:
    """Return the environment of the agent and its workers, where it differs from ours."""
    variables = {_PROBLEM: str(problem), STARTED_BY: str(os.getpid())}
    chosen = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // workers))}
    if sys.platform == "linux":
        chosen["GLOO_SOCKET_IFNAME"] = "lo"  # all processes are on this machine, also if its name has no address
    return variables | {name: value for name, value in chosen.items() if name not in os.environ}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment for a while; what the agent changes in it is restored, too."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.update(before)
        for name in os.environ.keys() - before.keys():
            del os.environ[name]


@contextmanager
def _own_handlers() -> Iterator[None]:
    """Keep our handlers of signals, which the agent replaces."""
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler or signal.SIG_DFL)


def tell_parent(message: str) -> bool:
    """Hand a message to the process that called `launch`; return whether there is one."""
    path = os.environ.get(_PROBLEM)
    if path is None:
        return False
    write_text(path, message)
    return True


def has_told_parent() -> bool:
    """Return whether a worker has handed over a message: then the others end, too, and are not started again."""
    path = os.environ.get(_PROBLEM)
    return path is not None and Path(path).exists()
