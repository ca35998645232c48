"""What has been done in a run directory: a record of each step, whole on disk at any time."""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import sha256, write_text

NAME = "manifest.json"
_KIND = "fairpass run"
_LIBRARIES = ("torch", "torch-geometric", "numpy", "pandas", "scikit-learn", "optuna")

Status = Literal["running", "done", "failed", "interrupted"]


@dataclass(frozen=True)
class Record:
    """What became of a step."""

    status: Status
    inputs: str
    """A hash of all that its result depends on."""
    started: str
    seconds: float | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    """The files that it made, relative to the run directory, and their SHA-256."""
    error: str | None = None


@dataclass
class Manifest:
    """The record of a run directory; every change of it is written at once."""

    directory: Path
    asked: dict[str, Any]
    steps: dict[str, Record] = field(default_factory=dict)

    @classmethod
    def open(cls, directory: Path, asked: dict[str, Any]) -> "Manifest":
        """Return the manifest of a directory, new or with the steps that it has already."""
        path = directory / NAME
        steps: dict[str, Record] = {}
        if path.exists():
            try:
                stored = json.loads(path.read_text(encoding="utf-8"))
                if stored["kind"] != _KIND:
                    raise ValueError(f"it is a {stored['kind']}")
                steps = {name: Record(**record) for name, record in stored["steps"].items()}
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DataError(f"{str(path)!r} is damaged ({error}): remove it, or choose another directory") from None
        return cls(directory, asked, steps)

    def note(self, step: str, record: Record) -> None:
        """Remember what became of a step."""
        self.steps[step] = record
        document = {
            "kind": _KIND,
            "version": __version__,
            "python": platform.python_version(),
            "libraries": {name: version(name) for name in _LIBRARIES},
            "asked": self.asked,
            "steps": {name: asdict(record) for name, record in self.steps.items()},
        }
        write_text(self.directory / NAME, json.dumps(document, indent=2, allow_nan=False) + "\n")

    def is_done(self, step: str, inputs: str) -> bool:
        """Return whether a step was finished with the same inputs, and its files are as it left them."""
        record = self.steps.get(step)
        if record is None or record.status != "done" or record.inputs != inputs:
            return False
        files = ((self.directory / name, digest) for name, digest in record.outputs.items())
        return all(path.is_file() and sha256(path) == digest for path, digest in files)


def now() -> str:
    """Return the time, as text."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
