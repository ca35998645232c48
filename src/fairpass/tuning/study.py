"""The study behind a search: Optuna's record of its trials, which outlives a process and may be shared by several."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import optuna
from optuna.exceptions import StorageInternalError
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage
from optuna.study import Study
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, OperationalError

from fairpass.errors import DataError
from fairpass.tuning.ownership import signs_of_life
from fairpass.tuning.strategies import Direction

_SQLITE = "sqlite:///"
# Several processes may write to one file: each waits its turn, for so many seconds.
_WAIT = {"connect_args": {"timeout": 60}}
# Two processes that make the tables of a new file at the same time get in each other's way.
_ATTEMPTS = 5


@contextmanager
def open_study(
    name: str,
    storage: str | os.PathLike[str] | None,
    *,
    directions: Sequence[Direction],
    sampler: BaseSampler,
    pruner: BasePruner,
) -> Iterator[tuple[Study, str]]:
    """Begin a study or go on with one; yield it and the name by which this search is known in it.

    Args:
        name: of the study.
        storage: a database URL, or the path of an SQLite file; None: in memory.
        directions: `"maximize"` or `"minimize"`, for each value of a trial.
        sampler: what proposes.
        pruner: what gives trials up early.
    """
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with _opened(storage) as backend:
            study = optuna.create_study(
                study_name=name,
                storage=backend,
                directions=list(directions),
                sampler=sampler,
                pruner=pruner,
                load_if_exists=True,
            )
            with signs_of_life(study, backend) as owner:
                yield study, owner
    except StorageInternalError as error:
        raise DataError(f"'storage' must be a database to write to (got {_shown(storage)}: {error})") from error
    finally:
        optuna.logging.set_verbosity(level)


def storage_url(storage: str | os.PathLike[str]) -> str:
    """Return the URL of a storage; a path is that of an SQLite file."""
    text = os.fspath(storage)
    return text if "://" in text else f"{_SQLITE}{text}"


@contextmanager
def _opened(storage: str | os.PathLike[str] | None) -> Iterator[BaseStorage]:
    if storage is None:
        yield InMemoryStorage()
        return
    backend = _connect(storage_url(storage))
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
    """Return a storage as it may be shown: without a password."""
    return repr(re.sub(r"://([^:/@]*):[^@]*@", r"://\1:***@", str(storage)))
