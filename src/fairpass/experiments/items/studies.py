"""What is measured beyond the metrics: statistics of the graphs, the theorems' bounds, and the case study."""

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter
from scipy.stats import spearmanr

from fairpass.experiments import paper
from fairpass.experiments.cells import Cell, CellResult
from fairpass.experiments.figures import BLUE, GREEN, GREY, ORANGE, grid, legend, panels, style
from fairpass.experiments.item import Claim, Item, ItemResults, NotMeasured, claim, greater
from fairpass.experiments.settings import CONSTANT, DATASETS, GMMDS, ours, plain
from fairpass.experiments.tables import Entry, Table, number, table
from fairpass.experiments.texts import TITLES

# Names and digits of what the paper prints about the graphs.
_STATISTICS = {
    "nodes": ("nodes", 0),
    "edges": ("edges", 0),
    "features": ("features", 0),
    "label_homophily": ("H, labels", 3),
    "sensitive_homophily": ("H_f, groups", 3),
}
# Titles and factors of the training curves.
_CURVES = {
    "ACC": ("ACC (%)", 100),
    "DP": ("ΔDP (%)", 100),
    "similarity": ("group similarity × 100", 100),
    "bound": ("bound, Theorem 4.2", 1),
}
_PAIRS: dict[str, tuple[str, Any]] = {"same label": (BLUE, "-"), "different label": (ORANGE, (0, (3, 1)))}
_LABEL_COLOURS = (ORANGE, GREEN)
_GROUP_MARKERS = ("o", "s")
_THINNEST, _WIDEST = 0.3, 4.0  # line, in points
_PALE, _DARK = "#bbbbbb", "#333333"


def _where(results: list[CellResult]) -> dict[str, CellResult]:
    return {f"{TITLES[result.cell.dataset]}, {result.cell.label}": result for result in results}


def _fair(found: ItemResults) -> dict[str, CellResult]:
    return _where([result for result in found.of() if result.cell.label in paper.OURS])


def _stats_cells() -> list[Cell]:
    return [Cell(d, d, CONSTANT, (0,), measures=("statistics",)) for d in DATASETS]


def _stats_tables(found: ItemResults) -> list[Table]:
    rows = []
    for result in found.of():
        measured = result.measured["statistics"]
        homophily = {f"{kind}_homophily": measured[f"{kind}_mixing"]["homophily"] for kind in ("label", "sensitive")}
        printed = paper.STATISTICS[result.cell.dataset]
        for which, values in (("printed", printed), ("measured", {**measured, **homophily})):
            row: dict[str, str | Entry] = {"data set": TITLES[result.cell.dataset], "": which}
            rows.append(row | {title: number(values[name], digits) for name, (title, digits) in _STATISTICS.items()})
    return [table("stats", rows, words=2)]


def _stats_claims(found: ItemResults) -> Iterator[Claim]:
    def check(mixing: Mapping[str, float]) -> tuple[bool, str]:
        numbers = f"{mixing['homophily']:.2f}, at random {mixing['expected']:.2f}"
        return mixing["homophily"] > mixing["expected"], numbers

    mixings = {TITLES[r.cell.dataset]: r.measured["statistics"]["sensitive_mixing"] for r in found.of()}
    yield claim("stats", mixings, check)


def _model_cells() -> list[Cell]:
    cells = []
    for d in DATASETS:
        methods = {"GCN": plain(d)[0], **{label: ours(name, d) for label, name in GMMDS.items()}}
        for label, c in methods.items():
            # Scaled features and a fixed threshold: one that is chosen at every epoch hides how a model learns.
            shown = c.but(scale="minmax", training={"threshold": 0.5})
            cells.append(Cell(d, label, (shown,), (0,), measures=("curves", "theorems", "cases")))
    return cells


def _theory_tables(found: ItemResults) -> list[Table]:
    rows = []
    for result in found.of():
        bounds = result.measured["theorems"]
        row: dict[str, str | Entry] = {"data set": TITLES[result.cell.dataset], "read-out of": result.cell.label}
        row["nodes"] = number(bounds["nodes"], 0)
        for name in ("4.1", "4.2"):
            for what in ("measured", "bound"):
                value = bounds[name][what]
                text = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
                row[f"{name}: {what}"] = Entry(text, value=value)
            row[f"{name}: holds"] = "yes" if bounds[name]["holds"] else "no"
        rows.append(row)
    return [table("theory", rows, words=2)]


def _theory_figures(found: ItemResults) -> dict[str, Figure]:
    titles = [title for title, _ in _CURVES.values()]
    figure, _ = grid(found, tuple(_CURVES), _curves, height=1.65, titles=titles, row_label="{}")
    figure.supxlabel("epoch", fontsize=8)
    legend(figure, [Line2D([], [], label=label, **style(label, marker="")) for label in found.labels()])
    return {"theory": figure}


def _curves(ax: Axes, found: ItemResults, dataset: str, name: str) -> None:
    for result in found.of(dataset):
        curves = result.measured["curves"]
        if name in curves:
            points = pd.Series(curves[name], index=curves["epoch"], dtype=float).dropna() * _CURVES[name][1]
            ax.plot(points.index, points, **style(result.cell.label, marker=""))
    if name == "bound":
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))
    ax.margins(x=0.02)


def _theory_claims(found: ItemResults) -> Iterator[Claim]:
    yield claim("theory-opposed", _fair(found), _opposed)
    yield claim("theory-curves", _fair(found), _rises_and_falls)
    yield claim("theory-bound", _where(found.of()), _bound, "4.1", name="4.1")
    # The other theorem does not depend on the model.
    yield claim("theory-bound", _where(found.of(label="GMMD")), _bound, "4.2", name="4.2")


def _opposed(result: CellResult) -> tuple[bool, str]:
    curves = pd.DataFrame({name: result.measured["curves"].get(name) for name in ("DP", "similarity")}, dtype=float)
    # What does not change has no correlation.
    if curves.dropna().nunique().min() < 2:
        raise NotMeasured
    correlation = float(spearmanr(*curves.dropna().to_numpy().T).statistic)
    return correlation < 0, f"{correlation:.2f}"


def _rises_and_falls(result: CellResult) -> tuple[bool, str]:
    curves = result.measured["curves"]
    accuracy, bias = ([100 * x for x in curves[name] if x is not None] for name in ("ACC", "DP"))
    if len(bias) < 3:
        raise NotMeasured
    (first, *_, last), most = bias, max(bias)
    holds = accuracy[-1] > accuracy[0] and first < most and last < most / 2
    numbers = f"ACC {accuracy[0]:.1f} to {accuracy[-1]:.1f}"
    return holds, f"{numbers}, ΔDP {first:.1f}, {most:.1f} at most, {last:.1f} at last"


def _bound(result: CellResult, name: str) -> tuple[bool, str]:
    found = result.measured["theorems"][name]
    return bool(found["holds"]), f"{found['measured']:.3g} ≤ {found['bound']:.3g}"


def _case_tables(found: ItemResults) -> list[Table]:
    rows = []
    for result in found.of():
        row: dict[str, str | Entry] = {"data set": TITLES[result.cell.dataset], "method": result.cell.label}
        means = {name: result.measured["cases"][name]["mean"] for name in _PAIRS}
        same, different = means.values()
        means["difference"] = None if None in (same, different) else same - different
        rows.append(row | {name: number(value, 3) for name, value in means.items()})
    return [table("cases", rows, words=2)]


def _case_figures(found: ItemResults) -> dict[str, Figure]:
    labels, row = found.labels(), "{}\nshare of pairs (%)"
    figure, _ = grid(found, labels, _histograms, height=1.6, titles=labels, row_label=row, sharex=True)
    figure.supxlabel("kernel similarity of two nodes of different groups", fontsize=8)
    handles = [Line2D([], [], color=c, linestyle=line, label=f"pairs of {name}") for name, (c, line) in _PAIRS.items()]
    legend(figure, [*handles, Line2D([], [], color=GREY, marker="v", linestyle="", label="mean")])
    pictures = {f"cases-{dataset}": _neighbourhoods(found.of(dataset)) for dataset in found.datasets().values()}
    return {"cases-distributions": figure, **pictures}


def _histograms(ax: Axes, found: ItemResults, dataset: str, label: str) -> None:
    for result, (name, (colour, dashes)) in product(found.of(dataset, label), _PAIRS.items()):
        pairs = result.measured["cases"][name]
        shares = 100 * np.array(pairs["histogram"], dtype=float)
        edges = np.linspace(0, 1, len(shares) + 1)
        ax.stairs(shares, edges, color=colour, linestyle=dashes, linewidth=1.3)
        ax.stairs(shares, edges, color=colour, fill=True, alpha=0.15)
        if pairs["mean"] is not None:
            # On the upper edge, where it hides nothing.
            ax.plot(pairs["mean"], 1.0, "v", color=colour, transform=ax.get_xaxis_transform(), clip_on=False)
    ax.set_xlim(0, 1)
    ax.set_ylim(bottom=0)


def _neighbourhoods(results: list[CellResult]) -> Figure:
    pictures = [result.measured["cases"]["neighbourhoods"] for result in results]
    figure, axes = panels(len(pictures[0]), len(results), 2.2)
    for (i, row), (j, result) in product(enumerate(axes), enumerate(results)):
        _neighbourhood(row[j], pictures[j][i])
        axes[0][j].set_title(f"{TITLES[result.cell.dataset]}, {result.cell.label}")
    nodes: dict[str, Any] = {"linestyle": "", "markeredgecolor": "black", "markersize": 7}
    key = [
        *(Line2D([], [], marker="h", color=c, label=f"label {i}", **nodes) for i, c in enumerate(_LABEL_COLOURS)),
        *(Line2D([], [], marker=m, color="white", label=f"group {i}", **nodes) for i, m in enumerate(_GROUP_MARKERS)),
        Line2D([], [], color=BLUE, linewidth=3, label="to the other group, wider if more similar"),
        Line2D([], [], color=_PALE, linewidth=3, label="within the group"),
    ]
    legend(figure, key, columns=3)
    return figure


def _neighbourhood(ax: Axes, picture: Mapping[str, Any]) -> None:
    # Nodes of one group and label stand together, so that the widths of their lines can be compared.
    neighbours = sorted(picture["neighbours"], key=lambda n: (n["group"], n["label"], n["node"]))
    centre = picture["centre"]
    for i, node in enumerate(neighbours):
        angle = 2 * math.pi * (i + 0.5) / len(neighbours)
        x, y = math.cos(angle), math.sin(angle)
        colour = BLUE if node["group"] != centre["group"] else _PALE
        width = _THINNEST + (_WIDEST - _THINNEST) * node["similarity"]
        ax.plot([0, x], [0, y], color=colour, linewidth=width, solid_capstyle="round", zorder=1)
        _node(ax, x, y, node, size=70)
        ax.text(1.3 * x, 1.3 * y, f"{node['similarity']:.2f}", ha="center", va="center", fontsize=6.5, color=_DARK)
    _node(ax, 0, 0, centre, size=150)
    ax.set(xlim=(-1.55, 1.55), ylim=(-1.5, 1.5), aspect="equal")
    ax.axis("off")


def _node(ax: Axes, x: float, y: float, node: Mapping[str, Any], size: float) -> None:
    colour, shape = _LABEL_COLOURS[node["label"]], _GROUP_MARKERS[node["group"]]
    ax.scatter(x, y, s=size, color=colour, marker=shape, edgecolors="black", linewidths=0.7, zorder=2)


def _case_claims(found: ItemResults) -> Iterator[Claim]:
    fair = _fair(found)
    yield claim("cases-pairs", fair, _similar_pairs)
    pictures = {
        f"{where}, label {picture['centre']['label']}": picture
        for where, result in fair.items()
        for picture in result.measured["cases"]["neighbourhoods"]
    }
    yield claim("cases-neighbours", pictures, _similar_neighbours)


def _similar_pairs(result: CellResult) -> tuple[bool, str]:
    means = [result.measured["cases"][name]["mean"] for name in _PAIRS]
    same, different = ([] if mean is None else [mean] for mean in means)
    return greater(same, different, digits=3)


def _similar_neighbours(picture: Mapping[str, Any]) -> tuple[bool, str]:
    centre = picture["centre"]
    others = [node for node in picture["neighbours"] if node["group"] != centre["group"]]
    same, different = (
        [node["similarity"] for node in others if (node["label"] == centre["label"]) is is_same]
        for is_same in (True, False)
    )
    return greater(same, different, digits=2)


STATS = Item("stats", _stats_cells, _stats_tables, _stats_claims)
THEORY = Item("theory", _model_cells, _theory_tables, _theory_claims, _theory_figures)
CASES = Item("cases", _model_cells, _case_tables, _case_claims, _case_figures)
