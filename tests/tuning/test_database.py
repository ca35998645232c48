"""The database of a study, on a file and on a real PostgreSQL: shared by processes, quick to refuse, discreet."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from sqlalchemy import create_engine, inspect
from tests.methods.ingredients import small_graph
from tests.trial import Trial
from tests.tuning import sharing
from torch_geometric.data import Data
from typer.testing import CliRunner

from fairpass.cli.app import app
from fairpass.errors import DataError
from fairpass.tuning import Choice, Progress, Tuned, tune
from fairpass.tuning.database import connect, database_url, exclusive, masked
from fairpass.tuning.study import open_study

PATIENCE = 600  # seconds; about ten are needed


def server_program(name: str) -> str | None:
    """Return the path of one of PostgreSQL's programs; Debian keeps them out of the way."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """Return the URL, with a password, of an empty server that listens only at a socket in a temporary directory."""
    initdb, control = server_program("initdb"), server_program("pg_ctl")
    if initdb is None or control is None:
        pytest.skip("PostgreSQL is not installed")
    # The server refuses to run as root. Debian's package has a user for it.
    is_root = os.name == "posix" and os.getuid() == 0
    if is_root and (shutil.which("runuser") is None or "\npostgres:" not in Path("/etc/passwd").read_text()):
        pytest.skip("PostgreSQL needs another user than root, and there is none for it")
    prefix = ["runuser", "-u", "postgres", "--"] if is_root else []
    directory = Path(tempfile.mkdtemp(prefix="fairpass-pg-", dir="/tmp"))  # a socket's path must be short
    if is_root:
        shutil.chown(directory, "postgres")

    def call(*command: str) -> None:
        done = subprocess.run([*prefix, *command], capture_output=True, text=True, cwd=directory, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    data, log = str(directory / "data"), str(directory / "log")
    options = f"-c listen_addresses='' -c unix_socket_directories={directory} -c fsync=off"
    try:
        call(initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        call(control, "-D", data, "-l", log, "-o", options, "-w", "-t", str(PATIENCE), "start")
        try:
            yield f"postgresql://postgres:hush@/postgres?host={directory}"
        finally:
            call(control, "-D", data, "-m", "immediate", "-w", "-t", str(PATIENCE), "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        found: str = request.getfixturevalue("postgresql")
        return found
    return str(tmp_path / "study.db")


@contextmanager
def study_storage(storage: str) -> Iterator[RDBStorage]:
    opened = connect(storage)
    try:
        yield opened
    finally:
        opened.remove_session()
        opened.engine.dispose()


@pytest.mark.slow
def test_processes_share_a_study_exactly(storage: str, tmp_path: Path) -> None:
    outcome = Trial([storage], tmp_path / "work", sharing.search_at_once).outcome()
    assert (outcome.code, outcome.faults()) == (0, []), outcome.describe()
    found = json.loads(outcome.stdout)
    for searches in found.values():
        assert len(searches) == sharing.PROCESSES
        assert all(each == searches[0] for each in searches)  # each knows the whole
    # Every setting of the grid, none twice; otherwise as many as were asked for; and no trial was begun in vain.
    with study_storage(storage) as opened:
        tried = {}
        for name in optuna.get_all_study_names(opened):
            trials = optuna.load_study(study_name=name, storage=opened).trials
            assert {trial.state for trial in trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
            assert len({str(trial.params) for trial in trials}) == len(trials)
            tried[len(trials[0].params)] = len(trials)
    assert tried == {2: 4 * 3, 1: sharing.TRIALS}
    assert len(found["nsga2"][0]) == sharing.TRIALS


def test_a_password_is_nowhere_in_the_results(postgresql: str, tmp_path: Path) -> None:
    command = ["tune", "german", "--method", "gcn", "--epochs", "2", "--seeds", "1", "--trials", "2"]
    result = CliRunner().invoke(app, [*command, "--storage", postgresql, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "hush" not in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["front.png", "front.svg", "tuned.json"]
    assert "hush" not in (tmp_path / "tuned.json").read_text()
    assert len(Tuned.load(tmp_path / "tuned.json").points) == 2


@pytest.mark.parametrize("address", ["127.0.0.1:1/studies", "/studies?host=/nowhere"], ids=["no server", "no socket"])
def test_a_server_that_is_not_there_is_an_error(graph: Data, address: str) -> None:
    with pytest.raises(DataError, match=r"'storage' must be a database to write to \(got .*me:\*\*\*@") as caught:
        tune(graph, "gcn", budget=1, storage=f"postgresql://me:hush@{address}")
    assert "hush" not in str(caught.value)


def test_a_missing_driver_is_named(graph: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setattr("fairpass.tuning.database.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"'storage' must be .* pip install 'fairpass\[postgresql\]'"):
        tune(graph, "gcn", budget=1, storage="postgresql://me@127.0.0.1:1/studies")


@pytest.mark.parametrize(
    ("storage", "url"),
    [
        ("study.db", "sqlite:///study.db"),
        ("/tmp/study.db", "sqlite:////tmp/study.db"),
        ("sqlite:///study.db", "sqlite:///study.db"),
        ("postgresql://me@host/db", "postgresql+psycopg://me@host/db"),
        ("postgres://me@host/db", "postgresql+psycopg://me@host/db"),
        ("postgresql+psycopg2://me@host/db", "postgresql+psycopg2://me@host/db"),
        ("mysql+pymysql://me@host/db", "mysql+pymysql://me@host/db"),
    ],
)
def test_urls(storage: str, url: str) -> None:
    assert database_url(storage) == url


@pytest.mark.parametrize("name", ["plain", "a b%20{c}?#", os.fsdecode(b"\xff\xe4")])
def test_a_file_may_have_any_name(name: str, tmp_path: Path) -> None:
    storage = str(tmp_path / name / name)
    with open_study("s", storage) as shared, shared.exclusive():
        shared.study.set_user_attr("a", 1)
    with open_study("s", storage) as shared:
        assert shared.study.user_attrs["a"] == 1
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == [Path(storage)]


@pytest.mark.parametrize(
    "url",
    ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite+pysqlite://", "sqlite:study.db://", "sqlite://study.db",
     "sqlite:///file:study.db?mode=memory&uri=true"],
)  # fmt: skip
def test_a_database_in_memory_or_with_options_is_refused(
    url: str, graph: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"'storage' must be a (path|file)"):
        tune(graph, "gcn", budget=1, storage=url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("got 'postgresql://me:hush@host/db'", "got 'postgresql://me:***@host/db'"),
        ("postgresql://me:hu@sh@host/db", "postgresql://me:***@host/db"),
        ("postgresql://host/db?user=me&password=hush&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
        ("sqlite:///study.db", "sqlite:///study.db"),
    ],
)
def test_passwords_are_masked(message: str, shown: str) -> None:
    assert masked(message) == shown


def test_a_lock_is_exclusive_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fairpass.tuning.database.PATIENCE", 0.1)
    storage = f"{tmp_path}/study.db"
    lock = partial(exclusive, storage, create_engine(database_url(storage)), "a")
    is_ours, said = False, threading.Event()

    def say(_: logging.LogRecord) -> bool:
        said.set()
        return True

    monkeypatch.setattr(logging.getLogger("fairpass.locks"), "filters", [say])

    def hold() -> bool:
        with lock():
            return is_ours

    with ThreadPoolExecutor(1) as thread:
        with lock():
            is_ours, held = True, thread.submit(hold)
            assert said.wait(PATIENCE)
            is_ours = False
        assert held.result(PATIENCE) is False
    assert [f"is using '{tmp_path}/study.db': waiting for it" in each for each in caplog.messages] == [True]
    assert list(tmp_path.iterdir()) == []


KILLED_WHILE_CREATING = """
import os, sqlite3, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from fairpass.tuning.database import connect
@event.listens_for(Engine, "before_cursor_execute")
def die(connection, cursor, statement, *_):
    if "CREATE UNIQUE INDEX" in statement:  # after the table that it is of
        os._exit(9)
connect(sys.argv[1])
"""


def test_a_database_has_all_tables_or_is_not_there(tmp_path: Path) -> None:
    """Without its index the table of studies would take a study twice, and no search could go on."""
    path = tmp_path / "study.db"
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_CREATING, path], timeout=PATIENCE, check=False)
    assert killed.returncode == 9
    storage = connect(str(path))
    tables = inspect(storage.engine)
    assert [each["name"] for each in tables.get_indexes("studies") if each["unique"]] == ["ix_studies_study_name"]
    storage.close()
    assert list(tmp_path.iterdir()) == [path]


SEARCH: dict[str, Any] = {"budget": 14, "seeds": 1, "fixed": {"epochs": 2}, "space": {"hidden": Choice(*range(2, 40))}}


def search_until(finished: int, storage: Path, number: int) -> None:
    """Search until so many configurations are done and others are begun, and send this process a signal."""

    def stop(progress: Progress) -> None:
        if progress.finished >= finished:
            signal.raise_signal(number)

    with patch("fairpass.tuning.search._OFTEN", 0.0):  # every epoch is reported
        tune(small_graph(), "gcn", storage=storage, callback=stop, **SEARCH)


def interrupted(finished: int, storage: Path, work: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        search_until(finished, storage, signal.SIGINT)


def killed(finished: int, storage: Path, work: Path) -> None:
    assert Trial([finished, storage, signal.SIGKILL], work, search_until).outcome().code == -signal.SIGKILL


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize("stop", [interrupted, killed])
def test_a_stopped_search_goes_on_as_if_nothing_had_happened(
    graph: Data, stop: Callable[[int, Path, Path], None], tmp_path: Path
) -> None:
    """Also if the very first batch is lost, twice, and with it the default configuration."""
    storage = tmp_path / "study.db"
    for finished, done in ((0, 0), (0, 0), (8, 8)):
        stop(finished, storage, tmp_path / "work")
        (name,) = optuna.get_all_study_names(f"sqlite:///{storage}")
        trials = optuna.load_study(study_name=name, storage=f"sqlite:///{storage}").trials
        assert sum(trial.state == TrialState.COMPLETE for trial in trials) == done
    whole = tune(graph, "gcn", **SEARCH)
    assert tune(graph, "gcn", storage=storage, **SEARCH).points == whole.points
