"""`fairpass run`: everything that a configuration asks for, from the tables to the report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from fairpass.cli.output import JsonFlag, examples, print_json, rows, section, working
from fairpass.cli.progress import Bar, bar, note
from fairpass.cli.results import show_comparison
from fairpass.cli.threads import choose_threads
from fairpass.projects.config import Criterion

if TYPE_CHECKING:
    from fairpass.projects.pipeline import Done
    from fairpass.projects.steps import Step

EXAMPLES = examples(
    {
        "From the tables to the report; after an interruption, the same again": "fairpass run fairpass.toml",
        "A quick look": "fairpass run fairpass.toml --budget 30s --epochs 20",
        "The fairest; what was tuned before is not tuned again": "fairpass run fairpass.toml --fairness 1",
        "The most accurate with a difference of at most 5 points": "fairpass run fairpass.toml --max-dp 0.05",
        "One step again": "fairpass run fairpass.toml --step report",
    }
)

# The library's own names would do, but they come with torch: a test keeps these equal to them.
StepName = Literal["load", "audit", "tune", "train", "evaluate", "report", "predict"]

_FILES = {
    "data.json": "the graph, in numbers",
    "audit.json": "where bias can come from, before any training",
    "report.html": "the report: open it in a browser",
    "model.safetensors": "the model, for `fairpass evaluate` and `fairpass predict`",
    "predictions.csv": "score, label and group of every node",
    "predictions.parquet": "score, label and group of every node",
    "manifest.json": "what was asked, and what was done",
}


def run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="What to do: `fairpass init` writes one.")] = Path(
        "fairpass.toml"
    ),
    step: Annotated[StepName | None, typer.Option(help="Do this step again, and no other.", show_default=False)] = None,
    fairness: Annotated[
        float | None,
        typer.Option(metavar="0..1", min=0, max=1, help="How much fairness counts: 0 most accurate, 1 fairest."),
    ] = None,
    max_dp: Annotated[
        float | None,
        typer.Option(metavar="0..1", min=0, max=1, help="The largest difference in demographic parity."),
    ] = None,
    max_eo: Annotated[
        float | None, typer.Option(metavar="0..1", min=0, max=1, help="The largest difference in equal opportunity.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|NUMBER", help="How long to search for good settings (90s, 5m, 1h), or how many to try."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(metavar="NUMBER", min=1, help="Of every training.")] = None,
    criterion: Annotated[
        Criterion | None,
        typer.Option(
            help="What gmmd makes equal: predictions for all (dp), for the positive (eo), for each label (odds).",
            show_default=False,
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Do all that a configuration asks for: load, audit, tune, train, evaluate, report, predict.

    Everything goes into one run directory. A step that is done, and whose input
    has not changed, is not done again.
    """
    with working("Starting"):
        from fairpass.projects.config import Choice, load_config
        from fairpass.projects.pipeline import run_project

        _check_choice(fairness, max_dp, max_eo)
        asked = load_config(config)
        choice = Choice(fairness, max_dp, max_eo)
        asked = asked.but(
            choice=None if choice == Choice() else choice,
            budget=int(budget) if budget and budget.isdecimal() else budget,
            epochs=epochs,
            criterion=criterion,
        )
    with bar(100) as shown:
        try:
            done = run_project(asked, step=step, watcher=_watcher(shown))
        except KeyboardInterrupt:
            note(f"What was done is in {asked.run_directory}: the same command goes on from there")
            raise
    if as_json:
        print_json(_document(done))
    else:
        _show(done)


def _check_choice(fairness: float | None, max_dp: float | None, max_eo: float | None) -> None:
    """Refuse options that contradict each other, by the names they have on the command line."""
    from fairpass.tuning.choice import check_wishes

    try:
        check_wishes(fairness=fairness, max_dp=max_dp, max_eo=max_eo, spell=lambda name: f"--{name.replace('_', '-')}")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _watcher(shown: Bar) -> Any:
    from fairpass.projects.pipeline import Watcher

    class OnTerminal(Watcher):
        """Shows a line for each step, and a bar while it lasts."""

        title = ""

        def begin(self, step: "Step") -> None:
            self.title = step.title
            shown.show(0, step.title, "")

        def ready(self, data: Any) -> None:
            choose_threads(data)

        def progress(self, fraction: float, words: str) -> None:
            shown.show(round(100 * fraction), self.title, words)

        def end(self, step: "Step", seconds: float) -> None:
            note(f"{step.name:<9} {step.title}, {seconds:.1f} s")

        def skip(self, step: "Step") -> None:
            note(f"{step.name:<9} done before")

    return OnTerminal()


def _document(done: "Done") -> dict[str, Any]:
    """Return what a run came to, in JSON's types."""
    steps = {name: vars(record) for name, record in done.manifest.steps.items()}
    document: dict[str, Any] = {
        "directory": str(done.workspace.directory),
        "made": list(done.made),
        "skipped": list(done.skipped),
        "steps": steps,
    }
    if done.is_evaluated:
        about = done.workspace.read("models.json")
        document |= {name: about[name] for name in ("chosen", "reference", "reason", "met", "tried")}
        document |= {"cost": done.cost(), "rows": done.workspace.read("evaluation.json")["rows"]}
    return document


def _show(done: "Done") -> None:
    space = done.workspace
    if done.is_evaluated:
        about = space.read("models.json")
        show_comparison(f"{space.config.name}, test nodes", done.comparison())
        section(f"Why these settings of {about['chosen']}, of {about['tried']} that were tried", Text(about["reason"]))
        section("What it gains, and what it costs", Text(done.cost()))
    files = {name for made in (*done.made, *done.skipped) for name in done.manifest.steps[made].outputs}
    listed = [
        (Text(name), Text(words, style="dim")) for name, words in _FILES.items() if name in {*files, "manifest.json"}
    ]
    section(f"In {space.directory}", rows(listed))
