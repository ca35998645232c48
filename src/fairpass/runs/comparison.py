"""Compare several methods on one graph, with the runs stored in one file."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from fairpass import __version__
from fairpass.documents import Stored, Values, read_document, validate, write_document
from fairpass.errors import DataError
from fairpass.locks import Locks, lock_file
from fairpass.methods import Constant, NodeClassifier
from fairpass.runs.spec import Configuration, RunSpec
from fairpass.runs.store import RunRecord
from fairpass.runs.summary import Row, summarise
from fairpass.training import fingerprint

_KIND = "fairpass comparison"


@dataclass
class Comparison:
    """Configurations by name, a graph (by its fingerprint), and the runs made so far, one for each name and seed.

    If there is a `path`, every run is added to this file as soon as it is made. Other processes may do the same:
    nothing that one of them wrote is lost, and each shows the methods that it was asked for.
    """

    graph: str
    provenance: Mapping[str, Any] | None
    methods: Mapping[str, Configuration]
    runs: list[RunRecord] = field(default_factory=list)
    version: str = __version__
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls, methods: Mapping[str, NodeClassifier], data: Data, path: str | os.PathLike[str] | None = None
    ) -> "Comparison":
        """Start a comparison, or continue the one in a file; raise `DataError` if that does not match."""
        configurations = {name: Configuration.of(classifier) for name, classifier in methods.items()}
        made = cls(fingerprint(data), data.get("provenance"), configurations, path=None if path is None else Path(path))
        if made.path is not None and made.path.is_file():
            earlier = cls.load(made.path)
            made._check(earlier)
            made.methods, made.runs = {**earlier.methods, **made.methods}, earlier.runs
        return made

    def _check(self, earlier: "Comparison") -> None:
        """Raise `DataError` if the results in the file are of another graph, version or configuration."""
        if earlier.graph != self.graph:
            raise DataError("the earlier results must be of the same graph, split and features (they are not)")
        if earlier.version != self.version:
            raise DataError(f"the earlier results must be of version {self.version} (got {earlier.version})")
        for name in earlier.methods.keys() & self.methods.keys():
            before, after = (_settings(each.methods[name]) for each in (earlier, self))
            # A setting that is missing in an older file counts as None.
            if changed := [key for key in {**before, **after} if before.get(key) != after.get(key)]:
                difference = ", ".join(f"{key}={before.get(key)!r}, now {after.get(key)!r}" for key in changed)
                raise DataError(f"the earlier results must be of {name!r} as it is now (it had {difference})")

    def specs(self, methods: Iterable[str], seeds: Iterable[int]) -> list[RunSpec]:
        """Return the runs of some methods with some seeds, all methods with the first seed first."""
        names = list(methods)
        return [RunSpec(self.graph, self.methods[name], seed, name=name) for seed in seeds for name in names]

    def missing(self, specs: Iterable[RunSpec]) -> list[RunSpec]:
        made = {(run.method, run.seed) for run in self.runs if run.error is None}
        return [spec for spec in specs if (spec.label, spec.seed) not in made]

    def keep(self, _: RunSpec, record: RunRecord) -> None:
        self.add(record)

    def remember(self, _: RunSpec, record: RunRecord) -> None:
        """Add a run that a `handle` has already written."""
        self.runs = _joined(self.runs, [record])

    def handle(self) -> "Comparison":
        """Return a comparison with the same file without the runs so far, to send to other processes."""
        return replace(self, runs=[])

    def add(self, run: RunRecord) -> None:
        """Keep a run in place of an earlier one with the same method and seed, also in the file."""
        self.runs = _joined(self.runs, [run])
        self.write([run])

    def write(self, new: Sequence[RunRecord] = ()) -> None:
        """Add the methods, and new runs, to what is in the file now."""
        if self.path is None:
            return
        with Locks(lock_file(self.path)).hold("write"):
            stored = self.load(self.path) if self.path.is_file() else replace(self, runs=[])
            self._check(stored)
            replace(stored, methods={**stored.methods, **self.methods}, runs=_joined(stored.runs, new)).save(self.path)

    @property
    def claims(self) -> Locks | None:
        """Locks on the runs that a process is making, by the keys of their specs."""
        return None if self.path is None else Locks(lock_file(self.path))

    def made_elsewhere(self, spec: RunSpec) -> bool:
        """Return whether another process has made a run in the meantime; if so, read its record."""
        if self.path is None or not self.path.is_file():
            return False
        found = [run for run in self.load(self.path).runs if (run.method, run.seed) == (spec.label, spec.seed)]
        self.runs = _joined(self.runs, found)
        return any(run.error is None for run in found)

    @property
    def rows(self) -> tuple[Row, ...]:
        """One row for each method that has been run, in the order of `methods`."""
        runs = [run for name in self.methods for run in self.runs if run.method == name]
        return summarise(runs, [name for name, each in self.methods.items() if each.method == Constant.name])

    def row(self, method: str) -> Row:
        found = {row.method: row for row in self.rows}
        if method not in found:
            raise ValueError(f"'method' must be one of {', '.join(found)} (got {method!r})")
        return found[method]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": _KIND,
            "version": self.version,
            "graph": self.graph,
            "provenance": self.provenance,
            "methods": {name: configuration.to_dict() for name, configuration in self.methods.items()},
            "rows": [row.to_dict() for row in self.rows],
            "runs": [run.to_dict() for run in self.runs],
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        return write_document(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Comparison":
        """Read what `save` wrote, or raise `DataError`."""

        def build(values: Values) -> Comparison:
            stored = validate(values, _Document)
            return cls(stored.graph, stored.provenance, stored.methods, stored.runs, stored.version)

        return read_document(path, _KIND, build)


class _Document(Stored):
    kind: str
    version: str
    graph: str
    provenance: Values | None
    methods: dict[str, Configuration]
    rows: list[Any]  # follow from the runs
    runs: list[RunRecord]


def _joined(runs: Iterable[RunRecord], new: Sequence[RunRecord]) -> list[RunRecord]:
    replaced = {(run.method, run.seed) for run in new}
    return [run for run in runs if (run.method, run.seed) not in replaced] + list(new)


def _settings(configuration: Configuration) -> dict[str, Any]:
    values = configuration.to_dict()
    return {"method": configuration.method, **values["parameters"], **values["training"]}
