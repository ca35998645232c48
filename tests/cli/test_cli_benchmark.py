"""`fairpass benchmark` and `fairpass attribute` on a small graph, and what they refuse."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fairpass.datasets import synthetic

Run = Callable[..., Any]
RunJson = Callable[..., Any]

SMALL = ("--graphs", "german", "--methods", "constant,logistic,exponentiated-gradient", "--splits", "2")


def test_benchmark_resumes_and_shows_what_it_found(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    shown = run("benchmark", *SMALL, "--reference", "logistic", "--out", tmp_path)
    assert shown.exit_code == 0, shown.stderr
    assert "German: all methods over random splits" in shown.stdout
    words = " ".join(shown.stdout.split())
    assert "Minimum detectable difference: with 250 test nodes" in words
    assert (tmp_path / "benchmark-differences-german.csv").exists()
    document = run_json("benchmark", *SMALL, "--reference", "logistic", "--out", tmp_path, "--json")
    assert (document["made"], document["failed"]) == (0, 0)
    assert document["runs"] == 4 * (1 + 3 + 1)
    assert any(table["name"] == "benchmark-german" for table in document["tables"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--graphs", "moon"), "must be among"),
        (("--methods", "moon"), "--methods must be one of"),
        (("--methods", "gcn,"), "--methods must be names separated by commas (got 'gcn,')"),
        (("--graphs", ""), "--graphs must be names separated by commas (got '')"),
        (("--graphs", "german", "--methods", "mlp", "--reference", "gcn"), "'--reference' must be one of the methods"),
    ],
)
def test_benchmark_refuses_before_any_work(run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run("benchmark", *arguments, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


ATTRIBUTE = ("attribute", "mmd", "german", "--splits", "2", "--seeds", "1", "--epochs", "3", "--encoders", "gcn")


def test_attribute(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    shown = run(*ATTRIBUTE, "--out", tmp_path)
    assert shown.exit_code == 0, shown.stderr
    assert "mmd on german: effect of fairness" in shown.stdout
    assert "resolved" in shown.stdout
    document = run_json(*ATTRIBUTE, "--out", tmp_path, "--json")
    assert document["control"]["parameters"]["weight"] == 0.0
    assert document["detectable"]["nodes"] == 250
    assert set(document["metrics"]["DP"]) >= {"estimate", "low", "high", "resolved", "components"}
    assert len(list((tmp_path / "records").iterdir())) == 4
    json.dumps(document, allow_nan=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("attribute", "gcn", "german"), "must have fairness to switch off (got GCN, a plain method)"),
        (("attribute", "moon", "german"), "'method' must be one of"),
        (("attribute", "mmd", "moon"), "there is no data set 'moon'"),
        (("attribute", "gmmd", "german", "--encoders", ","), "--encoders must be names separated by commas (got ',')"),
        (("attribute", "gmmd", "german", "--encoders", "gcn,gnc"), "--encoders must be one of ('mlp', 'linear',"),
        (("attribute", "mmd", "german", "--encoders", "gnc"), "--encoders must be one of ('gcn',"),
        (("attribute", "fmp", "german", "--encoders", "gcn"), "fmp has no choice of network"),
    ],
)
def test_attribute_refuses(run: Run, arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())


@pytest.fixture
def tables(tmp_path: Path) -> tuple[str, ...]:
    data = synthetic(150, num_features=4, seed=0)
    people = pd.DataFrame(data.x.numpy(), columns=list("abcd"))
    people["id"], people["hired"], people["sex"] = range(150), data.y.numpy(), data.sens.numpy()
    people.to_csv(tmp_path / "people.csv", index=False)
    pd.DataFrame(data.edge_index.T.numpy(), columns=["source", "target"]).to_csv(tmp_path / "edges.csv", index=False)
    files = ("--nodes", str(tmp_path / "people.csv"), "--edges", str(tmp_path / "edges.csv"))
    return (*files, "--id", "id", "--label", "hired", "--sensitive", "sex")


def test_attribute_own_tables_keeps_records_where_it_was_told(
    run: Run, run_json: RunJson, tables: tuple[str, ...], tmp_path: Path
) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    options = ("--splits", "2", "--seeds", "1", "--epochs", "2", "--encoders", "gcn", "--out", tmp_path / "out")
    first = run_json("attribute", "mmd", *tables, *options, "--json")
    assert {path.name for path in tmp_path.iterdir()} - before == {"out"}
    records = sorted((tmp_path / "out" / "records").iterdir())
    assert len(records) == 4
    times = [path.stat().st_mtime_ns for path in records]
    assert run_json("attribute", "mmd", *tables, *options, "--json") == first
    assert [path.stat().st_mtime_ns for path in records] == times  # nothing was run again
    # Other people are other records.
    people = pd.read_csv(tables[1])
    people["a"] += people["sex"]
    people.to_csv(tables[1], index=False)
    run_json("attribute", "mmd", *tables, *options, "--json")
    assert len(list((tmp_path / "out" / "records").iterdir())) == 8


def test_attribute_refuses_a_fixed_split(run: Run, tables: tuple[str, ...]) -> None:
    for arguments in (
        ("attribute", "mmd", "german", "--split-seed", "3"),
        ("attribute", "mmd", *tables, "--split", "a"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "cannot be used here: runs have random splits" in " ".join(result.stderr.split())
