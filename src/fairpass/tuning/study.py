"""The Optuna study behind a search: it outlives a process and may be shared by several.

Each search signs its trials, holds a lock, and records that it is alive, so that others can give up the trials of one
that has ended.
"""

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import optuna
from optuna.exceptions import OptunaError, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import InMemoryStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import DBAPIError

from fairpass.errors import DataError
from fairpass.locks import Locks
from fairpass.tuning.database import check_writable, connect, exclusive, masked, readable, search_locks
from fairpass.tuning.storage import PATIENCE, DatabaseStorage

BEAT, GRACE = 10.0, 60.0  # seconds between signs of life, and after which a search without one counts as dead
OWNER, _ALIVE = "owner", "alive"  # attributes of a trial and of the study
_IN = "@"  # between the id of a process and the namespace that it is in

Exclusive = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class SharedStudy:
    """A study as one of its searches has it."""

    study: Study
    owner: str  # name of the search, which its trials have
    exclusive: Exclusive = nullcontext  # held while trials are begun
    locks: Locks | None = None  # of all searches, by their names

    def give_up_lost(self) -> None:
        """Give up the trials of searches that are gone."""
        give_up_lost(self.study, self.locks)


_quiet_lock = Lock()
_levels: list[int] = []  # Optuna's level of logging before the first search, once for each that goes on


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna from reporting every trial. Its level belongs to the process, where several threads may search."""
    with _quiet_lock:
        _levels.append(_levels[0] if _levels else optuna.logging.get_verbosity())
        optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        with _quiet_lock:
            level = _levels.pop()
            if not _levels:
                optuna.logging.set_verbosity(level)


@contextmanager
def open_study(name: str, storage: str | os.PathLike[str] | None, **options: Any) -> Iterator[SharedStudy]:
    """Begin a study or continue one, for one search.

    `storage` is a database URL or the path of an SQLite file, None for memory; `options` go to `optuna.create_study`.
    """
    backend: InMemoryStorage | DatabaseStorage | None = None
    with _quiet():
        try:
            lock: Exclusive = nullcontext
            locks: Locks | None = None
            if storage is None:
                backend = InMemoryStorage()
            else:
                place = os.fspath(storage)
                backend = connect(place)
                lock, locks = partial(exclusive, place, backend.engine, name), search_locks(place)
            with lock(), readable(storage):
                study = optuna.create_study(study_name=name, storage=backend, load_if_exists=True, **options)
                study.get_trials(deepcopy=False)  # all that is stored is decoded here, and remembered
                give_up_lost(study, locks)  # also reads the owners and their signs of life
            with signs_of_life(study, locks) as owner:
                yield SharedStudy(study, owner, lock, locks)
        except (StorageInternalError, DBAPIError) as error:
            shown = os.fspath(storage or "")
            check_writable(shown)
            message = f"'storage' must be a database to write to (got {shown!r}: {_reason(error)})"
            raise DataError(masked(message)) from error
        finally:
            if isinstance(backend, DatabaseStorage):
                backend.close()


def _reason(error: BaseException) -> str:
    """Return what the database said, such as that the disk is full; Optuna's own words guess at invalid data."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, DBAPIError):
            return str(cause.orig)
        cause = cause.__cause__ or cause.__context__
    return str(error)


@contextmanager
def signs_of_life(study: Study, locks: Locks | None = None) -> Iterator[str]:
    """Show that this search is alive by a lock, and by notes in the study from time to time; yield its name."""
    # The last part, because process ids are reused.
    owner = f"{socket.gethostname()} {os.getpid()}{_process_space()} {secrets.token_hex(4)}"
    name, searching = f"{_ALIVE} {owner}", Lock()  # a signal could leave the lock of an `Event` taken
    searching.acquire()

    def beat() -> None:
        while not searching.acquire(timeout=BEAT):
            with suppress(OptunaError):  # a lost sign does no harm: there will be another
                study.set_user_attr(name, time.time())

    with nullcontext() if locks is None else locks.hold(owner):
        study.set_user_attr(name, time.time())
        thread = Thread(target=beat, daemon=True)
        try:
            thread.start()
            yield owner
        finally:
            searching.release()
            if thread.ident is not None:
                thread.join(PATIENCE)  # it may wait for a database that does not answer


def give_up(study: Study, numbers: Iterable[int]) -> None:
    """End trials without a result; they do not count."""
    for number in numbers:
        with suppress(UpdateFinishedTrialError):  # another process was quicker
            study.tell(number, state=TrialState.FAIL, skip_if_finished=True)


def give_up_lost(study: Study, locks: Locks | None = None) -> None:
    """Give up the trials of searches that are gone."""
    alive: dict[str, Any] = study.user_attrs
    found = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    give_up(study, [trial.number for trial in found if _is_lost(trial, alive, locks)])


def _is_lost(trial: FrozenTrial, alive: dict[str, Any], locks: Locks | None) -> bool:
    signed = trial.user_attrs.get(OWNER)
    has_ended = None if signed is None else _has_ended(signed, locks)
    if has_ended is not None:
        return has_ended
    started = trial.datetime_start
    last = alive.get(f"{_ALIVE} {signed}", started.timestamp() if started else 0.0)
    return bool(time.time() - last > GRACE)


def _has_ended(owner: str, locks: Locks | None) -> bool | None:
    """Return whether a search has ended; None if only its signs of life can tell, as if it is on another machine."""
    host, process, _ = owner.rsplit(" ", 2)
    if host != socket.gethostname():
        return None
    if locks is not None:
        return not locks.is_held(owner)
    number, mark, space = process.partition(_IN)
    is_gone = os.name == "posix" and mark + space == _process_space() and _is_gone(int(number))
    return is_gone or None  # another process may have its id by now


def _process_space() -> str:
    """Return the mark of the processes that have ids of their own, as those of a container, with `_IN` before it."""
    try:
        return f"{_IN}{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:  # not on Linux: there is only one
        return ""


def _is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)  # only asks whether it is there
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    # One that was killed is there until its parent asks for its exit code. In a container perhaps nobody does.
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False
