"""The Optuna study behind a search: it outlives a process and may be shared by several.

Each search signs its trials and records that it is alive, so that others can give up the trials of one that has ended.
"""

import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import optuna
from optuna.exceptions import OptunaError, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, OperationalError

from fairpass.errors import DataError

# Seconds between signs of life, and after which a search without one counts as dead.
BEAT, GRACE = 10.0, 60.0

_OWNER, _ALIVE = "owner", "alive"
_SQLITE = "sqlite:///"
# Seconds that a process waits while others write to the file.
_WAIT = {"connect_args": {"timeout": 60}}
# Two processes that create the tables of a new file at the same time get in each other's way.
_ATTEMPTS = 5


@contextmanager
def open_study(name: str, storage: str | os.PathLike[str] | None, **options: Any) -> Iterator[tuple[Study, str]]:
    """Begin a study or continue one; yield it and the name of this search in it.

    `storage` is a database URL or the path of an SQLite file, None for memory; `options` go to `optuna.create_study`.
    """
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with _opened(storage) as backend:
            study = optuna.create_study(study_name=name, storage=backend, load_if_exists=True, **options)
            with signs_of_life(study, backend) as owner:
                yield study, owner
    except StorageInternalError as error:
        raise DataError(f"'storage' must be a database to write to (got {_shown(storage)}: {error})") from error
    finally:
        optuna.logging.set_verbosity(level)


@contextmanager
def _opened(storage: str | os.PathLike[str] | None) -> Iterator[BaseStorage]:
    if storage is None:
        yield InMemoryStorage()
        return
    text = os.fspath(storage)
    backend = _connect(text if "://" in text else f"{_SQLITE}{text}")
    try:
        yield backend
    finally:
        backend.remove_session()
        backend.engine.dispose()


def _connect(url: str) -> RDBStorage:
    if url.startswith(_SQLITE):
        Path(url.removeprefix(_SQLITE)).parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return RDBStorage(url, engine_kwargs=dict(_WAIT) if url.startswith(_SQLITE) else None)
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise ValueError(f"'storage' must be a file or a database URL (got {_shown(url)}: {error})") from None
        except DatabaseError as error:
            if attempt == _ATTEMPTS or not isinstance(error, OperationalError):
                raise DataError(f"'storage' must be a database to write to (got {_shown(url)}: {error.orig})") from None
            time.sleep(0.2 * attempt)
    raise AssertionError("the last attempt returns or raises")


def _shown(storage: object) -> str:
    """Return a storage without its password."""
    return repr(re.sub(r"://([^:/@]*):[^@]*@", r"://\1:***@", str(storage)))


@contextmanager
def signs_of_life(study: Study, backend: BaseStorage) -> Iterator[str]:
    """Note in the study from time to time that this search is alive; yield its name."""
    # The last part, because process ids are reused.
    owner = f"{socket.gethostname()} {os.getpid()} {secrets.token_hex(4)}"
    stop, name = Event(), f"{_ALIVE} {owner}"

    def beat() -> None:
        while not stop.wait(BEAT):
            with suppress(OptunaError):  # a lost sign does no harm: there will be another
                study.set_user_attr(name, time.time())
        backend.remove_session()  # each thread has one

    study.set_user_attr(name, time.time())
    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield owner
    finally:
        stop.set()
        thread.join()


def sign(trial: Trial, owner: str) -> None:
    trial.set_user_attr(_OWNER, owner)


def give_up(study: Study, number: int) -> None:
    """End a trial without a result; it does not count."""
    with suppress(UpdateFinishedTrialError):  # another process was quicker
        study.tell(number, state=TrialState.FAIL, skip_if_finished=True)


def running(study: Study) -> list[FrozenTrial]:
    """Give up the trials of searches that are gone, and return the others that are running."""
    alive: dict[str, Any] = study.user_attrs
    found = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    lost = [trial for trial in found if _is_lost(trial, alive)]
    for trial in lost:
        give_up(study, trial.number)
    return [trial for trial in found if trial not in lost]


def _is_lost(trial: FrozenTrial, alive: dict[str, Any]) -> bool:
    signed = trial.user_attrs.get(_OWNER)
    if signed is not None and _is_gone(signed):
        return True
    started = trial.datetime_start
    last = alive.get(f"{_ALIVE} {signed}", started.timestamp() if started else 0.0)
    return bool(time.time() - last > GRACE)


def _is_gone(signed: str) -> bool:
    """Return whether a process has certainly ended: it was on this machine, and is not there."""
    host, process, _ = signed.rsplit(" ", 2)
    if host != socket.gethostname() or os.name != "posix":
        return False
    try:
        os.kill(int(process), 0)  # only asks whether it is there
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
