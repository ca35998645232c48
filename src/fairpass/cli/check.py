"""`fairpass check`: whether a stored model keeps limits on unfairness, for people and for continuous integration."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer
from rich.padding import Padding
from rich.text import Text

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.evaluate import load_like_fit, load_stored_model
from fairpass.cli.options import PredictionOptions, Result, command, spelled
from fairpass.cli.output import STARTING, Cells, console, print_line, section, table, working
from fairpass.cli.results import title_of
from fairpass.projects.sections import LIMIT_NAMES

if TYPE_CHECKING:
    from fairpass.metrics.promise import Promise

EXIT_CODES = {"shown": 0, "not shown": 3, "violated": 4}
_STYLES = {"shown": "bold green", "not shown": "bold yellow", "violated": "bold red"}


@command
def check(
    model: Path,
    graph: GraphOptions,
    max_dp: float | None = None,
    max_eo: float | None = None,
    min_impact_ratio: float | None = None,
    confidence: float = 0.95,
    on: Literal["safety", "test"] | None = None,
    *,
    prediction: PredictionOptions,
) -> Result:
    limits = dict(zip(LIMIT_NAMES, (max_dp, max_eo, min_impact_ratio), strict=True))
    flags = {name: f"--{name.replace('_', '-')}" for name in (*LIMIT_NAMES, "confidence")}
    with working(STARTING):
        from fairpass.metrics.limits import check_limits

    try:
        asked = check_limits(limits, confidence)
    except ValueError as error:
        raise typer.BadParameter(spelled(str(error), flags)) from None
    if not asked:
        raise typer.BadParameter("give a limit to check: --max-dp, --max-eo or --min-impact-ratio")
    groups = {} if prediction.unknown_group is None else {"missing_sensitive": prediction.missing_sensitive}
    classifier = load_stored_model(model)
    data = load_like_fit(classifier, graph, **groups)
    with working("Checking"):
        from fairpass.projects.delivery import promise_of

        has_safety = data.get("safety_mask") is not None
        if on == "safety" and not has_safety:
            raise typer.BadParameter("--on must not be safety: the split has no safety nodes")
        part = on or ("safety" if has_safety else "test")
        promise = promise_of(classifier, data, asked, confidence, part, **prediction.given())
    document = {"model": str(model), "method": classifier.name, "promise": promise.to_dict()}
    yield {**document, "provenance": data.provenance}, EXIT_CODES[promise.verdict]
    show_promise(promise, f"{classifier.name} on {title_of(data)}")
    trained_on = (classifier.provenance_ or {}).get("nodes") or {}
    if graph.name is None and data.provenance["nodes"]["sha256"] != trained_on.get("sha256"):
        print_line("")
        print_line("These are not the tables of the training. Nobody in them may have had a part in it.")


def show_promise(promise: "Promise", title: str = "") -> None:
    """Print the answer for each limit, the people behind it, and what it takes for granted."""
    from fairpass.metrics.limits import LIMITS

    titles = {kind.metric: kind.title for kind in LIMITS.values()}
    heading = Text.assemble((promise.verdict.capitalize(), _STYLES[promise.verdict]))
    section(f"{title}: the limits asked for" if title else "The limits asked for", heading)
    for each in promise.checks:
        section(titles[each.metric].capitalize(), Text(each.sentence))
        lines: list[Cells] = [
            (Text(count.group), Text(count.label), f"{count.selected:,}", f"{count.people:,}", _share(*count[2:]))
            for count in each.counts
        ]
        columns = ("group", "label", "predicted so", "of", "percent")
        console.print(Padding(table(columns, lines, words=["label"]), (1, 0, 0, 2), expand=False))
    if promise.warning:
        section("Before you rely on it", Text(promise.warning, style="yellow"))
    section("What this takes for granted", Text(promise.assumption, style="dim"))


def _share(selected: int, people: int) -> str:
    return f"{100 * selected / people:.1f}" if people else "-"
