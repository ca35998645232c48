"""Run a project step by step in its run directory; steps that are done and still valid are skipped."""

import hashlib
import json
import logging
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property, reduce
from importlib.metadata import version
from operator import getitem
from pathlib import Path
from typing import Any, Literal, TypeVar

from torch_geometric.data import Data

from fairpass import __version__
from fairpass.datasets import from_tables
from fairpass.datasets.splits import check_cells
from fairpass.documents import STRICT, Seconds, Stored, Values, read_document, write_document
from fairpass.errors import DataError
from fairpass.files import sha256
from fairpass.locks import in_use
from fairpass.methods import NodeClassifier, load_model
from fairpass.projects.config import MANIFEST, Config
from fairpass.projects.steps import STEPS, TRAINED, Step, Trained

T = TypeVar("T")
logger = logging.getLogger(__name__)

Status = Literal["running", "done", "failed", "interrupted"]

_KIND = "fairpass run"
_CHANGED = "has changed since it was written"
_LIBRARIES = ("torch", "torch-geometric", "numpy", "pandas", "scikit-learn", "optuna")


@dataclass(frozen=True)
class Record:
    """The outcome of a step, as the manifest has it."""

    __pydantic_config__ = STRICT

    status: Status
    inputs: str  # hash of everything that the result depends on
    started: str
    seconds: Seconds | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)  # files, relative to the run directory: SHA-256
    error: str | None = None


class _Manifest(Stored):
    kind: str
    version: str
    python: str
    libraries: dict[str, str]
    asked: Values
    steps: dict[str, Record]


@dataclass(frozen=True)
class Event:
    """Progress of a step."""

    step: Step
    status: Literal["started", "running", "done", "skipped"]
    fraction: float = 0.0
    words: str = ""
    seconds: float = 0.0


class Workspace:
    """A configuration and its run directory; the manifest says which steps are done."""

    def __init__(
        self, config: Config, show: Callable[[float, str], object], on_data: Callable[[Data], object] | None = None
    ) -> None:
        self.config, self.show, self._on_data = config, show, on_data
        self.directory = config.run_directory
        self.resuming = False  # whether the current step continues after an interruption
        self.made: tuple[str, ...] = ()  # steps of this run, and those that were done before
        self.skipped: tuple[str, ...] = ()
        self.steps: dict[str, Record] = {}
        if self.path(MANIFEST).exists():
            try:
                self.steps = read_document(self.path(MANIFEST), _KIND, _Manifest).steps
            except DataError as error:
                raise DataError(f"{error}: remove it, or choose another directory") from None

    @cached_property
    def data(self) -> Data:
        data = from_tables(**self.config.table_arguments())
        check_cells(data)
        self._check_favourable(data.label_names)
        if self._on_data is not None:
            self._on_data(data)
        return data

    def _check_favourable(self, labels: Sequence[str]) -> None:
        favourable = self.config.report.favourable
        if favourable is not None and favourable not in labels:
            raise DataError(f"[report] 'favourable' must be one of {', '.join(labels)} (got {favourable!r})")

    def path(self, name: str) -> Path:
        return self.directory / name

    def write(self, name: str, document: Any) -> str:
        write_document(self.path(name), document)
        return name

    def read(self, name: str, schema: type[T]) -> T:
        return read_document(self.path(name), None, schema)

    @property
    def trained(self) -> Trained:
        """What the step `train` has delivered."""
        return self.read(TRAINED, Trained)

    def models(self) -> dict[str, list[NodeClassifier]]:
        return {name: [load_model(self.path(file)) for file in each] for name, each in self.trained.models.items()}

    def inputs(self, step: Step) -> str:
        """Return a hash of everything that the result of a step depends on."""
        asked = self.config.to_dict()
        before = {name: self.steps.get(name) for name in step.needs}
        tables = {} if step.needs else self.config.table_paths
        hashes = {name: sha256(path) if path.is_file() else None for name, path in tables.items()}
        parts = {
            "step": step.name,
            "version": __version__,
            "sections": {name: reduce(getitem, name.split("."), asked) for name in step.sections},
            "tables": hashes or None,
            "needs": {name: done and [done.inputs, sorted(done.outputs.items())] for name, done in before.items()},
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def lacks(self, step: Step, inputs: str) -> str | None:
        """Return why a step has to be made: None if it was finished with these inputs, and its files are unchanged."""
        record = self.steps.get(step.name)
        if record is None or record.status != "done" or record.inputs != inputs:
            return f"it is not done for the current {self.config.file}"
        for path, digest in ((self.path(name), digest) for name, digest in record.outputs.items()):
            if not path.is_file():
                return f"{path} is missing"
            if sha256(path) != digest:
                return f"{path} {_CHANGED}"
        return None

    def make(self, step: Step, inputs: str) -> float:
        """Make a step, keep its outcome in the manifest, and return the seconds it took."""
        started, start = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), time.perf_counter()
        before = self.steps.get(step.name)
        self.resuming = before is not None and before.status != "done" and before.inputs == inputs
        self._note(step, Record("running", inputs, started))
        status: Status = "done"
        words = None
        outputs: dict[str, str] = {}
        try:
            outputs = {name: sha256(self.path(name)) for name in step.run(self)}
        except BaseException as error:
            failed = isinstance(error, Exception)
            status, words = ("failed", str(error) or type(error).__name__) if failed else ("interrupted", None)
            raise
        finally:
            seconds = time.perf_counter() - start
            self._note(step, Record(status, inputs, started, seconds, outputs, words))
        return seconds

    def _note(self, step: Step, record: Record) -> None:
        self.steps[step.name] = record
        document = {
            "kind": _KIND,
            "version": __version__,
            "python": platform.python_version(),
            "libraries": {name: version(name) for name in _LIBRARIES},
            "asked": self.config.to_dict(),
            "steps": {name: asdict(record) for name, record in self.steps.items()},
        }
        self.write(MANIFEST, document)


def run_project(
    config: Config,
    *,
    step: str | None = None,
    on_event: Callable[[Event], object] = lambda event: None,
    on_data: Callable[[Data], object] | None = None,
) -> Workspace:
    """Make all steps of a project that are not done, or one step again; the steps before that one must be done.

    A step is done if it was finished with the same inputs (its sections of the settings file, the tables, the
    results of earlier steps) and its files are unchanged. After an interruption the same call continues.
    `on_event` is called with the progress, `on_data` with the graph as soon as it is loaded. Another run of the same
    directory is waited for.
    """
    if step is not None and step not in STEPS:
        raise DataError(f"'step' must be one of {', '.join(STEPS)} (got {step!r})")
    with in_use(config.run_directory):
        return _run(config, step, on_event, on_data)


def _run(
    config: Config, step: str | None, on_event: Callable[[Event], object], on_data: Callable[[Data], object] | None
) -> Workspace:
    space = Workspace(config, lambda fraction, words: on_event(Event(current, "running", fraction, words)), on_data)
    for name in _before(step) if step is not None else ():
        if lacks := space.lacks(STEPS[name], space.inputs(STEPS[name])):
            again = f"run all steps first (`fairpass run {config.file}`)"
            raise DataError(f"step {step!r} needs {name!r}, but {lacks}: {again}")
    for current in STEPS.values() if step is None else (STEPS[step],):
        inputs = space.inputs(current)
        lacks = space.lacks(current, inputs)
        if step is None and lacks is None:
            on_event(Event(current, "skipped"))
            space.skipped += (current.name,)
        else:
            if lacks is not None and lacks.endswith(_CHANGED):
                logger.warning("%s: step %r is repeated", lacks, current.name)
            on_event(Event(current, "started"))
            on_event(Event(current, "done", 1.0, seconds=space.make(current, inputs)))
            space.made += (current.name,)
    return space


def _before(step: str) -> list[str]:
    """Return the steps that a step needs, directly or not, in their order."""
    return [name for need in STEPS[step].needs for name in (*_before(need), need)]
