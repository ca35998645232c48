"""A study whose database is damaged is refused before any work, in a sentence that names the file."""

import sqlite3
from pathlib import Path

import pytest
from tests.methods.ingredients import small_graph

from fairpass.errors import DataError
from fairpass.tuning import tune


@pytest.mark.parametrize("damage", ['{"name": "FloatDist', '{"name": "Unknown", "attributes": {}}', "[]", "7"])
def test_what_is_no_study_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "study.db"
    tune(small_graph(), "logistic", budget=1, storage=path, seeds=1)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE trial_params SET distribution_json = ?", (damage,))
    database.close()
    with pytest.raises(DataError, match=r"'storage' must be a database of studies \(got '.*study\.db', damaged: "):
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
    with pytest.raises(DataError, match=r"'storage' must be a database of studies \(got '.*study\.db', damaged: "):
        tune(small_graph(), "logistic", budget=1, storage=path, seeds=1)
