"""Errors speak the language of the command line, or of the settings file, and know what was meant."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.projects.applicants import write_project
from typer.testing import Result

from fairpass.cli.options import spelled
from fairpass.errors import respelled, suggestion
from fairpass.projects.config import in_toml

Run = Callable[..., Result]
FLAGS = {"missing_sensitive": "--missing-sensitive", "drop": "--drop", "id": "--id", "nodes": "--nodes"}
FLAGS |= {"unweighted": "--unweighted", "missing": "--missing", "label": "--label"}


@pytest.mark.parametrize(
    ("message", "on_the_command_line", "in_a_file"),
    [
        (
            "fix the table, or choose missing_sensitive='unknown'",
            "fix the table, or choose --missing-sensitive unknown",
            'fix the table, or choose [groups] missing = "unknown"',
        ),
        ("leave it out ('drop')", "leave it out (--drop)", "leave it out ([features] 'drop')"),
        ("or drop=['id'] if", "or --drop id if", 'or [features] drop = ["id"] if'),
        ("give id='a b' if", "give --id 'a b' if", 'give [data] id = "a b" if'),
        ("with unweighted=True", "with --unweighted", "with [data] unweighted = true"),
        # What the command line does not have is spelled as in a settings file.
        ("by sens_bins=[25]", "by [groups] bins = [25] of a settings file", "by [groups] bins = [25]"),
        ("'nodes' has no column 'x'", "--nodes has no column 'x'", "[data] 'nodes' has no column 'x'"),
    ],
)
def test_two_front_ends(message: str, on_the_command_line: str, in_a_file: str) -> None:
    assert spelled(message, FLAGS) == on_the_command_line
    assert in_toml(message) == in_a_file
    assert in_toml(in_toml(message)) == in_a_file  # a message of a settings file stays as it is


@pytest.mark.parametrize(
    "message",
    [
        "column 'label' has missing values",
        "columns 'id' and",
        "(got 'drop')",
        "must be one of 'error', 'drop', 'mean'",
        "did you mean 'label'?",
        "it has 'name', 'label', 'missing'",
        "label 'missing' is rare",
        "the ids in column 'label' of 'nodes' must be unique",
        "'data.x' must be finite",
        "features=3 of these",
    ],
)
def test_what_is_the_users_own_stays(message: str) -> None:
    assert spelled(message, FLAGS).replace("[features] use = 3 of a settings file", "features=3") == message


def test_spellings_may_be_unknown() -> None:
    assert respelled("'alpha' and beta=1", lambda _: None, lambda *_: None) == "'alpha' and beta=1"


@pytest.mark.parametrize(
    ("name", "meant"), [("gnc", "gcn"), ("GCN", "gcn"), ("gmdm", "gmmd"), ("fair-drop", "fairdrop"), ("xyz", None)]
)
def test_suggestions(name: str, meant: str | None) -> None:
    found = suggestion(name, ["gin", "gcn", "gmmd", "fairdrop"])
    assert found == ("" if meant is None else f"; did you mean {meant!r}?")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--label": "hird"}, "--nodes has no column 'hird': did you mean 'hired'?"),
        ({"--sensitive": "sx"}, "--nodes has no column 'sx': did you mean 'sex'?"),
        ({"--edge-weight": "wieght"}, "--edges has no column 'wieght'"),
        ({"--split-seed": "-1"}, "--split-seed must be at least 0 (got -1)"),
        ({"--max-levels": "1"}, "--max-levels must be at least 2 (got 1)"),
        (
            {"--label": "sex", "--sensitive": "sex"},
            "--label and --sensitive must be different columns (both are 'sex')",
        ),
        (
            {"--similarity": "0.5"},
            "give a table of --edges, or a threshold of --similarity to make them from (got both)",
        ),
    ],
)
def test_wrong_options_of_tables(run: Run, own_tables: dict[str, Path], changes: dict[str, str], message: str) -> None:
    options = {"--nodes": own_tables["nodes"], "--edges": own_tables["edges"], "--id": "name", "--label": "hired"}
    options |= {"--sensitive": "sex", **changes}
    result = run("audit", *[str(part) for option in options.items() for part in option])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1].startswith(f"Error: {message}")


def gap(folder: Path, column: str) -> None:
    lines = (folder / "people.csv").read_text().splitlines()
    place = lines[0].split(",").index(column)
    cells = lines[1].split(",")
    cells[place] = ""
    (folder / "people.csv").write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]))


def test_a_gap_and_how_to_fill_it(run: Run, own_tables: dict[str, Path]) -> None:
    gap(own_tables["nodes"].parent, "sex")
    tables = ["--nodes", own_tables["nodes"], "--edges", own_tables["edges"], "--id", "name"]
    result = run("audit", *tables, "--label", "hired", "--sensitive", "sex")
    assert result.stderr == (
        "Error: column 'sex' must have a value for each node (1 missing, first in row 0): fix the table, or choose "
        "--missing-sensitive unknown\n"
    )
    result = run("audit", *tables, "--label", "hired", "--sensitive", "sex", "--missing-sensitive", "unknown")
    assert result.exit_code == 0, result.output


def test_edges_to_nowhere_and_how_to_drop_them(run: Run, own_tables: dict[str, Path]) -> None:
    with own_tables["edges"].open("a") as file:
        file.write("\np1,nobody")
    tables = ["--nodes", own_tables["nodes"], "--edges", own_tables["edges"], "--id", "name"]
    result = run("audit", *tables, "--label", "hired", "--sensitive", "sex")
    assert result.stderr.endswith("the nodes have ids such as 'p0' (--dangling drop leaves such edges out)\n")
    result = run("audit", *tables, "--label", "hired", "--sensitive", "sex", "--dangling", "drop")
    assert result.exit_code == 0, result.output
    assert "Warning: edges whose ends are not both nodes are left out: 1 of 42" in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('missing = "unknown"', 'missing = "error"', 'fix the table, or choose [groups] missing = "unknown"'),
        (
            'label = "decision"',
            'label = "desicion"',
            "[data] 'nodes' has no column 'desicion': did you mean 'decision'?",
        ),
        ('id = "applicant"', 'id = "aplicant"', "[data] 'nodes' has no column 'aplicant': did you mean 'applicant'?"),
        ('missing = "indicator"', 'missing = "indictor"', "(got 'indictor'; did you mean 'indicator'?)"),
        ('methods = ["gmmd"]', 'methods = ["gmdm"]', "(got 'gmdm'; did you mean 'gmmd'?)"),
        ('target = "knows"', 'target = "knows"\nunweighted = 1', "[data] 'unweighted' must be true or false (got 1)"),
        (
            'target = "knows"',
            'target = "knows"\nedge_wieght = "w"',
            "there is no key 'edge_wieght': did you mean 'edge_weight'?",
        ),
    ],
)
def test_wrong_settings(run: Run, tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write_project(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    result = run("run", path, "--step", "load")
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert result.stderr.count("Error:") == 1


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["audit", "--nodes", "a\0b"], "--nodes"),
        (["audit", "--edges", "a\0b"], "--edges"),
        (["audit", "a\0b"], "'name'"),
        (["train", "german", "--out", "a\0b"], "--out"),
        (["partition", "a\0b", "--parts", "2", "--out", "x"], "'nodes'"),
        (["partition", "german", "--parts", "2", "--out", "a\0b"], "--out"),
        (["predict", "model", "--graph", "a\0b", "--out", "x.csv"], "--graph"),
        (["tune", "german", "--storage", "a\0b"], "--storage"),
        (["compare", "german", "--report", "a\0b"], "--report"),
        (["report", "a", "a\0b"], "'PATH'"),
        (["report", "a", "--model-card", "a\0b"], "--model-card"),
        (["run", "a\0b"], "'CONFIG'"),
        (["demo", "--out", "a\0b"], "--out"),
        (["train", "german", "--set", "backbone=a\0b"], "--set"),
    ],
)
def test_no_null_characters(run: Run, arguments: list[str], name: str) -> None:
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    assert f"{name} must not contain null characters (got '" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "german", "--seeds", "0"], "--seeds must be at least 1 (got 0)"),
        (["compare", "german", "--seeds", "10001"], "--seeds must be at most 10,000 (got 10001)"),
        (["compare", "german", "--seeds", "x"], "--seeds must be a whole number (got 'x')"),
        (["compare", "german", "--jobs", "-1"], "--jobs must be at least 1 (got -1)"),
        (["train", "german", "--epochs", "nan"], "--epochs must be a whole number (got 'nan')"),
        (["train", "german", "--epochs", "1.5"], "--epochs must be a whole number (got '1.5')"),
        (["train", "german", "--epochs", "9" * 5000], "--epochs must be a whole number with fewer digits (got '999"),
        (["train", "german", "--epochs", "0"], "--epochs must be at least 1 (got 0)"),
        (["train", "german", "--learning-rate", "fast"], "--learning-rate must be a number (got 'fast')"),
        (["audit", "german", "--split-seed", "-1"], "--split-seed must be at least 0 (got -1)"),
        (["audit", "german", "--split-seed", "1e3"], "--split-seed must be a whole number (got '1e3')"),
        (["attribute", "german", "--splits", "1"], "--splits must be at least 2 (got 1)"),
        (["partition", "german", "--parts", "0", "--out", "x"], "--parts must be at least 1 (got 0)"),
        (["evaluate", "model", "german", "--bootstrap", "-1"], "--bootstrap must be at least 0 (got -1)"),
        (["tune", "german", "--trials", "x"], "--trials must be a whole number (got 'x')"),
    ],
)
def test_what_was_given_is_said(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    assert message in result.stderr
    assert "Input should" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "germn"], "there is no data set 'germn': did you mean 'german'?"),
        (["train", "german", "--method", "gmdm"], "(got 'gmdm'; did you mean 'gmmd'?)"),
        (["train", "german", "--set", "lamda_s=1"], "'lamda_s' is not a parameter of gmmd: did you mean 'lambda_s'?"),
        (["train", "german", "--set", "backbone=gnc"], "(got 'gnc'; did you mean 'gcn'?)"),
    ],
)
def test_misspelt_names(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_warnings_are_spelled_alike(run: Run, own_tables: dict[str, Path], monkeypatch: Any) -> None:
    tables = ["--nodes", own_tables["nodes"], "--edges", own_tables["edges"], "--id", "name"]
    lines = own_tables["edges"].read_text().splitlines()[1:]
    own_tables["edges"].write_text("\n".join(lines))
    result = run("audit", *tables, "--label", "hired", "--sensitive", "sex")
    assert result.exit_code == 0, result.output
    assert "Warning: --edges has no header: its first row is the edge from 'p0' to 'p1'" in result.stderr
    assert "(--edges-header if that is wrong)" in result.stderr
