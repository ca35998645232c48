"""`fairpass tune`: search for good configurations of a method on a graph."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.option_groups import with_option_groups
from fairpass.cli.output import JsonFlag, examples, print_json, print_line, rows, section, table, working
from fairpass.cli.parameters import parse_parameters
from fairpass.cli.progress import bar, note
from fairpass.cli.results import title_of
from fairpass.cli.threads import choose_threads
from fairpass.cli.training_options import TrainingOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.methods import NodeClassifier
    from fairpass.tuning import Budget, Point, Progress, Tuned

EXAMPLES = examples(
    {
        "Ten minutes for the paper's method; after an interruption, the same again": (
            "fairpass tune german --budget 10m"
        ),
        "The whole front between utility and fairness, of a hundred configurations": (
            "fairpass tune german --method gmmd-s --trials 100 --strategy motpe"
        ),
        "The paper's own grid, as far as an hour goes": (
            "fairpass tune bail --strategy grid --budget 1h --set sample=200"
        ),
    }
)

TUNED, STUDY, PICTURES = "tuned.json", "study.db", ("front.png", "front.svg")
_DEFAULT_BUDGET = "10m"
_COLUMNS = {"AUC": "AUC", "F1": "F1", "ACC": "ACC", "DP": "ΔDP", "EO": "ΔEO"}
_STEPS = 1000  # of the bar

# The library's own type would do, but it comes with Optuna: a test keeps this equal to it.
Strategy = Literal["tpe", "motpe", "nsga2", "random", "grid"]


@with_option_groups
def tune(
    graph: GraphOptions,
    training: TrainingOptions,
    method: Annotated[str, typer.Option(metavar="NAME", help="What to tune; `fairpass methods` lists them.")] = "gmmd",
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"How long, such as 90s, 10m or 2h (default: {_DEFAULT_BUDGET}).")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", min=1, help="How many configurations in all, those of earlier sessions included."
        ),
    ] = None,
    strategy: Annotated[
        Strategy,
        typer.Option(
            help="tpe: the best sum of utility and fairness; motpe, nsga2: the front of the two; random; grid: every "
            "combination of a grid, the paper's for gmmd and gmmd-s."
        ),
    ] = "tpe",
    seeds: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="How many seeds each configuration is trained with.")
    ] = 3,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Fix a parameter of the method; can be repeated."),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help=f"Where the study is kept: any database that Optuna knows, for several machines (default: {STUDY} "
            "in the directory of --out).",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Where to put the results (default: tuned/GRAPH-METHOD); the same command again goes on from there, "
            "and several at once share the work.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Search for good configurations of a method, and show the best and the front between utility and fairness.

    Each configuration is judged on the validation nodes. The figures on the test nodes are shown beside these, and
    nothing is chosen by them.
    """
    with working("Starting"):
        from fairpass import methods
        from fairpass.tuning import draw_front

    limit = _limit(budget, trials)
    found = methods.method(method)
    fixed = {**parse_parameters(found, settings or ()), **_given(found, training)}
    data = graph.load()
    choose_threads(data)
    directory = out if out is not None else Path("tuned") / f"{_short_name(graph)}-{method}"
    url = storage or str(directory / STUDY)

    tuned = _search(data, method, limit, strategy=strategy, seeds=seeds, fixed=fixed, storage=url)
    title = f"{method} on {title_of(data)}"
    tuned.save(directory / TUNED)
    for name in PICTURES:
        draw_front(tuned, directory / name, title=title)
    if as_json:
        print_json(tuned.to_dict())
        return
    _show(title, tuned, seeds)
    print_line("")
    print_line(f"{TUNED}, {' and '.join(PICTURES)} are in {directory}.")


def _limit(budget: str | None, trials: int | None) -> "Budget":
    from fairpass.tuning.budget import Budget, parse_time

    if budget is None and trials is None:
        budget = _DEFAULT_BUDGET
    return Budget(trials=trials, seconds=None if budget is None else parse_time(budget))


def _given(method: "type[NodeClassifier]", options: TrainingOptions) -> dict[str, Any]:
    """Return the training settings that the user has said, and that are not to be varied therefore."""
    changed = options.applied_to(method.default_training())
    names = [field.name for field in fields(options) if getattr(options, field.name) is not None]
    return {name: getattr(changed, name) for name in names}


def _short_name(graph: GraphOptions) -> str:
    return graph.name or (graph.nodes.stem if graph.nodes is not None else "")


def _search(data: "Data", method: str, limit: "Budget", *, storage: str, **settings: Any) -> "Tuned":
    from fairpass.tuning import tune as search

    with bar(_STEPS) as progress:

        def show(state: "Progress") -> None:
            doing = f"{state.training} in training" if state.training else "waiting for others"
            best = f", best {_in_short(state.best)}" if state.best else ""
            progress.show(int(_STEPS * state.fraction), method, f"{state.finished} done, {doing}{best}")

        try:
            return search(data, method, budget=limit, storage=storage, callback=show, **settings)
        except KeyboardInterrupt:
            note("What was done is in the study: the same command goes on from there")
            raise


def _in_short(point: "Point") -> str:
    return " ".join(f"{name} {100 * point.validation[name]:.1f}" for name in ("AUC", "ACC", "DP", "EO"))


def _show(title: str, tuned: "Tuned", seeds: int) -> None:
    best = [(name, Text(_in_words(value))) for name, value in tuned.values(tuned.best).items()]
    section(f"{title}: the best of {len(tuned.points)} configurations", rows(best))
    runs = f"means over {seeds} seeds" if seeds > 1 else "one seed"
    legend = f"{runs}, in percent; * the best by AUC + F1 + ACC - ΔDP - ΔEO on validation"
    section("Front on validation, from the most useful to the fairest", _front(tuned), Text(legend, style="dim"))
    section("Configurations of the front", rows(_configurations(tuned)))
    if notes := list(_notes(tuned)):
        section("What to know", rows(("-", Text(sentence)) for sentence in notes))


def _front(tuned: "Tuned") -> Table:
    columns = [f"{split}\n{name}" for split in ("val", "test") for name in _COLUMNS.values()]
    made = table("", *columns, numbers=tuple(columns))
    made.padding = (0, 1, 0, 0)  # so that 80 columns are enough
    for i, point in enumerate(tuned.front, 1):
        tested = ["-"] * len(_COLUMNS) if point.test is None else _percents(point.test)
        is_best = point == tuned.best
        label = f"{i}*" if is_best else f"{i}"
        made.add_row(label, *_percents(point.validation), *tested, style="bold" if is_best else None)
    return made


def _percents(metrics: Mapping[str, float]) -> list[str]:
    return [f"{100 * metrics[name]:.1f}" for name in _COLUMNS]


def _configurations(tuned: "Tuned") -> list[tuple[str, Text]]:
    settings = [tuned.values(point) for point in tuned.front]
    return [
        (f"{i}", Text("  ".join(f"{name}={_in_words(value)}" for name, value in values.items())))
        for i, values in enumerate(settings, 1)
    ]


def _in_words(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if value is None else str(value)


def _notes(tuned: "Tuned") -> Iterator[str]:
    constant = sum(point.near_constant for point in tuned.points)
    if constant == len(tuned.points):
        yield "Every configuration is near constant: almost every node gets one label, which is fair, but of no use."
    elif constant:
        share = f"{constant} of {len(tuned.points)} configurations"
        yield f"Left out as near constant: {share}. They are fair, but of no use."
    if tuned.failed:
        yield f"Could not be trained: {tuned.failed}."
    if tuned.pruned:
        yield f"Given up early, as they did worse than the others: {tuned.pruned}."
