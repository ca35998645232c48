"""A process that ends with the one that started it."""

import multiprocessing
import os
import time
from threading import Thread

_POLL = 0.5  # seconds


def end_with_parent(started_by: int | None = None) -> None:
    """End this process as soon as its parent is gone: a killed parent cannot tell its children to stop.

    Args:
        started_by: the parent's number, if it is known; it may have ended before this call.
    """
    Thread(target=_watch, args=(os.getppid() if started_by is None else started_by,), daemon=True).start()


def _watch(started_by: int) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    else:  # torchrun hands its workers nothing to wait on
        while os.getppid() == started_by:
            time.sleep(_POLL)
    os._exit(1)  # at once, in the middle of whatever the main thread does
