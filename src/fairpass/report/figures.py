"""Which charts a report has, and what each shows."""

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from fairpass.report.charts import Estimate, Series, Spot, estimates, histogram, key, lines, scatter
from fairpass.report.evidence import Evidence
from fairpass.report.summary import LOWER_IS_BETTER, METRICS, SHOWN, Overview

Figures = list[tuple[str, Markup]]
"""Captions and charts."""

_CURVES = {
    "loss": "Training loss",
    "ACC": "ACC on validation, %",
    "AUC": "AUC on validation, %",
    "DP": "ΔDP on validation, %",
    "EO": "ΔEO on validation, %",
    "mmd2": "MMD² between groups",
}
_MOST_HISTOGRAMS = 12
_MOST_POINTS = 500


def method_keys(rows: Sequence[Overview], chosen: str, *, line: bool) -> list[Markup]:
    """Return the legend of all charts that compare methods."""
    return [key(row.name, row.number, strong=row.name == chosen, line=line) for row in rows]


def metric_figures(rows: Sequence[Overview], chosen: str) -> Figures:
    """Return a chart of each metric, over all methods."""
    made = []
    for metric in METRICS:
        content = [
            Estimate(
                row.name,
                row.mean(metric),
                *row.interval(metric),
                row.each(metric),
                row.number,
                row.name == chosen,
            )
            for row in rows
        ]
        better = "lower is fairer" if metric in LOWER_IS_BETTER else "higher is better"
        chart = estimates(content, f"{SHOWN[metric]}, %", from_zero=metric in LOWER_IS_BETTER)
        made.append((f"{SHOWN[metric]}, %: {better}", chart))
    return made


def score_figures(row: Overview) -> Figures:
    """Return how a method's scores are spread in each group, for the positive label or for each."""
    run = row.record["runs"][0]
    labels = list(dict.fromkeys(each["label"] for each in run["histograms"]))[:_MOST_HISTOGRAMS]
    made = []
    for label in labels:
        series = []
        for number, each in enumerate(e for e in run["histograms"] if e["label"] == label):
            total, bins = sum(each["counts"]), len(each["counts"])
            if total:
                heights = [100 * count / total for count in each["counts"]]
                series.append(Series(each["group"], [i / bins for i in range(bins + 1)], heights, number))
        made.append((f"Score of “{label}”", histogram(series, "score", run["threshold"])))
    return made


def group_keys(evidence: Evidence) -> list[Markup]:
    """Return the legend of the score charts."""
    histograms = evidence.methods[0]["runs"][0]["histograms"]
    names = dict.fromkeys(each["group"] for each in histograms)
    return [key(name, number, line=True) for number, name in enumerate(names)]


def curve_figures(rows: Sequence[Overview], chosen: str) -> Figures:
    """Return the training curves of the first seed of every method that trains for more than an epoch."""
    trained = [row for row in rows if row.record["runs"][0]["epochs"] > 1]
    made = []
    for column, label in _CURVES.items():
        factor = 100 if column in METRICS else 1
        series = []
        for row in trained:
            history = row.record["runs"][0]["history"]
            if any(value is not None for value in history.get(column, ())):
                values = [None if value is None else factor * value for value in history[column]]
                series.append(Series(row.name, history["epoch"], values, row.number, row.name == chosen))
        if series:
            from_zero = column in {*LOWER_IS_BETTER, "mmd2"}
            made.append((label, lines(series, label, "epoch", from_zero=from_zero)))
    return made


def tradeoff_figures(evidence: Evidence, rows: Sequence[Overview]) -> Figures:
    """Return accuracy against each difference between groups, and the points of tuning if there are any."""
    made = _front(evidence.points, rows)
    for metric in LOWER_IS_BETTER:
        spots = []
        for row in rows:
            x, y = row.mean(metric), row.mean("ACC")
            if x is not None and y is not None:
                spots.append(Spot(row.name, x, y, row.number, row.name == evidence.chosen, labelled=True))
        if spots:
            chart = scatter(spots, f"{SHOWN[metric]}, %", "ACC, %")
            made.append((f"Accuracy against {SHOWN[metric]}, on the test nodes", chart))
    return made


def _front(points: Sequence[dict[str, Any]], rows: Sequence[Overview]) -> Figures:
    """Return the chart of what tuning tried; of very many points those off the front are thinned out."""
    known = [point for point in points if point["utility"] is not None and point["unfairness"] is not None]
    if not known:
        return []
    needed = [point for point in known if point["front"] or point["chosen"]]
    others = [point for point in known if not (point["front"] or point["chosen"])]
    step = max(1, math.ceil(len(others) / _MOST_POINTS))
    shown = [*needed, *others[::step]]
    numbers = {row.record["method"]: row.number for row in rows}
    searched = _searched(known)
    spots = [
        Spot(
            "chosen" if point["chosen"] else _settings(point, searched),
            100 * point["unfairness"],
            100 * point["utility"],
            numbers.get(point["method"], -1),
            strong=point["chosen"],
            labelled=point["chosen"],
        )
        for point in shown
    ]
    front = [(100 * point["unfairness"], 100 * point["utility"]) for point in known if point["front"]]
    chart = scatter(spots, "mean of ΔDP and ΔEO, %", "mean of AUC, F1 and ACC, %", from_zero=False, front=front)
    count = f"{len(known):,}" if step == 1 else f"{len(shown):,} of {len(known):,}"
    return [(f"{count} configurations, on validation; the line is the front", chart)]


def _searched(points: Sequence[dict[str, Any]]) -> list[str]:
    """Return the parameters that are not the same everywhere."""
    names = dict.fromkeys(name for point in points for name in point["parameters"])
    return [name for name in names if len({repr(point["parameters"].get(name)) for point in points}) > 1]


def _settings(point: dict[str, Any], searched: Sequence[str]) -> str:
    values = [f"{name} {point['parameters'][name]}" for name in searched if name in point["parameters"]]
    note = " (near constant)" if point["near_constant"] else ""
    return f"{point['method']} with {', '.join(values) or 'these settings'}{note}"
