"""Names from tables and options reach the terminal as text, whatever they are."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.text import Text
from typer.testing import Result

from fairpass.cli import output
from fairpass.projects.config import load_config
from fairpass.projects.predictions import read_table

Run = Callable[..., Result]

RED = "\x1b[31m"
ODD = ["a{b}", "{0}{x.y[1]}", "%s%d%(a)s", "[red]x[", "a?b=c&d#e", "a b;c"]


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, Path]:
    """Sixty people whose ids, groups and labels are formulas and escape sequences."""
    marks = ["=", "+", "-", "@", "'="]
    ids = [f"{marks[i % 5]}p{i}" for i in range(60)]
    rows = [f"name,age,{RED}fun\x9b,sex,hired\x07"]
    rows += [
        f"{ids[i]},{20 + i},{RED if i % 3 else ''}{'[red]' if i % 4 else '[/blue]'},"
        f"{'=m' if i < 30 else '+f' + RED},{'@yes' if i % 2 else '-no'}"
        for i in range(60)
    ]
    paths = {"nodes": tmp_path / "people.csv", "edges": tmp_path / "friends.csv"}
    paths["nodes"].write_text("\n".join(rows))
    paths["edges"].write_text("\n".join(["one,other", *(f"{ids[i]},{ids[(i + 1) % 60]}" for i in range(60))]))
    return paths


def safe(result: Result, code: int = 0) -> Result:
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e]", result.stdout + result.stderr)
    return result


def test_escape_sequences_are_not_obeyed(run: Run, hostile: dict[str, Path], tmp_path: Path) -> None:
    tables = ["--nodes", hostile["nodes"], "--edges", hostile["edges"], "--label", "hired\x07", "--sensitive", "sex"]
    safe(run("audit", *tables, "--id", "name"))
    trained = ["--method", "logistic", "--out", tmp_path / "model"]
    safe(run("train", *tables, "--id", "name", *trained))
    safe(run("audit", *tables, "--id", f"na{RED}me"), 1)
    safe(run("evaluate", f"{RED}.safetensors", *tables), 1)
    out = tmp_path / "predictions.csv"
    model = tmp_path / "model" / "model.safetensors"
    safe(run("predict", model, "--nodes", hostile["nodes"], "--edges", hostile["edges"], "--out", out))
    written = pd.read_csv(out, dtype=str)
    texts = written[["node", "label", "group"]].to_numpy().ravel().tolist()
    assert {text[0] for text in texts} == {"'"}
    found = read_table(out)
    assert found["node"].tolist() == [row.split(",")[0] for row in hostile["nodes"].read_text().split("\n")[1:]]
    assert set(found["group"]) == {"=m", f"+f{RED}"}
    assert set(found["label"]) == {"@yes", "-no"}
    assert found["score"].between(0, 1).all()


@pytest.mark.parametrize(
    "words", [["methods", "{}"], ["{}"], ["--{}"], ["train", "--{}"], ["predict", "m", "--out", "{}"]]
)
def test_wrong_arguments_are_printed_as_text(run: Run, words: list[str]) -> None:
    safe(run(*(word.format(f"x\u202e\u200b{RED}") for word in words)), 2)


def test_init_writes_settings_that_can_be_read(run: Run, hostile: dict[str, Path], tmp_path: Path) -> None:
    nodes = hostile["nodes"].rename(tmp_path / "x\nname = '..'\x1b.csv")
    safe(run("init", nodes, hostile["edges"], "--label", "hired\x07", "--out", tmp_path / "a{b}.toml"))
    config = load_config(tmp_path / "a{b}.toml")
    assert config.run_directory == tmp_path / "runs" / "x_name = '..'_"
    assert config.tables.label == "hired\x07"
    assert config.table_paths[config.nodes].exists()


@pytest.mark.parametrize("name", ODD)
def test_odd_names_of_directories_are_printed_as_they_are(run: Run, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    result = safe(run("train", "german", "--method", "logistic", "--out", out))
    assert str(out) in result.stdout
    quick = ["--method", "logistic", "--trials", "1", "--seeds", "1"]
    safe(run("tune", "german", *quick, "--out", tmp_path / "tuned" / name))
    assert [path.name for path in (tmp_path / "tuned").iterdir()] == [name]
    assert (tmp_path / "tuned" / name / "study.db").exists()


def test_markup_in_labels_of_a_bar_is_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(output, "notices", output.PlainConsole(stderr=True, force_terminal=True, width=100))
    with output.bar(2) as show:
        show(1, "[red]a[/blue]", "{b} [/]")
    with output.working("[/red]"):
        pass
    shown = capsys.readouterr().err
    assert "[red]a[/blue]" in shown
    assert "{b} [/]" in shown


@pytest.mark.parametrize("cell", ["[red]x[/blue]", ":smile:", Text("[bold]")])
def test_markup_in_cells_is_text(cell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    output.console.print(output.table(["name"], [[cell]]))
    assert str(cell) in capsys.readouterr().out


def test_a_traceback_is_text(run_process: Callable[..., Any]) -> None:
    result = run_process("--debug", "evaluate", f"{RED}.safetensors", "german")
    assert "Traceback" in result.stderr
    assert "\ufffd[31m.safetensors' must be a fairpass model file" in result.stderr
    assert RED not in result.stderr
