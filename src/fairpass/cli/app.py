"""The `fairpass` command: its subcommands, its global options, and its error messages."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fairpass import __version__
from fairpass.cli import output, signals
from fairpass.cli.options import TEXTS, examples, spelled
from fairpass.errors import FairpassError, value_message
from fairpass.plain_text import printable

_UsageError: Any = typer.BadParameter.__base__  # which has moved between versions of typer
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
def _own_usage_errors() -> Iterator[None]:
    """Reword errors about arguments and make them printable: typer prints them itself, without the value."""
    try:
        yield
    except _UsageError as error:
        param: Any = getattr(error, "param", None)
        if param is not None and hasattr(error.__cause__, "errors"):  # pydantic's, in newer versions of typer
            name = param.opts[0] if param.opts[0].startswith("-") else param.get_error_hint()
            # Choices are left to typer: it lists them.
            if message := value_message(error.__cause__, name):
                error.message, error.param = message, None
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
            with _own_usage_errors():
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
        """Run a command; its exit code is 1 if it fails."""
        try:
            with _own_usage_errors():
                result = signals.interruptible(partial(super().invoke, ctx))
            sys.stdout.flush()  # notices a full disk here, and not after the end
        except BrokenPipeError:  # the reader of our output has closed it
            output.finish_stdout()
            raise typer.Exit(1) from None
        except (FairpassError, ValueError, OSError, MemoryError) as error:
            if ctx.params["debug"]:
                raise
            output.finish_stdout()
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
