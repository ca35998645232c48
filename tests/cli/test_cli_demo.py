"""`fairpass demo`: five rows, two sentences and a report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from fairpass.cli import demo as demo_module
from fairpass.documents import write_document
from fairpass.report import Evidence
from fairpass.runs import Comparison

Run = Callable[..., Result]
METHODS = ["constant", "logistic", "gcn", "gmmd (dp)", "gmmd (eo)"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "_GRAPH", "german")  # a twelfth of the nodes, and groups of the same name
    monkeypatch.setattr(demo_module, "_EPOCHS", 2)
    monkeypatch.setattr(demo_module, "_SEEDS", range(2))


@pytest.mark.usefixtures("short")
def test_demo_shows_a_table_and_sentences(run: Run) -> None:
    result = run("demo")
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[1] == "German Credit, test nodes, epoch and threshold chosen on validation"
    assert [line.split("  ")[0] for line in lines[4:9]] == METHODS
    assert all(line.count("±") == 5 for line in lines[4:9])
    assert lines[9].startswith("mean ± standard deviation over 2 splits")
    words = " ".join(result.stdout.split())
    assert "In words - Logistic regression predicts an income over 50K for " in words
    assert " - Logistic regression finds " in words
    page = Path("fairpass-demo") / "report.html"
    assert result.stdout.endswith(f"\nThe report on the first split is {page}: open it in a browser.\n")
    assert "Who earns more than 50K?" in page.read_text()
    assert result.stderr == ""


@pytest.mark.usefixtures("short")
def test_demo_as_json(run_json: Callable[..., Any], tmp_path: Path) -> None:
    document = run_json("demo", "--out", tmp_path / "here", "--json")
    assert document["report"] == str(tmp_path / "here" / "report.html")
    evidence = Evidence.load(tmp_path / "here")
    assert evidence.chosen == "gmmd (dp)"
    assert [method["name"] for method in evidence.methods] == METHODS
    assert [row["method"] for row in document["rows"]] == METHODS
    assert all(row["seeds"] == [0, 1] and not row["failed"] for row in document["rows"])
    comparisons = []
    for stored in document["comparisons"]:
        comparisons.append(Comparison.load(write_document(tmp_path / "demo.json", stored)))
    assert len({comparison.graph for comparison in comparisons}) == 2  # each seed has a split of its own
    for row in document["rows"]:
        accuracies = [comparison.row(row["method"]).mean["ACC"] for comparison in comparisons]
        assert row["mean"]["ACC"] == pytest.approx(sum(accuracies) / 2)
    demographic, opportunity = document["in_words"]
    rows = {row["method"]: row["mean"] for row in document["rows"]}
    assert f"(ΔDP {rows['logistic']['DP']:.1f}); GMMD (dp) for " in demographic
    assert f"(ΔDP {rows['gmmd (dp)']['DP']:.1f})" in demographic
    assert f"(ΔEO {rows['logistic']['EO']:.1f}); GMMD (eo) " in opportunity
    assert f"(ΔEO {rows['gmmd (eo)']['EO']:.1f})" in opportunity


@pytest.mark.slow
def test_demo_gains_fairness(run_json: Callable[..., Any]) -> None:
    document = run_json("demo", "--json")
    assert {comparison["provenance"]["title"] for comparison in document["comparisons"]} == {"Adult (census income)"}
    rows = {row["method"]: row["mean"] for row in document["rows"]}
    assert rows["constant"]["DP"] == rows["constant"]["EO"] == 0
    for name in METHODS[1:]:
        assert rows[name]["ACC"] > rows["constant"]["ACC"] + 4
    assert rows["gmmd (dp)"]["DP"] < rows["logistic"]["DP"] / 3
    assert rows["gmmd (eo)"]["EO"] < rows["logistic"]["EO"] - 3
    assert rows["gmmd (dp)"]["ACC"] > rows["logistic"]["ACC"] - 4
    assert rows["gmmd (eo)"]["ACC"] > rows["logistic"]["ACC"] - 2
