"""The record that a report is made from: plain values in one JSON file."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import read_document, write_text

FILE = "evidence.json"

_KIND, _FORMAT = "fairpass evidence", 1


@dataclass(frozen=True)
class Evidence:
    """All that the page shows, in plain JSON values, so that it can be made without the data and the models."""

    title: str
    question: str  # what the audit was to find out; may be empty
    chosen: str  # name of the method that the report is about; one of `methods`
    choice: str  # how it was chosen; may be empty
    made: str  # when, in UTC, as ISO 8601
    data: dict[str, Any]  # the graph: provenance, fingerprint, sizes, names, splits
    bias: dict[str, Any]  # the graph before training: statistics, findings, `graph_gain` (not in older records)
    methods: list[dict[str, Any]]  # settings, flags and runs of each
    points: list[dict[str, Any]]  # the configurations tried in tuning; the front and the chosen one are marked
    neighbourhoods: dict[str, Any]  # a few test nodes with their neighbours, and how similar the models find them
    theory: dict[str, Any]  # the theorems' bounds beside what they bound, with a note where they do not apply
    versions: dict[str, str]  # of Python and the libraries

    def method(self, name: str) -> dict[str, Any]:
        """Return the record of one method."""
        for method in self.methods:
            if method["name"] == name:
                return method
        raise ValueError(f"'name' must be one of {', '.join(m['name'] for m in self.methods)} (got {name!r})")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the record to a .json file, or as `evidence.json` into a directory; return the file."""
        document = {"kind": _KIND, "format": _FORMAT, "version": __version__, **asdict(self)}
        return write_text(_file(path), json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Evidence":
        """Read what `save` wrote, from the file or the directory it is in, or raise `DataError`."""
        file = _file(path)
        if not file.is_file():
            raise DataError(f"'{path}' must be evidence, or a directory with {FILE} (there is none)")
        return read_document(file, _KIND, cls._from_dict)

    @classmethod
    def _from_dict(cls, stored: dict[str, Any]) -> "Evidence":
        if stored["format"] != _FORMAT:
            raise ValueError(f"it has format {stored['format']}, and this version reads {_FORMAT}")
        found = cls(**{field.name: stored[field.name] for field in fields(cls)})
        found.method(found.chosen)
        return found


def find_evidence(paths: Iterable[str | os.PathLike[str]]) -> list[Evidence]:
    """Return the evidence in files and directories; of a directory without any, that of its subdirectories."""
    found = []
    for path in map(Path, paths):
        below = sorted(path.glob(f"*/{FILE}")) if path.is_dir() and not (path / FILE).is_file() else []
        found += [Evidence.load(file) for file in below or [path]]
    return found


def _file(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    return path if path.suffix == ".json" else path / FILE
