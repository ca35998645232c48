"""`fairpass partition` on the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.datasets.test_partition import friends, people, write
from typer.testing import Result

from fairpass.datasets import from_tables_arrays, load_arrays
from fairpass.datasets.parts import join_parts

Run = Callable[..., Result]
ROLES = ["--id", "name", "--label", "hired", "--sensitive", "sex", "--feature", "age", "--feature", "job"]


def test_own_tables(run: Run, run_json: Callable[..., Any], tmp_path: Path) -> None:
    tables = write(people(), tmp_path / "n.csv"), write(friends(), tmp_path / "e.parquet")
    command = ["partition", *tables, *ROLES, "--missing", "mean", "--parts", "2", "--out", tmp_path / "parts"]
    shown = run(*command, "--memory", "500MB")
    assert shown.exit_code == 0, shown.output
    assert "120 nodes" in shown.stdout
    document = run_json(*command, "--json")  # it is done already
    assert document["statistics"]["groups"] == {"female": 40, "male": 80}
    expected = from_tables_arrays(
        *tables, id="name", label="hired", sensitive="sex", features=["age", "job"], missing="mean"
    )
    np.testing.assert_array_equal(join_parts(tmp_path / "parts").x, expected.x)
    other = run(*command, "--drop", "town")
    assert other.exit_code == 1
    assert "--out must be a new directory, or that of the same command" in other.stderr


def test_a_benchmark(run: Run, tmp_path: Path) -> None:
    command = ["partition", "german", "--parts", "2", "--out", tmp_path / "parts", "--drop-sensitive"]
    assert run(*command).exit_code == 0
    np.testing.assert_array_equal(join_parts(tmp_path / "parts").x, load_arrays("german", keep_sensitive=False).x)
    assert run(*command).exit_code == 0
    assert "--out must be a new directory" in run(*command, "--split-seed", "7").stderr


def test_what_is_missing_is_said(run: Run, tmp_path: Path) -> None:
    table = write(people(), tmp_path / "n.csv")
    out = ["--parts", "2", "--out", tmp_path / "parts"]
    assert "give a table of edges, too" in run("partition", table, *out).stderr
    assert "own tables need --label and --sensitive" in run("partition", table, table, *out).stderr
    assert "there is no data set 'germann'" in run("partition", "germann", *out).stderr
    without = run("partition", table, tmp_path / "none.csv", *ROLES, *out)
    assert "there is no file" in without.stderr
    assert not (tmp_path / "parts").exists()
