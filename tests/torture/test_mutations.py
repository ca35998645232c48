"""Damaged files of every kind: one error that names the file, or a result; no traceback, no hang."""

import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.methods.ingredients import Interrupt, small_graph
from tests.torture.mutations import mutated_document, mutated_tensors
from tests.tuning.points import point

from fairpass.errors import FairpassError, ModelFileError
from fairpass.methods import FMP, GCN, GMMD, Constant, Logistic, NodeClassifier
from fairpass.methods.header import KIND
from fairpass.projects.config import Config, load_config
from fairpass.projects.fitted_graph import fitted_graph
from fairpass.projects.pipeline import Record, Workspace
from fairpass.projects.steps import STEPS
from fairpass.report import Evidence, collect
from fairpass.report.evidence import whole
from fairpass.report.page import render
from fairpass.runs import Comparison, RunStore, run
from fairpass.training import Training
from fairpass.training.tensors import read_tensors, write_tensors
from fairpass.tuning import Tuned

SEED, EACH = 0, 40
TRAINING = Training(epochs=3)
_TOML = 'name = "run"\n[data]\nnodes = "n.csv"\nedges = "e.csv"\nlabel = "y"\n[groups]\nsensitive = "s"\n'
_TABLES = {name: {"source": f"{name}.csv", "sha256": 64 * "0"} for name in ("nodes", "edges")}
_PROVENANCE: dict[str, Any] = {"encoding": {}, "options": {}, **_TABLES}


@dataclass(frozen=True)
class Kind:
    """A stored file, how it is damaged, and who reads it."""

    file: Path
    damage: Callable[[Path, Random], str]
    read: Callable[[Path], Any]
    use: Callable[[Any], Any] = repr  # whatever was read must be usable
    count: int = EACH


def checkpointed() -> GCN:
    return GCN(hidden=4, training=Training(epochs=4))


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Kind]:
    folder, data = tmp_path_factory.mktemp("stored"), small_graph()
    methods: dict[str, NodeClassifier] = {"constant": Constant(), "gcn": GCN(hidden=4, training=TRAINING)}
    comparison = Comparison.of(methods, data, folder / "R.json")
    specs = comparison.specs(methods, [0])
    run(specs, comparison, graphs={comparison.graph: data}, together=False)
    store = RunStore(folder / "records")
    run(specs[:1], store, graphs={comparison.graph: data})
    points = (point(0.7, 0.2, hidden=4), point(0.6, 0.1, hidden=8))
    tuned = Tuned("gcn", points, ("hidden",), "study", {"seeds": 1}, "graph")
    fitted = {name: [each.fit(data)] for name, each in methods.items()}
    evidence = collect(data, fitted, title="small", points=points)
    (folder / "fairpass.toml").write_text(_TOML)
    space = workspace(load_config(folder / "fairpass.toml"))
    space._note(STEPS["load"], Record("done", "0", "2026-01-01T00:00:00Z", 1.0, {"data.json": 64 * "0"}))
    choice = {"chosen": "gcn", "reference": "constant", "reason": "it is fair", "met": True, "tried": 2}
    files = {name: [f"models/{name}-0.safetensors"] for name in methods}
    space.write("models.json", {**choice, "models": files, "promise": None})
    space.write("data.json", {"provenance": _PROVENANCE})
    with pytest.raises(KeyboardInterrupt):
        checkpointed().fit(data, callbacks=[Interrupt(2)], checkpoint=folder / "fit")

    def damage_model(path: Path, random: Random) -> str:
        return mutated_tensors(path, KIND, random)

    def damage_checkpoint(path: Path, random: Random) -> str:
        return mutated_tensors(path, "fairpass checkpoint", random)

    def model(classifier: NodeClassifier) -> Kind:
        file = classifier.fit(data).save(folder / f"{classifier.name}.safetensors")
        return Kind(file, damage_model, NodeClassifier.load, lambda found: found.predict_proba(data))

    return {
        "comparison": Kind(folder / "R.json", mutated_document, Comparison.load, Comparison.to_dict),
        "record": Kind(next((folder / "records").iterdir()), mutated_document, lambda p: RunStore(p.parent).frame()),
        "tuned": Kind(tuned.save(folder / "tuned.json"), mutated_document, Tuned.load, Tuned.to_dict),
        "evidence": Kind(evidence.save(folder), mutated_document, Evidence.load, rendered, 15),
        "manifest": Kind(space.path("manifest.json"), mutated_document, lambda p: workspace(moved(space, p)).steps),
        "models": Kind(space.path("models.json"), mutated_document, lambda p: workspace(moved(space, p)).trained),
        "data": Kind(space.path("data.json"), mutated_document, lambda p: fitted_graph(_PROVENANCE, str(p.parent))),
        "gmmd": model(GMMD(hidden=4, training=TRAINING)),
        "logistic": model(Logistic()),
        "fmp": model(FMP(hidden=4, training=TRAINING)),
        "checkpoint": Kind(folder / "fit", damage_checkpoint, lambda p: checkpointed().fit(data, checkpoint=p)),
    }


def rendered(evidence: Evidence) -> None:
    with whole():
        render([evidence])


def workspace(config: Config) -> Workspace:
    return Workspace(config, lambda fraction, words: None)


def moved(space: Workspace, file: Path) -> Config:
    return space.config.model_copy(update={"folder": file.parent, "directory": "."})


NAMES = (
    *("comparison", "record", "tuned", "evidence", "manifest", "models", "data"),
    *("gmmd", "fmp", "logistic", "checkpoint"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_one_error_that_names_it(
    name: str, kinds: Mapping[str, Kind], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    kind = kinds[name]
    for number in range(kind.count):
        file = tmp_path / str(number) / kind.file.name
        file.parent.mkdir()
        shutil.copy(kind.file, file)
        how = kind.damage(file, Random(f"{SEED} {name} {number}"))
        read, message = outcome(partial(kind.read, file))
        if message is None:
            _, unusable = outcome(partial(kind.use, read))
            assert how != "bytes" or unusable is None, "bytes that were accepted must be those that were written"
        else:
            assert file.name in message or str(file.parent) in message, (number, how)
            assert len(message) < 3000


def outcome(action: Callable[[], Any]) -> tuple[Any, str | None]:
    """Return a result, or the message of an error that a user can read; any other error is the test's."""
    try:
        return action(), None
    except FairpassError as error:
        return None, str(error)


def test_every_whole_file_is_read(kinds: Mapping[str, Kind], tmp_path: Path) -> None:
    for name, kind in kinds.items():
        if name != "data":  # its tables do not exist
            (tmp_path / name).mkdir()
            kind.use(kind.read(Path(shutil.copy(kind.file, tmp_path / name))))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("gmmd", {"parameters": {"K": 10**9}}),
        ("gmmd", {"parameters": {"K": 10**6}}),
        ("gmmd", {"parameters": {"fair_steps": 10**6}}),
        ("gmmd", {"parameters": {"num_layers": 10**6}}),
        ("gmmd", {"parameters": {"hidden": 10**7}}),
        ("gmmd", {"sizes": {"num_features": 10**8, "feature_names": []}}),
        ("gmmd", {"sizes": {"num_classes": 10**3}}),
        ("gmmd", {"sizes": {"num_groups": 10**3}}),
        ("gmmd", {"sizes": {"num_classes": 10**6}}),
        ("fmp", {"parameters": {"K": 10**6}}),
    ],
)
def test_a_header_cannot_ask_for_more_than_its_tensors_have(
    name: str, changes: dict[str, Any], kinds: Mapping[str, Kind], tmp_path: Path
) -> None:
    file = Path(shutil.copy(kinds[name].file, tmp_path))
    tensors, header = read_tensors(file, KIND)
    write_tensors(file, KIND, tensors, {**header, **{part: {**header[part], **changes[part]} for part in changes}})
    with pytest.raises(ModelFileError, match=file.name):
        NodeClassifier.load(file)
