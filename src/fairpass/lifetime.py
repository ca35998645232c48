"""Make a process end when its parent does."""

import multiprocessing
import os
import time
from threading import Thread

STARTED_BY = "FAIRPASS_STARTED_BY"
"""Environment variable with the process id of the parent, for a process that must end with it."""
_POLL = 0.5  # seconds


def end_with_parent() -> None:
    """End this process as soon as its parent is gone: a killed parent cannot tell its children to stop."""
    # The variable is needed if the parent has ended before this call.
    Thread(target=_watch, args=(int(os.environ.get(STARTED_BY, os.getppid())),), daemon=True).start()


def _watch(started_by: int) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    else:  # torchrun gives its workers nothing to wait for
        while os.getppid() == started_by:
            time.sleep(_POLL)
    os._exit(1)  # at once, in the middle of whatever the main thread does
