"""`fairpass predict` for new people: joined to the graph of the fit, or on their own."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from tests.projects.applicants import acquaintances, applicants, write_project
from typer.testing import CliRunner, Result

from fairpass import from_tables, join_tables, load_model
from fairpass.cli.app import app
from fairpass.cli.options import Reference, UnknownGroup
from fairpass.documents import signed
from fairpass.errors import DataError
from fairpass.projects.fitted_graph import fitted_graph
from fairpass.projects.predictions import prediction_table
from fairpass.training.program import ReferenceName
from fairpass.training.program import UnknownGroup as LibraryUnknownGroup

Run = Callable[..., Result]

MODEL = "runs/applicants/model.safetensors"
# The plain GCN of the run: its scores depend on a node's neighbours, and not on groups.
PLAIN = "runs/applicants/models/reference-0.safetensors"


def newcomers() -> pd.DataFrame:
    """Three people like known ones, whose decision nobody knows yet."""
    return applicants().iloc[[3, 40, 70]].assign(applicant=["N-1", "N-2", "N-3"]).drop(columns="decision")


def their_edges() -> pd.DataFrame:
    ends = [("N-1", "A-003"), ("A-017", "N-1"), ("N-1", "N-2"), ("N-2", "A-101")]
    return pd.DataFrame(ends, columns=["applicant", "knows"])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a small project, and the tables of some new people."""
    folder = tmp_path_factory.mktemp("project")
    config = write_project(folder)
    result = CliRunner().invoke(app, ["run", str(config), "--budget", "1", "--epochs", "3"])
    assert result.exit_code == 0, result.output
    newcomers().to_csv(folder / "new.csv", index=False)
    their_edges().to_csv(folder / "new_edges.csv", index=False)
    return folder


@pytest.fixture
def moved(project: Path, tmp_path: Path) -> Path:
    """The project somewhere else, where a test may change it."""
    return shutil.copytree(project, tmp_path / "moved")


@pytest.fixture
def predict(run: Run, tmp_path: Path) -> Callable[..., pd.DataFrame]:
    """Predict with success, and return the table."""

    def invoke(*arguments: str | Path) -> pd.DataFrame:
        out = tmp_path / "found.csv"
        result = run("predict", *arguments, "--out", out)
        assert result.exit_code == 0, result.output
        return pd.read_csv(out)

    return invoke


def new_tables(folder: Path) -> list[str | Path]:
    return ["--nodes", folder / "new.csv", "--edges", folder / "new_edges.csv"]


def expected_table(folder: Path, model: str = PLAIN) -> pd.DataFrame:
    """Return the predictions that the library makes of the same tables."""
    classifier = load_model(folder / model)
    graph = fitted_graph(classifier.provenance_, str(folder / "runs/applicants"))
    return prediction_table(classifier, join_tables(graph, newcomers(), their_edges()))


def check_same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    # A file says nan where there is no group.
    found, expected = (table.assign(group=table["group"].astype(object).fillna("")) for table in (found, expected))
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-5)


@pytest.mark.parametrize("model", [MODEL, PLAIN])
def test_new_people_joined_to_a_run(run: Run, project: Path, tmp_path: Path, model: str) -> None:
    out = tmp_path / "found.csv"
    result = run("predict", project / model, *new_tables(project), "--graph", project / "runs/applicants", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        f"3 predictions are in {out}.",
        "Edges between new nodes and the 180 nodes of the graph: 3. New nodes without any edge: 1.",
    ]
    assert result.stderr == ""
    found = pd.read_csv(out)
    assert found["node"].tolist() == ["N-1", "N-2", "N-3"]
    assert found["group"].tolist() == ["Arda", "Belu", "Belu"]
    check_same(found, expected_table(project, model))


def test_the_graph_is_that_of_the_fit(project: Path) -> None:
    classifier = load_model(project / PLAIN)
    graph = fitted_graph(classifier.provenance_, str(project / "runs/applicants"))
    # The manifest's path is absolute, that of the fit may not be: all else is equal.
    assert graph.provenance["encoding"] == (classifier.provenance_ or {})["encoding"]
    scores = pd.read_csv(project / "runs/applicants/predictions.csv")
    check_same(prediction_table(load_model(project / MODEL), graph), scores)


def test_the_tables_of_the_fit_by_name(predict: Callable[..., pd.DataFrame], moved: Path) -> None:
    tables = f"{moved / 'applicants.csv'},{moved / 'acquaintances.csv'}"
    found = predict(moved / PLAIN, *new_tables(moved), "--graph", tables)
    check_same(found, expected_table(moved))
    # A comma may be part of a name.
    (moved / "applicants.csv").rename(moved / "people, all.csv")
    tables = f"{moved / 'people, all.csv'},{moved / 'acquaintances.csv'}"
    check_same(predict(moved / PLAIN, *new_tables(moved), "--graph", tables), found)


def test_a_project_that_was_moved(predict: Callable[..., pd.DataFrame], moved: Path, project: Path) -> None:
    found = predict(moved / PLAIN, *new_tables(moved), "--graph", moved / "runs/applicants")
    check_same(found, expected_table(project))


def test_a_directory_of_train(run: Run, own_tables: dict[str, Path], tmp_path: Path) -> None:
    roles = ["--id", "name", "--label", "hired", "--sensitive", "sex"]
    tables = ["--nodes", own_tables["nodes"], "--edges", own_tables["edges"]]
    trained = run("train", *tables, *roles, "--method", "gcn", "--epochs", "2", "--out", tmp_path / "run")
    assert trained.exit_code == 0, trained.output
    (tmp_path / "new.csv").write_text("name,age,shoe,sex\nq1,30,40,f\nq2,31,41,m\n")
    (tmp_path / "new_edges.csv").write_text("one,other\nq1,p5\nq2,q1\n")
    model, out = tmp_path / "run/model.safetensors", tmp_path / "found.csv"
    result = run("predict", model, *new_tables(tmp_path), "--graph", tmp_path / "run", "--out", out)
    assert result.exit_code == 0, result.output
    graph = from_tables(own_tables["nodes"], own_tables["edges"], id="name", label="hired", sensitive="sex")
    joined = join_tables(graph, tmp_path / "new.csv", tmp_path / "new_edges.csv")
    check_same(pd.read_csv(out), prediction_table(load_model(model), joined))


def test_edges_change_what_a_network_says(predict: Callable[..., pd.DataFrame], project: Path) -> None:
    place = ["--graph", project / "runs/applicants"]
    joined = predict(project / PLAIN, *new_tables(project), *place).set_index("node")
    alone = predict(project / PLAIN, *new_tables(project)[:2], *place).set_index("node")
    differ = (joined["score of approved"] - alone["score of approved"]).abs() > 1e-6
    assert differ.to_dict() == {"N-1": True, "N-2": True, "N-3": False}


@given(st.permutations(range(3)), st.permutations(range(4)), st.permutations(range(180)))
@examples(8)
def test_the_order_of_rows_does_not_matter(project: Path, rows: list[int], edges: list[int], known: list[int]) -> None:
    """Not that of the new tables, and not that of the people of the graph."""
    classifier = load_model(project / PLAIN)
    provenance = classifier.provenance_ or {}
    names = ("label", "sensitive", "id", "source", "target", "missing_sensitive", "drop")
    options = {name: provenance["options"][name] for name in names}
    graph = from_tables(applicants().iloc[known], acquaintances(), encoding=provenance["encoding"], **options)
    joined = join_tables(graph, newcomers().iloc[rows], their_edges().iloc[edges])
    found = prediction_table(classifier, joined).sort_values("node", ignore_index=True)
    check_same(found, expected_table(project))


def test_people_without_edges(run: Run, project: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.csv"
    result = run("predict", project / PLAIN, "--nodes", project / "new.csv", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        f"3 predictions are in {out}.",
        "None of the nodes has an edge: they are classified by their features alone.",
    ]
    assert result.stderr == ""
    # To a GCN, people without edges are alone wherever they are.
    graph = fitted_graph(load_model(project / PLAIN).provenance_, str(project / "runs/applicants"))
    check_same(pd.read_csv(out), prediction_table(load_model(project / PLAIN), join_tables(graph, newcomers())))


def test_unknown_groups_are_counted(run: Run, project: Path, tmp_path: Path) -> None:
    newcomers().drop(columns="ethnicity").to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "found.csv"
    place = ["--graph", project / "runs/applicants"]
    result = run("predict", project / MODEL, "--nodes", tmp_path / "new.csv", *place, "--out", out)
    assert result.exit_code == 0, result.output
    sentence = "Nodes of unknown group: 3 of 3; where the method needs the group, their scores are not corrected."
    assert result.stdout.splitlines()[-1] == sentence
    assert pd.read_csv(out)["group"].isna().all()


@pytest.mark.parametrize("model", [MODEL, PLAIN])
def test_one_person(run: Run, project: Path, tmp_path: Path, model: str) -> None:
    """Without edges, label or group: as a graph of one node, and as one more node of the graph of the fit."""
    newcomers().head(1).drop(columns="ethnicity").to_csv(tmp_path / "one.csv", index=False)
    out = tmp_path / "found.csv"
    found = []
    for place in ([], ["--graph", project / "runs/applicants"]):
        result = run("predict", project / model, "--nodes", tmp_path / "one.csv", *place, "--out", out)
        assert result.exit_code == 0, result.output
        assert "Nodes of unknown group: 1 of 1;" in result.stdout
        found.append(pd.read_csv(out))
    assert found[0]["node"].tolist() == ["N-1"]
    # Scored among the people of the fit, it does not matter who else is there.
    check_same(*found)


def test_scores_do_not_depend_on_who_else_is_new(predict: Callable[..., pd.DataFrame], project: Path) -> None:
    newcomers().tail(1).to_csv(project / "last.csv", index=False)
    place = ["--graph", project / "runs/applicants"]
    together = predict(project / MODEL, *new_tables(project), *place)
    alone = predict(project / MODEL, "--nodes", project / "last.csv", *place)
    check_same(alone, together.tail(1).reset_index(drop=True))


@pytest.mark.parametrize(("option", "value"), [("reference", "batch"), ("unknown_group", "estimate")])
def test_how_to_score_is_passed_on(run: Run, project: Path, tmp_path: Path, option: str, value: str) -> None:
    newcomers().drop(columns="ethnicity").to_csv(tmp_path / "new.csv", index=False)
    their_edges().to_csv(tmp_path / "new_edges.csv", index=False)
    flags = ["--graph", project / "runs/applicants", f"--{option.replace('_', '-')}", value]
    result = run("predict", project / MODEL, *new_tables(tmp_path), *flags, "--out", tmp_path / "found.csv")
    assert result.exit_code == 0, result.output
    if option == "unknown_group":
        done = "where the method needs the group, theirs is estimated from the features."
        assert result.stdout.splitlines()[-1] == f"Nodes of unknown group: 3 of 3; {done}"
    classifier = load_model(project / MODEL)
    graph = fitted_graph(classifier.provenance_, str(project / "runs/applicants"))
    joined = join_tables(graph, tmp_path / "new.csv", tmp_path / "new_edges.csv")
    found, usual = pd.read_csv(tmp_path / "found.csv"), prediction_table(classifier, joined)
    check_same(found, prediction_table(classifier, joined, **{option: value}))
    assert (found["score of approved"] - usual["score of approved"]).abs().max() > 1e-6


def test_evaluate_passes_on_how_to_score(run: Run, project: Path, tmp_path: Path) -> None:
    table = applicants()
    table.loc[::4, "ethnicity"] = None
    table.to_csv(tmp_path / "others.csv", index=False)
    tables = ["--nodes", tmp_path / "others.csv", "--edges", project / "acquaintances.csv", "--json"]
    found = {}
    for flags in ((), ("--unknown-group", "estimate"), ("--reference", "batch")):
        result = run("evaluate", project / MODEL, *tables, *flags)
        assert result.exit_code == 0, result.output
        found[flags] = json.loads(result.stdout)["evaluation"]["auc"]
    assert len(set(found.values())) == 3
    # A check of limits scores in the same way.
    checked = [
        json.loads(run("check", project / MODEL, *tables, *flags, "--max-dp", "0.1").stdout)["promise"]["checks"]
        for flags in ((), ("--reference", "batch"))
    ]
    assert checked[0] != checked[1]
    refused = run("evaluate", project / MODEL, *tables, "--unknown-group", "error")
    assert refused.exit_code == 1
    assert "column 'ethnicity' must have a value for each node" in refused.stderr


def test_groups_of_known_people_may_be_unknown_if_those_of_new_ones_are_not(
    predict: Callable[..., pd.DataFrame], project: Path
) -> None:
    assert applicants()["ethnicity"].isna().any()
    flags = [*new_tables(project), "--graph", project / "runs/applicants"]
    check_same(predict(project / MODEL, *flags, "--unknown-group", "error"), predict(project / MODEL, *flags))


def test_a_method_without_groups_refuses_nobody_of_the_fit(run: Run, project: Path, tmp_path: Path) -> None:
    tables = ["--nodes", project / "applicants.csv", "--edges", project / "acquaintances.csv"]
    flags = ["--unknown-group", "error", "--out", tmp_path / "found.csv"]
    result = run("predict", project / PLAIN, *tables, *flags)
    assert result.exit_code == 0, result.output
    assert "Nodes of unknown group: 2 of 180; the method does not need the group." in result.stdout
    result = run("predict", project / MODEL, *tables, *flags)
    assert result.exit_code == 1
    assert "must be known for every node with --unknown-group error (got 2 unknown)" in result.stderr


@pytest.mark.parametrize("joined", [True, False])
def test_unknown_groups_can_be_refused(run: Run, project: Path, tmp_path: Path, joined: bool) -> None:
    newcomers().assign(ethnicity=pd.Series(["Arda", None, None]).to_numpy()).to_csv(tmp_path / "new.csv", index=False)
    place = ["--graph", project / "runs/applicants"] if joined else []
    arguments = ["--nodes", tmp_path / "new.csv", *place, "--unknown-group", "error", "--out", tmp_path / "found.csv"]
    result = run("predict", project / MODEL, *arguments)
    assert result.exit_code == 1
    assert "column 'ethnicity' must have a value for each node (2 missing, first in row 1)" in result.stderr
    assert not (tmp_path / "found.csv").exists()


def test_similar_people_are_joined(run: Run, tmp_path: Path) -> None:
    applicants().to_csv(tmp_path / "people.csv", index=False)
    roles = ["--id", "applicant", "--label", "decision", "--sensitive", "ethnicity", "--drop", "remarks"]
    gaps = ["--missing", "mean", "--missing-sensitive", "unknown", "--similarity", "0.9"]
    tables = ["--nodes", tmp_path / "people.csv"]
    trained = run("train", *tables, *roles, *gaps, "--method", "gcn", "--epochs", "2", "--out", tmp_path / "run")
    assert trained.exit_code == 0, trained.output
    newcomers().head(1).to_csv(tmp_path / "new.csv", index=False)
    for place in ("run", "people.csv"):
        arguments = ["--nodes", tmp_path / "new.csv", "--graph", tmp_path / place, "--out", tmp_path / "found.csv"]
        result = run("predict", tmp_path / "run/model.safetensors", *arguments)
        assert result.exit_code == 0, result.output
        links = result.stdout.splitlines()[1].removeprefix("Edges between new nodes and the 180 nodes of the graph: ")
        assert int(links.removesuffix(".")) > 0


# Tables of the fit that are not what they were


def refused(run: Run, folder: Path, place: str | Path, model: str = PLAIN) -> str:
    """Return what is said where the graph of the fit cannot be found."""
    result = run("predict", folder / model, *new_tables(folder), "--graph", place, "--out", folder / "found.csv")
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert not (folder / "found.csv").exists()
    return result.stderr


@contextmanager
def taken_away(path: Path) -> Iterator[None]:
    """Rename a file for a while: where the tables were at the time of the fit counts, too."""
    elsewhere = path.rename(path.with_suffix(".away"))
    try:
        yield
    finally:
        elsewhere.rename(path)


def test_tables_of_a_run_that_changed(run: Run, project: Path, moved: Path) -> None:
    applicants().head(170).to_csv(moved / "applicants.csv", index=False)
    with taken_away(project / "applicants.csv"):
        said = refused(run, moved, moved / "runs/applicants")
    assert "the table of nodes" in said
    assert "applicants.csv' has changed since the model was fitted: give the tables instead" in said


def test_tables_of_a_run_that_are_gone(run: Run, project: Path, moved: Path) -> None:
    (moved / "acquaintances.csv").unlink()
    with taken_away(project / "acquaintances.csv"):
        said = refused(run, moved, moved / "runs/applicants")
    assert "the table of edges" in said
    assert "acquaintances.csv' of the run in" in said
    assert "is missing: give the tables instead, as NODES,EDGES" in said


def test_tables_by_name_may_have_changed(run: Run, moved: Path, tmp_path: Path) -> None:
    applicants().head(170).to_csv(moved / "applicants.csv", index=False)
    some = acquaintances()
    some[(some["applicant"] < "A-170") & (some["knows"] < "A-170")].to_csv(moved / "acquaintances.csv", index=False)
    tables = f"{moved / 'applicants.csv'},{moved / 'acquaintances.csv'}"
    arguments = [*new_tables(moved), "--graph", tables, "--out", tmp_path / "found.csv"]
    result = run("predict", moved / PLAIN, *arguments)
    assert result.exit_code == 0, result.output
    assert "Edges between new nodes and the 170 nodes of the graph: 3." in result.stdout
    assert "are not the tables of the fit, or have changed: the model knows the graph as it was then" in result.stderr
    assert pd.read_csv(tmp_path / "found.csv")["node"].tolist() == ["N-1", "N-2", "N-3"]


def test_warnings_of_the_fit_are_not_repeated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    table = applicants().assign(ethnicity=lambda each: each["ethnicity"].where(each.index != 5, " arda"))
    table.to_csv(nodes, index=False)
    acquaintances().assign(since="2020-01-01").to_csv(edges, index=False)
    options: dict[str, Any] = {"id": "applicant", "label": "decision", "sensitive": "ethnicity", "drop": ["remarks"]}
    fitted = from_tables(nodes, edges, **options, missing="mean", missing_sensitive="unknown")
    assert "spellings are merged" in caplog.text
    assert "columns of 'edges' that are not used: 'since'" in caplog.text
    caplog.clear()
    again = fitted_graph(fitted.provenance, f"{nodes},{edges}")
    assert torch.equal(again.sens, fitted.sens)
    assert not caplog.records
    table.iloc[::-1].to_csv(nodes, index=False)
    fitted_graph(fitted.provenance, f"{nodes},{edges}")
    assert "have changed" in caplog.text
    assert "columns of 'edges' that are not used: 'since'" in caplog.text


def test_a_run_of_other_tables(run: Run, moved: Path) -> None:
    record = moved / "runs/applicants/data.json"
    document = json.loads(record.read_text())
    document["provenance"]["nodes"]["sha256"] = "0" * 64
    record.write_text(json.dumps(signed(document)))
    assert "and the model were not made from the same nodes" in refused(run, moved, moved / "runs/applicants")
    record.write_text("{")
    assert "data.json' is damaged: give the tables instead" in refused(run, moved, moved / "runs/applicants")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            ".",
            "is not a directory of `fairpass run` or `fairpass train` (it has neither data.json nor evaluation.json)",
        ),
        ("nowhere", "must be the directory of a run, or NODES,EDGES (got '{folder}/nowhere', which is neither)"),
        ("applicants.csv", "NODES,EDGES (got '{folder}/applicants.csv', which is the table of nodes only)"),
        ("applicants.csv,", "NODES,EDGES (got '{folder}/applicants.csv,', which is neither)"),
        ("applicants.csv,nowhere.csv", "there is no table 'nowhere.csv'"),
        ("nowhere.csv,applicants.csv", "there is no table '{folder}/nowhere.csv'"),
    ],
)
def test_places_without_a_graph(run: Run, project: Path, place: str, message: str) -> None:
    said = refused(run, project, f"{project}/{place}" if place != "." else project)
    assert message.format(folder=project) in said


@pytest.mark.parametrize("place", ["", ",", ",,", ",nowhere.csv"])
def test_tables_without_a_name(run: Run, project: Path, place: str) -> None:
    expected = f"Error: --graph must be the directory of a run, or NODES,EDGES (got {place!r}, which is neither)\n"
    assert refused(run, project, place) == expected


def test_models_of_other_graphs(run: Run, project: Path, tmp_path: Path) -> None:
    run("train", "german", "--method", "constant", "--out", tmp_path / "german")
    arguments = [*new_tables(project), "--graph", tmp_path / "german", "--out", tmp_path / "found.csv"]
    result = run("predict", tmp_path / "german/model.safetensors", *arguments)
    assert result.exit_code == 1
    assert "only to a graph of own tables (the model's graph is German Credit)" in result.stderr


# New tables that differ, or are wrong


def test_values_that_the_training_did_not_have(run: Run, project: Path, tmp_path: Path) -> None:
    new = newcomers().assign(district="east").astype({"income": object})
    new.loc[new.index[0], "income"] = "lots"
    new.to_csv(tmp_path / "new.csv", index=False)
    their_edges().to_csv(tmp_path / "new_edges.csv", index=False)
    place = ["--graph", project / "runs/applicants", "--out", tmp_path / "found.csv"]
    result = run("predict", project / PLAIN, *new_tables(tmp_path), *place)
    assert result.exit_code == 0
    said = " ".join(result.stderr.split())
    assert "column 'district': values that the fitted table does not have, which become zeros: 3" in said
    assert "column 'income': values that cannot be read as number, and count as missing: 1, first 'lots'" in said
    assert len(pd.read_csv(tmp_path / "found.csv")) == len(new)


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ({"applicant": ["A-003", "N-2", "N-3"]}, {}, "1 of its ids are in the graph already, or repeated: 'A-003'"),
        (
            {},
            {"knows": ["A-003", "N-1", "N-2", "Z-9"]},
            "names nodes that do not exist (1 ids, 1 edges, first in row 3): 'Z-9'",
        ),
        ({"ethnicity": "Dole"}, {}, "column 'ethnicity' has values that the fitted table does not have: 'Dole'"),
    ],
)
def test_tables_that_do_not_fit(
    run: Run, project: Path, tmp_path: Path, nodes: dict[str, Any], edges: dict[str, Any], message: str
) -> None:
    newcomers().assign(**nodes).to_csv(tmp_path / "new.csv", index=False)
    their_edges().assign(**edges).to_csv(tmp_path / "new_edges.csv", index=False)
    place = ["--graph", project / "runs/applicants", "--out", tmp_path / "found.csv"]
    result = run("predict", project / PLAIN, *new_tables(tmp_path), *place)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "found.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["german"], "--graph cannot be used with the benchmark 'german', only with own tables"),
        ([], "--graph needs --nodes, the table of the new nodes"),
        (
            ["--nodes", "new.csv", "--label", "decision"],
            "--label cannot be used with --graph: new nodes are read like those of the graph",
        ),
        (["--nodes", "new.csv", "--unknown-group", "guess"], "'guess' is not one of 'none', 'estimate', 'error'"),
        (["--nodes", "new.csv", "--reference", "mean"], "'mean' is not one of 'fitted', 'batch'"),
    ],
)
def test_options_that_do_not_go_together(run: Run, arguments: list[str], message: str) -> None:
    # Before any work: there is no such model.
    result = run("predict", "nowhere", *arguments, "--graph", "runs/people", "--out", "found.csv")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_tables_are_not_overwritten(run: Run, moved: Path) -> None:
    place = f"{moved / 'applicants.csv'},{moved / 'acquaintances.csv'}"
    for name in ("new.csv", "new_edges.csv", "applicants.csv", "acquaintances.csv"):
        before = (moved / name).read_bytes()
        result = run("predict", moved / PLAIN, *new_tables(moved), "--graph", place, "--out", moved / name)
        assert result.exit_code == 2
        assert "--out must be another file than the tables" in result.stderr
        assert (moved / name).read_bytes() == before


def test_a_model_of_a_joined_graph_names_no_tables(project: Path) -> None:
    graph = fitted_graph(load_model(project / PLAIN).provenance_, str(project / "runs/applicants"))
    joined = join_tables(graph, newcomers())
    with pytest.raises(DataError, match="fitted to a graph that was itself joined"):
        fitted_graph(joined.provenance, str(project / "runs/applicants"))


def test_a_table_of_edges_without_rows(run: Run, project: Path, tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("applicant,knows\n")
    arguments = ["--nodes", project / "new.csv", "--edges", tmp_path / "none.csv", "--out", tmp_path / "found.csv"]
    result = run("predict", project / PLAIN, *arguments, "--graph", project / "runs/applicants")
    assert result.exit_code == 0, result.output
    assert "the 180 nodes of the graph: 0. New nodes without any edge: 3." in result.stdout


def test_types_are_the_library_s() -> None:
    assert get_args(Reference) == get_args(ReferenceName)
    assert get_args(UnknownGroup) == get_args(LibraryUnknownGroup)


def test_evaluate_needs_edges(run: Run, project: Path) -> None:
    result = run("evaluate", project / PLAIN, "--nodes", project / "new.csv")
    assert result.exit_code == 2
    assert "--edges is missing" in result.stderr


def test_new_people_with_weighted_edges(run: Run, own_tables: dict[str, Path], tmp_path: Path) -> None:
    lines = own_tables["edges"].read_text().splitlines()
    edges = [f"{lines[0]},calls", *(f"{line},{i + 1}" for i, line in enumerate(lines[1:]))]
    own_tables["edges"].write_text("\n".join(edges))
    tables = ["--nodes", own_tables["nodes"], "--edges", own_tables["edges"], "--id", "name"]
    tables += ["--label", "hired", "--sensitive", "sex", "--edge-weight", "calls"]
    out = tmp_path / "run"
    trained = run("train", *tables, "--method", "gcn", "--epochs", "3", "--out", out)
    assert trained.exit_code == 0, trained.output
    (tmp_path / "new.csv").write_text("name,age,shoe,planet,sex\nq1,30,40,earth,m\nq2,31,41,earth,f\n")
    found = []
    for weight in (1, 90):
        (tmp_path / "links.csv").write_text(f"one,other,calls\nq1,p3,{weight}\nq1,p9,7\nq2,q1,2\n")
        new = ["--nodes", tmp_path / "new.csv", "--edges", tmp_path / "links.csv", "--graph", out]
        result = run("predict", out / "model.safetensors", *new, "--out", tmp_path / "found.csv")
        assert result.exit_code == 0, result.output
        found.append(pd.read_csv(tmp_path / "found.csv")["score"].tolist())
    assert found[0] != found[1]
    (tmp_path / "links.csv").write_text("one,other\nq1,p3\n")
    refused = run("predict", out / "model.safetensors", *new, "--out", tmp_path / "found.csv")
    assert "--edges has no column 'calls': it has 'one', 'other'" in refused.stderr
    refused = run("train", *tables, "--method", "fairdrop", "--epochs", "3")
    assert "which does not use weights of edges (with tables: --unweighted in place of --edge-weight)" in refused.stderr
