"""What the commands print: results on stdout; progress, warnings and errors on stderr."""

import errno
import io
import json
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from fairpass.plain_text import printable

if TYPE_CHECKING:
    from torch_geometric.data import Data

# Smaller graphs are faster with one thread: an epoch of GMMD on German (1,000 nodes) took 33 ms with one thread, 77 ms
# with two, and over a second with two when other programs used the cores as well.
_NODES_WORTH_SHARING = 5_000

Show = Callable[[int, str, str], None]  # takes the finished part of the total, what is done now, and details
Cells = Sequence[str | Text]


class PlainConsole(Console):
    """Prints text as it is: names from tables and options can neither control the terminal nor style what is printed.

    Everything that is printed is rendered here, except JSON, which escapes these characters.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(self, *renderable: Any, **options: Any) -> Iterable[Segment]:
        for segment in super().render(*renderable, **options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


class _Stderr:
    """`sys.stderr` as it is now. Notices that cannot be written, as on a full disk, are lost; the work continues."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream(), name)

    def write(self, text: str) -> int:
        with suppress(OSError, AttributeError):  # AttributeError: stderr is closed, and None
            self._stream().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, AttributeError):
            self._stream().flush()

    @staticmethod
    def _stream() -> Any:
        return getattr(sys.stderr, "rich_proxied_file", sys.stderr)  # beside a bar, rich has its own in this place


STARTING = "Starting"  # what commands are doing while they import what they need, and nothing else
_begun = False


def work_has_begun() -> bool:
    """Return whether there may be work to keep, processes to stop, or files to remove."""
    return _begun


console = PlainConsole()
notices = PlainConsole(file=_Stderr())


def print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


@contextmanager
def working(doing: str) -> Iterator[None]:
    """Show on a terminal that something takes a while."""
    global _begun  # noqa: PLW0603 # signals are handled for the whole process
    _begun = _begun or doing != STARTING
    with notices.status(Text(doing)):
        yield
    _begun = True


def section(title: str, *content: RenderableType) -> None:
    """Print a title and indented content."""
    console.print()
    console.print(Text(title, style="bold"))
    for part in content:
        console.print(Padding(part, (0, 0, 0, 2), expand=False))


def print_line(text: str) -> None:
    console.print(Text(text), soft_wrap=True)


def table(
    columns: Sequence[str],
    lines: Iterable[Cells],
    *,
    words: Sequence[str] = (),
    bold: Sequence[int] = (),
    narrow: bool = False,
) -> Table:
    """Return a table with a header; its first column, and those in `words`, are aligned to the left.

    The rows with the numbers in `bold` are emphasized; a `narrow` table has little space between columns.
    """
    made = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    made.padding = (0, 1, 0, 0) if narrow else made.padding
    for column in columns:
        justify: Literal["left", "right"] = "left" if column in (columns[0], *words) else "right"
        made.add_column(Text(column), justify=justify, overflow="fold")
    for number, cells in enumerate(lines):
        made.add_row(*cells, style="bold" if number in bold else None)
    return made


def facts(about: Mapping[str, str | None]) -> Table:
    """Return rows of a name and a text; what is None or empty is left out."""
    return rows((name, Text(fact)) for name, fact in about.items() if fact)


def rows(cells: Iterable[tuple[RenderableType, ...]]) -> Table:
    """Return rows without lines or header; the last cell of a row may have several lines."""
    made = Table.grid(padding=(0, 2))
    for row in cells:
        made.add_row(*row)
    return made


def bullets(sentences: Iterable[str]) -> Table:
    return rows(("-", Text(sentence)) for sentence in sentences)


@contextmanager
def bar(total: int, kept: object = None, again: str = "the same command") -> Iterator[Show]:
    """Show a progress bar; after an interruption, say where finished work is `kept` and what continues it."""
    global _begun  # noqa: PLW0603 # signals are handled for the whole process
    _begun = True
    label, state = (TextColumn(field, markup=False) for field in ("{task.description}", "{task.fields[state]}"))
    columns = (label, BarColumn(bar_width=None), state, TimeRemainingColumn(compact=True))
    task: TaskID | None = None
    with Progress(*columns, console=notices, transient=True, expand=True, disable=not notices.is_terminal) as progress:

        def show(completed: int, label: str, state: str) -> None:
            nonlocal task
            if task is None:  # what an earlier session did must not count as speed
                task = progress.add_task(label, total=total, completed=completed, state=state)
            else:
                progress.update(task, completed=completed, description=label, state=state)

        try:
            yield show
        except KeyboardInterrupt:
            if kept is not None:
                note(f"Finished work is in {kept}: {again} continues from there")
            raise


def in_short(metrics: Mapping[str, float]) -> str:
    """Return some metrics in percent, for the line of a progress bar."""
    return " ".join(f"{name} {100 * metrics[name]:.1f}" for name in ("AUC", "ACC", "DP", "EO"))


def note(message: str) -> None:
    """Print a line of any length beside the bar."""
    notices.print(Text(message), soft_wrap=True)


def choose_threads(data: "Data | None" = None) -> None:
    """Use one thread for a small graph (or any, without `data`), unless OMP_NUM_THREADS is set."""
    import torch

    if "OMP_NUM_THREADS" not in os.environ and (data is None or data.num_nodes < _NODES_WORTH_SHARING):
        torch.set_num_threads(1)


def notice(prefix: str, style: str, message: str) -> None:
    """Print an error or a warning in one line on stderr."""
    # Without soft_wrap, rich would break the line at the width of the terminal.
    notices.print(Text.assemble((prefix, style), " ", " ".join(message.split())), soft_wrap=True)


def warn(message: str) -> None:
    notice("Warning:", "yellow", message)


def explain(error: BaseException) -> str:
    """Return the message of an error, without the name of a class or the number of a system call."""
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    if isinstance(error, OSError) and error.strerror:
        reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
        return reason if error.filename is None else f"{reason}: {str(error.filename)!r}"
    return str(error) or type(error).__name__


class _Notices(logging.Handler):
    spell: Callable[[str], str] = str

    def emit(self, record: logging.LogRecord) -> None:
        warn(self.spell(record.getMessage()))


_library_notices = _Notices(logging.WARNING)


def prepare_streams(spell: Callable[[str], str] = str) -> None:
    """Print the library's warnings in our own words, and replace characters that the terminal does not have."""
    _library_notices.spell = spell
    # A stream that was closed before the start, as by `>&-`, is None.
    sys.stdout, sys.stderr = (each or Path(os.devnull).open("w") for each in (sys.stdout, sys.stderr))  # noqa: SIM115 # open till the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    logging.getLogger("fairpass").addHandler(_library_notices)
    warnings.showwarning = lambda message, *_, **__: warn(str(message))
    sys.excepthook = _print_traceback


def _print_traceback(*error: Any) -> None:
    sys.stderr.write(printable("".join(traceback.format_exception(*error))))


def finish_stdout() -> None:
    """Flush stdout, or discard what is left, so that the interpreter's own flush at exit cannot fail."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(io.UnsupportedOperation), Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
