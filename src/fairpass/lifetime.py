"""A process that ends with the one that started it."""

import multiprocessing
import os
import time
from threading import Thread

STARTED_BY = "FAIRPASS_STARTED_BY"
"""Environment variable of a process that is to end with its parent: the parent's number."""
_POLL = 0.5  # seconds


def end_with_parent() -> None:
    """End this process as soon as its parent is gone: a killed parent cannot tell its children to stop."""
    # By the variable it is known also if the parent has ended before this call.
    Thread(target=_watch, args=(int(os.environ.get(STARTED_BY, os.getppid())),), daemon=True).start()


def _watch(started_by: int) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    else:  # torchrun hands its workers nothing to wait on
        while os.getppid() == started_by:
            time.sleep(_POLL)
    os._exit(1)  # at once, in the middle of whatever the main thread does
