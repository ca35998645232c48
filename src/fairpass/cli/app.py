"""The `fairpass` command: its subcommands, its global options, and its error messages."""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fairpass import __version__
from fairpass.cli import output
from fairpass.cli.options import TEXTS, examples, spelled
from fairpass.errors import FairpassError
from fairpass.plain_text import printable

_UsageError: Any = typer.BadParameter.__base__  # which has moved between versions of typer
# SIGHUP is sent when a terminal is closed, or a connection lost; not every system has it.
_SIGNALS = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_COMMANDS = [name for name, about in TEXTS.items() if "help" in about]
# The module of a command that does not have one of its own.
_MODULES = {"methods": "train", "predict": "evaluate", "report": "compare"}


@cache
def load_command(name: str) -> Any:
    """Import a command when it is called: the overview needs no more than its text."""
    found = getattr(import_module(f"fairpass.cli.{_MODULES.get(name, name)}"), name)
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(add_completion=False, rich_markup_mode="rich")
        found.command(name, epilog=examples(name))(function)
    return typer.main.get_command(found)


def _in_own_words(message: str, command: str | None) -> str:
    """Return a message of the library with the names that the user knows: options, or keys of the settings file."""
    if command not in _COMMANDS:
        return message
    if command == "run":
        from fairpass.projects.config import in_toml

        message = in_toml(message)
    options = load_command(command).params
    return spelled(message, {each.name: each.opts[0] for each in options if each.opts[0].startswith("--")})


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """Let signals end a command as Ctrl-C does: checkpoints are written, and workers stopped; yield those that came.

    (In a list, because libraries such as Ray raise a KeyboardInterrupt of their own for one that they caught.)
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_IGN)  # `timeout` sends it twice: to us, and to our group
        came.append(number)
        if not _is_importing(frame):
            raise KeyboardInterrupt
        # Half a module would fail later, with an error that nobody understands.
        if output.work_has_begun():
            _interrupt_soon()
        else:
            _say_end(number)
            output.notices.show_cursor()
            os._exit(128 + number)

    # What is ignored stays so: with `nohup` a command outlives its terminal.
    before = {number: found for number in _SIGNALS if (found := signal.getsignal(number)) != signal.SIG_IGN}
    hook = sys.unraisablehook
    for number in before:
        signal.signal(number, interrupt)
    sys.unraisablehook = partial(_interrupt_again, hook)
    try:
        yield came
    finally:
        sys.unraisablehook = hook
        for number, found in before.items():
            signal.signal(number, found or signal.SIG_DFL)


def _say_end(number: int) -> None:
    output.notices.print("Interrupted" if number == signal.SIGINT else "Terminated", style="yellow")


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether a command is in the middle of an import."""
    while frame is not None and frame.f_code is not _Commands.invoke.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _interrupt_soon() -> None:
    again = threading.Timer(0.05, _interrupt_main)
    again.daemon = True
    again.start()


def _interrupt_main() -> None:
    """Send Ctrl-C to the main thread, which may be waiting by now: Python's own function would not wake it."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _interrupt_again(hook: Callable[[Any], object], lost: Any) -> None:
    """Interrupt a little later if an interruption came where Python can raise nothing, such as in a destructor."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        _interrupt_soon()
    else:
        hook(lost)


@contextmanager
def _printable_errors() -> Iterator[None]:
    """Make what typer says of wrong arguments harmless, because it prints them itself."""
    try:
        yield
    except _UsageError as error:
        error.message = printable(error.message)
        raise


class _Commands(TyperGroup):
    """Prints errors that a user can fix as one line on stderr; with --debug, as a traceback.

    (`Any`, because the class of a context has moved between versions of typer.)
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--debug" in args:  # most likely appended to a command that has just failed
            args = ["--debug", *(arg for arg in args if arg != "--debug")]
        try:
            with _printable_errors():
                return super().parse_args(ctx, args or ["--help"])
        except OSError as error:  # the overview and the version are printed here
            output.finish_stdout()
            if not isinstance(error, BrokenPipeError):
                output.notice("Error:", "bold red", output.explain(error))
            raise typer.Exit(1) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in _COMMANDS else command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; the exit code is 1 if it fails, and as in shells 128 + the number of a signal."""
        with _interruptible() as came, _printable_errors():
            return self._invoke(ctx, came)

    def _invoke(self, ctx: Any, came: Sequence[int]) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # notices a full disk here, and not after the end
        except BrokenPipeError:  # the reader of our output has closed it
            output.finish_stdout()
            raise typer.Exit(1) from None
        except typer.Exit:
            raise
        except (KeyboardInterrupt, Exception) as error:
            # Libraries make errors of their own of an interruption.
            interrupted = bool(came) or isinstance(error, KeyboardInterrupt)
            expected = isinstance(error, FairpassError | ValueError | OSError | MemoryError)
            if ctx.params["debug"] or not (interrupted or expected):
                raise
            output.finish_stdout()
            if interrupted:
                number = max(came, key=lambda each: each != signal.SIGINT, default=signal.SIGINT)
                _say_end(number)
                raise typer.Exit(128 + number) from None
            output.notice("Error:", "bold red", _in_own_words(output.explain(error), ctx.invoked_subcommand))
            raise typer.Exit(1) from None
        return result


app = typer.Typer(
    cls=_Commands,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples("fairpass"),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairpass {__version__}")
        raise typer.Exit


@app.callback()
def fairpass(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", envvar="FAIRPASS_DEBUG")
    ] = False,
) -> None:
    """Fair node classification on graphs by message passing."""
    output.prepare_streams(lambda message: _in_own_words(message, ctx.invoked_subcommand))


for _name in _COMMANDS:
    app.command(_name, help=TEXTS[_name]["help"])(lambda: None)
