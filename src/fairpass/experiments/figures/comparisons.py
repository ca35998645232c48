"""The figures that compare all methods: their metrics, their fronts and their times."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairpass.experiments import paper
from fairpass.experiments.figures.style import GREY, colour, legend, line_style, marker, panels
from fairpass.experiments.findings import TITLES, Findings
from fairpass.experiments.fronts import Front, fronts
from fairpass.experiments.ranks import METRICS
from fairpass.experiments.tables.measured import epoch_seconds
from fairpass.experiments.words import METRIC_NAMES


def main(findings: Findings) -> dict[str, Figure]:
    """Return every method's metrics on every data set, the paper's beside ours."""
    datasets = findings.datasets("main")
    figure, axes = panels(len(datasets), len(METRICS), row_height=2.3, sharey="row")
    for row, dataset in zip(axes, datasets, strict=True):
        labels = findings.labels("main", dataset)
        for ax, metric in zip(row, METRICS, strict=True):
            _dots(ax, findings, dataset, metric, labels)
        row[0].set_yticks(range(len(labels)), labels)
        row[0].invert_yaxis()
        row[0].set_ylabel(TITLES[dataset], fontweight="bold")
    for ax, metric in zip(axes[0], METRICS, strict=True):
        ax.set_title(f"{METRIC_NAMES[metric]} (%)")
    ours = Line2D([], [], color="#0072B2", marker="o", label="ours, ± one standard deviation")
    theirs = Line2D([], [], color=GREY, marker="D", markerfacecolor="white", linestyle="", label="printed in the paper")
    legend(figure, [ours, theirs])
    return {"main": figure}


def _dots(ax: Axes, findings: Findings, dataset: str, metric: str, labels: list[str]) -> None:
    for place, label in enumerate(labels):
        printed = paper.MAIN[dataset].get(paper.method_of(label))
        if printed is not None:
            ax.plot(printed[metric][0], place, "D", color=GREY, markerfacecolor="white", markersize=4)
        finding = findings.one("main", dataset, label)
        if finding is not None:
            std = finding.std(metric)
            ax.errorbar(
                finding.mean(metric),
                place,
                xerr=None if math.isnan(std) else std,
                color="#0072B2",
                marker="o",
                markersize=4,
                linewidth=1.2,
            )
    ax.margins(x=0.1)
    ax.locator_params(axis="x", nbins=3)


def pareto(findings: Findings) -> dict[str, Figure]:
    """Return accuracy against both kinds of bias, with the front of each method."""
    datasets = findings.datasets("pareto", at_least=2)
    if not datasets:
        return {}
    figure, axes = panels(len(datasets), 2, row_height=2.5, sharey="row")
    for row, dataset in zip(axes, datasets, strict=True):
        for ax, bias in zip(row, ("DP", "EO"), strict=True):
            for front in fronts(findings, dataset, bias):
                _front(ax, front)
            ax.set_xlabel(f"{METRIC_NAMES[bias]} (%)")
            ax.set_xlim(left=0)
        row[0].set_ylabel("ACC (%)")
        row[0].set_title(TITLES[dataset], loc="left", fontweight="bold")
    labels = list(dict.fromkeys(label for d in datasets for label in findings.labels("pareto", d)))
    handles = [Line2D([], [], marker=marker(label), color=colour(label), label=label) for label in labels]
    hollow = Line2D([], [], marker="o", color=GREY, markerfacecolor="white", linestyle="", label="near constant")
    legend(figure, [*handles, hollow], columns=5)
    return {"pareto": figure}


def _front(ax: Axes, front: Front) -> None:
    line = [front.points[i] for i in front.best]
    # From a point to the next more accurate one nothing better was found, so these are steps and no slopes.
    ax.plot(
        [bias for _, bias in line],
        [accuracy for accuracy, _ in line],
        drawstyle="steps-post",
        linewidth=1,
        alpha=0.8,
        **line_style(front.label) | {"linestyle": "-"},
    )
    for i, (accuracy, bias) in enumerate(front.points):
        face = "white" if i in front.constant else colour(front.label)
        ax.plot(
            bias,
            accuracy,
            marker(front.label),
            color=colour(front.label),
            markerfacecolor=face,
            markersize=5,
            clip_on=False,
        )


def runtime(findings: Findings) -> dict[str, Figure]:
    """Return the time of an epoch for each method."""
    datasets = findings.datasets("runtime")
    labels = list(dict.fromkeys(label for d in datasets for label in findings.labels("runtime", d)))
    figure, axes = panels(1, len(datasets), row_height=2.6, sharey=True)
    for ax, dataset in zip(axes[0], datasets, strict=True):
        times = [epoch_seconds(findings, dataset, label) for label in labels]
        values = np.array([math.nan if time is None else 1000 * time for time in times])
        is_papers = [label != paper.method_of(label) for label in labels]
        bars = ax.barh(range(len(labels)), values, color=[colour(label) for label in labels])
        for bar, hatched in zip(bars, is_papers, strict=True):
            bar.set_alpha(0.55 if hatched else 1.0)
        for place, value in enumerate(values):
            if not math.isnan(value):
                ax.annotate(f"{value:.3g}", (value, place), (3, 0), textcoords="offset points", va="center", fontsize=7)
        ax.set_title(TITLES[dataset])
        ax.set_xlabel("milliseconds per epoch")
        ax.grid(visible=False, axis="y")
        # Room for the numbers at the ends of the bars.
        ax.set_xlim(0, 1.25 * np.nanmax(values))
    axes[0][0].set_yticks(range(len(labels)), labels)
    axes[0][0].invert_yaxis()
    return {"runtime": figure}
