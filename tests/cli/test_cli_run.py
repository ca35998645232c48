"""`fairpass run`: from tables to a report, and one clear sentence for whatever is wrong with them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest
from tests.projects.applicants import CONFIG, acquaintances, applicants, write_project
from typer.testing import Result

from fairpass.cli.run import StepName
from fairpass.methods import load_model
from fairpass.projects.config import load_config
from fairpass.projects.pipeline import run_project
from fairpass.projects.steps import STEPS

Run = Callable[..., Result]
RunJson = Callable[..., Any]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has been run once."""
    folder = tmp_path_factory.mktemp("applicants")
    run_project(load_config(write_project(folder)))
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of it: no test depends on another."""
    return Path(shutil.copytree(finished, tmp_path / "applicants"))


def test_from_tables_to_a_report(run: Run, tmp_path: Path) -> None:
    folder = tmp_path
    write_project(folder)
    result = run("run", folder / "fairpass.toml")
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.stderr.splitlines()] == list(STEPS)
    for text in ("applicants, test nodes", "of 2 tried", "Against gcn", "the report: open it in a browser"):
        assert text in result.stdout
    page = (folder / "runs/applicants/report.html").read_text()
    assert "<script src" not in page
    assert len(pd.read_csv(folder / "runs/applicants/predictions.csv")) == len(applicants())


def test_the_same_again_resumes(run: Run, run_json: RunJson, folder: Path) -> None:
    result = run("run", folder / "fairpass.toml")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("done before") == len(STEPS)
    document = run_json("run", folder / "fairpass.toml", "--json")
    assert (document["made"], document["skipped"]) == ([], list(STEPS))
    assert document["chosen"] == "gmmd"
    assert {row["method"] for row in document["rows"]} == {"constant", "gcn", "logistic", "gmmd"}


def test_one_step(run_json: RunJson, folder: Path) -> None:
    document = run_json("run", folder / "fairpass.toml", "--step", "predict", "--json")
    assert document["made"] == ["predict"]


def test_another_choice_does_not_tune_again(run_json: RunJson, folder: Path) -> None:
    document = run_json("run", folder / "fairpass.toml", "--fairness", "1", "--json")
    assert document["made"] == ["train", "evaluate", "report", "predict"]
    assert document["reason"] == "It is the fairest on the validation front."


def test_people_on_the_report(run_json: RunJson, folder: Path) -> None:
    page = folder / "runs/applicants/report.html"
    assert "A-0" not in page.read_text()
    document = run_json("run", folder / "fairpass.toml", "--include-people", "--json")
    assert document["made"] == ["report"]
    assert "A-0" in page.read_text()


@pytest.mark.parametrize(("limit", "verdict", "code"), [("1", "shown", 0), ("0.001", "not shown", 3)])
def test_a_limit_is_checked_and_marked(run: Run, folder: Path, limit: str, verdict: str, code: int) -> None:
    made = run("run", folder / "fairpass.toml", "--max-dp", limit, "--check", "safety", "--json")
    assert made.exit_code == code, made.output
    document = json.loads(made.stdout)
    assert document["promise"]["verdict"] == verdict
    results = folder / "runs/applicants"
    model = load_model(results / "model.safetensors")
    assert model.promise_ is not None
    assert model.promise_.to_dict() == document["promise"]
    assert set(pd.read_csv(results / "predictions.csv")["promise"]) == {verdict}
    assert f"The limit asked for: {verdict}." in (results / "report.html").read_text()
    assert json.loads((results / "report.json").read_text())["audits"][0]["promise"]["verdict"] == verdict
    # The same check alone, on the same nodes, gives the same answer.
    tables = ["--nodes", folder / "applicants.csv", "--edges", folder / "acquaintances.csv"]
    alone = run("check", results / "model.safetensors", *tables, "--max-dp", limit, "--json")
    assert alone.exit_code == code, alone.output
    again = json.loads(alone.stdout)["promise"]
    assert again["checks"] == document["promise"]["checks"]
    predicted = run("predict", results / "model.safetensors", *tables, "--out", folder / "again.csv")
    assert predicted.exit_code == 0, predicted.output
    assert ("Beware of the model" in predicted.stdout) == (verdict != "shown")
    shown = run("run", folder / "fairpass.toml", "--max-dp", limit, "--check", "safety")
    assert shown.exit_code == code
    assert verdict.capitalize() in shown.stdout
    trained = run("run", folder / "fairpass.toml", "--max-dp", limit, "--check", "safety", "--step", "train")
    assert trained.exit_code == code
    # Of people in other tables nothing is known: they could be those of the training.
    told = "These are not the tables of the training."
    assert told not in run("check", results / "model.safetensors", *tables, "--max-dp", limit).stdout
    applicants().iloc[::2].to_csv(folder / "half.csv", index=False)
    half = ["--nodes", folder / "half.csv", "--edges", folder / "acquaintances.csv", "--dangling", "drop"]
    assert told in run("check", results / "model.safetensors", *half, "--max-dp", limit).stdout


def test_few_labels_are_checked_by_cross_fitting(run: Run, folder: Path) -> None:
    config = folder / "cross.toml"
    text = (folder / "fairpass.toml").read_text()
    config.write_text('directory = "runs/cross"\n' + text + "\n[split]\nfractions = [0.5, 0.25, 0.25]\n")
    made = run("run", config, "--max-dp", "1", "--json")
    assert made.exit_code == 0, made.output
    promise = json.loads(made.stdout)["promise"]
    data = json.loads((folder / "runs/cross/data.json").read_text())
    assert promise["on"] == "cross-fitting"
    labelled = data["split"]["train"] + data["split"]["val"]
    assert labelled - 2 <= promise["people"] <= labelled  # the group of two is unknown


@pytest.mark.parametrize("limit", ["--max-dp", "--max-eo"])
def test_options_that_contradict_each_other(run: Run, tmp_path: Path, limit: str) -> None:
    # Before any work: the configuration is not even read.
    result = run("run", tmp_path / "fairpass.toml", "--fairness", "0.5", limit, "0.05")
    assert (result.exit_code, result.stdout) == (2, "")
    said = " ".join(result.stderr.replace("│", " ").split())
    assert f"--fairness and {limit} must not be given together (got 0.5 and 0.05)" in said


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ("0", "--budget must be at least 1 (got 0)"),
        ("1" + "0" * 30, f"--budget must be at most 1,000,000 (got 1{'0' * 30})"),
        ("1" + "0" * 400 + "h", "--budget must be at most 87,840h (got '10000000000000000000...')"),
        ("9" * 5000, "--budget must be a time such as '90s', '10m' or '1h30m'"),
    ],
)
def test_a_budget_that_cannot_be_used(run: Run, tmp_path: Path, budget: str, message: str) -> None:
    result = run("run", write_project(tmp_path), "--budget", budget)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {message}")


def test_the_model_predicts_for_others(run: Run, folder: Path) -> None:
    others = applicants().drop(columns="decision").iloc[::-1]
    others.to_csv(folder / "others.csv", index=False)
    tables = ["--nodes", folder / "others.csv", "--edges", folder / "acquaintances.csv"]
    out = folder / "found.parquet"
    model = folder / "runs/applicants/model.safetensors"
    result = run("predict", model, *tables, "--out", out)
    assert result.exit_code == 0, result.output
    found = pd.read_parquet(out)
    assert found["node"].tolist() == others["applicant"].tolist()
    assert "split" not in found
    before = pd.read_csv(folder / "runs/applicants/predictions.csv").iloc[::-1]
    assert found["label"].tolist() == before["label"].tolist()


def test_a_table_without_edges(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    old = 'edges = "acquaintances.csv"\nid = "applicant"\nsource = "applicant"\ntarget = "knows"'
    assert old in CONFIG
    config = CONFIG.replace(old, 'similarity = 0.95\nid = "applicant"')
    path = write_project(tmp_path, config)
    assert run_json("run", path, "--json")["made"] == list(STEPS)
    model = tmp_path / "runs/applicants/model.safetensors"
    result = run("evaluate", model, "--nodes", tmp_path / "applicants.csv", "--json")
    stored = json.loads((tmp_path / "runs/applicants/evaluation.json").read_text())
    first = next(run for run in stored["runs"] if run["method"] == "gmmd" and run["seed"] == 0)
    assert json.loads(result.stdout)["evaluation"] == first["evaluation"]


def test_intersections_and_similarity_are_options_of_every_command(run_json: RunJson, folder: Path) -> None:
    roles = ["--id", "applicant", "--label", "decision", "--sensitive", "ethnicity", "--sensitive", "district"]
    rest = ["--similarity", "0.95", "--drop", "remarks", "--missing", "mean", "--missing-sensitive", "unknown"]
    document = run_json("audit", "--nodes", folder / "applicants.csv", *roles, *rest, "--json")
    groups = [group["name"] for group in document["statistics"]["groups"]]
    assert len(groups) == 9
    assert groups[0] == "Arda × north"
    assert document["statistics"]["edges"] > 0


def test_names_of_steps() -> None:
    assert get_args(StepName) == tuple(STEPS)


def test_criterion_of_gmmd(run_json: RunJson, tmp_path: Path) -> None:
    path = write_project(tmp_path, CONFIG.replace("epochs = 4", "epochs = 1"))
    run_json("run", path, "--criterion", "odds", "--json")
    about = json.loads((tmp_path / "runs/applicants/models.json").read_text())
    assert about["point"]["parameters"]["criterion"] == "odds"


# Damaged input: each kind ends in one sentence.


def _without(column: str) -> Callable[[Path], None]:
    return lambda folder: applicants().drop(columns=column).to_csv(folder / "applicants.csv", index=False)


def _with(column: str, value: Any) -> Callable[[Path], None]:
    return lambda folder: applicants().assign(**{column: value}).to_csv(folder / "applicants.csv", index=False)


def _twice(folder: Path) -> None:
    pd.concat([applicants(), applicants().head(2)]).to_csv(folder / "applicants.csv", index=False)


def _stranger(folder: Path) -> None:
    table = acquaintances()
    table.loc[0, "knows"] = "A-999"
    table.to_csv(folder / "acquaintances.csv", index=False)


def _file(name: str, content: bytes | None) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)

    return write


def _truncated(folder: Path) -> None:
    content = (folder / "applicants.csv").read_bytes()
    (folder / "applicants.csv").write_bytes(content[:2000].rsplit(b",", 2)[0])


def _config(old: str, new: str) -> Callable[[Path], None]:
    assert old in CONFIG

    def write(folder: Path) -> None:
        (folder / "fairpass.toml").write_text(CONFIG.replace(old, new))

    return write


def _only_train(folder: Path) -> None:
    _with("part", "train")(folder)
    _config("[choice]", '[split]\ncolumn = "part"\n[choice]')(folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without("ethnicity"), "'nodes' has no column 'ethnicity': it has 'applicant', 'income'"),
        (_without("decision"), "'nodes' has no column 'decision'"),
        (_with("decision", None), "column 'decision' must have at least two labels (got none)"),
        (_with("decision", "approved"), "column 'decision' must have at least two labels (got 'approved')"),
        (_with("ethnicity", "Arda"), "column 'ethnicity' must have at least two groups (got 'Arda')"),
        (_twice, "the ids in column 'applicant' of 'nodes' must be unique (2 occur more than once: 'A-000', 'A-001')"),
        (
            _stranger,
            "column 'knows' of 'edges' names nodes that do not exist (1 ids, 1 edges, first in row 0): 'A-999'",
        ),
        (_only_train, "none of the 0 labelled nodes in the val split has label 'approved'"),
        (_file("applicants.csv", None), "'nodes': there is no file "),
        (_file("acquaintances.csv", b""), "acquaintances.csv' is empty"),
        (_file("applicants.csv", b"applicant,income\nA\xff,3\n"), "'nodes' has no column 'decision'"),
        (_file("applicants.csv", b"applicant,income\nA\x00,3\n"), "applicants.csv' is not a table of text"),
        (_truncated, "'nodes': line "),
        (_file("fairpass.toml", None), "there is no file "),
        (_file("fairpass.toml", b"[data\nnodes = 3"), "fairpass.toml' is not a TOML file: Expected ']'"),
        (_config("[choice]", "[choise]"), "fairpass.toml: there is no key 'choise': did you mean 'choice'?"),
        (_config("budget = 2", "budget = 2.5"), "[tuning] 'budget' must be text or a whole number (got 2.5)"),
        (_config('sensitive = ["ethnicity"]', 'sensitive = ["income"]'), "column 'income' has"),
        (_config('sensitive = ["ethnicity"]', 'sensitive = ["ethnicity"]\nmin_size = 500'), "every group must have"),
        (_config('missing = "unknown"', 'missing = "error"'), "column 'ethnicity' must have a value for each node"),
    ],
)
def test_damaged_input(run: Run, tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    write_project(tmp_path)
    damage(tmp_path)
    result = run("run", tmp_path / "fairpass.toml")
    lines = [line for line in result.stderr.splitlines() if not line.startswith("Warning: ")]
    assert (result.exit_code, result.stdout) == (1, "")
    assert len(lines) == 1
    assert lines[0].startswith("Error: ")
    assert message in lines[0]
    assert "Traceback" not in result.output


def test_a_damaged_model(run: Run, folder: Path) -> None:
    model = folder / "broken.safetensors"
    model.write_bytes((folder / "runs/applicants/model.safetensors").read_bytes()[:500])
    tables = ["--nodes", folder / "applicants.csv", "--edges", folder / "acquaintances.csv"]
    result = run("predict", model, *tables, "--out", folder / "found.csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_a_directory_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    write_project(tmp_path)
    (tmp_path / "runs").write_text("a file in the way")
    result = run("run", tmp_path / "fairpass.toml")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
