"""One self-contained HTML page from evidence, without network requests: what a decision needs, then an appendix.

To add a section, write its template and one entry in `SECTIONS`, with a function if the template needs more than the
evidence.
"""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import write_text
from fairpass.metrics.catalog import BY_LABEL, SELECTION, UNFAIRNESS, UTILITY
from fairpass.plain_text import printable
from fairpass.report import headline
from fairpass.report.charts import Estimate, Look, Series, Spot, estimates, histogram, key, lines, scatter
from fairpass.report.evidence import FILE, Evidence
from fairpass.report.figures_file import are_figures, write_figures
from fairpass.report.identity import delivery_rows, identity_rows
from fairpass.report.part import Overview, Part
from fairpass.report.schema import Run, TriedPoint
from fairpass.report.text import environment, listed

Charts = list[tuple[str, Markup]]  # with captions

_CURVES = ("loss", "ACC", "AUC", "DP", "EO", "mmd2")
_CAPTIONS = {"loss": "Training loss", "mmd2": "MMD² between groups"}
_MOST_HISTOGRAMS = 12
_MOST_POINTS = 500


@dataclass(frozen=True)
class Section:
    """One section of the page; its template is `<key>.html`, which reads what `build` returns as `own`."""

    key: str
    title: str
    build: Callable[[Part], dict[str, Any]] | None = None
    appendix: bool = False  # folded, until it is opened or printed
    shown: Callable[[Part], bool] = lambda part: True


def _look(row: Overview, part: Part) -> Look:
    return Look(row.name, row.number, row is part.chosen)


def _methods(part: Part) -> dict[str, Any]:
    charts = []
    for m in SELECTION:
        rows = [Estimate(_look(row, part), row.value(m), *row.interval(m), row.each(m)) for row in part.rows]
        chart = estimates(rows, f"{m.symbol}, %", from_zero=not m.higher_is_better)
        charts.append((f"{m.symbol}, %: {m.direction}", chart))
    return {"charts": charts}


def _scores(part: Part) -> dict[str, Any]:
    histograms = part.rows[0].run["histograms"]
    groups = dict.fromkeys(each["group"] for each in histograms if each["group"] not in part.hidden)
    looks = {name: Look(name, number) for number, name in enumerate(groups)}
    charts: dict[str, Charts] = {}
    for row in part.rows:
        if row.number >= 0:
            run = row.record["runs"][0]
            labels = list(dict.fromkeys(each["label"] for each in run["histograms"]))[:_MOST_HISTOGRAMS]
            charts[row.name] = [(f"Score of “{label}”", _histogram(run, label, looks)) for label in labels]
    return {"charts": charts, "legend": [key(look, line=True) for look in looks.values()]}


def _histogram(run: Run, label: str, looks: dict[str, Look]) -> Markup:
    series = []
    for each in run["histograms"]:
        total, bins = sum(each["counts"]), len(each["counts"])
        if each["label"] == label and total and each["group"] in looks:
            heights = [100 * count / total for count in each["counts"]]
            series.append(Series(looks[each["group"]], [i / bins for i in range(bins + 1)], heights))
    return histogram(series, "score", run["threshold"])


def _training(part: Part) -> dict[str, Any]:
    """Draw the training curves of the first seed of every method that trains for more than an epoch."""
    trained = [row for row in part.rows if row.record["runs"][0]["epochs"] > 1]
    charts = []
    for column in _CURVES:
        metric = BY_LABEL.get(column)
        caption = f"{metric.symbol} on validation, %" if metric else _CAPTIONS[column]
        series = []
        for row in trained:
            history = row.record["runs"][0]["history"]
            values = [None if value is None else (100 if metric else 1) * value for value in history.get(column, ())]
            if any(value is not None for value in values):
                series.append(Series(_look(row, part), history["epoch"], values))
        if series:
            from_zero = column == "mmd2" or (metric is not None and not metric.higher_is_better)
            charts.append((caption, lines(series, caption, "epoch", from_zero=from_zero)))
    legend = [key(_look(row, part), line=True) for row in part.rows if row.number >= 0]
    return {"charts": charts, "legend": legend}


def _tradeoff(part: Part) -> dict[str, Any]:
    charts = _front(part)
    accuracy = BY_LABEL["ACC"]
    for metric in UNFAIRNESS:
        values = [(row, row.value(metric), row.value(accuracy)) for row in part.rows]
        spots = [Spot(_look(row, part), x, y, labelled=True) for row, x, y in values if x is not None and y is not None]
        if spots:
            chart = scatter(spots, f"{metric.symbol}, %", "ACC, %")
            charts.append((f"Accuracy against {metric.symbol}, on the test nodes", chart))
    return {"charts": charts, "legend": [key(_look(row, part)) for row in part.rows]}


def _front(part: Part) -> Charts:
    """Return the chart of all configurations tried; if there are very many, those off the front are thinned out."""
    known = part.points
    if not known:
        return []
    needed = [point for point in known if point["front"] or point["chosen"]]
    others = [point for point in known if not (point["front"] or point["chosen"])]
    step = max(1, math.ceil(len(others) / _MOST_POINTS))
    shown = needed + others[::step]
    numbers = {row.record["method"]: row.number for row in part.rows}
    names = dict.fromkeys(name for point in known for name in point["parameters"])
    searched = [name for name in names if len({repr(point["parameters"].get(name)) for point in known}) > 1]
    spots = []
    for point in shown:
        name = "chosen" if point["chosen"] else _settings(point, searched)
        look = Look(name, numbers.get(point["method"], -1), strong=point["chosen"])
        spots.append(Spot(look, *_place(point), labelled=point["chosen"]))
    front = [_place(point) for point in known if point["front"]]
    unfairness, utility = (f"mean of {listed([m.symbol for m in half])}, %" for half in (UNFAIRNESS, UTILITY))
    chart = scatter(spots, unfairness, utility, from_zero=False, front=front)
    count = f"{len(known):,}" if step == 1 else f"{len(shown):,} of {len(known):,}"
    return [(f"{count} configurations, on validation; the line is the front", chart)]


def _place(point: TriedPoint) -> tuple[float, float]:
    return 100 * (point["unfairness"] or 0.0), 100 * (point["utility"] or 0.0)


def _settings(point: TriedPoint, searched: Sequence[str]) -> str:
    values = [f"{name} {point['parameters'][name]}" for name in searched if name in point["parameters"]]
    note = " (near constant)" if point["near_constant"] else ""
    return f"{point['method']} with {', '.join(values) or 'these settings'}{note}"


def _identity(part: Part) -> dict[str, Any]:
    return {"fields": identity_rows(part.evidence), "facts": delivery_rows(part.evidence)}


SECTIONS = [
    Section("selection", "Selection rates and impact ratios"),
    Section("errors", "Errors and calibration in each group"),
    Section("methods", "Compared with other models", _methods),
    Section("threshold", "The threshold"),
    Section("data", "The data"),
    Section("limits", "Limits of this audit"),
    Section("identity", "Purpose, oversight and approval", _identity),
    Section("groups", "Every model, group by group", appendix=True),
    Section("scores", "Scores in each group", _scores, appendix=True),
    Section("bias", "The graph before training", appendix=True),
    Section("tradeoff", "The configurations tried and the trade-off", _tradeoff, appendix=True),
    Section("training", "Training", _training, appendix=True),
    Section("neighbours", "A closer look at people", appendix=True, shown=lambda part: bool(part.neighbourhoods)),
    Section("theory", "The theorems' bounds", appendix=True),
    Section("settings", "Settings and versions", appendix=True),
]


def write_report(evidences: Sequence[Evidence], out: str | os.PathLike[str], *, include_people: bool = False) -> Path:
    """Write one page, and its figures as a .json file beside it; several pieces of evidence follow each other.

    People and their neighbours, if the evidence has any, are on the page only with `include_people`. An earlier page
    and its figures are replaced, but a .json file with results is not.
    """
    page, figures = Path(out), Path(out).with_suffix(".json")
    if page.suffix != ".html":
        raise DataError(f"'out' must end in .html (got {str(out)!r})")
    if figures.name == FILE or (figures.exists() and not are_figures(figures)):
        raise DataError(f"'out' must have another name: its figures would replace {figures.name} (got {str(out)!r})")
    text = render(evidences, include_people=include_people)
    write_figures(evidences, figures)
    return write_text(page, printable(text))


def render(evidences: Sequence[Evidence], *, include_people: bool = False) -> str:
    if not evidences:
        raise DataError("'evidences' must hold at least one (got none)")
    templates = Path(__file__).parent / "templates"
    style, script = (Markup((templates / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))
    parts = [Part(evidence, f"r{place}", include_people) for place, evidence in enumerate(evidences, 1)]
    page = environment().get_template("page.html")
    return page.render(parts=parts, sections=SECTIONS, style=style, script=script, words=headline, version=__version__)
