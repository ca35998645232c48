"""`fairpass datasets` and `fairpass datasets fetch`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from fairpass.datasets import is_available, names, table_spec

Run = Callable[..., Result]
RunJson = Callable[..., Any]


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRPASS_DATA", str(tmp_path))
    return tmp_path


def test_list(run: Run, data_dir: Path) -> None:
    result = run("datasets")
    assert (result.exit_code, result.stderr) == (0, "")
    for name in names():
        spec = table_spec(name)
        (row,) = (line.split() for line in result.stdout.splitlines() if line.split()[:1] == [name])
        assert row[1:3] == [f"{spec.statistics.nodes:,}", f"{spec.statistics.undirected_edges:,}"]
        assert row[4:6] == [
            f"{spec.statistics.label_homophily:.3f}",
            f"{spec.statistics.sensitive_homophily:.3f}",
        ]
        for text in (spec.title, spec.licence, spec.source, spec.label.column, spec.sensitive.column):
            assert text in result.stdout
    assert result.stdout.count("part of the package") == 2
    assert "not fetched: run `fairpass datasets fetch bail`" in result.stdout
    assert str(data_dir / "bail.csv") in result.stdout


def test_list_as_json(run_json: RunJson, data_dir: Path) -> None:
    listed = {about["name"]: about for about in run_json("datasets", "--json")}
    assert list(listed) == names()
    german, bail = listed["german"], listed["bail"]
    assert (german["status"], german["path"], german["url"]) == ("embedded", None, None)
    assert german["statistics"]["undirected_edges"] == 21_742
    assert german["sensitive"] == {"column": "Gender", "names": ["male", "female"]}
    assert (bail["status"], bail["path"]) == ("not fetched", str(data_dir / "bail.csv"))
    assert bail["url"] == table_spec("bail").url


def test_table_in_the_data_directory(run: Run, run_json: RunJson, data_dir: Path) -> None:
    (data_dir / "bail.csv").write_text("a stand-in")
    assert f"available at {data_dir / 'bail.csv'}" in run("datasets").stdout
    assert run_json("datasets", "--json")[-1]["status"] == "available"


def test_fetch_of_an_embedded_table(run: Run, run_json: RunJson) -> None:
    result = run("datasets", "fetch", "german")
    assert result.exit_code == 0
    assert result.stdout == "german is part of the package: there is nothing to fetch.\n"
    assert run_json("datasets", "fetch", "german", "--json")["status"] == "embedded"
    assert run_json("datasets", "--json", "fetch", "german")["status"] == "embedded"


@pytest.mark.skipif(not is_available("bail"), reason="the Bail table is not in the data directory")
def test_fetch_of_a_table_that_is_here(run: Run, run_json: RunJson) -> None:
    about = run_json("datasets", "fetch", "bail", "--json")
    assert about["status"] == "available"
    assert Path(about["path"]).is_file()
    assert run("datasets", "fetch", "bail").stdout == f"bail is in {about['path']}, and is the published table.\n"


def test_fetch_refuses_another_table(run: Run, data_dir: Path) -> None:
    (data_dir / "bail.csv").write_text("not the published table")
    result = run("datasets", "fetch", "bail")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: '{data_dir / 'bail.csv'}' is not the published Bail")
    assert result.stderr.count("\n") == 1


def test_fetch_of_an_unknown_name(run: Run) -> None:
    result = run("datasets", "fetch", "gremlin")
    assert result.exit_code == 1
    assert result.stderr == "Error: 'name' must be one of 'german', 'credit', 'bail' (got 'gremlin')\n"
