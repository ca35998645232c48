"""`fairpass run`: everything that a settings file asks for, from the tables to the report."""

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from pydantic import ValidationError
from rich.text import Text

from fairpass.cli.options import Result, command, field_options, spelled
from fairpass.cli.output import bar, choose_threads, note, rows, section, working
from fairpass.cli.results import show_rows
from fairpass.errors import validation_message
from fairpass.projects.config import Choice, Config, Tuning, load_config

if TYPE_CHECKING:
    from fairpass.projects.pipeline import Done, Event

# The steps of the library, without importing torch; a test compares them.
StepName = Literal["load", "audit", "tune", "train", "evaluate", "report", "predict"]

_FILES = {
    "data.json": "the graph, in numbers",
    "audit.json": "where bias can come from, before any training",
    "report.html": "the report: open it in a browser",
    "model.safetensors": "the model, for `fairpass evaluate` and `fairpass predict`",
    "predictions.csv": "score, label and group of every node",
    "predictions.parquet": "score, label and group of every node",
    "manifest.json": "what was asked for, and what was done",
}


class SettingsOptions:
    """Options that replace settings of the file: all of `[choice]`, some of `[tuning]`."""

    def __init__(self, **values: Any) -> None:
        self.choice = {name: values.pop(name) for name in Choice.model_fields}
        budget = values["budget"]
        self.tuning = {**values, "budget": int(budget) if budget and budget.isdecimal() else budget}

    @staticmethod
    def parameters() -> list[inspect.Parameter]:
        """Return the options as typer reads them."""
        return field_options("settings", {**Choice.model_fields, **Tuning.model_fields}, {"budget": str})

    def chosen(self) -> Choice | None:
        """Return the choice on the command line, if there is one."""
        try:
            choice = Choice(**self.choice)
        except ValidationError as error:
            flags = {name: f"--{name.replace('_', '-')}" for name in Choice.model_fields}
            raise typer.BadParameter(spelled(validation_message(error, flags), flags)) from None
        return None if choice == Choice() else choice


@command
def run(config: Path = Path("fairpass.toml"), step: StepName | None = None, *, settings: SettingsOptions) -> Result:
    """Do everything that a settings file asks for: load, audit, tune, train, evaluate, report, predict.

    All results are in one run directory. Steps that are done and whose input has
    not changed are skipped. Options have precedence over the settings file.
    """
    with working("Starting"):
        choice = settings.chosen()
        asked = load_config(config).replaced(choice=choice, **settings.tuning)
    done = _run(asked, step)
    yield (document := _document(done))
    _show(done, document)


def _run(config: Config, step: str | None) -> "Done":
    from fairpass.projects.pipeline import run_project

    with bar(100, config.run_directory) as show:

        def on_event(event: "Event") -> None:
            if event.status == "skipped":
                note(f"{event.step.name:<9} done before")
            elif event.status == "done":
                note(f"{event.step.name:<9} {event.step.title}, {event.seconds:.1f} s")
            else:
                show(round(100 * event.fraction), event.step.title, event.words)

        return run_project(config, step=step, on_event=on_event, on_data=choose_threads)


def _document(done: "Done") -> dict[str, Any]:
    """Return the outcome of a run in JSON's types."""
    from fairpass.projects.steps import cost

    space = done.workspace
    steps = {name: vars(record) for name, record in space.steps.items()}
    document: dict[str, Any] = {
        "directory": str(space.directory),
        "made": done.made,
        "skipped": done.skipped,
        "steps": steps,
    }
    if "evaluate" in (*done.made, *done.skipped):
        about = space.read("models.json")
        document |= {name: about[name] for name in ("chosen", "reference", "reason", "met", "tried")}
        document |= {"cost": cost(space), "rows": space.read("evaluation.json")["rows"]}
    return document


def _show(done: "Done", about: dict[str, Any]) -> None:
    from fairpass.projects.steps import comparison_of

    space = done.workspace
    if "cost" in about:
        show_rows(f"{space.config.name}, test nodes", comparison_of(space).rows)
        section(f"Why this configuration of {about['chosen']}, of {about['tried']} tried", Text(about["reason"]))
        section("What it gains, and what it costs", Text(about["cost"]))
    files = {name for made in (*done.made, *done.skipped) for name in space.steps[made].outputs} | {"manifest.json"}
    section(
        f"In {space.directory}",
        rows((name, Text(words, style="dim")) for name, words in _FILES.items() if name in files),
    )
