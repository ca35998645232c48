"""`fairpass tune`: a search on the command line, kept on disk."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from rich.console import Console
from typer.testing import Result

from fairpass.cli import output
from fairpass.cli import tune as tune_module
from fairpass.documents import signed
from fairpass.metrics.catalog import SELECTION
from fairpass.tuning import Tuned, strategies

Run = Callable[..., Result]
RunJson = Callable[..., Any]

QUICK = ("tune", "german", "--epochs", "3", "--seeds", "2")


def test_best_and_front_are_shown_and_kept(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = run(*QUICK, "--trials", "4", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert sorted(path.name for path in out.iterdir()) == ["front.png", "front.svg", "study.db", "tuned.json"]
    tuned = Tuned.load(out / "tuned.json")
    assert len(tuned.points) == 4
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[1] == "gmmd on German Credit: the best of 4 configurations"
    shown = {line.split()[0]: line.split()[1] for line in lines[2 : 2 + len(tuned.varied)]}
    assert list(shown) == list(tuned.varied)
    assert float(shown["weight"]) == pytest.approx(tuned.values(tuned.best)["weight"])
    assert "Front on validation, from the most useful to the fairest" in lines
    assert "means over 2 seeds, in percent; * the best by AUC + F1 + ACC - ΔDP - ΔEO on validation" in lines
    best = next(line for line in lines if line.split()[:1] == [f"{tuned.front.index(tuned.best) + 1}*"])
    assert tuned.best.test is not None
    halves = (tuned.best.validation, tuned.best.test)
    numbers = [half[metric.label] for half in halves for metric in SELECTION]
    assert [float(number) for number in best.split()[1:]] == pytest.approx([100 * x for x in numbers], abs=0.051)
    assert lines[-1] == f"tuned.json, front.png and front.svg are in {out}."


def test_a_plain_method_gets_the_same_budget(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    document = run_json(*QUICK, "--trials", "2", "--against", "gcn", "--out", tmp_path, "--json")
    assert len(document["against"]["points"]) == len(document["points"]) == 2
    assert document["against"]["method"] == "gcn"
    result = run(*QUICK, "--trials", "2", "--against", "gcn", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "2 and 2 configurations were tried with the same budget" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("tuned.json, against.json, front.png and front.svg are in")
    wrong = run(*QUICK, "--trials", "2", "--against", "gnc", "--out", tmp_path)
    assert wrong.exit_code == 1
    assert "did you mean 'gcn'?" in wrong.stderr


def test_same_command_goes_on(run_json: RunJson, tmp_path: Path) -> None:
    settings = (*QUICK, "--method", "gcn", "--set", "hidden=8", "--weight-decay", "0.001", "--out", tmp_path, "--json")
    first = run_json(*settings, "--trials", "2")
    second = run_json(*settings, "--trials", "3")
    assert second["points"][:2] == first["points"]
    assert len(second["points"]) == 3
    assert json.loads((tmp_path / "tuned.json").read_text()) == signed(second)
    # What was said is not varied.
    assert second["varied"] == ["dropout", "learning_rate"]
    assert {point["parameters"]["hidden"] for point in second["points"]} == {8}
    assert {point["training"]["weight_decay"] for point in second["points"]} == {0.001}
    assert {point["training"]["epochs"] for point in second["points"]} == {3}


def test_own_tables_budget_and_storage(
    run: Run, own_tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tables = ("--nodes", own_tables["nodes"], "--edges", own_tables["edges"], "--id", "name")
    columns = ("--label", "hired", "--sensitive", "sex")
    search = ("--method", "gcn", "--epochs", "2", "--seeds", "1", "--budget", "0.01s", "--strategy", "random")
    result = run("tune", *tables, *columns, *search, "--storage", "sqlite:///elsewhere.db")
    assert result.exit_code == 0, result.output
    assert Path("elsewhere.db").exists()
    directory = Path("tuned/people-gcn")
    assert sorted(path.name for path in directory.iterdir()) == ["front.png", "front.svg", "tuned.json"]
    assert "one seed, in percent" in result.stdout


def test_grid_is_the_papers(run_json: RunJson, tmp_path: Path) -> None:
    tuned = run_json(*QUICK, "--strategy", "grid", "--trials", "1", "--out", tmp_path, "--json")
    (point,) = tuned["points"]
    assert point["parameters"]["step"] == "paper"
    assert point["parameters"]["sample"] == 100
    assert point["parameters"]["lambda_f"] in (0, 0.1, 0.5, 1, 5, 10)


@pytest.mark.parametrize("width", [80, 100])
def test_tables_fit_a_terminal(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(output, "console", Console(width=width, highlight=False))
    lines = run(*QUICK, "--method", "gcn", "--trials", "3", "--out", tmp_path).stdout.splitlines()
    assert all(len(line) <= width or "are in" in line for line in lines)
    header = next(i for i, line in enumerate(lines) if line.split()[:1] == ["val"])
    assert lines[header].split() == ["val"] * 5 + ["test"] * 5
    assert lines[header + 1].split() == ["AUC", "F1", "ACC", "ΔDP", "ΔEO"] * 2


def test_interruption_says_where_it_goes_on(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fairpass.tuning.search.fit_all", interrupt)
    result = run(*QUICK, "--trials", "2", "--out", tmp_path)
    assert result.exit_code == 130
    assert "Finished work is in the study: the same command continues from there" in result.stderr
    assert not (tmp_path / "tuned.json").exists()


@pytest.mark.parametrize(
    ("wrong", "code", "message"),
    [
        (("--budget", "soon"), 1, "--budget must be a time such as '90s', '10m' or '1h30m' (got 'soon')"),
        (("--budget", "1" + "0" * 400 + "h"), 1, "--budget must be at most 87,840h (got '10000000000000000000...')"),
        (("--method", "gnc"), 1, "--method must be one of"),
        (("--method", "constant"), 1, "there must be something to vary for 'constant'"),
        (("--set", "weight=heavy"), 2, "'weight' must be a number or none (got 'heavy')"),
        (("--strategy", "luck"), 2, "'luck' is not one of"),
        (("--against", "gnc"), 1, "--against must be one of"),
        (("--storage", ""), 1, "--storage must be a file or a database URL (got '')"),
        (("--storage", "nosuch://host/db"), 1, "--storage must be a file or a database URL"),
    ],
)
def test_errors_are_one_sentence(run: Run, tmp_path: Path, wrong: tuple[str, str], code: int, message: str) -> None:
    result = run(*QUICK, "--trials", "1", *wrong, "--out", tmp_path / "out")
    assert result.exit_code == code
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output
    assert not (tmp_path / "out" / "tuned.json").exists()


def test_strategies_are_the_librarys() -> None:
    assert get_args(tune_module.Strategy) == get_args(strategies.Strategy)
