"""What is said on stderr while something trains: a bar, if somebody is watching, and a word when it is needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from fairpass.cli import output

if TYPE_CHECKING:
    from fairpass.training import EpochRecord


class Bar:
    """One line: what is done at the moment, how far it is, what there is to see, and the time left."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total = progress, total
        self._task: TaskID | None = None

    def show(self, completed: int, label: str, state: str) -> None:
        """Show how far it is."""
        if self._task is None:
            # Not before the first call: what was done in an earlier session must not count as speed.
            self._task = self._progress.add_task(label, total=self._total, completed=completed, state=state)
        else:
            self._progress.update(self._task, completed=completed, description=label, state=state)


@contextmanager
def bar(total: int) -> Iterator[Bar]:
    """Show a bar, and remove it at the end."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(compact=True),
    )
    console = output.notices
    with Progress(*columns, console=console, transient=True, expand=True, disable=not console.is_terminal) as progress:
        yield Bar(progress, total)


def in_short(record: "EpochRecord") -> str:
    """Return what an epoch came to, on the validation nodes, in percent."""
    metrics = (f"{name} {100 * record.metrics[name]:.1f}" for name in ("AUC", "ACC", "DP", "EO"))
    return " ".join([f"loss {record.loss:.3f}", *metrics])


def note(message: str) -> None:
    """Print a line, however long, beside the bar."""
    output.notices.print(Text(message), soft_wrap=True)
