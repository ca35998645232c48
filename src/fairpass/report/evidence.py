"""Everything a report is made of, as one record of plain values on disk."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import write_text

FILE = "evidence.json"

_KIND, _FORMAT = "fairpass evidence", 1


@dataclass(frozen=True)
class Evidence:
    """What was asked, on which data, and what came out: all that the page shows, so that it needs no data.

    All values are plain JSON; a number that is not defined is None. `collect` makes the record.

    Attributes:
        title: of the report.
        question: what the audit was to find out, in a sentence or two; may be empty.
        chosen: name of the method that the report speaks for; one of `methods`.
        choice: how it was chosen, in a sentence; may be empty.
        made: when, in UTC, as ISO 8601.
        data: the graph: provenance, fingerprint, sizes, names, splits.
        bias: the graph before training: statistics, findings, and whether the edges help (not in older records).
        methods: one record for each, with its settings, flags and runs.
        points: the configurations that were tried in tuning, the front and the chosen one marked.
        neighbourhoods: a few test nodes with their neighbours, and how similar the models find them.
        theory: the theorems' bounds beside what they bound, with a note where they do not apply.
        versions: of Python and the libraries.
    """

    title: str
    question: str
    chosen: str
    choice: str
    made: str
    data: dict[str, Any]
    bias: dict[str, Any]
    methods: list[dict[str, Any]]
    points: list[dict[str, Any]]
    neighbourhoods: dict[str, Any]
    theory: dict[str, Any]
    versions: dict[str, str]

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
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            if stored["kind"] != _KIND:
                raise ValueError(f"it is a {stored['kind']}")
            if stored["format"] != _FORMAT:
                raise ValueError(f"it has format {stored['format']}, and this version reads {_FORMAT}")
            found = cls(**{field.name: stored[field.name] for field in fields(cls)})
            found.method(found.chosen)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"'{file}' must be {_KIND} (damaged or not one: {error})") from None
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
