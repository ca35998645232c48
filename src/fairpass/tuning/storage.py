"""Optuna's storage in a database, used by one thread only.

If Ctrl-C interrupted a transaction, the database could stay locked, even for the interrupted search while it cleans
up. So transactions run in a thread of their own, and a signal interrupts only the thread that waits.
"""

import logging
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from optuna.storages import BaseStorage, RDBStorage, get_storage

PATIENCE = 3.0  # seconds of waiting before a warning
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
        self.unfinished.acquire()

    def do(self) -> None:
        try:
            self.value = self.work()
        except BaseException as error:
            self.error = error
        self.unfinished.release()

    def outcome(self) -> Any:
        if not self.unfinished.acquire(timeout=PATIENCE):
            _log.warning("The study's database does not answer: another program may be writing to it. Waiting.")
            self.unfinished.acquire()
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
    """A storage whose operations are done in turn by a thread of its own."""

    def __init__(self, storage: RDBStorage) -> None:
        self.engine = storage.engine
        self.storage = get_storage(storage)  # adds Optuna's cache
        self.tasks: SimpleQueue[_Task | None] = SimpleQueue()
        start_new_thread(_do_all, (self.tasks,))

    def do(self, work: Callable[[], Any]) -> Any:
        """Return what `work` returns in the storage's thread; a signal interrupts the wait, not the work."""
        task = _Task(work)
        self.tasks.put(task)
        return task.outcome()

    def close(self) -> None:
        """Finish the pending operations and disconnect."""
        self.do(self.storage.remove_session)
        self.tasks.put(None)
        self.engine.dispose()
