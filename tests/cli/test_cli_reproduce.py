"""`fairpass reproduce`: real runs of few epochs on German."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from torch_geometric.data import Data
from typer.testing import Result

from fairpass.documents import signed
from fairpass.experiments import cells
from fairpass.runs import RunRecord, RunSpec, RunStore, runner

Run = Callable[..., Result]

GERMAN = ("--quick", "--datasets", "german")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "QUICK_EPOCHS", 2)


def test_runs_are_made_then_shown_and_written(run: Run, tmp_path: Path) -> None:
    result = run("reproduce", "mlp", *GERMAN, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "German: layers of the perceptron" in result.stdout
    assert "what the paper claims" in result.stdout
    assert f"Tables and figures are in {tmp_path}" in result.stdout
    assert {path.name for path in (tmp_path / "mlp").iterdir()} == {
        *(f"mlp-german.{kind}" for kind in ("md", "tex", "csv")),
        "mlp.png",
        "mlp.svg",
    }
    assert len(RunStore(tmp_path / "records")) == 12  # two methods, three depths, two seeds


def test_a_second_time_nothing_is_made(run: Run, run_json: Callable[..., Any], tmp_path: Path) -> None:
    first = run_json("reproduce", "mlp", *GERMAN, "--out", tmp_path, "--json")
    assert (first["runs"], first["made"]) == (12, 12)
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "records").iterdir()}
    again = run("reproduce", "mlp", *GERMAN, "--out", tmp_path, "--json")
    assert again.stderr == f"12 of 12 runs are already in {tmp_path / 'records'}\n"
    assert json.loads(again.stdout)["made"] == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "records").iterdir()} == stamps
    fresh = run_json("reproduce", "mlp", *GERMAN, "--out", tmp_path, "--fresh", "--json")
    assert fresh["made"] == 12
    assert fresh["items"]["mlp"]["tables"] == first["items"]["mlp"]["tables"]


def test_json_has_tables_claims_and_files(run_json: Callable[..., Any], tmp_path: Path) -> None:
    document = run_json("reproduce", "stats", *GERMAN, "--out", tmp_path, "--json")
    (table,) = document["items"]["stats"]["tables"]
    assert table["rows"][1][:4] == ["German", "measured", 1000, 21742]
    (claim,) = document["items"]["stats"]["claims"]
    assert claim["verdict"] == "seen"
    assert [Path(path).name for path in document["items"]["stats"]["files"]] == ["stats.md", "stats.tex", "stats.csv"]


def test_an_interruption_keeps_what_was_done(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = runner.make_records

    def press(data: Data, batch: Sequence[RunSpec], **options: Any) -> list[RunRecord]:
        if batch[0].configuration.method == "gmmd-s":
            raise KeyboardInterrupt
        return make(data, batch, **options)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "make_records", press)
        result = run("reproduce", "mlp", *GERMAN, "--out", tmp_path)
    assert result.exit_code == 130
    advice = "the same command without --fresh continues from there"
    assert result.stderr == f"Finished work is in {tmp_path / 'records'}: {advice}\nInterrupted\n"
    done = len(RunStore(tmp_path / "records"))
    assert 0 < done < 12
    assert run("reproduce", "mlp", *GERMAN, "--out", tmp_path).stderr.startswith(f"{done} of 12 runs are already in")


def test_a_missing_data_set_is_told_before_anything_is_trained(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRPASS_DATA", str(tmp_path / "empty"))
    result = run("reproduce", "mlp", "--quick", "--out", tmp_path)
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: the files of bail must be in '{tmp_path}/empty' (bail.csv); "
        "to get them: `fairpass datasets fetch bail`; or go without: --datasets german,credit\n",
    )
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mane",), "'ITEM' must be one of stats, main, .* or all \\(got 'mane'\\)"),
        (("main", "--datasets", "german,adult"), "'--datasets' must be among german, credit, bail \\(got 'adult'\\)"),
    ],
)
def test_a_wrong_name_is_told(run: Run, arguments: tuple[str, ...], message: str) -> None:
    result = run("reproduce", *arguments)
    assert result.exit_code == 1
    assert re.search(message, result.stderr)


def test_a_half_written_record_is_told_and_made_again(run: Run, tmp_path: Path) -> None:
    run("reproduce", "stats", *GERMAN, "--out", tmp_path)
    (path,) = (tmp_path / "records").iterdir()
    whole = json.loads(path.read_text())
    path.write_text(path.read_text()[:50])
    result = run("reproduce", "stats", *GERMAN, "--out", tmp_path)
    assert result.exit_code == 0
    assert f"{path.name}' is a damaged record" in result.stderr
    assert json.loads(path.read_text())["test"] == whole["test"]


def test_a_failed_run_is_told(run: Run, tmp_path: Path) -> None:
    run("reproduce", "stats", *GERMAN, "--out", tmp_path)
    (path,) = (tmp_path / "records").iterdir()
    record = json.loads(path.read_text())
    path.write_text(json.dumps(signed({**record, "error": "it broke"})))
    result = run("reproduce", "stats", *GERMAN, "--out", tmp_path)
    assert result.exit_code == 0
    assert "Warning: 1 of 1 runs ended with an error, such as: it broke" in result.stderr
