"""What is measured beyond the metrics: statistics of the graphs, the theorems' bounds, and the case study."""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter
from scipy.stats import spearmanr

from fairpass.experiments import paper
from fairpass.experiments.cells import Cell, CellResult
from fairpass.experiments.figures import BLUE, GREEN, GREY, ORANGE, grid, legend, style
from fairpass.experiments.item import Claim, Item, ItemResults, NotMeasured, claim
from fairpass.experiments.settings import DATASETS, GMMDS, constant, ours, plain
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
_THEOREMS = ("4.1", "4.2")
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
    return [Cell(d, d, constant(), (0,), measures=("statistics",)) for d in DATASETS]


def _stats_tables(found: ItemResults) -> list[Table]:
    rows = []
    for result in found.of():
        dataset, measured = result.cell.dataset, dict(result.measured["statistics"])
        for kind in ("label", "sensitive"):
            measured[f"{kind}_homophily"] = measured[f"{kind}_mixing"]["homophily"]
        for which, values in (("printed", paper.STATISTICS[dataset]), ("measured", measured)):
            entries = {title: number(values[name], digits) for name, (title, digits) in _STATISTICS.items()}
            rows.append({"data set": TITLES[dataset], "": which, **entries})
    return [table("stats", rows, words=2)]


def _stats_claims(found: ItemResults) -> Iterator[Claim]:
    def check(mixing: Mapping[str, float]) -> tuple[bool, str]:
        numbers = f"{mixing['homophily']:.2f}, at random {mixing['expected']:.2f}"
        return mixing["homophily"] > mixing["expected"], numbers

    mixings = {TITLES[r.cell.dataset]: r.measured["statistics"]["sensitive_mixing"] for r in found.of()}
    yield claim("Edges join nodes of the same group more often than at random.", check, mixings)


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
        for name in _THEOREMS:
            for what in ("measured", "bound"):
                value = bounds[name][what]
                text = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
                row[f"{name}: {what}"] = Entry(text, value=value)
            row[f"{name}: holds"] = "yes" if bounds[name]["holds"] else "no"
        rows.append(row)
    return [table("theory", rows, words=2)]


def _theory_figures(found: ItemResults) -> dict[str, Figure]:
    datasets, titles = found.datasets(), [title for title, _ in _CURVES.values()]
    rows = [TITLES[dataset] for dataset in datasets]
    figure, _ = grid(datasets, list(_CURVES), partial(_curves, found), row_height=1.65, titles=titles, row_labels=rows)
    figure.supxlabel("epoch", fontsize=8)
    legend(figure, [Line2D([], [], label=label, **style(label, marker="")) for label in found.labels()])
    return {"theory": figure}


def _curves(found: ItemResults, ax: Axes, dataset: str, name: str) -> None:
    for result in found.of(dataset):
        curves = result.measured["curves"]
        if name in curves:
            values = _CURVES[name][1] * np.array(curves[name], dtype=float)
            ax.plot(
                np.array(curves["epoch"])[~np.isnan(values)],
                values[~np.isnan(values)],
                **style(result.cell.label, marker=""),
            )
    if name == "bound":
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))
    ax.margins(x=0.02)


def _theory_claims(found: ItemResults) -> Iterator[Claim]:
    yield claim(
        "In training, ΔDP falls as the similarity between the groups rises (rank correlation over the epochs).",
        _opposed,
        _fair(found),
    )
    yield claim("At first accuracy and bias rise, and then bias falls.", _rises_and_falls, _fair(found))
    # Theorem 4.2 does not depend on the model, so one per data set is enough.
    for name, results in zip(_THEOREMS, (found.of(), found.of(label="GMMD")), strict=True):
        yield claim(f"The bound of Theorem {name} holds.", partial(_bound, name), _where(results))


def _opposed(result: CellResult) -> tuple[bool, str]:
    curves = result.measured["curves"]
    bias, similarity = (np.array(curves.get(name, []), dtype=float) for name in ("DP", "similarity"))
    both = ~(np.isnan(bias) | np.isnan(similarity)) if len(bias) == len(similarity) else np.array([], dtype=bool)
    # What does not change has no correlation.
    if both.sum() < 2 or any(np.ptp(values[both]) == 0 for values in (bias, similarity)):
        raise NotMeasured
    correlation = float(spearmanr(bias[both], similarity[both]).statistic)
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


def _bound(name: str, result: CellResult) -> tuple[bool, str]:
    found = result.measured["theorems"][name]
    return bool(found["holds"]), f"{found['measured']:.3g} ≤ {found['bound']:.3g}"


def _similarities(result: CellResult) -> tuple[float, float]:
    """Return the mean similarity of nodes of different groups with the same label, and with different labels."""
    same, different = (result.measured["cases"][name]["mean"] for name in _PAIRS)
    if same is None or different is None:
        raise NotMeasured
    return same, different


def _case_tables(found: ItemResults) -> list[Table]:
    rows = []
    for result in found.of():
        same, different = (result.measured["cases"][name]["mean"] for name in _PAIRS)
        row: dict[str, str | Entry] = {"data set": TITLES[result.cell.dataset], "method": result.cell.label}
        row |= {"same label": number(same, 3), "different label": number(different, 3)}
        row["difference"] = number(None if None in (same, different) else same - different, 3)
        rows.append(row)
    return [table("cases", rows, words=2)]


def _case_figures(found: ItemResults) -> dict[str, Figure]:
    pictures = {f"cases-{dataset}": _neighbourhoods(found.of(dataset)) for dataset in found.datasets()}
    return {"cases-distributions": _distributions(found), **pictures}


def _distributions(found: ItemResults) -> Figure:
    datasets, labels = found.datasets(), found.labels()
    rows = [f"{TITLES[dataset]}\nshare of pairs (%)" for dataset in datasets]
    draw = partial(_histograms, found)
    figure, _ = grid(datasets, labels, draw, row_height=1.6, titles=labels, row_labels=rows, sharex=True)
    figure.supxlabel("kernel similarity of two nodes of different groups", fontsize=8)
    handles = [
        Line2D([], [], color=c, linestyle=dashes, label=f"pairs of {name}") for name, (c, dashes) in _PAIRS.items()
    ]
    legend(figure, [*handles, Line2D([], [], color=GREY, marker="v", linestyle="", label="mean")])
    return figure


def _histograms(found: ItemResults, ax: Axes, dataset: str, label: str) -> None:
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
    titles = [f"{TITLES[result.cell.dataset]}, {result.cell.label}" for result in results]
    count = len(results[0].measured["cases"]["neighbourhoods"])
    figure, _ = grid(range(count), results, _neighbourhood, row_height=2.2, titles=titles)
    nodes: dict[str, Any] = {"linestyle": "", "markeredgecolor": "black", "markersize": 7}
    key = [
        *(Line2D([], [], marker="h", color=c, label=f"label {i}", **nodes) for i, c in enumerate(_LABEL_COLOURS)),
        *(Line2D([], [], marker=m, color="white", label=f"group {i}", **nodes) for i, m in enumerate(_GROUP_MARKERS)),
        Line2D([], [], color=BLUE, linewidth=3, label="to the other group, wider if more similar"),
        Line2D([], [], color=_PALE, linewidth=3, label="within the group"),
    ]
    legend(figure, key, columns=3)
    return figure


def _neighbourhood(ax: Axes, number: int, result: CellResult) -> None:
    picture = result.measured["cases"]["neighbourhoods"][number]
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
    yield claim(
        "Pairs of nodes of different groups are more similar if they have the same label.", _similar_pairs, _fair(found)
    )
    pictures = {
        f"{where}, label {picture['centre']['label']}": picture
        for where, result in _fair(found).items()
        for picture in result.measured["cases"]["neighbourhoods"]
    }
    text = "Among a node's neighbours of the other group, those of its label are more similar to it."
    yield claim(text, _similar_neighbours, pictures)


def _similar_pairs(result: CellResult) -> tuple[bool, str]:
    same, different = (result.measured["cases"][name]["mean"] for name in _PAIRS)
    if same is None or different is None:
        raise NotMeasured
    return same > different, f"{same:.3f} against {different:.3f}"


def _similar_neighbours(picture: Mapping[str, Any]) -> tuple[bool, str]:
    centre = picture["centre"]
    others = [node for node in picture["neighbours"] if node["group"] != centre["group"]]
    same, different = (
        [node["similarity"] for node in others if (node["label"] == centre["label"]) is is_same]
        for is_same in (True, False)
    )
    if not same or not different:
        raise NotMeasured
    return fmean(same) > fmean(different), f"{fmean(same):.2f} against {fmean(different):.2f}"


STATS = Item("stats", _stats_cells, _stats_tables, _stats_claims)
THEORY = Item("theory", _model_cells, _theory_tables, _theory_claims, _theory_figures)
CASES = Item("cases", _model_cells, _case_tables, _case_claims, _case_figures)
