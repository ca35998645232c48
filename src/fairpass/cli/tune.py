"""`fairpass tune`: search for good configurations of a method on a graph."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.text import Text

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.options import HERE, ExecutionOptions, Result, TrainingOptions, command, parse_parameters
from fairpass.cli.output import (
    STARTING,
    bar,
    bullets,
    choose_threads,
    facts,
    in_short,
    print_line,
    section,
    table,
    working,
)
from fairpass.cli.results import percent, title_of
from fairpass.errors import DataError
from fairpass.locks import in_use

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.tuning import Budget, Progress, Tuned


TUNED, AGAINST, STUDY, PICTURES = "tuned.json", "against.json", "study.db", ("front.png", "front.svg")
_DEFAULT_BUDGET = "10m"
_STEPS = 1000  # of the bar

# The type of the library, without importing Optuna; a test compares them.
Strategy = Literal["tpe", "motpe", "nsga2", "random", "grid"]


@command
def tune(
    graph: GraphOptions,
    training: TrainingOptions,
    method: str = "gmmd",
    budget: str | None = None,
    trials: int | None = None,
    strategy: Strategy = "tpe",
    seeds: int = 3,
    settings: list[str] | None = None,
    against: str | None = None,
    storage: str | None = None,
    execution: ExecutionOptions = HERE,
    out: Path | None = None,
) -> Result:
    with working(STARTING):
        from fairpass import methods
        from fairpass.tuning import draw_front
        from fairpass.tuning.budget import Budget, parse_time

    if storage == "":
        raise DataError("--storage must be a file or a database URL (got '')")
    if budget is None and trials is None:
        budget = _DEFAULT_BUDGET
    executor = execution.open()
    limit = Budget(trials=trials, seconds=None if budget is None else parse_time(budget))
    found = methods.method(method)
    other = None if against is None else methods.method(against, "against")
    fixed = {**parse_parameters(found, settings or ()), **training.given(found.default_training())}
    data = graph.load()
    choose_threads(data)
    source = graph.benchmark or (graph.nodes.stem if graph.nodes is not None else "")
    directory = out if out is not None else Path("tuned") / f"{source}-{method}"
    url = storage or str(directory / STUDY)
    common: dict[str, Any] = {"strategy": strategy, "seeds": seeds, "storage": url, "executor": executor}
    title, plain = f"{method} on {title_of(data)}", None
    with executor:
        tuned = _search(data, method, limit, fixed=fixed, **common)
        with in_use(directory):  # so that results and pictures are of one command
            tuned.save(directory / TUNED)
            for name in PICTURES:
                draw_front(tuned, directory / name, title=title)
        if other is not None and against is not None:
            plain = _search(data, against, limit, fixed=training.given(other.default_training()), **common)
            plain.save(directory / AGAINST)
    yield tuned.to_dict() | ({} if plain is None else {"against": plain.to_dict()})
    _show(title, tuned, seeds)
    if plain is not None:
        _show_both(tuned, plain)
    print_line("")
    files = [TUNED, *PICTURES] if plain is None else [TUNED, AGAINST, *PICTURES]
    print_line(f"{', '.join(files[:-1])} and {files[-1]} are in {directory}.")


def _search(data: "Data", method: str, limit: "Budget", *, storage: str, **settings: Any) -> "Tuned":
    from fairpass.tuning import tune as search

    with bar(_STEPS, "the study") as show:

        def show_state(state: "Progress") -> None:
            doing = f"{state.training} in training" if state.training else "waiting for others"
            best = f", best {in_short(state.best.validation)}" if state.best else ""
            show(int(_STEPS * state.fraction), method, f"{state.finished} done, {doing}{best}")

        return search(data, method, budget=limit, storage=storage, callback=show_state, **settings)


def _show(title: str, tuned: "Tuned", seeds: int) -> None:
    from fairpass.metrics.catalog import SELECTION

    best = {name: _in_words(value) for name, value in tuned.values(tuned.best).items()}
    section(f"{title}: the best of {len(tuned.points)} configurations", facts(best))
    columns = ["", *(f"{split}\n{metric.symbol}" for split in ("val", "test") for metric in SELECTION)]
    lines, configurations = [], {}
    for i, point in enumerate(tuned.front, 1):
        split_metrics = (point.validation, point.test or {})
        values = [metrics.get(metric.label, math.nan) for metrics in split_metrics for metric in SELECTION]
        lines.append([f"{i}*" if point == tuned.best else f"{i}", *map(percent, values)])
        configurations[str(i)] = "  ".join(f"{name}={_in_words(value)}" for name, value in tuned.values(point).items())
    bold = [i for i, point in enumerate(tuned.front) if point == tuned.best]
    runs = f"means over {seeds} seeds" if seeds > 1 else "one seed"
    legend = Text(f"{runs}, in percent; * the best by AUC + F1 + ACC - ΔDP - ΔEO on validation", style="dim")
    front = table(columns, lines, bold=bold, narrow=True)
    section("Front on validation, from the most useful to the fairest", front, legend)
    section("Configurations of the front", facts(configurations))
    if notes := list(_notes(tuned)):
        section("What to know", bullets(notes))


def _show_both(tuned: "Tuned", plain: "Tuned") -> None:
    """Print the best configuration beside the most useful one of another method, which had the same budget."""
    from fairpass.metrics.catalog import SELECTION
    from fairpass.tuning import choose

    rows = {f"{tuned.method}, best": tuned.best, f"{plain.method}, most useful": choose(plain.points, fairness=0.0)}
    columns = ["", *(f"{split}\n{metric.symbol}" for split in ("val", "test") for metric in SELECTION)]
    lines = [
        [
            name,
            *(percent(half.get(m.label, math.nan)) for half in (point.validation, point.test or {}) for m in SELECTION),
        ]
        for name, point in rows.items()
    ]
    counts = f"{len(tuned.points)} and {len(plain.points)} configurations were tried with the same budget"
    section(f"Against {plain.method}", table(columns, lines, narrow=True), Text(f"{counts}, in percent", style="dim"))


def _in_words(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if value is None else str(value)


def _notes(tuned: "Tuned") -> Iterator[str]:
    constant = sum(point.near_constant for point in tuned.points)
    if constant == len(tuned.points):
        yield "Every configuration is near constant: almost every node gets the same label, which is fair but useless."
    elif constant:
        share = f"{constant} of {len(tuned.points)} configurations"
        yield f"Left out as near constant: {share}. They are fair but useless."
    if tuned.failed:
        yield f"Could not be trained: {tuned.failed}."
    if tuned.pruned:
        yield f"Stopped early, because they were worse than others: {tuned.pruned}."
