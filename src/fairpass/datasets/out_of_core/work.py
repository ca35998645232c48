"""Steps that are done once: each leaves its outcome in a file, and is not done again after an interruption."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fairpass.files import write_text

ROWS = 1_000_000  # rows of nodes that are handled at once

Progress = Callable[[float, str], None]  # takes the finished share, and what is done now


class Work:
    """The directory of a partition that is under way."""

    def __init__(self, folder: Path, progress: Progress | None = None) -> None:
        self.folder, self._progress = folder, progress
        self.total = 1  # steps; set as soon as it is known
        self._done = 0

    def step(self, name: str, what: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the outcome of a step, a JSON document; `make` is called unless an earlier session has done it."""
        if self._progress is not None:
            self._progress(min(self._done / self.total, 1.0), what)
        path = self.folder / f"{name}.json"
        if path.exists():
            outcome: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        else:
            outcome = make()
            write_text(path, json.dumps(outcome))
        self._done += 1
        return outcome

    def path(self, name: str) -> Path:
        return self.folder / name


def spans(low: int, high: int, size: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the spans of at most `size` rows between two rows."""
    step = size or ROWS
    yield from ((start, min(start + step, high)) for start in range(low, high, step))
