"""`fairpass datasets` and `fairpass datasets fetch`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from fairpass.cli.data_options import GraphOptions
from fairpass.datasets import graph_spec, is_available, names
from fairpass.datasets.download import data_directory

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
        spec = graph_spec(name)
        (row,) = (line.split() for line in result.stdout.splitlines() if line.split()[:1] == [name])
        assert row[1:3] == [f"{spec.statistics.nodes:,}", f"{spec.statistics.undirected_edges:,}"]
        shares = (spec.statistics.label_homophily, spec.statistics.sensitive_homophily)
        assert row[4:6] == ["-" if share is None else f"{share:.3f}" for share in shares]
        status = "included" if spec.embedded else "available" if is_available(name) else "needs download"
        assert " ".join(row[7:]) == status
        (section,) = (part for part in result.stdout.split("\n\n") if part.startswith(f"{name}: {spec.title}"))
        words = " ".join(section.split())
        for text in (spec.licence, spec.source, spec.label.column, spec.sensitive.column, *spec.caveats):
            assert text in words
        rule = "published: " if spec.split == "balanced" else "random in each label: at most "
        assert f" split {rule}{spec.labels_for_training:,} for training, " in words
    assert result.stdout.count("part of the package") == 3
    assert "needs download: run `fairpass datasets fetch bail`" in result.stdout
    for path in ("bail.csv", "nba/nba.csv", "nba/nba_relationship.txt", "facebook100/Reed98.mat"):
        assert str(data_dir / path) in result.stdout


def test_list_as_json(run_json: RunJson, data_dir: Path) -> None:
    listed = {about["name"]: about for about in run_json("datasets", "--json")}
    assert list(listed) == names()
    german, bail = listed["german"], listed["bail"]
    assert (german["status"], german["files"]) == ("embedded", [])
    assert german["statistics"]["undirected_edges"] == 21_742
    assert german["sensitive"] == {"column": "Gender", "names": ["male", "female"]}
    assert (bail["split"], bail["labels_for_training"]) == ("balanced", 100)
    assert listed["pokec-z"]["statistics"]["max_degree"] is None
    assert bail["status"] == "not fetched"
    table = graph_spec("bail").table
    assert bail["files"] == [{"path": str(data_dir / "bail.csv"), "url": table.url, "sha256": table.sha256}]
    assert [file["path"] for file in listed["income"]["files"]] == [
        str(data_dir / "income/income.csv"),
        str(data_dir / "income/income_edges.txt"),
    ]


def test_table_in_the_data_directory(run: Run, run_json: RunJson, data_dir: Path) -> None:
    (data_dir / "bail.csv").write_text("a stand-in")
    assert f"available at {data_dir / 'bail.csv'}" in run("datasets").stdout
    listed = {about["name"]: about["status"] for about in run_json("datasets", "--json")}
    assert listed["bail"] == "available"


def test_one_of_two_files_in_the_data_directory(run_json: RunJson, data_dir: Path) -> None:
    (data_dir / "nba").mkdir()
    for file, status in (("nba.csv", "not fetched"), ("nba_relationship.txt", "available")):
        (data_dir / "nba" / file).write_text("a stand-in")
        listed = {about["name"]: about["status"] for about in run_json("datasets", "--json")}
        assert listed["nba"] == status


def test_fetch_of_an_embedded_table(run: Run, run_json: RunJson) -> None:
    result = run("datasets", "fetch", "german")
    assert result.exit_code == 0
    assert result.stdout == "german is part of the package: there is nothing to fetch.\n"
    assert run_json("datasets", "fetch", "german", "--json")["status"] == "embedded"
    assert run_json("datasets", "--json", "fetch", "german")["status"] == "embedded"


@pytest.mark.parametrize("name", ["bail", "nba", "reed98"])
def test_fetch_of_files_that_are_here(run: Run, run_json: RunJson, name: str) -> None:
    if not is_available(name):
        pytest.skip(f"the files of {name} are not here: set FAIRPASS_DATA or run `fairpass datasets fetch {name}`")
    about = run_json("datasets", "fetch", name, "--json")
    assert about["status"] == "available"
    paths = [file["path"] for file in about["files"]]
    assert all(Path(path).is_file() for path in paths)
    assert run("datasets", "fetch", name).stdout == f"{name} is here and as published: {', '.join(paths)}\n"


def test_fetch_refuses_another_table(run: Run, data_dir: Path) -> None:
    (data_dir / "bail.csv").write_text("not the published table")
    result = run("datasets", "fetch", "bail")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: '{data_dir / 'bail.csv'}' is not the published Bail")
    assert result.stderr.count("\n") == 1


def test_fetch_of_an_unknown_name(run: Run) -> None:
    result = run("datasets", "fetch", "gremlin")
    assert result.exit_code == 1
    known = ", ".join(map(repr, names()))
    expected = f"'name' must be one of {known}, or a .mat file of Facebook100"
    assert result.stderr == f"Error: {expected} (got 'gremlin')\n"


def test_a_file_of_facebook100(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    if not is_available("reed98"):
        pytest.skip("the files of reed98 are not here: set FAIRPASS_DATA or run `fairpass datasets fetch reed98`")
    path = data_directory() / graph_spec("reed98").table.path
    by_file, by_name = run_json("audit", path, "--json"), run_json("audit", "reed98", "--json")
    assert by_file["statistics"] == by_name["statistics"]
    assert GraphOptions(name=str(path)).benchmark == "reed98", "so that `evaluate` takes the split of the fit"
    assert "Facebook100, Reed98" in run("audit", path, "--split-seed", "3").stdout
    assert run("datasets", "fetch", path).stdout == f"{path} is a file of your own: there is nothing to fetch.\n"
    wrong = tmp_path / "wrong.mat"
    wrong.write_text("no matrix")
    result = run("audit", wrong)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: '{wrong}' is not a college's file of Facebook100: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "bail", "--out", "out"),
        ("audit", "bail"),
        ("tune", "bail", "--trials", "1", "--out", "out"),
        ("benchmark", "--graphs", "german,bail", "--out", "out"),
        ("compare", "bail", "--methods", "gcn", "--out", "out.json"),
        ("partition", "bail", "--parts", "2", "--out", "out"),
    ],
)
def test_only_fetch_uses_the_network(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("FAIRPASS_DATA", str(tmp_path / "empty"))
    monkeypatch.setattr("socket.getaddrinfo", None)
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    where = f"Error: the files of bail must be in '{tmp_path}/empty' (bail.csv)"
    assert (result.exit_code, result.stderr) == (1, f"{where}; to get them: `fairpass datasets fetch bail`\n")
    assert list(tmp_path.iterdir()) == []
