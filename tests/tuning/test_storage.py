"""A signal in the middle of a transaction interrupts who waits for it, and leaves the database free."""

import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from sqlalchemy import event

from fairpass.tuning.database import connect
from fairpass.tuning.storage import DatabaseStorage


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Let Ctrl-C arrive: processes of pytest-xdist ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
