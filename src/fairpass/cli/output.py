"""What the commands print: results on stdout, everything else (progress, warnings, errors) on stderr."""

import errno
import io
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.status import Status
from rich.table import Table
from rich.text import Text

console = Console(highlight=False)
notices = Console(stderr=True, highlight=False)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")]


def print_json(document: Any) -> None:
    """Print one JSON document; a number that is not defined has to be None by now, as JSON has no nan."""
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def working(message: str) -> AbstractContextManager[Status]:
    """Show on stderr that something takes its time, if somebody is watching."""
    return notices.status(message)


def section(title: str, *content: RenderableType) -> None:
    """Print a title and what belongs under it."""
    console.print()
    console.print(Text(title, style="bold"))
    for part in content:
        console.print(Padding(part, (0, 0, 0, 2), expand=False))


def print_line(text: str) -> None:
    """Print text as it is, however long, on stdout."""
    console.print(Text(text), soft_wrap=True)


def table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """Return a table in the house style; the columns in `numbers` are aligned to the right."""
    made = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for column in columns:
        made.add_column(Text(column), justify="right" if column in numbers else "left", overflow="fold")
    return made


def examples(commands: Mapping[str, str]) -> str:
    """Return the end of a help text: commands to try, each under a word on what it does."""
    parts = [f"[dim]# {purpose}[/dim]\n{escape(command)}" for purpose, command in commands.items()]
    return "\n\n".join(["[bold]Examples[/bold]", *parts])


def rows(cells: Iterable[tuple[RenderableType, ...]]) -> Table:
    """Return rows without lines or header; the last cell of a row may take several lines."""
    made = Table.grid(padding=(0, 2))
    for row in cells:
        made.add_row(*row)
    return made


def warn(message: str) -> None:
    """Print a warning in one line on stderr."""
    _print_line("Warning:", "yellow", message)


def fail(error: BaseException, options: Mapping[str, str] | None = None) -> None:
    """Say in one line on stderr what went wrong.

    Args:
        error: what was raised.
        options: how the command spells the library's arguments, e.g. `--learning-rate` for `learning_rate`.
    """
    message = explain(error)
    for argument, option in (options or {}).items():
        message = message.replace(f"'{argument}'", option)
    _print_line("Error:", "bold red", message)


def explain(error: BaseException) -> str:
    """Return what went wrong, without the name of a class or the number of a system call."""
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    if isinstance(error, OSError) and error.strerror:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        return reason if error.filename is None else f"{reason}: {str(error.filename)!r}"
    return str(error) or type(error).__name__


def _print_line(prefix: str, style: str, message: str) -> None:
    # Without soft_wrap, rich would break the line at the width of the terminal.
    notices.print(Text.assemble((prefix, style), " ", " ".join(message.split())), soft_wrap=True)


class _Notices(logging.Handler):
    """Prints what the library logs."""

    def emit(self, record: logging.LogRecord) -> None:
        warn(record.getMessage())


_library_notices = _Notices(logging.WARNING)


def prepare_streams() -> None:
    """Let the library's warnings reach the user in our style, and let no character stop the output."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows "?"
    logging.getLogger("fairpass").addHandler(_library_notices)
    warnings.showwarning = lambda message, *_, **__: warn(str(message))


def finish_stdout() -> None:
    """Write what is still to be written, or give it up: the interpreter's own last attempt must not fail."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(io.UnsupportedOperation), Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
