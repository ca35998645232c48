"""The records of runs, and a directory that stores them.

New runs are written as one `<key>.json` each; `pack` joins many into a `.jsonl`.
"""

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

import pandas as pd
from pydantic import Field, PlainValidator, model_validator

from fairpass.documents import STRICT, Count, Seconds, Stored, Values, parse, signed, validate
from fairpass.errors import DataError
from fairpass.files import write_text
from fairpass.locks import Locks, lock_file
from fairpass.metrics import Evaluation
from fairpass.runs.spec import RunSpec

logger = logging.getLogger(__name__)

_LONGEST = 200  # bytes of a key in a file name: file systems allow 255, and suffixes are added
StoredRecord = Mapping[str, Any]
"""A record as `RunStore` keeps it: a spec's key and identity, and the outcome, with metrics in percent."""


@dataclass(frozen=True)
class RunRecord:
    """The outcome of one run: an evaluation on the test nodes, or an error."""

    __pydantic_config__ = STRICT

    method: str  # its name, or that of the configuration in a comparison
    seed: Count
    seconds: Seconds  # training time; runs that were trained together have equal shares
    evaluation: Annotated[Evaluation | None, PlainValidator(lambda stored: stored and Evaluation.from_dict(stored))] = (
        None
    )
    error: str | None = None
    # What a `RunStore` keeps in addition to the spec: environment, selected epoch, metrics, measures.
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name != "facts"}
        return {**kept, "evaluation": None if self.evaluation is None else self.evaluation.to_dict()}

    @classmethod
    def from_dict(cls, values: Values) -> "RunRecord":
        """Rebuild a record from `to_dict`; raise `ValueError` if it is something else."""
        return validate(values, cls)


class RunStore:
    """Records by the key of their spec, in a directory, which need not exist; None keeps them in memory only.

    A damaged record is ignored with a warning, and the run is repeated.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self.directory = None if directory is None else Path(directory)
        self._records: dict[str, StoredRecord] = {}
        self._outdated: dict[Path, int] = {}  # modification times of files whose records will be replaced
        for where, text in () if self.directory is None else _texts(self.directory):
            self._read(where, text)

    def _read(self, where: str, text: str) -> None:
        try:
            record = parse(text)
            self._records[validate(record, _Record).key] = record
        except ValueError as error:
            logger.warning("'%s' is a damaged record (%s); the run will be repeated", where, error)
            if Path(where).is_file():
                self._outdated[Path(where)] = Path(where).stat().st_mtime_ns

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[StoredRecord]:
        return iter(self._records.values())

    def get(self, spec: RunSpec) -> StoredRecord | None:
        return self._records.get(spec.key)

    def missing(self, specs: Iterable[RunSpec]) -> list[RunSpec]:
        """Return the runs, each once, that have no record or failed by accident (for example, out of memory)."""
        todo = {spec.key: spec for spec in specs}
        return [spec for key, spec in todo.items() if key not in self._records or self._records[key].get("retry")]

    def keep(self, spec: RunSpec, record: RunRecord) -> None:
        self.add(self._stored(spec, record))

    @staticmethod
    def _stored(spec: RunSpec, record: RunRecord) -> StoredRecord:
        outcome = {"seconds": round(record.seconds, 3), "error": record.error, **record.facts}
        return {"key": spec.key, **spec.identity, "seed": spec.seed, **outcome}

    def remember(self, spec: RunSpec, record: RunRecord) -> None:
        """Add a run that a `handle` has already written."""
        self._records[spec.key] = self._stored(spec, record)

    def handle(self) -> "RunStore":
        """Return a store of the same directory without the records read so far, to send to other processes."""
        found = RunStore()
        found.directory, found._outdated = self.directory, self._outdated
        return found

    @property
    def claims(self) -> Locks | None:
        """Locks on the runs that a process is making, by the keys of their specs."""
        return None if self.directory is None else Locks(lock_file(self.directory / "runs"))

    def made_elsewhere(self, spec: RunSpec) -> bool:
        """Return whether another process has made a run in the meantime; if so, read its record."""
        path = self._file(spec.key)
        if path is None or not path.is_file() or path.stat().st_mtime_ns <= self._outdated.get(path, -1):
            return False
        self._read(str(path), _text(path))
        return not self.missing([spec])

    def add(self, record: StoredRecord) -> None:
        path = self._file(record["key"])
        if path is not None:
            write_text(path, _line(record))
        self._records[record["key"]] = record

    def _file(self, key: str) -> Path | None:
        """Return the file of a record, named after its key.

        The key may contain the path of a user's graph, so separators are replaced. Of a long key only the end is used,
        which contains the digest.
        """
        name = re.sub(r"[^\w.,() -]", "_", key).encode()[-_LONGEST:].decode(errors="ignore")
        return None if self.directory is None else self.directory / f"{name}.json"

    def forget(self, specs: Iterable[RunSpec]) -> None:
        """Drop the records of some runs, so that these are repeated; the files stay until then."""
        for spec in specs:
            path = self._file(spec.key)
            if self._records.pop(spec.key, None) is not None and path is not None and path.is_file():
                self._outdated[path] = path.stat().st_mtime_ns

    def pack(self, keys: Iterable[str], path: str | os.PathLike[str]) -> int:
        """Write some records as lines of one file, sorted by key; return how many there were."""
        lines = [_line(self._records[key]) for key in sorted({*keys} & self._records.keys())]
        write_text(path, "".join(lines))
        return len(lines)

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per run; nested values have columns such as `test.ACC` (in percent)."""
        nested = ("measured", "measures")
        rows = [{name: value for name, value in record.items() if name not in nested} for record in self]
        return pd.json_normalize(rows, max_level=1)


def _line(record: StoredRecord) -> str:
    return json.dumps(signed(record), allow_nan=False) + "\n"


class _Metrics(Stored, extra="ignore"):
    """Metrics in percent; None where undefined."""

    AUC: float | None
    F1: float | None
    ACC: float | None
    DP: float | None
    EO: float | None
    near_constant: bool = False


class _OnValidation(_Metrics):
    selection: float


class _Record(Stored, extra="ignore"):
    """What readers of records rely on."""

    key: str
    dataset: str
    scale: str
    method: str
    parameters: Values
    training: Values
    measures: list[str]
    seed: Count
    split: Count | None = None
    seconds: Seconds
    error: str | None
    environment: Values
    epochs: Count = 0
    validation: _OnValidation | None = None
    test: _Metrics | None = None
    measured: Values = Field(default_factory=dict)
    retry: bool = False

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.error is None and (self.validation is None or self.test is None):
            raise ValueError("a run without error must have its metrics")
        return self


def _texts(directory: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(directory.glob("*.jsonl")):
        for number, line in enumerate(_text(path).splitlines(), 1):
            yield f"{path}, line {number}", line
    yield from ((str(path), _text(path)) for path in sorted(directory.glob("*.json")))


def _text(path: Path) -> str:
    if path.is_dir():
        raise DataError(f"'{path}' must be a file with records of runs (it is a directory)")
    return path.read_text(encoding="utf-8", errors="replace")
