"""A project is done step by step; what is done and still true is not done again."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.holding import while_in_use
from tests.projects.applicants import CONFIG, SIZE, applicants, write_project

from fairpass.errors import DataError
from fairpass.files import sha256
from fairpass.locks import in_use
from fairpass.methods import load_model
from fairpass.projects.config import load_config
from fairpass.projects.pipeline import Workspace, run_project
from fairpass.projects.steps import STEPS, cost
from fairpass.report import Evidence
from fairpass.runs import fit_all


def run(path: Path, **options: Any) -> Workspace:
    return run_project(load_config(path), **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has been run once; a test that changes it changes it back."""
    path = write_project(tmp_path_factory.mktemp("project"))
    assert run(path).made == tuple(STEPS)
    return path


def directory(path: Path) -> Path:
    return path.parent / "runs/applicants"


def manifest(path: Path) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((directory(path) / "manifest.json").read_text())
    return stored


def test_every_step_leaves_its_files(finished: Path) -> None:
    stored = manifest(finished)
    assert list(stored["steps"]) == list(STEPS)
    for record in stored["steps"].values():
        assert record["status"] == "done"
        assert all((directory(finished) / name).is_file() for name in record["outputs"])
    assert stored["asked"]["choice"].items() >= {"fairness": 0.5, "max_dp": None, "confidence": 0.95}.items()
    assert stored["libraries"].keys() >= {"torch", "optuna"}


def test_the_graph_is_that_of_the_tables(finished: Path) -> None:
    data = json.loads((directory(finished) / "data.json").read_text())
    assert data["nodes"] == SIZE
    assert data["groups"].keys() == {"Arda", "Belu", "Coro"}
    assert (data["unknown_group"], data["unlabelled"]) == (2, 3)
    assert data["labels"]["referred"] == 18
    assert sum(data["split"].values()) == SIZE - 3


def test_predictions_of_every_node(finished: Path) -> None:
    found = pd.read_csv(directory(finished) / "predictions.csv")
    table = applicants()
    labels = ["approved", "declined", "referred"]
    assert list(found) == ["node", *(f"score of {label}" for label in labels), "label", "group", "split"]
    assert found["node"].tolist() == table["applicant"].tolist()
    assert found["group"].fillna("").tolist() == table["ethnicity"].fillna("").tolist()
    assert set(found["split"].dropna()) == {"train", "val", "test", "safety"}
    assert found["split"].isna().tolist() == table["decision"].isna().tolist()
    assert found[[f"score of {label}" for label in labels]].sum(axis=1).to_numpy() == pytest.approx(1)


def test_the_model_is_the_chosen_one(finished: Path) -> None:
    about = json.loads((directory(finished) / "models.json").read_text())
    model = load_model(directory(finished) / "model.safetensors")
    assert model.name == about["chosen"] == about["point"]["method"] == "gmmd"
    assert {name: len(files) for name, files in about["models"].items()} == {
        "constant": 2,
        "gcn": 2,
        "logistic": 2,
        "gmmd": 2,
    }
    assert model.get_params()["lambda_f"] == about["point"]["parameters"]["lambda_f"]
    assert about["tried"] == 2


def test_the_report_tells_of_it(finished: Path) -> None:
    evidence = Evidence.load(directory(finished))
    assert (evidence.title, evidence.chosen) == ("applicants", "gmmd")
    assert "2 settings were tried. " in evidence.choice
    assert "Arda" in (directory(finished) / "report.html").read_text()
    model = directory(finished) / "model.safetensors"
    assert evidence.model_file == {"name": model.name, "sha256": sha256(model)}
    (audit,) = json.loads((directory(finished) / "report.json").read_text())["audits"]
    assert audit["model"]["sha256"] == sha256(model)
    assert {"applicants.csv", "acquaintances.csv"} <= {Path(each["name"]).name for each in audit["data"]["files"]}
    assert (directory(finished) / "model-card.md").read_text().startswith("---")
    for name in ("evidence.json", "report.html", "report.json", "model-card.md"):
        assert "A-0" not in (directory(finished) / name).read_text()  # nobody's id


def test_people_are_shown_if_asked_for(finished: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(finished.parent, tmp_path / "copy") / finished.name
    text = finished.read_text() + "\n[report]\ninclude_people = true\nmin_group = 1\nfavourable = 'approved'\n"
    copied.write_text(text)
    assert run(copied).made == ("report",)
    assert "A-0" in (directory(copied) / "report.html").read_text()
    assert "A-0" not in (directory(copied) / "report.json").read_text()
    assert Evidence.load(directory(copied)).labels == ["approved"]


def test_a_favourable_label_is_checked_first(tmp_path: Path) -> None:
    path = write_project(tmp_path, CONFIG + "\n[report]\nfavourable = 'granted'\n")
    with pytest.raises(DataError, match=r"\[report\] 'favourable' must be one of approved, .* \(got 'granted'\)"):
        run(path)


def test_the_audit_says_whether_the_edges_help(finished: Path) -> None:
    gain = json.loads((directory(finished) / "audit.json").read_text())["graph_gain"]
    assert gain["nodes"] == json.loads((directory(finished) / "data.json").read_text())["split"]["val"]
    assert gain["sentence"] in (directory(finished) / "report.html").read_text()


def test_logistic_regression_is_trained_once(tmp_path: Path) -> None:
    """Not beside itself if it is the method that was chosen."""
    config = CONFIG.replace('["gmmd"]', '["logistic"]').replace("epochs = 4", "epochs = 1")
    path = write_project(tmp_path, config)
    for step in ("load", "tune", "train"):
        run(path, step=step)
    about = json.loads((directory(path) / "models.json").read_text())
    assert list(about["models"]) == ["constant", "gcn", "logistic"]
    assert about["models"]["logistic"] == [f"models/chosen-{seed}.safetensors" for seed in (0, 1)]


def test_a_criterion_is_kept_by_every_setting(tmp_path: Path) -> None:
    path = write_project(tmp_path, CONFIG.replace("epochs = 4", 'epochs = 2\ncriterion = "eo"'))
    config = load_config(path)
    for step in ("load", "tune", "train"):
        run_project(config, step=step)
    assert load_model(directory(path) / "model.safetensors").hyperparameters["criterion"] == "eo"
    assert manifest(path)["asked"]["tuning"]["criterion"] == "eo"
    with pytest.raises(DataError, match="step 'train' needs 'tune', but it is not done"):
        run_project(config.replaced(criterion="dp"), step="train")


def test_the_same_again_does_nothing(finished: Path) -> None:
    before = manifest(finished)
    done = run(finished)
    assert (done.made, done.skipped) == ((), tuple(STEPS))
    assert manifest(finished) == before
    assert "Against gcn" in cost(done)
    assert "Against logistic" in cost(done)


@pytest.mark.parametrize(
    ("old", "new", "made"),
    [
        ("fairness = 0.5", "fairness = 1.0", ("train", "evaluate", "report", "predict")),
        ("[choice]", '[predictions]\nformat = "parquet"\n[choice]', ("predict",)),
        ('name = "applicants"', 'name = "applicants"\nquestion = "Is it fair?"', ("report",)),
    ],
)
def test_a_change_redoes_what_depends_on_it(finished: Path, old: str, new: str, made: tuple[str, ...]) -> None:
    try:
        finished.write_text(CONFIG.replace(old, new))
        assert run(finished).made == made
    finally:
        finished.write_text(CONFIG)
    assert run(finished).made == made  # back again


def test_a_step_alone(finished: Path) -> None:
    done = run(finished, step="audit")
    assert (done.made, done.skipped) == (("audit",), ())
    assert run(finished).made == ()


def test_a_step_needs_those_before_it(tmp_path: Path) -> None:
    path = write_project(tmp_path)
    with pytest.raises(DataError, match=r"step 'train' needs 'load', but it is not done .*fairpass run fairpass.toml"):
        run(path, step="train")
    assert run(path, step="load").made == ("load",)
    with pytest.raises(DataError, match="step 'train' needs 'tune'"):
        run(path, step="train")
    with pytest.raises(DataError, match="'step' must be one of load, audit, tune"):
        run(path, step="bake")


def test_a_lost_file_is_made_again(finished: Path) -> None:
    (directory(finished) / "predictions.csv").unlink()
    assert run(finished).made == ("predict",)


def test_a_damaged_model_is_trained_again(finished: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = directory(finished) / "models/chosen-1.safetensors"
    path.write_bytes(b"not a model")
    with pytest.raises(DataError, match=r"needs 'train', but .*/models/chosen-1.safetensors has changed since it was"):
        run(finished, step="report")
    with caplog.at_level("WARNING", "fairpass"):
        assert "train" in run(finished).made
    assert f"{path} has changed since it was written: step 'train' is repeated" in caplog.text


def test_changed_tables_are_read_again(tmp_path: Path) -> None:
    path = write_project(tmp_path)
    run(path, step="load")
    before = manifest(path)["steps"]["load"]["inputs"]
    table = applicants()
    table.loc[0, "income"] = 99.0
    table.to_csv(tmp_path / "applicants.csv", index=False)
    run(path, step="load")
    assert manifest(path)["steps"]["load"]["inputs"] != before


def test_interruption_and_failure_are_in_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_project(tmp_path)
    fitted: list[str] = []

    def interrupted(classifiers: Any, data: Any, **options: Any) -> Any:
        fitted.append(classifiers[0].name)
        if len(fitted) == 4:  # constant, reference and regression are done
            raise KeyboardInterrupt
        return fit_all(classifiers, data, **options)

    monkeypatch.setattr("fairpass.projects.steps.fit_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(path)
    stored = manifest(path)["steps"]
    assert {name: record["status"] for name, record in stored.items()} == {
        "load": "done",
        "audit": "done",
        "tune": "done",
        "train": "interrupted",
    }
    done = run(path)
    assert done.skipped == ("load", "audit", "tune")
    assert fitted == ["constant", "gcn", "logistic", "gmmd", "gmmd"]  # what was trained was not trained again

    def fails(*_: Any) -> Any:
        raise DataError("no luck")

    monkeypatch.setattr("fairpass.projects.steps.prediction_table", fails)
    with pytest.raises(DataError, match="no luck"):
        run(path, step="predict")
    record = manifest(path)["steps"]["predict"]
    assert (record["status"], record["error"]) == ("failed", "no luck")


def test_a_damaged_manifest(finished: Path) -> None:
    path = directory(finished) / "manifest.json"
    content = path.read_text()
    try:
        for damaged in (content[:100], '{"kind": "else"}', "[]"):
            path.write_text(damaged)
            with pytest.raises(DataError, match=r"manifest.json' must be a fairpass run file .*remove it"):
                run(finished)
    finally:
        path.write_text(content)


def test_a_group_that_lacks_a_label(tmp_path: Path) -> None:
    path = write_project(tmp_path)
    table = applicants()
    table.loc[(table["ethnicity"] == "Coro") & (table["decision"] == "referred"), "decision"] = "declined"
    table.to_csv(tmp_path / "applicants.csv", index=False)
    with pytest.raises(DataError, match=r"group 'Coro' has no node of label 'referred' in the val split .0 in all"):
        run(path)
    assert manifest(path)["steps"]["load"]["status"] == "failed"


def test_a_run_directory_is_for_one_run_at_a_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "fairpass.toml"
    path.write_text('name = "a"\n[data]\nnodes = "n.csv"\nedges = "e.csv"\nlabel = "y"\n[groups]\nsensitive = "s"\n')
    directory = load_config(path).run_directory

    def refused() -> bool:
        with pytest.raises(DataError, match=r"n\.csv"):
            run(path)
        return True

    def none_yet() -> None:
        with in_use(directory):  # who has it may go on
            assert not directory.exists()

    assert while_in_use(directory, refused, caplog, none_yet)
    assert len(caplog.messages) == 1
    assert [each.name for each in directory.parent.iterdir()] == [directory.name]
