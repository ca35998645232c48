"""The examples run, as their readers would run them, and show what they say."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from tests.methods.battery import MethodBattery
from tests.methods.ingredients import small_graph
from tests.trial import Trial, command, script

from fairpass.methods import GCN, NodeClassifier, registry
from fairpass.training import Training

EXAMPLES = Path(__file__).parents[1] / "examples"
PACKAGE = EXAMPLES / "custom_method"


def run(*arguments: str | Path, work: Path, function: Callable[..., None] = script) -> str:
    """Run a script in a directory, and return what it printed."""
    outcome = Trial([str(part) for part in arguments], work, function).outcome()
    assert (outcome.code, outcome.faults()) == (0, []), outcome.describe()
    return outcome.stdout


def fairpass_with(package: str, *arguments: str) -> None:
    """Do what `PYTHONPATH=PACKAGE fairpass ARGUMENTS` does."""
    sys.path.insert(0, package)
    command(*arguments)


@pytest.fixture(autouse=True)
def _few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCHS", "8")
    monkeypatch.setenv("TRIALS", "2")


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.name != "__pycache__"} == {
        "README.md",
        "custom_method",
        "german_walkthrough.py",
        "own_tables.py",
        "pyg_layer.py",
    }


def test_layer_in_a_model_of_ones_own(tmp_path: Path) -> None:
    shown = run(EXAMPLES / "pyg_layer.py", work=tmp_path / "work")
    without, fair = (float(number) for number in re.findall(r"DP ([\d.]+)", shown))
    assert fair < without / 2


def test_own_tables(tmp_path: Path) -> None:
    shown = run(EXAMPLES / "own_tables.py", "out", work=tmp_path)
    assert "600 people" in shown
    plain, fair = (float(number) for number in re.findall(r"DP ([\d.]+)", shown))
    assert fair < plain
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "people.csv",
        "colleagues.csv",
        "model.safetensors",
        "predictions.csv",
    }
    predictions = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert predictions["person"].is_unique
    assert predictions["score"].between(0, 1).all()
    assert (~predictions["was known"]).sum() == 60


def test_walkthrough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUT", str(tmp_path))
    shown = run(EXAMPLES / "german_walkthrough.py", work=tmp_path / "work")
    assert "1000 customers, 21742 edges" in shown
    assert "(near constant)" in shown
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory in which the example's package is installed, built from a copy."""
    copy = tmp_path_factory.mktemp("source") / "custom_method"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("installed")
    offline = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation")
    pip = [sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(copy)]
    made = subprocess.run(pip, cwd=target, capture_output=True, text=True, timeout=600, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    return target


def test_a_package_adds_a_method(installed: Path, tmp_path: Path) -> None:
    def fairpass(*arguments: str) -> Any:
        return json.loads(run(installed, *arguments, "--json", work=tmp_path, function=fairpass_with))

    (listed,) = [each for each in fairpass("methods") if each["name"] == "reweighing"]
    assert listed["parameters"]["strength"] == 1.0
    assert (listed["stage"], listed["control"]) == ("pre-processing", {"strength": 0.0})
    trained = fairpass(
        "train", "german", "--method", "reweighing", "--set", "strength=2", "--epochs", "3", "--out", "run"
    )
    assert trained["parameters"]["strength"] == 2.0
    evaluated = fairpass("evaluate", "run/model.safetensors", "german")
    assert evaluated["evaluation"] == trained["evaluation"]


@pytest.fixture(scope="module")
def module() -> Iterator[Any]:
    """Return the example's module; its method is in the registry while it is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PACKAGE)
        patch.setitem(registry.OWN, "reweighing", "fairpass_reweighing:Reweighing")
        yield importlib.import_module("fairpass_reweighing")


def test_weighted_labels_do_not_depend_on_the_group(module: Any) -> None:
    sens = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 1, -1])
    y = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0, 1, 1])
    weights = module.group_label_weights(sens, y)
    shares = [float((weights * y)[sens == group].sum() / weights[sens == group].sum()) for group in (0, 1)]
    assert shares == pytest.approx([5 / 9, 5 / 9])
    assert weights[-1] == 1


def test_without_strength_it_is_the_plain_network(module: Any) -> None:
    data, training = small_graph(), Training(epochs=4)
    none, plain = module.Reweighing(strength=0, training=training), GCN(training=training)
    assert torch.allclose(none.fit(data).predict_proba(data), plain.fit(data).predict_proba(data), atol=1e-6)


class TestReweighing(MethodBattery):
    """The method goes through what every method of the library goes through."""

    @pytest.fixture(scope="class")
    @classmethod
    def kind(cls, module: Any) -> type[NodeClassifier]:
        found: type[NodeClassifier] = module.Reweighing
        return found
