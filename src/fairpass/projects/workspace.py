"""What the steps of a project share: the configuration, the graph, and the files they leave to each other."""

import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from fairpass.datasets import from_tables
from fairpass.datasets.splits import check_cells
from fairpass.files import sha256, write_text
from fairpass.methods import NodeClassifier, load_model, method
from fairpass.projects.config import Config

Show = Callable[[float, str], None]
"""Called with the share of a step that is done and a few words about it."""


class Workspace:
    """A project's configuration and run directory."""

    def __init__(self, config: Config, show: Show, ready: Callable[[Data], None]) -> None:
        self.config, self.show, self._ready = config, show, ready
        self.directory = config.run_directory
        self.resuming = False
        """Whether the step goes on with what an interruption has left."""

    @cached_property
    def data(self) -> Data:
        """The graph, made from the tables at the first use."""
        data = from_tables(**self.config.table_arguments())
        check_cells(data)
        self._ready(data)
        return data

    def table_hashes(self) -> dict[str, str | None]:
        """Return the SHA-256 of each table, None for one that is not there."""
        files = [name for name in (self.config.data.nodes, self.config.data.edges) if name is not None]
        paths = {name: self.config.path(name) for name in files}
        return {name: sha256(path) if path.is_file() else None for name, path in paths.items()}

    def write(self, name: str, document: Any) -> str:
        """Write a JSON file into the run directory, and return its name."""
        write_text(self.directory / name, json.dumps(document, indent=2, allow_nan=False) + "\n")
        return name

    def read(self, name: str) -> Any:
        """Return what is in a JSON file of the run directory."""
        return json.loads((self.directory / name).read_text(encoding="utf-8"))

    def models(self) -> dict[str, list[NodeClassifier]]:
        """Return the trained models by name, one for each seed."""
        files: dict[str, list[str]] = self.read("models.json")["models"]
        return {name: [load_model(self.directory / file) for file in each] for name, each in files.items()}

    def plain(self, name: str, seed: int) -> NodeClassifier:
        """Return a plain classifier that the chosen one is compared with.

        It is the last epoch that counts: to choose one by how fair it is would make it a little fair, too.
        """
        found = method(name)
        training = found.default_training().but(seed=seed, select="last")
        return found(training=training if training.epochs == 1 else training.but(epochs=self.config.tuning.epochs))

    def path(self, name: str) -> Path:
        """Return the path of a file of the run directory."""
        return self.directory / name
