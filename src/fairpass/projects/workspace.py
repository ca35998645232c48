"""The run directory of a project: its files, and the manifest that says which steps are done."""

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from torch_geometric.data import Data

from fairpass import __version__
from fairpass.datasets import from_tables
from fairpass.datasets.splits import check_cells
from fairpass.errors import DataError
from fairpass.files import read_document, sha256, write_document
from fairpass.methods import NodeClassifier, load_model
from fairpass.projects.config import Config

MANIFEST = "manifest.json"
_KIND = "fairpass run"
_LIBRARIES = ("torch", "torch-geometric", "numpy", "pandas", "scikit-learn", "optuna")


@dataclass(frozen=True)
class Record:
    """The outcome of a step."""

    status: Literal["running", "done", "failed", "interrupted"]
    inputs: str
    """Hash of everything that the result depends on."""
    started: str
    seconds: float | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Files of the step, relative to the run directory, and their SHA-256."""
    error: str | None = None


class Workspace:
    """A configuration and its run directory.

    Args:
        config: The project.
        show: Called with the finished fraction of a step and a few words.
        on_data: Called once with the graph.
    """

    def __init__(
        self, config: Config, show: Callable[[float, str], object], on_data: Callable[[Data], object] | None = None
    ) -> None:
        self.config, self.show, self._on_data = config, show, on_data
        self.directory = config.run_directory
        self.resuming = False
        """Whether the current step continues after an interruption."""
        self.steps = self._stored_steps()

    @cached_property
    def data(self) -> Data:
        """The graph, made from the tables on first use."""
        data = from_tables(**self.config.table_arguments())
        check_cells(data)
        if self._on_data is not None:
            self._on_data(data)
        return data

    def path(self, name: str) -> Path:
        return self.directory / name

    def write(self, name: str, document: Any) -> str:
        """Write a JSON file and return its name."""
        write_document(self.path(name), document)
        return name

    def read(self, name: str) -> Any:
        return json.loads(self.path(name).read_text(encoding="utf-8"))

    def models(self) -> dict[str, list[NodeClassifier]]:
        """Return the trained models by name, one for each seed."""
        files: dict[str, list[str]] = self.read("models.json")["models"]
        return {name: [load_model(self.path(file)) for file in each] for name, each in files.items()}

    def table_hashes(self) -> dict[str, str | None]:
        """Return the SHA-256 of each table, None for a missing one."""
        paths = self.config.table_paths
        return {name: sha256(path) if path.is_file() else None for name, path in paths.items()}

    def note(self, step: str, record: Record) -> None:
        """Write the outcome of a step to the manifest."""
        self.steps[step] = record
        document = {
            "kind": _KIND,
            "version": __version__,
            "python": platform.python_version(),
            "libraries": {name: version(name) for name in _LIBRARIES},
            "asked": self.config.to_dict(),
            "steps": {name: asdict(record) for name, record in self.steps.items()},
        }
        self.write(MANIFEST, document)

    def is_done(self, step: str, inputs: str) -> bool:
        """Return whether a step was finished with these inputs and its files are unchanged."""
        record = self.steps.get(step)
        if record is None or record.status != "done" or record.inputs != inputs:
            return False
        files = ((self.path(name), digest) for name, digest in record.outputs.items())
        return all(path.is_file() and sha256(path) == digest for path, digest in files)

    def _stored_steps(self) -> dict[str, Record]:
        path = self.path(MANIFEST)
        if not path.exists():
            return {}
        try:
            return read_document(path, _KIND, _records)
        except DataError as error:
            raise DataError(f"{error}: remove it, or choose another directory") from None


def _records(manifest: Mapping[str, Any]) -> dict[str, Record]:
    return {name: Record(**record) for name, record in manifest["steps"].items()}
