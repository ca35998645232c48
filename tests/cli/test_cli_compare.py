"""`fairpass compare`: one table, kept on disk, and no method loses another's results."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.holding import while_in_use
from typer.testing import Result

from fairpass.cli import output
from fairpass.documents import signed
from fairpass.errors import DataError
from fairpass.methods import GAT, GCN, names
from fairpass.report import Evidence
from fairpass.runs import Comparison
from fairpass.training import Task

Run = Callable[..., Result]
RunJson = Callable[..., Any]

QUICK = ("compare", "german", "--methods", "gcn,gat", "--epochs", "2", "--seeds", "2")


def fail(self: GAT, task: Task) -> None:
    raise DataError("no attention today")


def test_table_has_a_row_for_each_method(run: Run) -> None:
    result = run(*QUICK)
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[2].split() == ["method", "AUC", "F1", "ACC", "ΔDP", "ΔEO", "rank"]
    assert [line.split()[0] for line in lines[4:7]] == ["constant", "gcn", "gat"]
    assert all(line.count("±") == 5 for line in lines[4:7])
    assert "mean ± standard deviation over 2 seeds, in percent" in result.stdout
    assert "predicts the same for every node" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("width", [80, 100])
def test_table_fits_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(output, "console", Console(width=width, highlight=False))
    lines = run(*QUICK).stdout.splitlines()
    assert all(len(line) <= width for line in lines)
    assert [line.split()[0] for line in lines[4:7]] == ["constant", "gcn", "gat"]  # none is folded


def test_one_seed_has_no_deviation(run: Run) -> None:
    result = run(*QUICK[:-1], "1")
    assert "±" not in result.stdout
    assert "one seed, in percent" in result.stdout


def test_results_are_kept_and_gone_on_from(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    out = tmp_path / "german.json"
    first = run(*QUICK, "--out", out)
    assert first.stdout.endswith(f"All results are in {out}.\n")
    before = Comparison.load(out)
    assert len(before.runs) == 6

    again = run(*QUICK, "--out", out)
    assert again.stderr == f"6 of 6 runs are already in {out}\n"
    assert again.stdout == first.stdout
    assert Comparison.load(out) == before

    more = run("compare", "german", "--methods", "gin", "--epochs", "2", "--seeds", "3", "--out", out)
    assert more.stderr == f"2 of 6 runs are already in {out}\n"
    after = Comparison.load(out)
    assert after.runs[:6] == before.runs
    assert [row.method for row in after.rows] == ["constant", "gcn", "gat", "gin"]
    assert "2 of 3 seeds only" in more.stdout


def test_other_settings_do_not_mix(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "german.json"
    run(*QUICK, "--out", out)
    kept = out.read_bytes()
    for change, message in (
        (["--learning-rate", "0.5"], "(it had --learning-rate 0.01, now 0.5); remove"),
        (["--drop-sensitive"], "must be of the same graph, split and features (they are not); remove"),
    ):
        result = run(*QUICK, *change, "--out", out)
        assert result.exit_code == 1
        assert message in result.stderr
        assert result.stderr.endswith("or choose another --out\n")
        assert out.read_bytes() == kept


def test_a_file_that_is_something_else_is_kept(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "letter.json"
    out.write_text("Dear all")
    result = run(*QUICK, "--out", out)
    assert result.exit_code == 1
    assert "must be a fairpass comparison file (damaged or not one" in result.stderr
    assert "remove" not in result.stderr
    assert out.read_text() == "Dear all"


def test_a_failing_method_loses_nothing(
    run: Run, run_json: RunJson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "german.json"
    with monkeypatch.context() as broken:
        broken.setattr(GAT, "build", fail)
        result = run(*QUICK, "--out", out)
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if line.strip().startswith("gat"))
    assert row.split() == ["gat", "failed", "-", "-", "-", "-", "-"]
    assert "failed in 2 of 2 runs: no attention today" in result.stdout
    assert Comparison.load(out).row("gcn").failed == 0

    mended = run(*QUICK, "--out", out, "--json")
    assert mended.stderr == f"4 of 6 runs are already in {out}\n"
    assert all(not row["failed"] for row in json.loads(mended.stdout)["rows"])
    assert json.loads(out.read_text()) == signed(json.loads(mended.stdout))


def test_report_has_the_same_numbers(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    out, directory = tmp_path / "german.json", tmp_path / "report"
    run(*QUICK, "--out", out)
    before = Comparison.load(out)
    result = run(*QUICK, "--out", out, "--report", directory)
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith(f"The report is {directory / 'report.html'}.\n")
    evidence = Evidence.load(directory)
    for row in before.rows:
        runs = evidence.method(row.method)["runs"]
        assert [each["seed"] for each in runs] == [0, 1]
        mean = 100 * sum(each["evaluation"]["acc"] for each in runs) / 2
        assert mean == pytest.approx(row.mean["ACC"])
    # Trained again, with the same outcome.
    assert [run.evaluation for run in Comparison.load(out).runs] == [run.evaluation for run in before.runs]
    assert "<h1>German Credit: 2 methods compared</h1>" in (directory / "report.html").read_text()
    assert evidence.neighbourhoods == {}
    assert (directory / "report.json").is_file()
    assert run(*QUICK, "--out", out, "--report", directory, "--include-people").exit_code == 0
    assert "A closer look at people" in (directory / "report.html").read_text()


def test_a_report_is_of_one_command(run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = tmp_path / "report"

    def none_yet() -> None:
        assert list(directory.iterdir()) == []

    assert while_in_use(directory, lambda: run(*QUICK, "--report", directory), caplog, none_yet).exit_code == 0
    assert sorted(each.name for each in directory.iterdir()) == ["evidence.json", "report.html", "report.json"]


def test_report_leaves_out_what_failed(run_json: RunJson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GAT, "build", fail)
    document = run_json(*QUICK, "--report", tmp_path, "--json")
    assert document["report"] == str(tmp_path / "report.html")
    assert [method["name"] for method in Evidence.load(tmp_path).methods] == ["constant", "gcn"]


def test_an_interruption_keeps_the_runs_before(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(self: GAT, task: Task) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(GAT, "build", press)
    out = tmp_path / "german.json"
    result = run(*QUICK, "--out", out)
    assert result.exit_code == 130
    assert result.stderr == f"Finished work is in {out}: the same command continues from there\nInterrupted\n"
    assert [run.method for run in Comparison.load(out).runs] == ["constant", "gcn"]
    assert run(*QUICK).stderr == "Interrupted\n"


def test_a_place_that_cannot_be_written_is_found_first(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(self: GCN, task: Task) -> None:
        pytest.fail("trained before the place was tried")

    monkeypatch.setattr(GCN, "build", never)
    (tmp_path / "file").touch()
    for option in ("--out", "--report"):
        result = run(*QUICK, option, tmp_path / "file" / "german.json")
        assert result.exit_code == 1
        assert result.stderr.count("\n") == 1


def test_all_methods_are_meant_by_default(
    run_json: RunJson, monkeypatch: pytest.MonkeyPatch, own_tables: dict[str, Path]
) -> None:
    tables = ["--nodes", own_tables["nodes"], "--edges", own_tables["edges"]]
    roles = ["--id", "name", "--label", "hired", "--sensitive", "sex"]
    found = run_json("compare", *tables, *roles, "--epochs", "1", "--seeds", "1", "--json")
    assert [row["method"] for row in found["rows"]] == names()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "gcn,gnc"], "Error: --methods must be one of constant, gcn"),
        (["--methods", ""], "Error: --methods must be names separated by commas (got '')"),
        (["--methods", "gcn,,gcn"], "Error: --methods must be names separated by commas (got 'gcn,,gcn')"),
        (["--seeds", "0"], "--seeds must be at least 1 (got 0)"),
        (["--out", "fairpass.toml"], "--out must end in .json (got 'fairpass.toml')"),
        (["--jobs", "0"], "--jobs must be at least 1 (got 0)"),
        (["--jobs", "2", "--report", "x"], "--report cannot be used with --jobs"),
        (["--executor", "ray", "--report", "x"], "--report cannot be used with --executor"),
    ],
)
def test_wrong_arguments(run: Run, arguments: list[str], message: str) -> None:
    result = run("compare", "german", *arguments)
    assert result.exit_code in {1, 2}
    assert message in result.stderr


@pytest.mark.usefixtures("forked_jobs")
def test_processes(run_json: RunJson, tmp_path: Path) -> None:
    document = run_json(*QUICK, "--jobs", "2", "--out", tmp_path / "german.json", "--json")
    assert len(document["runs"]) == 6
    assert not any(row["failed"] for row in document["rows"])
