"""A file of every kind that fairpass stores, and for each kind who reads it."""

import logging
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.methods.ingredients import Interrupt, make, small_graph
from tests.torture.materials import steady, write_project
from tests.torture.mutations import change_bytes, mutated_document, mutated_tensors
from tests.tuning.points import point

from fairpass.datasets import from_tables_arrays
from fairpass.datasets.feature_graphs import cached_edges
from fairpass.datasets.out_of_core.partition import partition
from fairpass.datasets.parts import Manifest, join_parts, read_part, write_parts
from fairpass.errors import DataError, FairpassError
from fairpass.methods import FMP, GCN, GMMD, Constant, Logistic, NodeClassifier, method, names
from fairpass.methods.header import KIND
from fairpass.metrics import Interval
from fairpass.projects.config import Config, load_config
from fairpass.projects.fitted_graph import fitted_graph
from fairpass.projects.pipeline import Record, Workspace
from fairpass.projects.predictions import prediction_table, read_table, write_table
from fairpass.projects.steps import STEPS
from fairpass.report import Evidence, collect
from fairpass.report.figures_file import figures
from fairpass.report.model_card import render_card
from fairpass.report.page import render
from fairpass.runs import Comparison, RunStore, run
from fairpass.training import Training
from fairpass.tuning import Tuned, tune

TRAINING = Training(epochs=3)
_CHECKPOINT = "fairpass checkpoint"
_MODELS: dict[str, NodeClassifier] = {
    "gmmd": GMMD(hidden=4, training=TRAINING),
    "logistic": Logistic(),
    "fmp": FMP(hidden=4, training=TRAINING),
}
_TABLES = {name: {"source": f"{name}.csv", "sha256": 64 * "0"} for name in ("nodes", "edges")}
_PROVENANCE: dict[str, Any] = {"encoding": {}, "options": {}, **_TABLES}
_PART = ("x", "y", "halo", "indices", "indptr")
# What a partition that was interrupted after its pairs has left.
_WORK = {
    "step": "nodes.json",
    "step of a column": "column-0001.json",
    "step array": "nodes/y.npy",
    "step column": "column-0001.npy",
    "step table": "pairs.parquet",
}
_UNFINISHED, _LOSSES = "unfinished", "losses.json"
_OF_TABLES: Any = {"id": "name", "label": "hired", "sensitive": "sex"}


@dataclass(frozen=True)
class Kind:
    """A stored file, how it is damaged, who reads it, and what can be done with what was read."""

    file: Path
    damage: Callable[[Path, Random], str]
    read: Callable[[Path], Any]
    use: Callable[[Any], Any] = repr
    few: bool = False  # whether to use it takes long
    signed: bool = True  # whether a changed byte is noticed
    around: Path | None = None  # the directory of files that belong to it

    def copy_to(self, folder: Path) -> Path:
        """Return a copy of the file, to be damaged."""
        if self.around is None:
            folder.mkdir(parents=True)
            return Path(shutil.copy(self.file, folder))
        shutil.copytree(self.around, folder / self.around.name)
        return folder / self.file.relative_to(self.around.parent)


NAMES = (
    *("comparison", "record", "tuned", "evidence", "manifest", "models", "data"),
    *("gmmd", "fmp", "logistic", "checkpoint", "settings", "parts", *(f"part {name}" for name in _PART)),
    *("losses", "packed", "study", "predictions", "edges", "partition", *_WORK),
)
EVERY = (*NAMES, *(f"model {name}" for name in names()))
"""Also a model of every method."""


def checkpointed() -> GCN:
    return GCN(hidden=4, training=Training(epochs=4))


def write_all(folder: Path) -> None:
    """Write a file of every kind."""
    data = small_graph()
    methods: dict[str, NodeClassifier] = {"constant": Constant(), "gcn": GCN(hidden=4, training=TRAINING)}
    comparison = Comparison.of(methods, data, folder / "R.json")
    specs = comparison.specs(methods, [0])
    run(specs, comparison, graphs={comparison.graph: data}, together=False)
    run(specs[:1], RunStore(folder / "records"), graphs={comparison.graph: data})
    points = (point(0.7, 0.2, hidden=4), point(0.6, 0.1, hidden=8))
    Tuned("gcn", points, ("hidden",), "study", {"seeds": 1}, "graph").save(folder / "tuned.json")
    fitted = {name: [each.fit(data)] for name, each in methods.items()}
    collect(data, fitted, title="small", points=points).save(folder)
    space = workspace(load_config(write_project(folder)))
    space._note(STEPS["load"], Record("done", "0", "2026-01-01T00:00:00Z", 1.0, {"data.json": 64 * "0"}))
    choice = {"chosen": "gcn", "reference": "constant", "reason": "it is fair", "met": True, "tried": 2}
    files = {name: [f"models/{name}-0.safetensors"] for name in methods}
    space.write("models.json", {**choice, "models": files, "promise": None})
    space.write("data.json", {"provenance": _PROVENANCE})
    with suppress(KeyboardInterrupt):
        checkpointed().fit(data, callbacks=[Interrupt(2)], checkpoint=folder / "fit")
    for name, classifier in _MODELS.items():
        classifier.fit(data).save(folder / f"{name}.safetensors")
    for name in names():
        make(method(name)).fit(data).save(folder / f"model {name}.safetensors")
    tables = from_tables_arrays(folder / "people.csv", folder / "friends.csv", **_OF_TABLES)
    write_parts(tables, folder / "parts", 2)
    with suppress(KeyboardInterrupt):
        cut(folder, folder / _UNFINISHED, _interrupt)
    space.write(_LOSSES, {"gcn": asdict(Interval(0.1, 0.2))})
    store = RunStore(folder / "records")
    store.pack([record["key"] for record in store], folder / "packed/records.jsonl")
    search(folder / "study.db")
    write_table(prediction_table(fitted["gcn"][0], data), folder / "predictions.csv")
    own_edges(folder)


def cut(folder: Path, out: Path, progress: Any = None) -> Any:
    """Cut the graph of the tables into parts, or go on with it; return the graph."""
    partition(folder / "people.csv", folder / "friends.csv", out, parts=2, progress=progress, **_OF_TABLES)
    return vars(join_parts(out))


def _interrupt(share: float, what: str) -> None:
    if what == "Counting edges":
        raise KeyboardInterrupt


def search(path: Path) -> Any:
    found = tune(small_graph(), "logistic", budget=2, storage=path, seeds=1).to_dict()
    return steady(found)


def own_edges(folder: Path) -> Any:
    """Make edges of features, or read those that were made before."""
    return cached_edges(np.eye(5), "a path", lambda _: np.array([[0, 1], [1, 2]]), cache_dir=folder).tolist()


def kinds(folder: Path) -> Mapping[str, Kind]:
    """Return the kinds of the files that `write_all` wrote."""
    data, space = small_graph(), workspace(load_config(folder / "fairpass.toml"))
    predict: Any = lambda found: found.predict_proba(data)  # noqa: E731 # one of several in a table

    def damage_model(path: Path, random: Random) -> str:
        return mutated_tensors(path, KIND, random)

    def damage_checkpoint(path: Path, random: Random) -> str:
        return mutated_tensors(path, _CHECKPOINT, random)

    def manifest(path: Path) -> Any:
        return workspace(moved(space, path)).steps

    def go_on(path: Path) -> Any:
        return cut(folder, next(each for each in path.parents if each.name == _UNFINISHED))

    def losses(path: Path) -> Any:
        return workspace(moved(space, path)).read(path.name, dict[str, Interval])

    def part(path: Path) -> Any:
        return read_part(path.parent.parent, 0).arrays()

    def resume(path: Path) -> Any:
        return checkpointed().fit(data, checkpoint=path)

    return {
        "comparison": Kind(folder / "R.json", mutated_document, Comparison.load, Comparison.to_dict),
        "record": Kind(next((folder / "records").iterdir()), mutated_document, record),
        "tuned": Kind(folder / "tuned.json", mutated_document, Tuned.load, Tuned.to_dict),
        "evidence": Kind(folder / "evidence.json", mutated_document, Evidence.load, rendered, few=True),
        "manifest": Kind(space.path("manifest.json"), mutated_document, manifest),
        "models": Kind(space.path("models.json"), mutated_document, lambda p: workspace(moved(space, p)).trained),
        "data": Kind(space.path("data.json"), mutated_document, lambda p: fitted_graph(_PROVENANCE, str(p.parent))),
        **{name: Kind(folder / f"{name}.safetensors", damage_model, NodeClassifier.load, predict) for name in _MODELS},
        **{
            f"model {name}": Kind(folder / f"model {name}.safetensors", damage_model, NodeClassifier.load, predict)
            for name in names()
        },
        "checkpoint": Kind(folder / "fit", damage_checkpoint, resume, predict),
        "settings": Kind(folder / "fairpass.toml", damage_bytes, load_config, signed=False),
        "parts": Kind(
            folder / "parts/manifest.json", mutated_document, lambda p: parts(p.parent), around=folder / "parts"
        ),
        **{
            f"part {name}": Kind(folder / f"parts/part-0000/{name}.npy", damage_bytes, part, around=folder / "parts")
            for name in _PART
        },
        "losses": Kind(space.path(_LOSSES), mutated_document, losses),
        "packed": Kind(folder / "packed/records.jsonl", mutated_document, record),
        "study": Kind(folder / "study.db", damage_bytes, search, few=True, signed=False),
        "predictions": Kind(folder / "predictions.csv", damage_bytes, read_table, signed=False),
        "edges": Kind(next(folder.glob("*.graph")), damage_bytes, lambda p: own_edges(p.parent)),
        "partition": Kind(
            folder / _UNFINISHED / "partition.json", mutated_document, go_on, few=True, around=folder / _UNFINISHED
        ),
        **{
            name: Kind(
                folder / _UNFINISHED / ".partition" / file,
                mutated_document if file.endswith(".json") else damage_bytes,
                go_on,
                few=True,
                around=folder / _UNFINISHED,
            )
            for name, file in _WORK.items()
        },
    }


def damage_bytes(path: Path, random: Random) -> str:
    path.write_bytes(change_bytes(path.read_bytes(), random))
    return "bytes"


def parts(folder: Path) -> Any:
    return repr(Manifest.read(folder)), vars(join_parts(folder))


def record(path: Path) -> Any:
    """Read a record; one that is damaged counts as missing, with a warning, and its run is made again."""
    store = RunStore(path.parent)
    if not len(store):
        raise DataError(f"'{path}' is made again")
    return store.frame().to_dict()


def rendered(evidence: Evidence) -> Any:
    """Make all that is made of evidence; whatever was read, this must not fail."""
    try:
        return render([evidence], include_people=True), figures(evidence), render_card(evidence)
    except FairpassError as error:
        raise AssertionError("evidence that was read must be shown") from error


def workspace(config: Config) -> Workspace:
    return Workspace(config, lambda fraction, words: None)


def moved(space: Workspace, file: Path) -> Config:
    return space.config.model_copy(update={"folder": file.parent, "directory": "."})


def quiet() -> None:
    """Say nothing of what is noticed and passed over."""
    logging.disable(logging.CRITICAL)
