"""Optuna's storage in a database, used by one thread only.

Signals interrupt the main thread. An interrupted transaction may keep the database locked, also for the search that
was interrupted and has to tidy up. Here a signal interrupts whoever waits for a transaction, and never the transaction.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from optuna.storages import BaseStorage, RDBStorage, get_storage


def _in_its_thread(name: str) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        return self.thread.submit(getattr(self.storage, name), *arguments, **options).result()

    return call


_METHODS = {name: _in_its_thread(name) for name in dir(BaseStorage) if not name.startswith("_")}
_Forwarding: Any = type("_Forwarding", (BaseStorage,), _METHODS)


class DatabaseStorage(_Forwarding):  # type: ignore[misc] # its methods are those of Optuna's storages
    """A storage whose operations are done in turn by a thread of its own."""

    def __init__(self, storage: RDBStorage) -> None:
        self.engine = storage.engine
        self.storage = get_storage(storage)  # adds Optuna's cache
        self.thread = ThreadPoolExecutor(1, "study")

    def close(self) -> None:
        """Let what was begun finish, and disconnect."""
        self.thread.submit(self.storage.remove_session)
        self.thread.shutdown()
        self.engine.dispose()
