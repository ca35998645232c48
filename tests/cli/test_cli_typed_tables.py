"""JSON lines and Parquet have values that CSV has not: a command uses them, or says in a sentence that it cannot."""

import json
from collections.abc import Callable
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import Result

Run = Callable[..., Result]

SIZE = 40
ROLES = ("--id", "name", "--label", "hired", "--sensitive", "sex")
NO_SINGLE_VALUE = {"a list": ["a"], "an object with fields": {"a": 1}, "bytes": b"a"}
HUGE = 10**400  # no float is as large


def people(**columns: Any) -> pd.DataFrame:
    table = {
        "name": [f"p{i}" for i in range(SIZE)],
        "age": [20 + i * 7 % 41 for i in range(SIZE)],
        "sex": ["f", "m"] * (SIZE // 2),
        "hired": ["no", "no", "yes", "yes"] * (SIZE // 4),
    }
    return pd.DataFrame(table | columns)


def write(table: pd.DataFrame, ending: str) -> str:
    """Write a table beside its edges, in the working directory."""
    path = Path(f"people.{ending}")
    if ending == "jsonl":
        path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in table.to_dict("records")))
    else:
        table.to_parquet(path)
    ids = table["name"].map(str)
    pd.DataFrame({"a": ids, "b": [*ids[1:], ids[0]]}).to_csv("friends.csv", index=False)
    return str(path)


def commands(nodes: str, *more: str) -> dict[str, tuple[str, ...]]:
    tables = ("--nodes", nodes, "--edges", "friends.csv", *ROLES, *more)
    return {
        "audit": ("audit", *tables),
        "train": ("train", *tables, "--method", "gcn", "--epochs", "1"),
        "partition": ("partition", nodes, "friends.csv", *ROLES, *more, "--parts", "2", "--out", "parts"),
    }


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("column", ["name", "age", "sex", "hired", "skills"])
@pytest.mark.parametrize(
    ("ending", "got"),
    [*product(["parquet"], NO_SINGLE_VALUE), *product(["jsonl"], ["a list", "an object with fields"])],
)
def test_columns_without_single_values(run: Run, ending: str, column: str, got: str) -> None:
    nodes = write(people(**{column: [NO_SINGLE_VALUE[got]] * SIZE}), ending)
    result = run("init", nodes, "friends.csv", "--out", "new.toml")
    assert result.exit_code == 0, result.output
    assert f"column '{column}' contains lists, records or bytes: it is left out" in result.stdout
    for name, command in commands(nodes).items():
        if (name, ending) != ("partition", "jsonl"):
            result = run(*command)
            assert result.exit_code == 1, result.output
            expected = (
                f"column '{column}' of 'nodes' must have single values such as numbers or text (got {got} in row 0)"
            )
            assert expected in result.stderr
            assert "Traceback" not in result.output


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_column_that_is_dropped_may_have_lists(run: Run, ending: str) -> None:
    nodes = write(people(skills=[["a", "b"]] * SIZE), ending)
    for name, command in commands(nodes, "--drop", "skills").items():
        if (name, ending) != ("partition", "jsonl"):
            result = run(*command)
            assert result.exit_code == 0, result.output


def test_edges_with_lists(run: Run) -> None:
    write(people(), "parquet")
    ends: Any = [["p1"]] * SIZE
    pd.read_csv("friends.csv").assign(b=ends).to_parquet("lists.parquet")
    result = run("init", "people.parquet", "lists.parquet", "--out", "new.toml")
    assert result.exit_code == 0, result.output
    assert "must have two columns, one for each end" in result.output


@pytest.mark.parametrize("column", ["age", "sex", "hired"])
def test_numbers_that_no_float_can_hold(run: Run, column: str) -> None:
    nodes = write(people(**{column: pd.Series([HUGE, 1] * (SIZE // 2), dtype=object)}), "jsonl")
    assert run("init", nodes, "friends.csv", "--out", "new.toml").exception is None
    result = run(*commands(nodes)["audit"])
    assert result.exit_code == 1
    assert f"column '{column}' must be finite (got " in result.stderr


def test_ids_that_no_float_can_hold(run: Run) -> None:
    nodes = write(people(name=pd.Series([HUGE + i for i in range(SIZE)], dtype=object)), "jsonl")
    for command in (("init", nodes, "friends.csv", "--out", "new.toml"), commands(nodes)["train"]):
        result = run(*command)
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_dates_far_in_the_future(run: Run, ending: str) -> None:
    until = [date(9999, 12, 31) if i % 3 == 1 else date(2020, 1, 1 + i % 28) for i in range(SIZE)]
    nodes = write(people(until=until), ending)
    never = "column 'until': values that are not dates before 2200 count as missing: '9999-12-31'"
    result = run(*commands(nodes)["audit"])
    assert result.exit_code == 1
    assert (
        "column 'until' has missing values (13 missing, first in row 1), such as '9999-12-31' in row 1" in result.stderr
    )
    for command in (("init", nodes, "friends.csv", "--out", "new.toml"), commands(nodes, "--missing", "mean")["train"]):
        result = run(*command)
        assert result.exit_code == 0, result.output
        assert never in result.output
