"""A signal in the middle of a transaction interrupts who waits for it, and leaves the database free."""

import logging
import signal
import sqlite3
from pathlib import Path
from typing import Any

import optuna
import pytest
from sqlalchemy import event

from fairpass.tuning.database import connect
from fairpass.tuning.storage import DatabaseStorage


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize("moment", ["after_cursor_execute", "commit", "reset", "checkin"])
def test_an_interrupted_transaction_is_finished(moment: str, tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    storage = DatabaseStorage(connect(str(path)))
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


def test_a_database_that_another_program_uses_is_waited_for_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fairpass.tuning.storage.PATIENCE", 0.1)
    path = tmp_path / "study.db"
    storage = DatabaseStorage(connect(str(path)))
    study = optuna.create_study(storage=storage)
    other = sqlite3.connect(path, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    def free(record: logging.LogRecord) -> bool:
        other.rollback()
        return True

    monkeypatch.setattr(logging.getLogger("fairpass.tuning.storage"), "filters", [free])
    study.set_user_attr("a", 1)
    assert [each for each in caplog.messages if "another program may be writing" in each]
    assert study.user_attrs == {"a": 1}
    other.close()
    storage.close()
