"""End a process with its parent, and mark functions that no interruption may leave half done."""

import multiprocessing
import os
import time
from collections.abc import Callable
from threading import Thread
from types import CodeType
from typing import TypeVar

STARTED_BY = "FAIRPASS_STARTED_BY"
"""Environment variable with the process id of the parent, for a process that must end with it."""
_POLL = 0.5  # seconds
_indivisible = set[CodeType]()
Function = TypeVar("Function", bound=Callable[..., object])


def indivisible(function: Function) -> Function:
    """Mark a function that must not be left half done: a command raises an interruption only after it has returned."""
    _indivisible.add(function.__code__)
    return function


def is_indivisible(code: CodeType) -> bool:
    """Return whether this is the code of a function that is marked so."""
    return code in _indivisible


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
