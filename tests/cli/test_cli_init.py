"""`fairpass init`: what is in the tables, and a configuration to start from."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.holding import while_in_use
from typer.testing import CliRunner, Result

from fairpass.cli.app import app
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
        "May a decision depend on 'shoe'? It is almost the same as 'sex'",
        "May a decision depend on 'age'? Its name is that of a sensitive attribute",
        "remove it from [features] drop in fairpass.toml",
        "All settings are in fairpass.toml. Read it, change what is not right, then:\n  fairpass run fairpass.toml\n",
    ):
        assert text in result.stdout
    config = load_config("fairpass.toml")
    assert (config.name, config.tables.id, config.tables.label) == ("people", "name", "hired")
    assert config.tables.sensitive == ["sex"]
    assert config.tables.drop == ["planet", "age", "shoe"]
    comments = Path("fairpass.toml").read_text()
    assert "# 'age' may be sensitive (its name is that of a sensitive attribute; it has 40 values)" in comments


def test_a_configuration_is_not_overwritten(run: Run, tables: dict[str, Path]) -> None:
    Path("fairpass.toml").write_text("mine")
    result = run("init", "people.csv", "friends.csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: 'fairpass.toml' exists: remove it, or overwrite it with --force\n"
    assert Path("fairpass.toml").read_text() == "mine"
    assert run("init", "people.csv", "friends.csv", "--force").exit_code == 0
    assert load_config("fairpass.toml").name == "people"


def test_a_configuration_that_comes_meanwhile_is_not_overwritten(
    run: Run, tables: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    out = Path("fairpass.toml")
    result = while_in_use(out, lambda: run("init", "people.csv"), caplog, lambda: out.write_text("mine"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("Error: 'fairpass.toml' exists: remove it, or overwrite it with --force\n")
    assert out.read_text() == "mine"


def test_without_edges(run: Run, tables: dict[str, Path]) -> None:
    result = run("init", "people.csv", "--out", "other/config.toml")
    assert result.exit_code == 0, result.output
    config = load_config("other/config.toml")
    assert (config.nodes, config.tables.similarity) == ("../people.csv", 0.9)


def test_somebody_has_to_decide(run: Run, tables: dict[str, Path]) -> None:
    result = run("init", "people.csv", "friends.csv")
    assert "stops  no column is left as a feature: decide which may be one" in result.stdout


def test_json(run_json: RunJson, tables: dict[str, Path]) -> None:
    document = run_json("init", "people.csv", "friends.csv", "--json")
    assert document["config"] == "fairpass.toml"
    assert document["roles"]["label"][0]["column"] == "hired"
    assert [column["name"] for column in document["columns"]] == ["name", "age", "shoe", "planet", "sex", "hired"]


def test_what_is_not_found_has_to_be_filled_in(run: Run, tables: dict[str, Path]) -> None:
    text = tables["nodes"].read_text().replace("name,age,shoe,planet,sex,hired", "name,q1,q2,q3,q4,q5")
    tables["nodes"].write_text(text.replace(",m,", ",a,").replace(",f,", ",b,"))
    result = run("init", "people.csv", "friends.csv")
    assert "no column looks like one; name it with --label" in result.stdout
    assert "it still needs 'label' and 'sensitive'" in result.stdout
    failed = run("run")
    assert failed.stderr.startswith("Error: fairpass.toml: [data] 'label' must be a text that is not empty")


def test_roles_are_taken_as_given(run: Run, tables: dict[str, Path]) -> None:
    result = run("init", "people.csv", "friends.csv", "--label", "sex", "--sensitive", "hired", "--id", "name")
    assert result.exit_code == 0, result.output
    config = load_config("fairpass.toml")
    assert (config.tables.label, config.tables.sensitive, config.tables.id) == ("sex", ["hired"], "name")
    two = run("init", "people.csv", "friends.csv", "--force", "--sensitive", "sex", "--sensitive", "age")
    assert two.exit_code == 0, two.output
    assert load_config("fairpass.toml").tables.sensitive == ["sex", "age"]
    wrong = run("init", "people.csv", "--force", "--label", "hird")
    assert wrong.stderr == "Error: 'nodes' has no column 'hird': did you mean 'hired'?\n"


def test_on_a_terminal_it_asks(run: Run, tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def confirm(question: str, **_: Any) -> bool:
        asked.append(question)
        return "'age'" in question

    monkeypatch.setattr("fairpass.cli.init._is_terminal", lambda: True)
    monkeypatch.setattr("typer.confirm", confirm)
    result = run("init", "people.csv", "friends.csv")
    assert len(asked) == 2
    assert load_config("fairpass.toml").tables.drop == ["planet", "shoe"]
    assert "May a decision depend on 'age'?" not in result.stdout


def test_by_default_the_answer_is_no(run: Run, tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairpass.cli.init._is_terminal", lambda: True)
    result = CliRunner().invoke(app, ["init", "people.csv", "friends.csv"], input="\n\n")
    assert result.exit_code == 0, result.output
    assert load_config("fairpass.toml").tables.drop == ["planet", "age", "shoe"]


@pytest.mark.parametrize("out", ["people.csv", "friends.csv", "./people.csv", "link.csv"])
def test_a_table_is_never_overwritten(run: Run, tables: dict[str, Path], out: str) -> None:
    Path("link.csv").symlink_to("people.csv")
    before = {path: path.read_bytes() for path in tables.values()}
    result = run("init", "people.csv", "friends.csv", "--out", out, "--force")
    assert (result.exit_code, result.stdout) == (1, "")
    assert (
        result.stderr
        == f"Error: --out must not be one of the tables, which would be overwritten (got {str(Path(out))!r})\n"
    )
    assert {path: path.read_bytes() for path in tables.values()} == before


@pytest.mark.parametrize("wrong", ["nodes", "edges", "--out"])
def test_a_settings_file_needs_names_in_utf_8(run: Run, tables: dict[str, Path], wrong: str) -> None:
    names = {"nodes": "people.csv", "edges": "friends.csv", "--out": "new.toml"}
    right, names[wrong] = names[wrong], os.fsdecode(b"\xff-") + names[wrong]
    if wrong != "--out":
        Path(right).rename(names[wrong])
    before = sorted(Path().iterdir())
    result = run("init", names["nodes"], names["edges"], "--out", names["--out"])
    assert (result.exit_code, result.stdout) == (1, "")
    message = f"Error: {wrong} must have a name in UTF-8, which a settings file needs (got {names[wrong]!r})\n"
    assert result.stderr == message
    assert sorted(Path().iterdir()) == before


def test_separator_and_encoding(run: Run, tables: dict[str, Path]) -> None:
    text = tables["nodes"].read_text().replace(",", "|").replace("earth", "Zürich")
    tables["nodes"].write_text(text, encoding="latin-1")
    for name in ("--encoding", "--text-encoding"):
        result = run("init", "people.csv", "--separator", "|", name, "latin-1", "--force")
        assert result.exit_code == 0, result.output
        tables_read = load_config("fairpass.toml").tables
        assert (tables_read.separator, tables_read.text_encoding) == ("|", "latin-1")
    assert "Zürich" in result.stdout
    wrong = run("init", "people.csv", "--separator", "||", "--force")
    assert wrong.stderr == "Error: --separator must be one mark, for example ';' or tab (got '||')\n"
    wrong = run("init", "people.csv", "--encoding", "base64", "--force")
    assert wrong.stderr == "Error: --encoding must be an encoding that Python knows (got 'base64')\n"
    assert "--text-encoding" not in run("init", "--help").stdout


def test_what_it_writes_can_be_run(run: Run, tables: dict[str, Path]) -> None:
    """Edges without a header, with weights, and with an end that is not a node."""
    nodes = [line.replace("earth", f"{i * 7 % 5}") for i, line in enumerate(tables["nodes"].read_text().splitlines())]
    tables["nodes"].write_text("\n".join(nodes))
    lines = tables["edges"].read_text().splitlines()[1:]
    tables["edges"].write_text("\n".join([*(f"{line},{i + 1}" for i, line in enumerate(lines)), "p1,nobody,3"]))
    result = run("init", "people.csv", "friends.csv")
    assert "between 'source' and 'target', weighted by 'weight'" in result.stdout
    text = Path("fairpass.toml").read_text()
    for line in ("edges_header = false", 'edge_weight = "weight"', 'dangling = "drop"'):
        assert f"\n{line}\n" in text
    assert "# 1 of 42 edges have an end that is not a node." in text
    Path("fairpass.toml").write_text(text.replace("min_size = 10", "min_size = 5"))
    done = run("run", "--step", "load")
    assert done.exit_code == 0, done.output
    assert "edges whose ends are not both nodes are left out: 1 of 42" in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "'nodes': there is no file 'people.csv'"),
        (b"", "'nodes': 'people.csv' is empty"),
        (b"name,sex\n", "'nodes' must have at least one row"),
        (b"name,sex\na,f\nb\n", "'nodes': line 3 of 'people.csv' has 1 fields, its header 2"),
        (b"1,2\n1,3\n2,2\n", "'nodes' has no header: its first row looks like data ('1', '2')"),
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
