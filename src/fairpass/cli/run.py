"""`fairpass run`: everything that a settings file asks for, from the tables to the report."""

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from pydantic import ValidationError
from rich.text import Text

from fairpass.cli.options import TEXTS, Result, command, field_options, spelled
from fairpass.cli.output import STARTING, bar, choose_threads, note, rows, section, working
from fairpass.cli.results import show_rows
from fairpass.errors import validation_message
from fairpass.locks import in_use
from fairpass.projects.config import load_config
from fairpass.projects.sections import Choice, Tuning

if TYPE_CHECKING:
    from fairpass.projects.pipeline import Event

_DIGITS = 1000  # Python converts at most 4,300

# The steps of the library, without importing torch; a test compares them.
StepName = Literal["load", "audit", "tune", "train", "evaluate", "report", "predict"]


class SettingsOptions:
    """Options that replace settings of the file: all of `[choice]`, some of `[tuning]`."""

    def __init__(self, **values: Any) -> None:
        self.choice = {name: values.pop(name) for name in Choice.model_fields}
        budget = values["budget"]
        is_number = budget and budget.isdecimal() and len(budget) <= _DIGITS
        self.tuning = {**values, "budget": int(budget) if is_number else budget}

    @staticmethod
    def parameters() -> list[inspect.Parameter]:
        return field_options("settings", {**Choice.model_fields, **Tuning.model_fields}, {"budget": str})

    def chosen(self) -> dict[str, Any]:
        """Return the choice on the command line, checked by itself: its errors name options."""
        given = {name: value for name, value in self.choice.items() if value is not None}
        try:
            Choice(**given)
        except ValidationError as error:
            flags = {name: f"--{name.replace('_', '-')}" for name in Choice.model_fields}
            raise typer.BadParameter(spelled(validation_message(error, flags), flags)) from None
        return given


@command
def run(
    config: Path = Path("fairpass.toml"),
    step: StepName | None = None,
    *,
    include_people: bool = False,
    settings: SettingsOptions,
) -> Result:
    with working(STARTING):
        choice = settings.chosen()
        asked = load_config(config).replaced(choice=choice, **settings.tuning)
        asked = asked.with_people() if include_people else asked
        from fairpass.cli.check import EXIT_CODES, show_promise
        from fairpass.metrics.promise import Promise
        from fairpass.projects.pipeline import run_project
        from fairpass.projects.steps import cost
        from fairpass.runs import Comparison

    # Until all is shown: another run would replace the files.
    with in_use(asked.run_directory):
        with bar(100, asked.run_directory) as show:

            def on_event(event: "Event") -> None:
                if event.status == "skipped":
                    note(f"{event.step.name:<9} done before")
                elif event.status == "done":
                    note(f"{event.step.name:<9} {event.step.title}, {event.seconds:.1f} s")
                else:
                    show(round(100 * event.fraction), event.step.title, event.words)

            space = run_project(asked, step=step, on_event=on_event, on_data=choose_threads)

        document: dict[str, Any] = {"directory": str(space.directory), "made": space.made, "skipped": space.skipped}
        document["steps"] = {name: vars(record) for name, record in space.steps.items()}
        finished = (*space.made, *space.skipped)
        if "train" in finished:
            about = space.trained
            document |= about.model_dump(exclude={"models"})
        if "evaluate" in finished:
            evaluated = Comparison.load(space.path("evaluation.json"))
            document |= {"cost": cost(space), "rows": [row.to_dict() for row in evaluated.rows]}
        promise = Promise.from_dict(document["promise"]) if document.get("promise") else None
        yield document, EXIT_CODES[promise.verdict] if promise else 0
        if "evaluate" in finished:
            show_rows(f"{asked.name}, test nodes", evaluated.rows, evaluated.runs)
        if "train" in finished:
            section(f"Why this configuration of {about.chosen}, of {about.tried} tried", Text(about.reason))
        if "evaluate" in finished:
            section("What it gains, and what it costs", Text(document["cost"]))
        if promise is not None:
            show_promise(promise)
        files = {"manifest.json", *(name for made in finished for name in space.steps[made].outputs)}
        shown = [(name, Text(words, "dim")) for name, words in TEXTS["run"]["files"].items() if name in files]
        section(f"In {space.directory}", rows(shown))
