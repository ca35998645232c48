"""The `fairpass` command: its subcommands, its global options, and its error messages."""

import sys
from dataclasses import fields
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fairpass import __version__
from fairpass.cli import output
from fairpass.cli.audit import audit
from fairpass.cli.compare import compare, report
from fairpass.cli.datasets import app as datasets
from fairpass.cli.demo import demo
from fairpass.cli.evaluate import evaluate, predict
from fairpass.cli.init import init
from fairpass.cli.options import TrainingOptions, examples, spelled
from fairpass.cli.reproduce import reproduce
from fairpass.cli.run import run
from fairpass.cli.train import methods, train
from fairpass.cli.tune import tune
from fairpass.errors import FairpassError

_INTERRUPTED = 130  # 128 + SIGINT, as in shells


class _Commands(TyperGroup):
    """Prints errors that a user can fix as one line on stderr; with --debug, as a traceback.

    (`Any`, because the class of a context has moved between versions of typer.)
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the help if there are no arguments, and accept --debug anywhere."""
        if "--debug" in args:  # most likely appended to a command that has just failed
            args = ["--debug", *(arg for arg in args if arg != "--debug")]
        return super().parse_args(ctx, args or ["--help"])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; the exit code is 1 if it fails, and 130 if it is interrupted."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # notices a full disk here, and not after the end
        except BrokenPipeError:  # the reader of our output has closed it
            output.finish_stdout()
            raise typer.Exit(1) from None
        except (KeyboardInterrupt, FairpassError, ValueError, OSError, MemoryError) as error:
            if ctx.params["debug"]:
                raise
            output.finish_stdout()
            if isinstance(error, KeyboardInterrupt):
                output.notices.print("Interrupted", style="yellow")
                raise typer.Exit(_INTERRUPTED) from None
            output.fail(spelled(output.explain(error), self._training_flags(ctx)))
            raise typer.Exit(1) from None
        return result

    def _training_flags(self, ctx: Any) -> dict[str, str]:
        """Return the command's options for training settings, and their spelling.

        No others: in a message, a quoted name of another option may also be a column of the user's table.
        """
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        settings = {field.name for field in fields(TrainingOptions)}
        return {each.name: each.opts[0] for each in getattr(command, "params", ()) if each.name in settings}


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
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", envvar="FAIRPASS_DEBUG")
    ] = False,
) -> None:
    """Fair node classification on graphs by message passing."""
    output.prepare_streams()


app.command(epilog=examples("demo"))(demo)
app.add_typer(datasets, name="datasets")
for _command in (audit, methods, init, run, train, evaluate, predict, compare, report, tune, reproduce):
    app.command(epilog=examples(_command.__name__))(_command)
