"""The record that a report is made from: plain values in one JSON file."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fairpass import __version__
from fairpass.documents import STRICT, Values, read_document, signed, validate
from fairpass.errors import DataError
from fairpass.files import resolved, write_text
from fairpass.report.consistency import check_consistency
from fairpass.report.schema import (
    Bias,
    Breakdown,
    Difference,
    GraphRecord,
    Identity,
    Method,
    ModelFile,
    Neighbourhoods,
    Positive,
    PromiseRecord,
    Run,
    Theory,
    TriedPoint,
)

FILE = "evidence.json"
MIN_GROUP = 10  # groups with fewer people are in no table

_KIND, _FORMAT = "fairpass evidence", 1


@dataclass(frozen=True)
class Evidence:
    """All that the page shows, in plain JSON values, so that it can be made without the data and the models."""

    __pydantic_config__ = STRICT

    title: str
    question: str  # what the audit was to find out; may be empty
    chosen: str  # name of the method that the report is about; one of `methods`
    choice: str  # how it was chosen; may be empty
    made: str  # when, in UTC, as ISO 8601
    data: GraphRecord
    bias: Bias
    methods: list[Method]
    points: list[TriedPoint]  # the configurations tried in tuning; the front and the chosen one are marked
    neighbourhoods: Neighbourhoods
    theory: Theory
    versions: dict[str, str]  # of Python and the libraries
    # Not in records of version 0.2 and before:
    breakdowns: list[Breakdown] = field(default_factory=list)  # counts of the delivered model, by attribute
    differences: list[Difference] = field(default_factory=list)  # the chosen model minus each other
    promise: PromiseRecord | None = None  # the limit that was asked for, and the verdict on it
    identity: Identity = field(default_factory=dict)  # who made the model and for what
    model_file: ModelFile | None = None
    favourable: str | None = None  # the label that the figures of groups are about; None for the positive one, or all
    min_group: Positive = MIN_GROUP

    @property
    def labels(self) -> list[str]:
        """The labels that the figures of groups are about: the favourable one, the positive one of two, or all."""
        names = self.data["labels"]
        return [self.favourable] if self.favourable is not None else names[1:] if len(names) == 2 else names

    @property
    def delivered(self) -> Run:
        """The run of the model that is delivered: the first of the chosen method."""
        return self.method(self.chosen)["runs"][0]

    def method(self, name: str) -> Method:
        """Return the record of one method."""
        for method in self.methods:
            if method["name"] == name:
                return method
        raise ValueError(f"'name' must be one of {', '.join(m['name'] for m in self.methods)} (got {name!r})")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the record to a .json file, or as `evidence.json` into a directory; return the file."""
        document = {"kind": _KIND, "format": _FORMAT, "version": __version__, **asdict(self)}
        return write_text(_file(path), json.dumps(signed(document), allow_nan=False, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Evidence":
        """Read what `save` wrote, from the file or the directory it is in, or raise `DataError`."""
        file = _file(path)
        if not file.is_file():
            raise DataError(f"'{path}' must be evidence, or a directory with {FILE} (there is none)")
        return read_document(file, _KIND, cls._from_dict)

    def checked(self) -> "Evidence":
        """Return the evidence as it would be read from its file, or raise `DataError`: the page can be made of it."""
        try:
            return self._from_dict({"format": _FORMAT, **asdict(self)})
        except (ValueError, TypeError) as error:  # JSON has no dates, for example
            raise DataError(f"the evidence must be one that can be stored and read again ({error})") from None

    @classmethod
    def _from_dict(cls, stored: Values) -> "Evidence":
        if stored.get("format") != _FORMAT:
            raise ValueError(f"it has format {stored.get('format')}, and this version reads {_FORMAT}")
        about = ("kind", "format", "version")
        found = validate({name: value for name, value in stored.items() if name not in about}, cls)
        check_consistency(found)
        return found


def find_evidence(paths: Iterable[str | os.PathLike[str]]) -> list[Evidence]:
    """Return the evidence in files and directories; of a directory without any, that of its subdirectories.

    A file that is named more than once counts once.
    """
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        below = sorted(path.glob(f"*/{FILE}")) if path.is_dir() and not (path / FILE).is_file() else []
        found |= {resolved(_file(file)): file for file in below or [path]}
    return [Evidence.load(file) for file in found.values()]


def _file(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    return path if path.suffix == ".json" else path / FILE
