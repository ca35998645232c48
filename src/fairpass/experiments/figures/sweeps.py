"""The figures that vary a parameter: heat maps over two, lines over one."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairpass.experiments.figures.style import HEAT, legend, line_style, marker, panels
from fairpass.experiments.findings import TITLES, Finding, Findings
from fairpass.experiments.ranks import METRICS
from fairpass.experiments.words import METRIC_NAMES

_X_LABELS = {
    "K": "layers of message passing, K",
    "alpha": "kernel parameter α",
    "num_layers": "layers of the perceptron, M",
}
_LOGARITHMIC = ("alpha",)


def hyper(findings: Findings) -> dict[str, Figure]:
    """Return heat maps of accuracy and ΔDP over the weights of smoothness and of fairness."""
    datasets = findings.datasets("hyper", at_least=2)
    if not datasets:
        return {}
    figure, axes = panels(len(datasets), 2, row_height=2.45)
    for row, dataset in zip(axes, datasets, strict=True):
        for ax, metric in zip(row, ("ACC", "DP"), strict=True):
            _heat_map(ax, findings, dataset, metric)
            ax.set_title(f"{TITLES[dataset]}: {METRIC_NAMES[metric]} (%)")
    for ax in axes[-1]:
        ax.set_xlabel("weight of fairness")
    for row in axes:
        row[0].set_ylabel("weight of smoothness, $\\lambda_s$")
    return {"hyper": figure}


def _heat_map(ax: Axes, findings: Findings, dataset: str, metric: str) -> None:
    weights, smoothness = findings.positions("hyper", "weight"), findings.positions("hyper", "lambda_s")
    values = np.full((len(smoothness), len(weights)), np.nan)
    for i, lambda_s in enumerate(smoothness):
        for j, weight in enumerate(weights):
            found = findings.one("hyper", dataset, "GMMD", lambda_s=lambda_s, weight=weight)
            values[i, j] = math.nan if found is None else found.mean(metric)
    mesh = ax.pcolormesh(values, cmap=HEAT)
    ax.grid(visible=False)
    ax.set_xticks(np.arange(len(weights)) + 0.5, [f"{weight:g}" for weight in weights])
    ax.set_yticks(np.arange(len(smoothness)) + 0.5, [f"{lambda_s:g}" for lambda_s in smoothness])
    ax.tick_params(length=0)
    low, high = np.nanmin(values), np.nanmax(values)
    for (i, j), value in np.ndenumerate(values):
        # Dark fields of the colour map have light letters.
        is_dark = not math.isnan(value) and high > low and (value - low) / (high - low) < 0.5
        text = "–" if math.isnan(value) else f"{value:.1f}"
        ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", color="white" if is_dark else "black", fontsize=7)
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
    bar.outline.set_visible(False)


def along(item: str, parameter: str, findings: Findings) -> dict[str, Figure]:
    """Return the five metrics against a parameter, for both methods, with a band of one standard deviation."""
    datasets = findings.datasets(item, at_least=2)
    if not datasets:
        return {}
    labels = list(dict.fromkeys(label for d in datasets for label in findings.labels(item, d)))
    figure, axes = panels(len(datasets), len(METRICS), row_height=1.6, sharex=True)
    for row, dataset in zip(axes, datasets, strict=True):
        for ax, metric in zip(row, METRICS, strict=True):
            for label in labels:
                _line(ax, list(findings.of(item, dataset, label)), parameter, metric)
            if parameter in _LOGARITHMIC:
                ax.set_xscale("log")
            else:
                ax.set_xticks(findings.positions(item, parameter))
            ax.margins(y=0.12)
        row[0].set_ylabel(f"{TITLES[dataset]} (%)")
    for ax, metric in zip(axes[0], METRICS, strict=True):
        ax.set_title(METRIC_NAMES[metric])
    figure.supxlabel(_X_LABELS.get(parameter, parameter), fontsize=8)
    legend(figure, [Line2D([], [], marker=marker(label), label=label, **line_style(label)) for label in labels])
    return {item: figure}


def _line(ax: Axes, found: Sequence[Finding], parameter: str, metric: str) -> None:
    if not found:
        return
    label = found[0].cell.label
    x = np.array([finding.cell.at[parameter] for finding in found], dtype=float)
    mean = np.array([finding.mean(metric) for finding in found])
    std = np.nan_to_num([finding.std(metric) for finding in found])
    ax.plot(x, mean, marker=marker(label), markersize=3, **line_style(label))
    low = np.maximum(mean - std, 0)
    ax.fill_between(x, low, np.minimum(mean + std, 100), color=line_style(label)["color"], alpha=0.15, linewidth=0)
