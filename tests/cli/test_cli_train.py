"""`fairpass train`, and what is done with its models: evaluate and predict. Also `fairpass methods`."""

import json
import re
import signal
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import pytest
import typer
from rich.console import Console
from tests.holding import while_in_use
from typer.testing import Result

from fairpass import Evaluation, datasets, load_model
from fairpass.cli import output
from fairpass.cli import train as train_module
from fairpass.cli.evaluate import Split
from fairpass.cli.options import TrainingOptions, parse_parameters, read_value
from fairpass.datasets.graph import SplitName
from fairpass.documents import signed
from fairpass.methods import GMMD, Constant, names
from fairpass.metrics import catalog
from fairpass.training import Training

Run = Callable[..., Result]
RunJson = Callable[..., Any]

GCN = ("german", "--method", "gcn", "--epochs", "4")
OWN = ("--id", "name", "--label", "hired", "--sensitive", "sex")


def stop_at(epoch: int, monkeypatch: pytest.MonkeyPatch, number: int = signal.SIGINT) -> None:
    """Send a signal when an epoch is shown; by default that of Ctrl-C."""
    shown = count()

    def send(metrics: Mapping[str, float]) -> str:
        if next(shown) == epoch:
            assert signal.getsignal(number) != signal.SIG_DFL  # otherwise it would be our end
            signal.raise_signal(number)
        return ""

    monkeypatch.setattr(train_module, "in_short", send)


def test_a_metric_of_the_catalogue_is_shown(run: Run, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = catalog.Metric("half", "HALF", "half of the accuracy", lambda counts: catalog.accuracy(counts) / 2)
    monkeypatch.setattr(catalog, "METRICS", (*catalog.METRICS, half))
    for command in (("evaluate", stored, "german"), ("train", *GCN)):
        lines = [line.split() for line in run(*command).stdout.splitlines()]
        percent = {line[0].rstrip(","): float(line[-1]) for line in lines if line and line[0].endswith(",")}
        assert percent.keys() == {metric.symbol for metric in catalog.METRICS}
        assert percent["HALF"] == pytest.approx(percent["ACC"] / 2, abs=0.1)


@pytest.fixture
def people(own_tables: dict[str, Path]) -> list[str | Path]:
    return ["--nodes", own_tables["nodes"], "--edges", own_tables["edges"], *OWN]


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of German, trained without the sensitive attribute and with a split of its own."""
    data = datasets.load("german", keep_sensitive=False, split_seed=3)
    model = GMMD(fair_steps=1, training=Training(epochs=2)).fit(data)
    return model.save(tmp_path_factory.mktemp("stored") / "model.safetensors")


def test_train_shows_an_evaluation_in_plain_words(run: Run) -> None:
    result = run("train", *GCN)
    assert result.exit_code == 0, result.output
    for expected in (
        "gcn on German Credit, on 250 test nodes",
        "ΔDP, demographic parity",
        "Groups and 'good customer', in percent",
        "accurate than giving 'good customer' to every node, which is right for 70.0 %.",
        "more often for",
        "4 epochs in",
    ):
        assert expected in result.stdout
    assert [line.split()[:2] for line in result.stdout.splitlines() if "male" in line.split()[:1]] == [["male", "156"]]
    assert result.stderr == ""


def test_train_writes_what_it_shows(run_json: RunJson, tmp_path: Path) -> None:
    out = tmp_path / "runs" / "german"
    shown = run_json("train", *GCN, "--set", "dropout=0", "--seed", "7", "--out", out, "--json")
    assert sorted(path.name for path in out.iterdir()) == ["evaluation.json", "history.json", "model.safetensors"]
    assert json.loads((out / "evaluation.json").read_text()) == signed(shown)
    assert shown["parameters"] == {"num_layers": 2, "hidden": 16, "dropout": 0.0}
    assert shown["training"] == Training(epochs=4, seed=7).to_dict()
    history = pd.read_json(out / "history.json")
    assert history["epoch"].tolist() == [0, 1, 2, 3]
    assert {"loss", "AUC", "DP", "mmd2"} <= set(history)
    model = load_model(out / "model.safetensors")
    assert model.epoch_ == shown["epoch"]
    assert model.evaluate(datasets.load("german")) == Evaluation.from_dict(shown["evaluation"])
    again = run_json("train", *GCN, "--set", "dropout=0", "--seed", "7", "--json")
    assert again["evaluation"] == shown["evaluation"]


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGINT, "Interrupted"), (signal.SIGTERM, "Terminated"), (signal.SIGHUP, "Terminated")]
)
def test_interrupted_training_goes_on(
    number: signal.Signals, word: str, run: Run, run_json: RunJson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run_json("train", *GCN, "--json")
    with monkeypatch.context() as sending:
        stop_at(1, sending, number)
        stopped = run("train", *GCN, "--out", tmp_path)
    assert stopped.exit_code == 128 + number
    assert stopped.stderr == f"Finished work is in {tmp_path}: the same command continues from there\n{word}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]

    other = run("train", *GCN, "--seed", "1", "--out", tmp_path)
    assert other.exit_code == 1
    assert "must be a checkpoint of this very fit" in other.stderr

    resumed = run("train", *GCN, "--out", tmp_path, "--json")
    assert resumed.stderr == f"Continuing the interrupted training in {tmp_path}\n"
    document = json.loads(resumed.stdout)
    assert {**document, "seconds": 0} == {**expected, "seconds": 0}
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_another_training_into_the_directory_is_waited_for(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"

    def none_yet() -> None:
        assert not out.exists()

    assert while_in_use(out, lambda: run("train", *GCN, "--out", out), caplog, none_yet).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("reachable")
def test_interruption_without_a_place_to_keep_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_at(0, monkeypatch)
    assert run("train", *GCN).stderr == "Interrupted\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "gnc"], "--method must be one of constant, gcn"),
        (["--set", "alpha=-1"], "--set alpha must be positive (got -1.0)"),
        (["--method", "edits", "--set", "drop=-1"], "--set drop must be at least 0 (got -1)"),
        (["--epochs", "0"], "--epochs must be at least 1 (got 0)"),
        (["--device", "abacus"], "--device must name a device of PyTorch"),
    ],
)
def test_wrong_settings_are_one_line(run: Run, arguments: list[str], message: str) -> None:
    result = run("train", "german", *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("alpha", "--set must look like name=value (got 'alpha')"),
        ("alfa=1", "'alfa' is not a parameter of gmmd: did you mean 'alpha'?"),
        ("training=1", "'training' is not a parameter of gmmd"),
        ("K=2.5", "'K' must be a whole number (got '2.5')"),
        ("alpha=big", "'alpha' must be a number (got 'big')"),
        ("lambda_f=", "'lambda_f' must be a number or none (got '')"),
        ("backbone=gnn", "'backbone' must be 'gcn' or 'gin' or 'gat' or 'sage' (got 'gnn'; did you mean 'gin'?)"),
    ],
)
def test_wrong_parameters_name_what_is_expected(setting: str, message: str) -> None:
    with pytest.raises(typer.BadParameter) as error:
        parse_parameters(GMMD, [setting])
    assert str(error.value).startswith(message)


def test_parameters_have_the_types_of_the_method(run: Run) -> None:
    settings = ["K=3", "weight=5", "lambda_f=none", "sample=7", "backbone=gat", "lambda_f_scaling=product"]
    expected = {"K": 3, "weight": 5.0, "lambda_f": None, "sample": 7, "backbone": "gat", "lambda_f_scaling": "product"}
    found = parse_parameters(GMMD, settings)
    assert found == expected
    assert isinstance(found["weight"], float)
    with pytest.raises(typer.BadParameter, match="'K' is set twice"):
        parse_parameters(GMMD, ["K=3", "K=4"])
    with pytest.raises(typer.BadParameter, match="'K' is not a parameter of constant: it has none"):
        parse_parameters(Constant, ["K=3"])
    assert run("train", "german", "--set", "K").exit_code == 2


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("0.3", float | Literal["f1"], 0.3),
        ("f1", float | Literal["f1"], "f1"),
        ("true", bool, True),
        ("False", bool, False),
        ("none", str | None, None),
        ("None", int | None, None),
        ("2", Literal[1, 2], 2),
        ("[1, 2]", tuple[int, ...], [1, 2]),
        ("words", str, "words"),
    ],
)
def test_values_are_read_by_type(text: str, hint: Any, value: Any) -> None:
    assert read_value("x", text, hint) == value
    with pytest.raises(typer.BadParameter, match="'x' must be"):
        read_value("x", "{", Literal[1] | bool | tuple[int, ...])


def test_training_options() -> None:
    options = TrainingOptions(epochs=7, learning_rate=0.5, threshold="f1")
    assert options.applied_to(Training(seed=3)) == Training(epochs=7, learning_rate=0.5, threshold="f1", seed=3)
    assert TrainingOptions(threshold="0.25").applied_to(Training()) == Training(threshold=0.25)
    assert TrainingOptions(epochs=7).applied_to(Constant.default_training()).epochs == 1
    with pytest.raises(typer.BadParameter, match="'threshold' must be a number or 'accuracy' or 'f1'"):
        TrainingOptions(threshold="best").applied_to(Training())
    fair = TrainingOptions(postprocess="thresholds", constraint="equalized_odds").applied_to(Training())
    assert fair == Training(postprocess="thresholds", constraint="equalized_odds")
    with pytest.raises(typer.BadParameter, match=r"'postprocess' must be 'none' or 'thresholds' \(got 'all'\)"):
        TrainingOptions(postprocess="all").applied_to(Training())
    with pytest.raises(typer.BadParameter, match=r"'constraint' must be 'demographic_parity' or .* \(got 'dp'\)"):
        TrainingOptions(constraint="dp").applied_to(Training())


def test_own_tables_from_training_to_prediction(
    run: Run, run_json: RunJson, people: list[str | Path], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    trained = run_json("train", *people, "--method", "gcn", "--epochs", "3", "--out", out, "--json")
    model, tables = out / "model.safetensors", people[:4]

    # The same tables: columns, split and all are known to the model.
    assert run_json("evaluate", model, *tables, "--json")["evaluation"] == trained["evaluation"]

    # Other people, whose labels nobody knows: encoded as those of the training were.
    everybody = pd.read_csv(people[1])
    everybody.drop(columns="hired").to_csv(tmp_path / "others.csv", index=False)
    others = ["--nodes", tmp_path / "others.csv", *people[2:4]]
    for suffix, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        written = tmp_path / f"predictions{suffix}"
        result = run("predict", model, *others, "--out", written)
        assert result.stdout == f"40 predictions are in {written}.\n", result.output
        found = read(written)
        assert list(found) == ["node", "score", "label", "group"]
        assert found["node"].tolist() == everybody["name"].tolist()
        assert found["group"].tolist() == everybody["sex"].tolist()
        assert (found["label"] == "yes").tolist() == (found["score"] > 0.5).tolist()
    data = datasets.from_tables(people[1], people[3], id="name", label="hired", sensitive="sex")
    assert found["score"].tolist() == load_model(model).predict_proba(data)[:, 1].tolist()


def test_thresholds_for_each_group_decide_in_every_command(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shown = run_json(
        "train", *GCN, "--postprocess", "thresholds", "--constraint", "equalized_odds", "--out", out, "--json"
    )
    model = load_model(out / "model.safetensors")
    assert model.group_thresholds_ is not None
    assert model.group_thresholds_.constraint == "equalized_odds"
    assert shown["evaluation"]["threshold"] is None
    found = run_json("evaluate", out / "model.safetensors", "german", "--json")
    assert found["evaluation"] == shown["evaluation"]
    run("predict", out / "model.safetensors", "german", "--out", tmp_path / "found.csv")
    table = pd.read_csv(tmp_path / "found.csv")
    tested = table[table["split"] == "test"]
    for group in shown["evaluation"]["groups"]:
        inside = tested[tested["group"] == group["group"]]
        assert (inside["label"] == group["label"]).mean() == pytest.approx(group["selection_rate"])


def test_training_settings_follow_the_base_method(run_json: RunJson) -> None:
    own = run_json("train", "german", "--method", "thresholds", "--json")
    assert own["training"]["epochs"] == 1
    arguments = ("train", "german", "--method", "thresholds", "--set", "base=gcn", "--epochs", "3", "--json")
    assert run_json(*arguments)["training"]["epochs"] == 3


def test_labelled_others_are_all_test_nodes(
    run: Run, run_json: RunJson, people: list[str | Path], tmp_path: Path
) -> None:
    run("train", *people, "--method", "gcn", "--epochs", "2", "--out", tmp_path / "run")
    others = tmp_path / "others.csv"
    others.write_text(Path(people[1]).read_text() + "\n")
    found = run_json("evaluate", tmp_path / "run/model.safetensors", "--nodes", others, *people[2:4], "--json")
    assert found["evaluation"]["n"] == 40


def test_three_labels_have_three_scores(run: Run, people: list[str | Path], tmp_path: Path) -> None:
    nodes = pd.read_csv(people[1])
    nodes["hired"] = [("yes", "no", "later")[i % 3] for i in range(len(nodes))]
    nodes.to_csv(people[1], index=False)
    result = run("train", *people, "--method", "gcn", "--epochs", "2", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "Groups, in percent" in result.stdout
    run("predict", tmp_path / "run/model.safetensors", *people[:4], "--out", tmp_path / "found.csv")
    found = pd.read_csv(tmp_path / "found.csv")
    scores = found[["score of later", "score of no", "score of yes"]]
    assert scores.sum(axis=1).to_numpy() == pytest.approx(1)
    assert found["label"].tolist() == [str(name).removeprefix("score of ") for name in scores.idxmax(axis=1)]


# The warning is what users are to see: here it is no error.
@pytest.mark.filterwarnings("default::sklearn.exceptions.UndefinedMetricWarning")
def test_what_is_not_defined_is_a_dash_and_a_warning(run: Run, run_json: RunJson, people: list[str | Path]) -> None:
    nodes = pd.read_csv(people[1])
    nodes["part"] = ["train", "train", "val", "val"] * 10
    # Among the test nodes, no woman is hired: how often hired women are found cannot be said.
    nodes.loc[[0, 1, 4, 5, 20, 24], "part"] = "test"
    nodes.to_csv(people[1], index=False)
    arguments = ("train", *people, "--split", "part", "--method", "constant")
    result = run(*arguments)
    assert "on 6 test nodes" in result.stdout
    assert next(line for line in result.stdout.splitlines() if "ΔEO" in line).split()[-1] == "-"
    assert "It is near constant" in result.stdout
    assert "undefined: group 'f' has no node of label 'yes'" in result.stderr
    assert run_json(*arguments, "--json")["evaluation"]["delta_eo"] is None


def test_a_benchmark_is_evaluated_as_it_was_trained_on(run_json: RunJson, stored: Path) -> None:
    data = datasets.load("german", keep_sensitive=False, split_seed=3)
    found = run_json("evaluate", stored, "german", "--json")
    assert found["provenance"]["options"] == data.provenance["options"]
    assert Evaluation.from_dict(found["evaluation"]) == load_model(stored).evaluate(data)
    on_validation = run_json("evaluate", stored, "german", "--on", "val", "--json")
    assert Evaluation.from_dict(on_validation["evaluation"]) == load_model(stored).evaluate(data, "val")
    assert on_validation["split"] == "val"


def test_evaluate_shows_intervals(run: Run, stored: Path) -> None:
    result = run("evaluate", stored, "german", "--bootstrap", "50")
    assert result.exit_code == 0, result.output
    assert "95 % interval" in result.stdout
    assert " to " in next(line for line in result.stdout.splitlines() if line.strip().startswith("AUC"))


def test_other_features_are_refused(run: Run, stored: Path) -> None:
    result = run("evaluate", stored, "credit")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: 'data.x' must have the 26 features of the fitted graph (got 13)")


def test_files_that_are_no_models_are_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("nothing")
    for name, message in (("model.safetensors", "damaged or not one"), ("missing", "there is no such file")):
        result = run("evaluate", tmp_path / name, "german")
        assert result.exit_code == 1
        assert message in result.stderr
        assert result.stderr.count("\n") == 1


def test_predictions_go_to_known_formats_only(run: Run, tmp_path: Path) -> None:
    result = run("predict", "missing", "german", "--out", tmp_path / "found.xlsx")
    assert result.exit_code == 2
    assert "--out must end in .csv or .parquet" in result.stderr


def test_parquet_needs_pyarrow(run: Run, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise ImportError("pyarrow")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", missing)
    result = run("predict", stored, "german", "--out", tmp_path / "found.parquet")
    assert result.exit_code == 1
    assert result.stderr == "Error: writing .parquet files needs pyarrow: pip install fairpass[parquet]\n"
    assert list(tmp_path.iterdir()) == []


def test_methods_are_listed(run: Run, run_json: RunJson) -> None:
    listed: dict[str, list[list[str]]] = {}
    for line in run("methods").stdout.splitlines():
        if line and not line.startswith(" "):
            lines = listed.setdefault(line, [])
        elif line.strip(" ─"):
            lines.append(re.split(r"\s{2,}", line.strip()))
    about = {each["name"]: each for each in run_json("methods", "--json")}
    words = {"never": "never", "training": "in training", "prediction": "at prediction"}
    assert list(listed) == ["Plain", "Pre-processing", "In-processing", "Post-processing"]
    for stage, (header, *rows) in listed.items():
        assert header == ["method", "idea", "groups needed"]
        expected = [each for each in about.values() if each["stage"] == stage.lower()]
        assert rows == [[each["name"], each["summary"], words[each["needs_groups"]]] for each in expected]
    assert list(about) == names()
    assert about["gmmd"]["summary"] == GMMD.summary
    assert about["gmmd"]["parameters"]["backbone"] == "gcn"
    assert about["constant"]["training"]["epochs"] == 1
    nifty = about["nifty"]
    assert (nifty["stage"], nifty["needs_groups"]) == ("in-processing", "training")
    assert nifty["takes_two"] == ["labels", "groups"]
    assert nifty["control"] == {"similarity": 0.0, "flip": False}
    assert about["gcn"]["control"] == {}


def test_methods_fit_on_a_narrow_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "console", Console(width=80, highlight=False))
    lines = run("methods").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    first = [line.split()[0] for line in lines if line.strip()]
    assert set(names()) <= set(first)


def test_types_are_the_library_s() -> None:
    assert get_args(Split) == get_args(SplitName)
    assert set(vars(TrainingOptions())) < set(vars(Training()))


@pytest.mark.parametrize("command", ["train", "evaluate", "predict", "methods", "compare", "demo"])
def test_help_is_light_and_has_examples(run_process: Callable[..., Any], command: str) -> None:
    script = (
        "import sys\nfrom fairpass.cli import main\n"
        "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = run_process(command, "--help", script=script)
    assert f"fairpass {command}" in done.stdout
    assert "Examples" in done.stdout
    assert {"torch", "pandas", "sklearn", "numpy"}.isdisjoint(done.stderr.split())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1e30", "training must give finite outputs (got nan at epoch 0; a smaller --learning-rate may help)"),
        ("-1", "--learning-rate must be positive and finite (got -1.0)"),
    ],
)
def test_errors_name_the_option(run: Run, tmp_path: Path, value: str, message: str) -> None:
    options = ["--method", "gcn", "--epochs", "2", "--learning-rate", value, "--out", tmp_path / "out"]
    result = run("train", "german", *options)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == f"Error: {message}"
