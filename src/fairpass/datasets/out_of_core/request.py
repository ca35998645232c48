"""What a directory of parts is made from: the same command continues it, and another one is refused."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairpass.datasets.options import TableOptions
from fairpass.documents import read_document, write_document
from fairpass.errors import DataError
from fairpass.files import remove_left_over
from fairpass.plain_text import path_text

KIND = "fairpass partition"
_VERSION = 1  # increase it whenever steps of an older version cannot be continued
_FILE = "partition.json"
_WORK = ".partition"
SPILL = "spill"  # what does not fit in memory, in the directory of the work


@dataclass(frozen=True)
class Request:
    """Two tables, how they are read, and in how many parts the graph is cut."""

    nodes: Path
    edges: Path
    options: TableOptions
    parts: int

    def document(self) -> dict[str, Any]:
        """Return what must be the same for a partition to be continued."""
        return {
            **{table: _identity(getattr(self, table)) for table in ("nodes", "edges")},
            "options": self.options.model_dump(mode="json"),
            "parts": self.parts,
            "version": _VERSION,
        }


def _identity(path: Path) -> dict[str, Any]:
    about = path.stat()
    return {"path": path_text(path.resolve()), "bytes": about.st_size, "modified": about.st_mtime_ns}


def discard(directory: Path) -> None:
    """Remove everything that a request has written, so that a corrected one can use the directory."""
    for folder in (directory / _WORK, *directory.glob("part-*")):
        shutil.rmtree(folder, ignore_errors=True)
    (directory / _FILE).unlink(missing_ok=True)


def is_new(directory: Path) -> bool:
    return not (directory / _FILE).exists()


def open_directory(directory: Path, wanted: Mapping[str, Any]) -> Path:
    """Return the working directory of a request, new or as an earlier session left it.

    A directory with any other content is refused.
    """
    path = directory / _FILE
    if path.exists():
        stored = read_document(path, KIND, dict)
        different = [key for key in wanted if stored.get(key) != wanted[key]]
        if different:
            raise DataError(
                f"'out' must be a new directory, or that of the same command (in {str(directory)!r} "
                f"{', '.join(map(repr, different))} {'was' if len(different) == 1 else 'were'} different)"
            )
    else:
        if directory.is_dir():
            remove_left_over(directory)  # by a session that was killed before this file had its name
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise DataError(f"'out' must be a new or empty directory (got {str(directory)!r})")
        write_document(path, {"kind": KIND, **wanted})
    work = directory / _WORK
    work.mkdir(exist_ok=True)
    for folder in [*work.glob("**/"), *directory.glob("part-*/")]:  # of a session that was killed
        remove_left_over(folder)
    shutil.rmtree(work / SPILL, ignore_errors=True)
    return work
