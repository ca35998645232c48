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
