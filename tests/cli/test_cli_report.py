"""`fairpass report`: stored evidence in, one page out."""

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import fairpass
from fairpass.methods import GCN
from fairpass.report import Evidence, collect
from fairpass.training import Training

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    data = fairpass.synthetic(120, seed=3)
    return collect(data, {"gcn": [GCN(training=Training(epochs=2)).fit(data)]}, title="Made up")


def test_page_is_written(run: Run, evidence: Evidence, tmp_path: Path) -> None:
    evidence.save(tmp_path / "run")
    out = tmp_path / "pages" / "report.html"
    result = run("report", tmp_path / "run", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"The report is {out}, and its figures are in {out.with_name('report.json')}.\n"
    assert result.stderr == ""
    assert "<h1>Made up</h1>" in out.read_text()


def test_default_place(run: Run, evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = evidence.save("evidence.json")
    assert run("report", file).stdout == "The report is report.html, and its figures are in report.json.\n"
    assert Path("report.html").is_file()
    assert json.loads(Path("report.json").read_text())["kind"] == "fairpass report"


def test_several_as_json(run_json: Callable[..., Any], evidence: Evidence, tmp_path: Path) -> None:
    evidence.save(tmp_path / "runs" / "a")
    evidence.save(tmp_path / "runs" / "b")
    out = tmp_path / "report.html"
    document = run_json("report", tmp_path / "runs", "--out", out, "--json")
    audit = {"title": "Made up", "chosen": "gcn", "made": evidence.made}
    assert document == {"report": str(out), "figures": str(out.with_suffix(".json")), "audits": [audit, audit]}
    assert out.read_text().count("<article") == 2


def test_pages_and_model_cards_replace_no_other_files(run: Run, evidence: Evidence, tmp_path: Path) -> None:
    file = evidence.save(tmp_path / "runs")
    before = file.read_bytes()
    for option in ("--out", "--model-card"):
        places = {"--out": tmp_path / "page.html", "--model-card": tmp_path / "card.md", option: file}
        result = run("report", tmp_path / "runs", *chain(*places.items()))
        assert result.exit_code == 1
        assert f"{option} must end in {'.html' if option == '--out' else '.md'} (got" in result.stderr
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file.parent]


def test_a_model_card(run: Run, evidence: Evidence, tmp_path: Path) -> None:
    evidence.save(tmp_path / "runs" / "a")
    card, out = tmp_path / "card.md", tmp_path / "report.html"
    result = run("report", tmp_path / "runs", "--out", out, "--model-card", card)
    assert result.stdout.endswith(f"The model card is {card}.\n")
    assert card.read_text().startswith("---\nlibrary_name:")
    evidence.save(tmp_path / "runs" / "b")
    result = run("report", tmp_path / "runs", "--out", out, "--model-card", card)
    assert result.exit_code == 1
    assert "--model-card is about one model (got the evidence of 2 audits)" in result.stderr


def test_people_must_be_in_the_evidence(run: Run, evidence: Evidence, tmp_path: Path) -> None:
    evidence.save(tmp_path)
    out = tmp_path / "report.html"
    result = run("report", tmp_path, "--out", out, "--include-people")
    assert result.exit_code == 1
    assert "the evidence has no people to include: collect it again with --include-people" in result.stderr
    assert not out.exists()
    data = fairpass.synthetic(120, seed=3)
    model = GCN(training=Training(epochs=2)).fit(data)
    collect(data, {"gcn": [model]}, title="Somebody", include_people=True).save(tmp_path)
    assert run("report", tmp_path, "--out", out, "--include-people").exit_code == 0
    assert "A closer look at people" in out.read_text()
    assert run("report", tmp_path, "--out", out).exit_code == 0
    assert "A closer look at people" not in out.read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "(there is none)"), ("Dear all", "must be a fairpass evidence file (damaged or not one")],
)
def test_one_sentence_if_there_is_no_evidence(run: Run, tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "evidence.json").write_text(content)
    out = tmp_path / "report.html"
    result = run("report", tmp_path, "--out", out)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not out.exists()


def test_a_path_is_needed(run: Run) -> None:
    result = run("report")
    assert result.exit_code == 2
    assert "Missing argument 'PATH" in result.stderr
