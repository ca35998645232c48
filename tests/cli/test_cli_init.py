"""`fairpass init`: what is in the tables, and a configuration to start from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from fairpass.projects.config import load_config

Run = Callable[..., Result]
RunJson = Callable[..., Any]


@pytest.fixture
def tables(own_tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.chdir(own_tables["nodes"].parent)
    return own_tables


def test_it_shows_what_it_found_and_writes_a_configuration(run: Run, tables: dict[str, Path]) -> None:
    result = run("init", "people.csv", "friends.csv")
    assert result.exit_code == 0, result.output
    for text in (
        "people.csv, 40 nodes",
        "friends.csv, 41 edges",
        "between 'one' and 'other'",
        "its name says so; it has 2 values",
        "column 'planet' has one value only: it is left out",
        "column 'shoe' is almost the same as 'sex'",
        "All settings are in fairpass.toml. Read it, change what is not right, then: fairpass run fairpass.toml",
    ):
        assert text in result.stdout
    config = load_config("fairpass.toml")
    assert (config.name, config.tables.id, config.tables.label) == ("people", "name", "hired")
    assert config.tables.sensitive == ["sex"]


def test_a_configuration_is_not_overwritten(run: Run, tables: dict[str, Path]) -> None:
    Path("fairpass.toml").write_text("mine")
    result = run("init", "people.csv", "friends.csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: 'fairpass.toml' exists: remove it, or overwrite it with --force\n"
    assert Path("fairpass.toml").read_text() == "mine"
    assert run("init", "people.csv", "friends.csv", "--force").exit_code == 0
    assert load_config("fairpass.toml").name == "people"


def test_without_edges(run: Run, tables: dict[str, Path]) -> None:
    result = run("init", "people.csv", "--out", "other/config.toml")
    assert result.exit_code == 0, result.output
    config = load_config("other/config.toml")
    assert (config.nodes, config.tables.similarity) == ("../people.csv", 0.9)


def test_json(run_json: RunJson, tables: dict[str, Path]) -> None:
    document = run_json("init", "people.csv", "friends.csv", "--json")
    assert document["config"] == "fairpass.toml"
    assert document["roles"]["label"][0]["column"] == "hired"
    assert [column["name"] for column in document["columns"]] == ["name", "age", "shoe", "planet", "sex", "hired"]


def test_what_is_not_found_has_to_be_filled_in(run: Run, tables: dict[str, Path]) -> None:
    text = tables["nodes"].read_text().replace("name,age,shoe,planet,sex,hired", "name,q1,q2,q3,q4,q5")
    tables["nodes"].write_text(text)
    result = run("init", "people.csv", "friends.csv")
    assert "it still needs 'sensitive'" in result.stdout
    failed = run("run")
    assert failed.stderr.startswith("Error: fairpass.toml: [groups] 'sensitive' must name at least one column")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "'nodes': there is no file 'people.csv'"),
        (b"", "'nodes': 'people.csv' is empty"),
        (b"name,sex\n", "'nodes' must have at least one row"),
        (b"name,sex\na,f\nb\n", "'nodes': line 3 of 'people.csv' has 1 fields, its header 2"),
        (b"name,sex\n\xe9,f\n", "'nodes': 'people.csv' is not utf-8 text"),
        (b"name;sex\na;f\n", "'nodes': 'people.csv' seems to be separated by ';'"),
    ],
)
def test_damaged_tables(run: Run, tables: dict[str, Path], content: bytes | None, message: str) -> None:
    tables["nodes"].unlink()
    if content is not None:
        tables["nodes"].write_bytes(content)
    result = run("init", "people.csv", "friends.csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1
    assert not Path("fairpass.toml").exists()
