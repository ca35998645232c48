"""The figures of the case study: how similar pairs of nodes are, and some neighbourhoods."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairpass.experiments.figures.style import GREY, legend, panels
from fairpass.experiments.findings import TITLES, Findings

_BLUE, _ORANGE = "#0072B2", "#E69F00"
_PAIRS: dict[str, tuple[str, Any]] = {"same label": (_BLUE, "-"), "different label": (_ORANGE, (0, (3, 1)))}
_LABEL_COLOURS = (_ORANGE, "#009E73")
_GROUP_MARKERS = ("o", "s")
_WIDEST = 4.0  # line, in points


def cases(findings: Findings) -> dict[str, Figure]:
    """Return the distributions of similarity, and the neighbourhoods of each data set."""
    pictures = {f"cases-{d}": _neighbourhoods(findings, d) for d in findings.datasets("cases")}
    return {"cases-distributions": _distributions(findings), **pictures}


def _distributions(findings: Findings) -> Figure:
    datasets = findings.datasets("cases")
    labels = list(dict.fromkeys(label for d in datasets for label in findings.labels("cases", d)))
    figure, axes = panels(len(datasets), len(labels), row_height=1.6, sharex=True)
    for row, dataset in zip(axes, datasets, strict=True):
        for ax, label in zip(row, labels, strict=True):
            finding = findings.one("cases", dataset, label)
            if finding is not None:
                _histograms(ax, finding.measured["cases"])
        row[0].set_ylabel(f"{TITLES[dataset]}\nshare of pairs (%)")
    for ax, label in zip(axes[0], labels, strict=True):
        ax.set_title(label)
    figure.supxlabel("kernel similarity of two nodes of different groups", fontsize=8)
    handles = [
        Line2D([], [], color=c, linestyle=style, label=f"pairs of {name}") for name, (c, style) in _PAIRS.items()
    ]
    legend(figure, [*handles, Line2D([], [], color=GREY, marker="v", linestyle="", label="mean")])
    return figure


def _histograms(ax: Axes, found: Mapping[str, Any]) -> None:
    for name, (colour, style) in _PAIRS.items():
        shares = 100 * np.array(found[name]["histogram"], dtype=float)
        edges = np.linspace(0, 1, len(shares) + 1)
        ax.stairs(shares, edges, color=colour, linestyle=style, linewidth=1.3)
        ax.stairs(shares, edges, color=colour, fill=True, alpha=0.15)
        if found[name]["mean"] is not None:
            # On the upper edge, where it hides nothing.
            ax.plot(found[name]["mean"], 1.0, "v", color=colour, transform=ax.get_xaxis_transform(), clip_on=False)
    ax.set_xlim(0, 1)
    ax.set_ylim(bottom=0)


def _neighbourhoods(findings: Findings, dataset: str) -> Figure:
    found = list(findings.of("cases", dataset))
    count = len(found[0].measured["cases"]["neighbourhoods"])
    figure, axes = panels(count, len(found), row_height=2.2)
    for column, finding in enumerate(found):
        for row, picture in zip(axes, finding.measured["cases"]["neighbourhoods"], strict=True):
            _neighbourhood(row[column], picture)
        axes[0][column].set_title(f"{TITLES[dataset]}, {finding.cell.label}")
    legend(figure, _key(), columns=3)
    return figure


def _neighbourhood(ax: Axes, picture: Mapping[str, Any]) -> None:
    # Nodes of one group and label stand together, so that the widths of their lines can be compared.
    neighbours = sorted(picture["neighbours"], key=lambda n: (n["group"], n["label"], n["node"]))
    centre = picture["centre"]
    for i, node in enumerate(neighbours):
        angle = 2 * math.pi * (i + 0.5) / len(neighbours)
        x, y = math.cos(angle), math.sin(angle)
        crosses = node["group"] != centre["group"]
        width = 0.3 + (_WIDEST - 0.3) * node["similarity"]
        ax.plot(
            [0, x], [0, y], color=_BLUE if crosses else "#bbbbbb", linewidth=width, solid_capstyle="round", zorder=1
        )
        _node(ax, x, y, node, size=70)
        ax.text(1.3 * x, 1.3 * y, f"{node['similarity']:.2f}", ha="center", va="center", fontsize=6.5, color="#333333")
    _node(ax, 0, 0, centre, size=150)
    ax.set(xlim=(-1.55, 1.55), ylim=(-1.5, 1.5), aspect="equal")
    ax.axis("off")


def _node(ax: Axes, x: float, y: float, node: Mapping[str, Any], size: float) -> None:
    colour, shape = _LABEL_COLOURS[node["label"]], _GROUP_MARKERS[node["group"]]
    ax.scatter(x, y, s=size, color=colour, marker=shape, edgecolors="black", linewidths=0.7, zorder=2)


def _key() -> list[Line2D]:
    nodes: dict[str, Any] = {"linestyle": "", "markeredgecolor": "black", "markersize": 7}
    return [
        *(Line2D([], [], marker="h", color=c, label=f"label {i}", **nodes) for i, c in enumerate(_LABEL_COLOURS)),
        *(Line2D([], [], marker=m, color="white", label=f"group {i}", **nodes) for i, m in enumerate(_GROUP_MARKERS)),
        Line2D([], [], color=_BLUE, linewidth=3, label="to the other group, wider if more similar"),
        Line2D([], [], color="#bbbbbb", linewidth=3, label="within the group"),
    ]
