"""The database of a study: its URL, the connection, and a lock for what only one search may do at a time."""

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import quote, unquote

from optuna.storages import RDBStorage
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from fairpass.errors import DataError
from fairpass.files import atomic_path
from fairpass.locks import ACROSS_PROCESSES, Locks, lock_file
from fairpass.tuning.storage import PATIENCE, DatabaseStorage

_SQLITE = "sqlite:///"
_REACHABLE = 10  # seconds until a server without an answer counts as wrong
_FILES, _PAGE = 4, 1 << 14  # files that SQLite may need at once, with their locks, and bytes of each
_WAIT = 60  # seconds, for the lock on a server
_LONG = 2_000_000  # seconds; SQLite counts milliseconds in 32 bits


def connect(storage: str) -> DatabaseStorage:
    """Open the database at a URL, or the SQLite file at a path, and create Optuna's tables if it has none."""
    url, file = database_url(storage), sqlite_file(storage)
    options: dict[str, Any] = {}
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        # By its path, which may have characters that mean something in a URL, or are not UTF-8.
        options = {"creator": partial(sqlite3.connect, file, timeout=_LONG, check_same_thread=False)}
    engine = None
    try:
        if make_url(url).get_backend_name() in _LOCKS:
            options = {"connect_args": {"connect_timeout": _REACHABLE}}
        engine = create_engine(url, **options)
        with exclusive(storage, engine, "tables"), readable(storage):  # processes that create them would collide
            return DatabaseStorage(partial(_open, url, file, options))
    except DataError:
        raise
    except DBAPIError as error:
        check_writable(storage)
        raise DataError(masked(f"'storage' must be a database to write to (got {url!r}: {error.orig})")) from None
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
        needs_driver = isinstance(error, ImportError) and url.startswith("postgresql")
        hint = "pip install 'fairpass[postgresql]': " if needs_driver else ""
        raise ValueError(masked(f"'storage' must be a file or a database URL (got {url!r}: {hint}{error})")) from None
    finally:
        if engine is not None:
            engine.dispose()


@contextmanager
def readable(storage: str | os.PathLike[str] | None) -> Iterator[None]:
    """Name the database if what is read from it within this context is not what a search wrote."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        shown = masked(repr(os.fspath(storage or "")))
        raise DataError(f"'storage' must be a database of studies (got {shown}: {error})") from error


def _open(url: str, file: Path | None, options: dict[str, Any]) -> RDBStorage:
    if file is not None:
        _create(file)
    template = url.replace("{", "{{").replace("}", "}}")  # Optuna formats it
    return RDBStorage(template, engine_kwargs=options)


def _create(path: Path) -> None:
    """Make a new SQLite file with all of Optuna's tables, or none.

    SQLite keeps each table as soon as it is there. One that a kill left without its index would take a study twice.
    """
    if path.is_file() and path.stat().st_size:
        return
    with atomic_path(path) as temporary:
        storage = RDBStorage(_SQLITE, engine_kwargs={"creator": partial(_without_journal, temporary)})
        storage.remove_session()
        storage.engine.dispose()


def _without_journal(path: Path) -> sqlite3.Connection:
    """Open a file that is not used after a failure, and so needs no second one beside it."""
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def check_writable(storage: str) -> None:
    """Raise the system's own error if the directory of an SQLite file takes no files: SQLite does not say why."""
    file = sqlite_file(storage)
    if file is not None:
        try:
            with ExitStack() as stack:
                for _ in range(_FILES):
                    stack.enter_context(TemporaryFile(dir=file.parent)).write(bytes(_PAGE))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(file)) from None


def database_url(storage: str) -> str:
    """Return the URL of a path, or a URL with the driver that fairpass[postgresql] installs."""
    if "://" not in storage:
        return f"{_SQLITE}{quote(os.fsencode(storage))}"
    scheme, _, rest = storage.partition("://")
    if scheme in ("postgresql", "postgres"):
        # SQLAlchemy's own choice is an older driver; it is left to those who have only that.
        scheme = "postgresql" if find_spec("psycopg") is None and find_spec("psycopg2") else "postgresql+psycopg"
    return f"{scheme}://{rest}"


def sqlite_file(storage: str) -> Path | None:
    """Return the SQLite file at a path or URL, or None for any other database."""
    if "://" not in storage:
        return Path(storage)
    scheme, _, place = storage.partition("://")
    if scheme.partition("+")[0] != "sqlite":
        return None
    name = place.removeprefix("/")
    if name in ("", ":memory:") or name == place or "?" in name:
        raise ValueError(f"'storage' must be a path, or sqlite:///PATH without options (got {storage!r})")
    return Path(unquote(name, errors="surrogateescape"))


def masked(message: str) -> str:
    """Return a message without the passwords of the URLs in it."""
    return re.sub(r"(://[^:/@\s]*):\S*@|(password=)[^&\s'\")]*", _mask, message)


def _mask(found: "re.Match[str]") -> str:
    return f"{found[1]}:***@" if found[1] is not None else f"{found[2]}***"


def search_locks(storage: str) -> Locks | None:
    """Return the locks by which searches of one SQLite file know each other; None if there is nothing to lock."""
    file = sqlite_file(storage)
    return None if file is None or not ACROSS_PROCESSES else Locks(lock_file(file))


@contextmanager
def exclusive(storage: str, engine: Engine, name: str) -> Iterator[None]:
    """Do something as the only process that has the lock of this name; it is free again if a process is killed.

    An SQLite file has one lock for all names, beside it. PostgreSQL and MySQL have locks; other databases have none.
    """
    file = sqlite_file(storage)
    if file is not None:
        note = f"is using '{file}': waiting for it"
        with Locks(lock_file(file)).hold("study", lambda who: f"{who} {note}", patience=PATIENCE):
            yield
    elif engine.dialect.name in _LOCKS:
        with _locked_session(engine, name):
            yield
    else:
        yield


# Locks of a session: the server gives them back if the connection ends.
_LOCKS = {
    "postgresql": (
        ("SELECT set_config('lock_timeout', (1000 * :wait) || 'ms', false)", "SELECT pg_advisory_lock(:number)"),
        "SELECT pg_advisory_unlock(:number)",
    ),
    "mysql": (("SELECT GET_LOCK(:name, :wait)",), "SELECT RELEASE_LOCK(:name)"),
    "mariadb": (("SELECT GET_LOCK(:name, :wait)",), "SELECT RELEASE_LOCK(:name)"),
}


@contextmanager
def _locked_session(engine: Engine, name: str) -> Iterator[None]:
    key = hashlib.sha256(f"fairpass {name}".encode()).digest()[:8]
    values = {"number": int.from_bytes(key, signed=True), "name": key.hex(), "wait": _WAIT}
    take, release = _LOCKS[engine.dialect.name]
    with ExitStack() as stack:
        try:
            # Without a transaction, which would keep others from changing tables.
            connection = stack.enter_context(engine.connect().execution_options(isolation_level="AUTOCOMMIT"))
            answers = [connection.execute(text(statement), values).scalar() for statement in take]
        except DBAPIError as error:
            raise DataError(
                masked(f"'storage' must be a database to write to (got {engine.url}: {error.orig})")
            ) from None
        if answers[-1] == 0:
            raise DataError(f"'storage' must be free within {_WAIT} s (another search holds the lock of {engine.url})")
        stack.callback(connection.execute, text(release), values)
        yield
