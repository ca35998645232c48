"""A study whose database is damaged is refused before any work, in a sentence that names the file."""

import sqlite3
from pathlib import Path

import pytest
from tests.methods.ingredients import small_graph

from fairpass.errors import DataError
from fairpass.tuning import tune

REFUSED = pytest.raises(DataError, match=r"'storage' must be a database of studies \(got '.*study\.db': ")


@pytest.mark.parametrize("damage", ['{"name": "FloatDist', '{"name": "Unknown", "attributes": {}}', "[]", "7"])
def test_what_is_no_study_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "study.db"
    tune(small_graph(), "logistic", budget=1, storage=path, seeds=1)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE trial_params SET distribution_json = ?", (damage,))
    database.close()
    with REFUSED:
        tune(small_graph(), "logistic", budget=1, storage=path, seeds=1)


@pytest.mark.parametrize(
    "damage", [None, "7", "{}", '{"validation": {"AUC": "high"}}', '{"validation": {}, "more": 1}']
)
def test_outcomes_that_no_search_wrote_are_refused(tmp_path: Path, damage: str | None) -> None:
    path = tmp_path / "study.db"
    tune(small_graph(), "logistic", budget=1, storage=path, seeds=1)
    with sqlite3.connect(path) as database:
        if damage is None:
            database.execute("UPDATE trial_user_attributes SET key = 'outcomf' WHERE key = 'outcome'")
        else:
            database.execute("UPDATE trial_user_attributes SET value_json = ? WHERE key = 'outcome'", (damage,))
    database.close()
    with REFUSED:
        tune(small_graph(), "logistic", budget=1, storage=path, seeds=1)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE alembic_version SET version_num = 'v0'",
        "UPDATE trial_user_attributes SET value_json = '\"nobody\"' WHERE key = 'owner'",
        "UPDATE trial_user_attributes SET value_json = '7' WHERE key = 'owner'",
        "UPDATE study_user_attributes SET value_json = '\"lately\"' WHERE key LIKE 'alive%'",
    ],
)
def test_what_is_read_before_the_outcomes_is_checked_too(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "study.db"
    tune(small_graph(), "logistic", budget=1, storage=path, seeds=1)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE trials SET state = 'RUNNING'")
        database.execute("UPDATE trial_user_attributes SET value_json = '\"elsewhere 1 a\"' WHERE key = 'owner'")
        database.execute("UPDATE study_user_attributes SET key = 'alive elsewhere 1 a' WHERE key LIKE 'alive%'")
        database.execute(damage)
    database.close()
    with REFUSED:
        tune(small_graph(), "logistic", budget=1, storage=path, seeds=1)


def test_a_table_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    tune(small_graph(), "logistic", budget=1, storage=path, seeds=1)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"heartbeat_id INTEGER NOT NULL", b"heartbeat_id INTEGER NOT \xf9ULL"))
    with REFUSED:
        tune(small_graph(), "logistic", budget=1, storage=path, seeds=1)
