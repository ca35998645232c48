"""Numbers that cannot be computed with, and counts that would take for ever, are refused before any work."""

import re
from collections.abc import Callable
from contextlib import suppress
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.methods.ingredients import make, small_graph
from torch_geometric.data import Data
from typer.testing import CliRunner

from fairpass import datasets
from fairpass.cli.app import app
from fairpass.cli.options import TEXTS
from fairpass.datasets.options import TableOptions
from fairpass.documents import read_document, write_document
from fairpass.errors import DataError
from fairpass.experiments.attribution import Attribution
from fairpass.experiments.benchmark.protocol import Protocol
from fairpass.methods import FairVGNN, method
from fairpass.methods.header import KIND
from fairpass.methods.registry import OWN
from fairpass.metrics import evaluate
from fairpass.parameters import (
    LARGEST,
    LARGEST_SEED,
    MOST,
    MOST_CLASSES,
    MOST_JOBS,
    MOST_NODES,
    MOST_SEEDS,
    alternatives,
)
from fairpass.projects.sections import TrainingSection, Tuning
from fairpass.runs import Configuration
from fairpass.runs.executors import Processes
from fairpass.training import Task, Training
from fairpass.training.tensors import read_tensors, write_tensors
from fairpass.tuning import tune
from fairpass.tuning.budget import Budget


@pytest.mark.parametrize("value", [inf, -inf, nan, 1e300, -1e300, 10**20, -(10**20)])
@pytest.mark.parametrize("kind", [Training, *map(method, OWN)], ids=["training", *OWN])
def test_every_parameter_refuses_numbers_without_measure(kind: Any, value: float) -> None:
    for each in kind.declared.values():
        takes = {int, float} & {*alternatives(each.hint)}
        if takes and not (each.name.endswith("_rate") and value == 10**20):  # diverges, and says so
            with pytest.raises(ValueError, match=rf"^'{each.name}' must be .* \(got {re.escape(str(value))}\)"):
                kind(**{each.name: value})


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("gmmd", {"lambda_s": inf}, r"'lambda_s' must be at least 0 and at most 1e\+12 \(got inf\)"),
        ("gmmd", {"alpha": 1e-300}, r"'alpha' must be at least 1e-12 \(got 1e-300\)"),
        ("gmmd", {"fair_steps": 10**7}, r"'fair_steps' must be at least 0 and at most 1,000 \(got 10000000\)"),
        ("gcn", {"hidden": 10**9}, r"'hidden' must be at least 1 and at most 100,000 \(got 1000000000\)"),
        ("gcn", {"num_layers": 10**9}, r"'num_layers' must be at least 1 and at most 100 \(got 1000000000\)"),
    ],
)
def test_limits_in_words(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method(name)(**parameters)


def largest(kind: Any, name: str) -> float | None:
    """Return the largest number that a parameter takes, None if it takes none."""
    each = kind.declared[name]
    takes = {int, float} & {*alternatives(each.hint)}
    most = int(each.limit or (LARGEST if float in takes else MOST))
    for value in (most, each.at_most, 0.5) if takes else ():
        with suppress(ValueError):
            each.check(value)
            return value
    return None


@pytest.mark.parametrize("kind", [*map(method, OWN)], ids=[*OWN])
def test_a_model_file_holds_every_number_that_the_constructor_takes(kind: Any, tmp_path: Path) -> None:
    data = small_graph()
    model = make(kind, epochs=1).fit(data)
    file = model.save(tmp_path / "model")
    tensors, header = read_tensors(file, KIND)
    # Tensors depend on these.
    shaping = {"num_layers", "hidden", "K", "fair_steps", "environments", "sample"}
    for name in kind.declared.keys() - shaping - {"training"}:
        if (value := largest(kind, name)) is None:
            continue
        try:
            changed = kind(**{**model.hyperparameters, name: value})
            changed.build(Task(data))
        except ValueError:  # does not fit the other parameters, or the graph
            continue
        write_tensors(file, KIND, tensors, {**header, "parameters": {**header["parameters"], name: value}})
        assert getattr(kind.load(file), name) == getattr(changed, name)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("gmmd", {"sample": MOST_NODES}), ("fairgnn", {"num_known": MOST_NODES}), ("edits", {"alpha": 20_000_000})],
)
def test_a_model_with_a_large_number_is_loaded(name: str, parameters: dict[str, Any], tmp_path: Path) -> None:
    data = small_graph()
    model = method(name)(**parameters, training=Training(epochs=1)).fit(data)
    loaded = method(name).load(model.save(tmp_path / "model"))
    assert loaded.hyperparameters == model.hyperparameters
    assert loaded.predict(data).tolist() == model.predict(data).tolist()


def test_a_very_large_whole_number_is_stored_as_a_float(tmp_path: Path) -> None:
    model = FairVGNN(classifier_rate=2**63, training=Training(learning_rate=10**20))
    settings = {"parameters": model.hyperparameters, "training": model.training.to_dict()}
    assert read_document(write_document(tmp_path / "file", settings), None, dict) == settings


@pytest.mark.parametrize(("where", "what"), [("y", "labels"), ("sens", "groups")])
def test_more_classes_than_a_model_file_may_have_are_refused(where: str, what: str) -> None:
    number = MOST_CLASSES + 1
    graph = Data(x=torch.ones(6 * number, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    numbers, other = torch.arange(6 * number) % number, torch.arange(6 * number) // number % 2
    graph.y, graph.sens = (numbers, other) if where == "y" else (other, numbers)
    for third, split in enumerate(("train", "val", "test")):
        graph[f"{split}_mask"] = torch.arange(6 * number) // (2 * number) == third
    with pytest.raises(DataError, match=rf"'data.{where}' must have at most 1,000 {what} \(got 1,001\)"):
        method("gcn")(training=Training(epochs=1)).fit(graph)


@pytest.mark.parametrize("largest", [5000, 10**9, 2**62])
@pytest.mark.parametrize("where", ["y", "sens"])
def test_a_huge_index_is_refused_before_it_takes_memory(where: str, largest: int) -> None:
    graph = small_graph()
    graph[where] = graph[where].clone().clamp(max=1) * largest
    graph.group_names = graph.label_names = None
    with pytest.raises(DataError, match=rf"'data.{where}' must have at most 1,000 .* \(got {largest + 1:,}\)"):
        method("constant")().fit(graph)


LARGE = 10**20
CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "seed": (lambda: Training(seed=2**70), rf"'seed' must be at least 0 and at most {LARGEST_SEED:,}"),
    "rate": (lambda: Training(learning_rate=1e38), r"'learning_rate' must be positive and at most 1e\+30"),
    "trials": (lambda: Budget(trials=LARGE), rf"'trials' must be at most {MOST:,}"),
    "jobs": (lambda: Processes(LARGE), rf"'jobs' must be at most {MOST_JOBS:,}"),
    "protocol": (lambda: Protocol.of(seeds=LARGE), rf"'seeds' must be at most {MOST_SEEDS:,}"),
    "attribution": (
        lambda: Attribution.of("german", Configuration("gmmd"), splits=2, seeds=LARGE),
        rf"'seeds' must be at most {MOST_SEEDS:,}",
    ),
    "tune": (lambda: tune(datasets.load("german"), "gcn", budget=1, seeds=LARGE), r"'seeds' must be at most 10,000"),
    "split": (lambda: datasets.load("german", split_seed=2**70), r"'split_seed' must be at most 4,294,967,295"),
    "tables": (
        lambda: TableOptions.parse({"label": "a", "sensitive": "b", "seed": 2**70}),
        r"'seed' must be at most 4,294,967,295 \(got 1180591620717411303424\)",
    ),
    "tuning": (lambda: Tuning(seeds=LARGE), r"less than or equal to 10000"),
    "training": (lambda: TrainingSection(seeds=LARGE), r"less than or equal to 10000"),
    "bootstrap": (
        lambda: evaluate(torch.tensor([0, 1]), torch.tensor([0.1, 0.9]), sens=torch.tensor([0, 1]), bootstrap=LARGE),
        r"'bootstrap' must be at most 1,000,000",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_counts_and_seeds_have_an_end(name: str) -> None:
    call, message = CALLS[name]
    with pytest.raises(ValueError, match=message):
        call()


COMMANDS = {
    "train german --method gcn --seed 1180591620717411303424": "--seed must be at least 0 and at most 4,294,967,295",
    "train german --method gcn --seed=-1": "--seed must be at least 0 (got -1)",
    "train german --method gcn --learning-rate 1e38": "--learning-rate must be positive and at most 1e+30 (got 1e+38)",
    "train german --set lambda_s=inf": "--set lambda_s must be at least 0 and at most 1e+12 (got inf)",
    "train german --set fair_steps=10000000": "--set fair_steps must be at least 0 and at most 1,000 (got 10000000)",
    "train german --epochs 100000000000000000000": "--epochs must be at least 1 and at most 1,000,000,000",
    "audit german --split-seed 1180591620717411303424": "--split-seed must be at most 4,294,967,295",
    "compare german --seeds 100000000000000000000": "--seeds must be at most 10,000 (got",
    "compare german --jobs 100000000000000000000": "--jobs must be at most 1,024 (got",
    "tune german --trials 100000000000000000000": "--trials must be at most 1,000,000 (got",
    "evaluate x german --bootstrap 100000000000000": "--bootstrap must be at most 1,000,000 (got",
}


@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_line_says_it_in_its_own_words(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    result = CliRunner().invoke(app, line.split())
    assert result.exit_code in (1, 2)
    assert COMMANDS[line] in " ".join(result.stderr.split())
    assert [*tmp_path.iterdir()] == []


def test_the_command_line_has_the_limits_of_the_library() -> None:
    limits = {"jobs": MOST_JOBS, "seeds": MOST_SEEDS, "splits": MOST_SEEDS, "trials": MOST, "bootstrap": MOST}
    tables = [TEXTS["options"], *(about["options"] for about in TEXTS.values() if "options" in about)]
    found = [(name, about["max"]) for table in tables for name, about in table.items() if name in limits]
    assert {name for name, _ in found} == {*limits}
    assert all(most == limits[name] for name, most in found)


@pytest.mark.parametrize("name", ["max_levels", "min_group_size"])
def test_counts_of_tables_fit_into_stored_files(name: str) -> None:
    with pytest.raises(DataError, match=rf"'{name}' must be at most 2,147,483,647 \(got {10**20}\)"):
        TableOptions.parse({name: 10**20, "label": "hired", "sensitive": "sex"})
