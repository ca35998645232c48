"""A signal in the middle of a transaction interrupts who waits for it, and leaves the database free."""

import logging
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import optuna
import pytest
from sqlalchemy import event

from fairpass.tuning.database import connect


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize("moment", ["after_cursor_execute", "commit", "reset", "checkin"])
def test_an_interrupted_transaction_is_finished(moment: str, tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    storage = connect(str(path))
    study = optuna.create_study(storage=storage)

    once = [signal.SIGINT]

    def interrupt(*_: Any) -> None:
        if once:
            signal.raise_signal(once.pop())

    event.listen(storage.engine, moment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        study.set_user_attr("a", 1)
    assert study.user_attrs == {"a": 1}  # waits for it
    with sqlite3.connect(path, timeout=0) as other:
        other.execute("BEGIN IMMEDIATE")
    other.close()
    study.set_user_attr("b", 2)
    assert study.user_attrs == {"a": 1, "b": 2}
    storage.close()


@contextmanager
def locked(path: Path) -> Iterator[Callable[[], None]]:
    """Lock a database as another program may do; yield what frees it."""
    other = sqlite3.connect(path, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    yield other.rollback
    other.close()


@contextmanager
def when_warned(do: Callable[[], object]) -> Iterator[None]:
    """Do something as soon as the storage says that it waits."""

    def once(_: logging.LogRecord) -> bool:
        do()
        return True

    logger = logging.getLogger("fairpass.tuning.storage")
    with patch("fairpass.tuning.storage.PATIENCE", 0.1), patch.object(logger, "filters", [once]):
        yield


def test_a_locked_database_is_waited_for_with_a_note(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "study.db"
    connect(str(path)).close()
    with locked(path) as free, when_warned(free):
        storage = connect(str(path))
    study = optuna.create_study(storage=storage)
    with locked(path) as free, when_warned(free):
        study.set_user_attr("a", 1)
    assert len([each for each in caplog.messages if "has not answered for 0.1 s" in each]) >= 2
    assert study.user_attrs == {"a": 1}
    storage.close()


@pytest.mark.usefixtures("reachable")
def test_who_is_interrupted_does_not_tidy_up_in_a_locked_database(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    storage = connect(str(path))
    study = optuna.create_study(storage=storage)
    with locked(path) as free:
        try:
            with when_warned(partial(signal.raise_signal, signal.SIGINT)):
                study.set_user_attr("a", 1)
        except KeyboardInterrupt:
            storage.grace = 0.1
            for name in "bc":
                with pytest.raises(KeyboardInterrupt):
                    study.set_user_attr(name, 2)
        else:
            pytest.fail("nothing was interrupted")
        free()
    study.set_user_attr("d", 3)
    assert study.user_attrs == {"a": 1, "b": 2, "c": 2, "d": 3}  # all that it was asked for, when it could
    storage.close()
