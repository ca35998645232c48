"""The Optuna study behind a search: it outlives a process and may be shared by several.

Each search signs its trials and records that it is alive, so that others can give up the trials of one that has ended.
"""

import os
import re
import secrets
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import optuna
from optuna.exceptions import OptunaError, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, OperationalError

from fairpass.errors import DataError

BEAT, GRACE = 10.0, 60.0  # seconds between signs of life, and after which a search without one counts as dead
OWNER, _ALIVE = "owner", "alive"  # attributes of a trial and of the study
_SQLITE = "sqlite:///"
_WAIT = 60  # seconds, while others write to the file
_ATTEMPTS = 5  # processes that create the tables of a new file at the same time get in each other's way


@contextmanager
def open_study(name: str, storage: str | os.PathLike[str] | None, **options: Any) -> Iterator[tuple[Study, str]]:
    """Begin a study or continue one; yield it and the name of this search in it.

    `storage` is a database URL or the path of an SQLite file, None for memory; `options` go to `optuna.create_study`.
    """
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    backend = None
    try:
        backend = InMemoryStorage() if storage is None else _connect(os.fspath(storage))
        study = optuna.create_study(study_name=name, storage=backend, load_if_exists=True, **options)
        with signs_of_life(study, backend) as owner:
            yield study, owner
    except StorageInternalError as error:
        raise DataError(f"'storage' must be a database to write to (got {_shown(storage)}: {error})") from error
    finally:
        if isinstance(backend, RDBStorage):
            backend.remove_session()
            backend.engine.dispose()
        optuna.logging.set_verbosity(level)


def _connect(storage: str) -> RDBStorage:
    url = storage if "://" in storage else f"{_SQLITE}{storage}"
    is_file = url.startswith(_SQLITE)
    if is_file:
        Path(url.removeprefix(_SQLITE)).parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            if "://" not in storage:  # a path may have marks such as { and ?, which mean something in a URL
                connect = partial(sqlite3.connect, storage, timeout=_WAIT, check_same_thread=False)
                return RDBStorage(f"{_SQLITE}file", engine_kwargs={"creator": connect})
            return RDBStorage(url, engine_kwargs={"connect_args": {"timeout": _WAIT}} if is_file else None)
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise ValueError(f"'storage' must be a file or a database URL (got {_shown(url)}: {error})") from None
        except DatabaseError as error:
            if attempt == _ATTEMPTS or not isinstance(error, OperationalError):
                raise DataError(f"'storage' must be a database to write to (got {_shown(url)}: {error.orig})") from None
            time.sleep(0.2 * attempt)
    raise AssertionError("the last attempt returns or raises")


def _shown(storage: object) -> str:  # without its password
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


def give_up(study: Study, numbers: Iterable[int]) -> None:
    """End trials without a result; they do not count."""
    for number in numbers:
        with suppress(UpdateFinishedTrialError):  # another process was quicker
            study.tell(number, state=TrialState.FAIL, skip_if_finished=True)


def running(study: Study) -> list[FrozenTrial]:
    """Give up the trials of searches that are gone, and return the others that are running."""
    alive: dict[str, Any] = study.user_attrs
    found = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    lost = [trial for trial in found if _is_lost(trial, alive)]
    give_up(study, [trial.number for trial in lost])
    return [trial for trial in found if trial not in lost]


def _is_lost(trial: FrozenTrial, alive: dict[str, Any]) -> bool:
    signed = trial.user_attrs.get(OWNER)
    if signed is not None:
        host, process, _ = signed.rsplit(" ", 2)
        if host == socket.gethostname() and os.name == "posix":
            try:
                os.kill(int(process), 0)  # only asks whether it is there
            except ProcessLookupError:
                return True
            except PermissionError:
                pass
    started = trial.datetime_start
    last = alive.get(f"{_ALIVE} {signed}", started.timestamp() if started else 0.0)
    return bool(time.time() - last > GRACE)
