"""Several methods on one graph, side by side, on disk from the first run on."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import write_text
from fairpass.methods.base import NodeClassifier
from fairpass.methods.constant import Constant
from fairpass.methods.runs import Run, Trial
from fairpass.methods.summary import Row, summarise
from fairpass.training import fingerprint
from fairpass.training.tensors import to_json

_KIND = "fairpass comparison"


@dataclass(frozen=True)
class Comparison:
    """Methods, a graph, and the runs made so far. It is never changed: `plus` returns a new one.

    Attributes:
        graph: fingerprint of the graph.
        provenance: where the graph is from.
        methods: by name, what tells one classifier from another: class, parameters, training settings.
        runs: one for each method and seed at most.
        version: of the library.
    """

    graph: str
    provenance: Mapping[str, Any] | None
    methods: Mapping[str, Mapping[str, Any]]
    runs: tuple[Run, ...] = ()
    version: str = __version__

    @classmethod
    def of(cls, methods: Mapping[str, NodeClassifier], data: Data) -> "Comparison":
        """Return a comparison in which nothing has been run yet."""
        descriptions = {name: _description(classifier) for name, classifier in methods.items()}
        return cls(fingerprint(data), data.get("provenance"), descriptions)

    def has(self, trial: Trial) -> bool:
        """Return whether a trial has been run with success."""
        return any((run.method, run.seed) == (trial.method, trial.seed) and run.error is None for run in self.runs)

    def plus(self, run: Run) -> "Comparison":
        """Return the comparison with one more run, in the place of an earlier one of the same trial."""
        kept = [other for other in self.runs if (other.method, other.seed) != (run.method, run.seed)]
        return replace(self, runs=(*kept, run))

    def join(self, earlier: "Comparison") -> "Comparison":
        """Return this comparison with all that an earlier one of the same graph and settings has."""
        if earlier.graph != self.graph:
            raise DataError("the earlier results must be of the same graph, split and features (they are not)")
        if earlier.version != self.version:
            raise DataError(f"the earlier results must be of version {self.version} (got {earlier.version})")
        for name in earlier.methods.keys() & self.methods.keys():
            if difference := _difference(earlier.methods[name], self.methods[name]):
                raise DataError(f"the earlier results must be of {name!r} as it is now (it had {difference})")
        joined = replace(self, methods={**earlier.methods, **self.methods}, runs=earlier.runs)
        for run in self.runs:
            joined = joined.plus(run)
        return joined

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Return one row for each method that has been run, in the order of `methods`."""
        order = list(self.methods)
        runs = sorted(self.runs, key=lambda run: order.index(run.method))
        constants = [name for name, about in self.methods.items() if about["method"] == Constant.name]
        return summarise(runs, references=constants)

    def row(self, method: str) -> Row:
        """Return the row of one method."""
        found = {row.method: row for row in self.rows}
        if method not in found:
            raise ValueError(f"'method' must be one of {', '.join(found)} (got {method!r})")
        return found[method]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, with the rows for whoever wants no more than these."""
        return {
            "kind": _KIND,
            "version": self.version,
            "graph": self.graph,
            "provenance": self.provenance,
            "methods": self.methods,
            "rows": [row.to_dict() for row in self.rows],
            "runs": [run.to_dict() for run in self.runs],
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the comparison to a JSON file."""
        return write_text(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Comparison":
        """Read what `save` wrote, or raise `DataError`."""
        try:
            stored = json.loads(Path(path).read_text())
            if stored["kind"] != _KIND:
                raise ValueError(f"it is a {stored['kind']}")
            runs = tuple(Run.from_dict(run) for run in stored["runs"])
            return cls(stored["graph"], stored["provenance"], stored["methods"], runs, stored["version"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"'{path}' must be a {_KIND} (damaged or not one: {error})") from None


def _description(classifier: NodeClassifier) -> dict[str, Any]:
    training = {name: value for name, value in classifier.training.to_dict().items() if name != "seed"}
    description = {"method": classifier.name, "parameters": classifier.hyperparameters, "training": training}
    # As it will be when it is read again: tuples are lists in JSON.
    plain: dict[str, Any] = json.loads(to_json(description))
    return plain


def _difference(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say in which settings a classifier was different; nothing if in none."""
    before, after = (_settings(description) for description in (earlier, now))
    return ", ".join(
        f"{name}={before.get(name)!r}, now {after.get(name)!r}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    )


def _settings(description: Mapping[str, Any]) -> dict[str, Any]:
    return {"method": description["method"], **description["parameters"], **description["training"]}
