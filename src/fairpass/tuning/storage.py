"""Optuna's storage in a database, used by one thread only.

If Ctrl-C interrupted a transaction, the database could stay locked, even for the interrupted search while it cleans
up. So transactions run in a thread of their own, and a signal interrupts only the thread that waits.
"""

import logging
import sys
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from optuna.storages import BaseStorage, RDBStorage, get_storage

PATIENCE = 3.0  # seconds of waiting before a warning, and after an interruption
_FOREVER = -1.0  # as locks spell it
_log = logging.getLogger(__name__)


class _Task:
    """A call to make in another thread, and its outcome.

    A future waits in a `with` block that takes a lock. If a signal arrives there, the lock can stay taken, and the
    other thread waits for it forever. Here the waiting thread only acquires a plain lock, which is safe.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.unfinished = work, allocate_lock()
        self.value: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        self.unfinished.acquire()

    def do(self) -> None:
        try:
            self.value = self.work()
        except BaseException as error:
            self.error = error
        self.is_done = True
        self.unfinished.release()

    def ends_within(self, seconds: float) -> bool:
        if not self.is_done:
            self.unfinished.acquire(timeout=seconds)
        return self.is_done

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


def _do_all(tasks: "SimpleQueue[_Task | None]") -> None:
    while (task := tasks.get()) is not None:
        task.do()


def _in_its_thread(name: str) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        return self.do(partial(getattr(self.storage, name), *arguments, **options))

    return call


_METHODS = {name: _in_its_thread(name) for name in dir(BaseStorage) if not name.startswith("_")}
_Forwarding: Any = type("_Forwarding", (BaseStorage,), _METHODS)


class DatabaseStorage(_Forwarding):  # type: ignore[misc] # its methods are those of Optuna's storages
    """A storage that a thread of its own opens, and whose operations that thread does in turn.

    A database that another program has locked is waited for, with a warning. After an interruption it is not: what is
    left to tidy up is then left to the next search.
    """

    def __init__(self, open_storage: Callable[[], RDBStorage]) -> None:
        self.tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self.grace, self.has_warned = PATIENCE, False
        start_new_thread(_do_all, (self.tasks,))
        try:
            opened = self.do(open_storage)
        except BaseException:
            self.tasks.put(None)
            raise
        self.engine = opened.engine
        self.storage = get_storage(opened)  # adds Optuna's cache

    def do(self, work: Callable[[], Any]) -> Any:
        """Return what `work` returns in the storage's thread; a signal interrupts the wait, not the work."""
        task = _Task(work)
        self.tasks.put(task)
        if isinstance(sys.exception(), KeyboardInterrupt):
            if not task.ends_within(self.grace):
                self.grace = 0.0
                raise KeyboardInterrupt
        else:
            self._wait_for(task)
            self.grace = PATIENCE
        return task.outcome()

    def _wait_for(self, task: _Task) -> None:
        if not task.ends_within(PATIENCE):
            if not self.has_warned:
                self.has_warned = True
                _log.warning("The study's database has not answered for %g s: it may be locked. Waiting.", PATIENCE)
            task.ends_within(_FOREVER)
            self.has_warned = False

    def close(self) -> None:
        """Finish the pending operations and disconnect."""
        try:
            self.do(self._disconnect)
        finally:
            self.tasks.put(None)

    def _disconnect(self) -> None:
        self.storage.remove_session()
        self.engine.dispose()
