"""Steps that are done once: each writes its outcome to a file, and is not repeated after an interruption."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fairpass.datasets.parts import StoredFile, stored_file
from fairpass.documents import Stored, Values, read_document, write_document
from fairpass.errors import DataError

_KIND = "step of a fairpass partition"
ROWS = 1_000_000  # rows of nodes that are handled at once

Progress = Callable[[float, str], None]  # takes the finished share, and what is done now


class _Step(Stored):
    kind: str
    outcome: Values
    files: dict[str, StoredFile]  # by their paths in the directory of the partition


class Work:
    """The working directory of an unfinished partition."""

    def __init__(self, folder: Path, progress: Progress | None = None) -> None:
        self.folder, self._progress = folder, progress
        self.total = 1  # steps; set as soon as it is known
        self._done = 0

    def step(self, name: str, what: str, make: Callable[[], dict[str, Any]], *made: Path) -> dict[str, Any]:
        """Return the outcome of a step, a JSON document; `make` is called unless an earlier session has done it.

        `made` are the files and directories that the step writes: those of an earlier session must be unchanged.
        """
        if self._progress is not None:
            self._progress(min(self._done / self.total, 1.0), what)
        path = self.path(f"{name}.json")
        if self.has_done(name):
            outcome = self._earlier(path, made)
        else:
            outcome = make()
            files = {str(each.relative_to(self.folder.parent)): stored_file(each).model_dump() for each in _files(made)}
            write_document(path, {"kind": _KIND, "outcome": outcome, "files": files})
        self._done += 1
        return outcome

    def has_done(self, name: str) -> bool:
        return self.path(f"{name}.json").exists()

    def _earlier(self, path: Path, made: tuple[Path, ...]) -> dict[str, Any]:
        """Return the outcome of a step that an earlier session has done, or raise `DataError`."""
        again = f"remove '{self.folder.parent}' to start again"
        try:
            done = read_document(path, _KIND, _Step)
        except DataError as error:
            raise DataError(f"{error}; {again}") from None
        for name, expected in done.files.items() if made else ():
            file = self.folder.parent / name
            if not file.is_file() or stored_file(file) != expected:
                raise DataError(f"'{file}' must be what an earlier session wrote (it is not as in '{path}'); {again}")
        return done.outcome

    def path(self, name: str) -> Path:
        return self.folder / name


def _files(made: tuple[Path, ...]) -> Iterator[Path]:
    for each in made:
        if each.is_dir():
            yield from sorted(each.iterdir())
        elif each.exists():  # a column without features has no file
            yield each


def spans(low: int, high: int, size: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the spans of at most `size` rows between two rows."""
    step = size or ROWS
    yield from ((start, min(start + step, high)) for start in range(low, high, step))
