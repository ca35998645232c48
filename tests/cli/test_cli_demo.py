"""`fairpass demo`: four rows, one sentence and a report, in little time."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from fairpass.cli import demo as demo_module
from fairpass.methods.comparison import Comparison
from fairpass.methods.tradeoff import tradeoff
from fairpass.report import Evidence

Run = Callable[..., Result]
METHODS = ["constant", "gcn", "gmmd", "gmmd-s"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "_EPOCHS", 2)


@pytest.mark.usefixtures("short")
def test_demo_shows_a_table_and_a_sentence(run: Run) -> None:
    result = run("demo")
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[1] == "German Credit, published split, last of 2 epochs, fairness weight 100"
    assert [line.split()[0] for line in lines[4:8]] == METHODS
    assert all(line.count("±") == 5 for line in lines[4:8])
    assert lines[4].endswith(" -")
    assert "In one sentence Against gcn, gmmd " in " ".join(result.stdout.split())
    page = Path("fairpass-demo") / "report.html"
    assert result.stdout.endswith(f"\nThe report is {page}: open it in a browser.\n")
    assert "Who is granted credit?" in page.read_text()
    assert result.stderr == ""


@pytest.mark.usefixtures("short")
def test_demo_as_json(run_json: Callable[..., Any], tmp_path: Path) -> None:
    document = run_json("demo", "--out", tmp_path / "here", "--json")
    assert document["report"] == str(tmp_path / "here" / "report.html")
    evidence = Evidence.load(tmp_path / "here")
    assert evidence.chosen == "gmmd"
    assert [method["name"] for method in evidence.methods] == METHODS
    assert [len(method["runs"]) for method in evidence.methods] == [3, 3, 3, 3]
    assert [row["method"] for row in document["rows"]] == METHODS
    assert all(row["seeds"] == [0, 1, 2] and not row["failed"] for row in document["rows"])
    (tmp_path / "demo.json").write_text(json.dumps(document))
    comparison = Comparison.load(tmp_path / "demo.json")
    expected = tradeoff(*(comparison.row(name) for name in ("gcn", "gmmd", "gmmd-s")))
    assert document["tradeoff"] == expected


@pytest.mark.slow
def test_demo_gains_fairness_in_little_time(run_json: Callable[..., Any]) -> None:
    start = time.process_time()
    rows = {row["method"]: row["mean"] for row in run_json("demo", "--json")["rows"]}
    assert time.process_time() - start < 60
    assert rows["constant"]["DP"] == rows["constant"]["EO"] == 0
    assert rows["gmmd"]["DP"] < rows["gcn"]["DP"]
    assert rows["gmmd"]["EO"] < rows["gcn"]["EO"]
    assert rows["gmmd"]["AUC"] > rows["gcn"]["AUC"] - 3
    assert rows["gmmd"]["AUC"] > 60
