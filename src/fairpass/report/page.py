"""One self-contained HTML page from evidence, without network requests: numbers over all seeds, sentences, sections.

To add a section, write its template and one entry in `SECTIONS`, with a function if the template needs more than the
evidence.
"""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from markupsafe import Markup

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import write_text
from fairpass.methods import Logistic
from fairpass.metrics import Evaluation, Metric, catalog
from fairpass.metrics.catalog import BY_LABEL, SELECTION, UNFAIRNESS, UTILITY
from fairpass.report.charts import Estimate, Look, Series, Spot, estimates, histogram, key, lines, scatter
from fairpass.report.evidence import Evidence
from fairpass.report.measures import mean_interval
from fairpass.report.text import environment, listed, percent, plural
from fairpass.runs import Row, RunRecord, summarise, tradeoff

Charts = list[tuple[str, Markup]]  # with captions

_BACKBONES = ("gcn", "gin", "gat")
_CURVES = ("loss", "ACC", "AUC", "DP", "EO", "mmd2")
_CAPTIONS = {"loss": "Training loss", "mmd2": "MMD² between groups"}
_MOST_HISTOGRAMS = 12
_MOST_POINTS = 500


@dataclass(frozen=True)
class Overview:
    """A method over all its seeds; metrics in percent, None where undefined."""

    row: Row
    record: dict[str, Any]
    number: int  # of its colour and shape in charts; -1 for a constant

    @property
    def name(self) -> str:
        return self.row.method

    def each(self, metric: Metric) -> list[Any]:
        """Return the metric of every seed; evidence of an older version may lack it."""
        values = [run["evaluation"].get(metric.key) for run in self.record["runs"]]
        return [None if value is None else 100 * value for value in values]

    def mean(self, metric: Metric) -> float | None:
        values = self.each(metric)
        return None if None in values else fmean(values)

    def deviation(self, metric: Metric) -> float | None:
        values = self.each(metric)
        return None if None in values or len(values) == 1 else stdev(values)

    def interval(self, metric: Metric) -> tuple[float | None, float | None]:
        """Return the ends of the 95 % interval, each the mean of the seeds' ends."""
        low, high = mean_interval(self.record["runs"], metric.key)
        return (None, None) if low is None or high is None else (100 * low, 100 * high)

    @property
    def rank(self) -> float | None:
        """Mean rank; None for a constant, and if a metric is undefined."""
        return None if self.row.rank is None or math.isnan(self.row.rank) else self.row.rank

    @property
    def is_defined(self) -> bool:
        return None not in {self.mean(metric) for metric in SELECTION}


@dataclass(frozen=True)
class Part:
    """One piece of evidence as the templates read it."""

    evidence: Evidence
    uid: str = "r1"

    @cached_property
    def rows(self) -> list[Overview]:
        methods = self.evidence.methods
        runs = [
            RunRecord(method["name"], run["seed"], 0.0, Evaluation.from_dict(run["evaluation"]))
            for method in methods
            for run in method["runs"]
        ]
        references = [method["name"] for method in methods if method["is_reference"]]
        rows = {row.method: row for row in summarise(runs, references)}
        numbers = {name: number for number, name in enumerate([name for name in rows if name not in references])}
        return [Overview(rows[m["name"]], m, numbers.get(m["name"], -1)) for m in methods]

    @cached_property
    def chosen(self) -> Overview:
        return next(row for row in self.rows if row.name == self.evidence.chosen)

    @cached_property
    def plain(self) -> Overview | None:
        """The method to compare the chosen one with: one without a fairness term, if there is one."""
        others = [row for row in self.rows if row.number >= 0 and row is not self.chosen]
        return next(iter([row for row in others if row.record["method"] in _BACKBONES] or others), None)

    @property
    def binary(self) -> bool:
        return len(self.evidence.data["labels"]) == 2

    def sentences(self) -> list[str]:
        """Return how the chosen method does, and how it differs from plain ones."""
        chosen, runs = self.chosen, self.chosen.record["runs"]
        values = {m.label: percent(None if (mean := chosen.mean(m)) is None else mean / 100) for m in SELECTION}
        seeds = "" if len(runs) == 1 else f" (means of {len(runs)} seeds)"
        made = [
            f"{chosen.name} reaches ACC {values['ACC']} % and AUC {values['AUC']} % with ΔDP {values['DP']} and "
            f"ΔEO {values['EO']} points between groups, on {plural(runs[0]['evaluation']['n'], 'test node')}{seeds}."
        ]
        # A regression without a graph is often hard to beat, so it is always compared.
        logistic = [row for row in self.rows if row.record["method"] == Logistic.name]
        rivals = {row.name: row for row in (self.plain, *logistic) if row is not None and row is not chosen}
        if chosen.is_defined:
            made += [tradeoff(row.row, chosen.row) for row in rivals.values() if row.is_defined]
        return made

    @cached_property
    def interactive(self) -> dict[str, Any]:
        """Data of the page's script: counts by threshold, and the neighbourhoods."""
        return {
            "chosen": self.evidence.chosen,
            "labels": self.evidence.data["labels"],
            "groups": self.evidence.data["groups"],
            "symbols": {metric.key: metric.symbol for metric in catalog.METRICS},
            "thresholds": {row.name: row.record["thresholds"] for row in self.rows if row.record["thresholds"]},
            "neighbourhoods": self.evidence.neighbourhoods,
        }


@dataclass(frozen=True)
class Section:
    """One section of the page; its template is `<key>.html`, which reads what `build` returns as `own`."""

    key: str
    title: str
    build: Callable[[Part], dict[str, Any]] | None = None


def _look(row: Overview, part: Part) -> Look:
    return Look(row.name, row.number, row is part.chosen)


def _methods(part: Part) -> dict[str, Any]:
    charts = []
    for m in SELECTION:
        rows = [Estimate(_look(row, part), row.mean(m), *row.interval(m), row.each(m)) for row in part.rows]
        chart = estimates(rows, f"{m.symbol}, %", from_zero=not m.higher_is_better)
        charts.append((f"{m.symbol}, %: {m.direction}", chart))
    return {"charts": charts}


def _scores(part: Part) -> dict[str, Any]:
    groups = dict.fromkeys(each["group"] for each in part.rows[0].record["runs"][0]["histograms"])
    looks = {name: Look(name, number) for number, name in enumerate(groups)}
    charts: dict[str, Charts] = {}
    for row in part.rows:
        if row.number >= 0:
            run = row.record["runs"][0]
            labels = list(dict.fromkeys(each["label"] for each in run["histograms"]))[:_MOST_HISTOGRAMS]
            charts[row.name] = [(f"Score of “{label}”", _histogram(run, label, looks)) for label in labels]
    return {"charts": charts, "legend": [key(look, line=True) for look in looks.values()]}


def _histogram(run: dict[str, Any], label: str, looks: dict[str, Look]) -> Markup:
    series = []
    for each in run["histograms"]:
        total, bins = sum(each["counts"]), len(each["counts"])
        if each["label"] == label and total:
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
        values = [(row, row.mean(metric), row.mean(accuracy)) for row in part.rows]
        spots = [Spot(_look(row, part), x, y, labelled=True) for row, x, y in values if x is not None and y is not None]
        if spots:
            chart = scatter(spots, f"{metric.symbol}, %", "ACC, %")
            charts.append((f"Accuracy against {metric.symbol}, on the test nodes", chart))
    return {"charts": charts, "legend": [key(_look(row, part)) for row in part.rows]}


def _front(part: Part) -> Charts:
    """Return the chart of all configurations tried; if there are very many, those off the front are thinned out."""
    known = [p for p in part.evidence.points if p["utility"] is not None and p["unfairness"] is not None]
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
        spots.append(Spot(look, 100 * point["unfairness"], 100 * point["utility"], labelled=point["chosen"]))
    front = [(100 * point["unfairness"], 100 * point["utility"]) for point in known if point["front"]]
    unfairness, utility = (f"mean of {listed([m.symbol for m in half])}, %" for half in (UNFAIRNESS, UTILITY))
    chart = scatter(spots, unfairness, utility, from_zero=False, front=front)
    count = f"{len(known):,}" if step == 1 else f"{len(shown):,} of {len(known):,}"
    return [(f"{count} configurations, on validation; the line is the front", chart)]


def _settings(point: dict[str, Any], searched: Sequence[str]) -> str:
    values = [f"{name} {point['parameters'][name]}" for name in searched if name in point["parameters"]]
    note = " (near constant)" if point["near_constant"] else ""
    return f"{point['method']} with {', '.join(values) or 'these settings'}{note}"


SECTIONS = [
    Section("data", "The question and the data"),
    Section("bias", "The graph before training"),
    Section("methods", "Utility and fairness", _methods),
    Section("groups", "Group by group"),
    Section("scores", "Scores in each group", _scores),
    Section("tradeoff", "The trade-off", _tradeoff),
    Section("threshold", "The threshold"),
    Section("training", "Training", _training),
    Section("neighbours", "A closer look at nodes"),
    Section("theory", "The theorems' bounds"),
    Section("limits", "Limits and intended use"),
    Section("settings", "Settings and versions"),
]


def write_report(evidences: Sequence[Evidence], path: str | os.PathLike[str]) -> Path:
    """Write one page; several pieces of evidence follow each other on it."""
    return write_text(path, render(evidences))


def render(evidences: Sequence[Evidence]) -> str:
    if not evidences:
        raise DataError("'evidences' must hold at least one (got none)")
    templates = Path(__file__).parent / "templates"
    style, script = (Markup((templates / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))
    parts = [Part(evidence, f"r{place}") for place, evidence in enumerate(evidences, 1)]
    page = environment().get_template("page.html")
    return page.render(parts=parts, sections=SECTIONS, style=style, script=script, version=__version__)
