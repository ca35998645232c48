"""The results of runs on disk: one JSON record for each, written at once or not at all.

A directory holds records as single files, `<key>.json`, and packed ones, a line each in `*.jsonl`; the former are how
runs arrive, the latter how a repository keeps thousands of them.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from fairpass.errors import DataError
from fairpass.experiments.spec import Cell, Configuration, Spec
from fairpass.files import write_text

Record = Mapping[str, Any]

METRICS = ("AUC", "F1", "ACC", "DP", "EO")


class Records:
    """The records of a directory, by key.

    Args:
        directory: where they are; need not exist.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self._found: dict[str, Record] = {}
        for path in sorted(self.directory.glob("*.jsonl")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                self._add(line, f"{path}, line {number}")
        for path in sorted(self.directory.glob("*.json")):
            self._add(path.read_text(), str(path))

    def _add(self, text: str, where: str) -> None:
        try:
            record = json.loads(text)
            self._found[record["key"]] = record
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"'{where}' must hold a record of a run (damaged or not one: {error})") from None

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, spec: object) -> bool:
        return isinstance(spec, Spec) and spec.key in self._found

    def __iter__(self) -> Iterator[Record]:
        return iter(self._found.values())

    def get(self, spec: Spec) -> Record | None:
        """Return the record of a run, or None if it was not made."""
        return self._found.get(spec.key)

    def add(self, record: Record) -> None:
        """Keep a record, on disk and here."""
        write_text(self.directory / f"{record['key']}.json", json.dumps(record, allow_nan=False) + "\n")
        self._found[record["key"]] = record

    def forget(self, specs: Iterable[Spec]) -> None:
        """Leave out the records of some runs, so that they are made again; files are replaced only then."""
        for spec in specs:
            self._found.pop(spec.key, None)

    def pack(self, keys: Iterable[str], path: str | os.PathLike[str]) -> int:
        """Write some records as lines of one file, in order of their keys; return how many there were."""
        lines = [json.dumps(self._found[key], allow_nan=False) for key in sorted(set(keys)) if key in self._found]
        write_text(path, "".join(f"{line}\n" for line in lines))
        return len(lines)

    def chosen(self, cell: Cell) -> "Chosen | None":
        """Return the runs of the candidate that validation prefers, among those whose runs were all made."""
        best: Chosen | None = None
        for candidate in cell.candidates:
            records = [self.get(spec) for spec in cell.runs(candidate)]
            made = [record for record in records if record is not None and record["error"] is None]
            if not made or len(made) < len(records):
                continue
            found = Chosen(candidate, tuple(made))
            if best is None or found.selection > best.selection:
                best = found
        return best


class Chosen:
    """The runs of one configuration, one for each seed.

    Args:
        configuration: the chosen one.
        records: of its runs.
    """

    def __init__(self, configuration: Configuration, records: tuple[Record, ...]) -> None:
        self.configuration, self.records = configuration, records

    @property
    def selection(self) -> float:
        """Return the mean of `AUC + F1 + ACC - DP - EO` on validation."""
        return fmean(record["validation"]["selection"] for record in self.records)

    def values(self, metric: str) -> list[float]:
        """Return a test metric of every run, in percent."""
        return [record["test"][metric] for record in self.records]

    @property
    def is_near_constant(self) -> bool:
        """Return whether most runs predict nearly the same for all nodes."""
        flagged = sum(bool(record["test"]["near_constant"]) for record in self.records)
        return 2 * flagged > len(self.records)
