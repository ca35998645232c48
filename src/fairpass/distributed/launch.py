"""Starting the processes that train together: torchrun's elastic agent, in this process."""

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fairpass.errors import DataError, FairpassError
from fairpass.files import write_text
from fairpass.lifetime import STARTED_BY

MAX_RESTARTS = 10
_PROBLEM = "FAIRPASS_PROBLEM"  # names the file for a worker's message to who started it


class WorkerError(FairpassError):
    """Processes that train together ended without a result."""


def launch(workers: int, arguments: Sequence[str]) -> None:
    """Run `python -m fairpass` with these arguments in several processes, and wait for their end.

    If one is killed, the agent ends the others and starts all again: they continue from their last checkpoint. A
    user's mistake, or a full disk, is the same at every start. So a worker writes it to a file, and all end without an
    error, which the agent takes for the end; here it is raised as a `DataError`.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)  # it logs every restart in a dozen lines
    with tempfile.TemporaryDirectory(prefix="fairpass-") as folder:
        problem = Path(folder) / "problem.txt"
        os.environ |= {_PROBLEM: str(problem), STARTED_BY: str(os.getpid())}
        # All processes are on this machine, also where its name cannot be resolved.
        if sys.platform == "linux":
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=workers,
            run_id=Path(folder).name,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            max_restarts=MAX_RESTARTS,
            monitor_interval=0.1,
        )
        handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        received = None
        try:
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
        finally:
            for name in (_PROBLEM, STARTED_BY):
                os.environ.pop(name, None)
            for number, handler in handlers.items():
                if signal.getsignal(number) is not handler:  # the agent has put its own in place
                    signal.signal(number, handler or signal.SIG_DFL)
        if received is not None:
            signal.raise_signal(received)  # the workers are gone: now it is for whoever handled it before
        if problem.exists():
            raise DataError(problem.read_text(encoding="utf-8"))


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
