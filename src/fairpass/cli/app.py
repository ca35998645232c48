"""The `fairpass` command: its subcommands, its global options, and what becomes of errors."""

import sys
from dataclasses import fields
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fairpass import __version__
from fairpass.cli import (
    audit,
    compare,
    demo,
    evaluate,
    init,
    methods,
    output,
    predict,
    report,
    reproduce,
    run,
    train,
    tune,
)
from fairpass.cli.datasets import app as datasets
from fairpass.cli.training_options import TrainingOptions
from fairpass.errors import FairpassError

_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class _Commands(TyperGroup):
    """Turns the errors that a user can fix into one line on stderr; with --debug, into a traceback.

    (`Any`, because the class of a context has moved between typer's versions.)
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the help if there is nothing else to do, and find --debug wherever it is."""
        if "--debug" in args:  # most likely at the end, added to a command that has just failed
            args = ["--debug", *(arg for arg in args if arg != "--debug")]
        return super().parse_args(ctx, args or ["--help"])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; the exit code is 1 if it fails, and 130 if it is interrupted."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # so that a full disk is noticed here, and not after the end
        except BrokenPipeError:  # whoever reads our output has seen enough of it
            output.finish_stdout()
            raise typer.Exit(1) from None
        except (KeyboardInterrupt, FairpassError, ValueError, OSError, MemoryError) as error:
            if ctx.params["debug"]:
                raise
            output.finish_stdout()
            if isinstance(error, KeyboardInterrupt):
                output.notices.print("Interrupted", style="yellow")
                raise typer.Exit(_INTERRUPTED) from None
            output.fail(error, self._training_options(ctx))
            raise typer.Exit(1) from None
        return result

    def _training_options(self, ctx: Any) -> dict[str, str]:
        """Return the training settings that the command has options for, and their spelling.

        No others: a quoted word that is some option's name may also be a column's name in the user's table.
        """
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        settings = {field.name for field in fields(TrainingOptions)}
        return {each.name: each.opts[0] for each in getattr(command, "params", ()) if each.name in settings}


app = typer.Typer(
    cls=_Commands,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=output.examples(
        {
            "What is it about?": "fairpass demo",
            "Which benchmark graphs are there?": "fairpass datasets",
            "Where can bias come from in one of them?": "fairpass audit german",
            "Train a fair classifier": "fairpass train german --out runs/german",
            "What can each command do?": "fairpass audit --help",
        }
    ),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairpass {__version__}")
        raise typer.Exit


@app.callback()
def fairpass(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error.", envvar="FAIRPASS_DEBUG"),
    ] = False,
) -> None:
    """Fair node classification on graphs by message passing."""
    output.prepare_streams()


app.command(epilog=demo.EXAMPLES)(demo.demo)
app.add_typer(datasets, name="datasets")
app.command(epilog=audit.EXAMPLES)(audit.audit)
app.command(epilog=methods.EXAMPLES)(methods.methods)
app.command(epilog=init.EXAMPLES)(init.init)
app.command(epilog=run.EXAMPLES)(run.run)
app.command(epilog=train.EXAMPLES)(train.train)
app.command(epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command(epilog=predict.EXAMPLES)(predict.predict)
app.command(epilog=compare.EXAMPLES)(compare.compare)
app.command(epilog=report.EXAMPLES)(report.report)
app.command(epilog=tune.EXAMPLES)(tune.tune)
app.command(epilog=reproduce.EXAMPLES)(reproduce.reproduce)
