"""What is measured beyond the metrics: statistics of the graphs, the theorems' bounds, the case study, and time."""

import math
from collections.abc import Iterator, Mapping
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from scipy.stats import spearmanr

from fairpass.experiments import paper
from fairpass.experiments.cells import Cell, CellResult
from fairpass.experiments.figures import BLUE, GREEN, GREY, ORANGE, grid, legend, panels, style
from fairpass.experiments.item import Claim, Item, ItemResults, Verdict, claim, compare, require
from fairpass.experiments.items.comparisons import VARIANTS
from fairpass.experiments.paper import OURS, PAPERS, method_of
from fairpass.experiments.settings import MAJORITY, SMOOTHING, methods
from fairpass.experiments.tables import Columns, Entry, Row, Table, number, table
from fairpass.experiments.texts import TEXTS, TITLES
from fairpass.runs import TIMING

_STATISTICS: Mapping[str, tuple[str, int]] = TEXTS["statistics"]
_CURVES: Mapping[str, tuple[str, int]] = TEXTS["curves"]
_PAIRS: dict[str, dict[str, Any]] = {
    "same label": {"color": BLUE, "linestyle": "-"},
    "different label": {"color": ORANGE, "linestyle": (0, (3, 1))},
}
_LABEL_COLOURS, _GROUP_MARKERS = (ORANGE, GREEN), ("o", "s")
_THINNEST, _WIDEST = 0.3, 4.0  # line, in points
_PALE, _DARK = "#bbbbbb", "#333333"


def _stats_cells(d: str) -> list[Cell]:
    return [Cell(d, d, MAJORITY, (0,), measures=("statistics",))]


def _stats_tables(found: ItemResults) -> list[Table]:
    rows: list[Row] = []
    for result in found.of():
        measured, title = result.measured["statistics"], TITLES[result.cell.dataset]
        homophily = {f"{kind}_homophily": measured[f"{kind}_mixing"]["homophily"] for kind in ("label", "sensitive")}
        kinds = {"printed": paper.STATISTICS[result.cell.dataset], "measured": {**measured, **homophily}}
        for kind, values in kinds.items():
            numbers = {name: number(values[key], digits) for key, (name, digits) in _STATISTICS.items()}
            rows.append({"data set": title, "": kind, **numbers})
    return [table("stats", rows, words=2)]


def _stats_claims(found: ItemResults) -> Iterator[Claim]:
    mixings = {TITLES[r.cell.dataset]: r.measured["statistics"]["sensitive_mixing"] for r in found.of()}
    yield claim("stats", mixings, lambda m: compare([m["homophily"]], [m["expected"]], "{:.2f}, at random {:.2f}"))


def _model_cells(d: str) -> list[Cell]:
    # Scaled features and a fixed threshold: one that is chosen at every epoch hides how a model learns.
    shown = {label: methods(d)[label][0].but(scale="minmax", training={"threshold": 0.5}) for label in ("GCN", *OURS)}
    return [Cell(d, label, (c,), (0,), measures=("curves", "theorems", "cases")) for label, c in shown.items()]


def _by_place(found: ItemResults, *labels: str) -> dict[str, CellResult]:
    results = [result for result in found.of() if result.cell.label in labels]
    return {f"{TITLES[result.cell.dataset]}, {result.cell.label}": result for result in results}


def _theory_tables(found: ItemResults) -> list[Table]:
    rows: list[Row] = []
    for result in found.of():
        bounds = result.measured["theorems"]
        row: Row = {"data set": TITLES[result.cell.dataset], "read-out of": result.cell.label}
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
    key = {label: style(label, marker="") for label in found.labels()}
    return grid(found, tuple(_CURVES), _curves, [title for title, _ in _CURVES.values()], key)


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
    yield claim("theory-opposed", _by_place(found, *OURS), _opposed)
    yield claim("theory-curves", _by_place(found, *OURS), _rises_and_falls)
    # The second theorem does not depend on the model.
    for theorem, labels in {"4.1": found.labels(), "4.2": ["GMMD"]}.items():
        bounds = {where: r.measured["theorems"][theorem] for where, r in _by_place(found, *labels).items()}
        yield claim("theory-bound", bounds, _holds, name=theorem)


def _opposed(result: CellResult) -> Verdict:
    curves = pd.DataFrame({name: result.measured["curves"].get(name) for name in ("DP", "similarity")}, dtype=float)
    # What does not change has no correlation.
    require(*(set(values) for _, values in curves.dropna().items()), points=2)
    correlation = float(spearmanr(*curves.dropna().to_numpy().T).statistic)
    return correlation < 0, f"{correlation:.2f}"


def _rises_and_falls(result: CellResult) -> Verdict:
    accuracy, bias = ([100 * x for x in result.measured["curves"][name] if x is not None] for name in ("ACC", "DP"))
    require(bias, points=3)
    (first, *_, last), most = bias, max(bias)
    holds = accuracy[-1] > accuracy[0] and first < most and last < most / 2
    numbers = f"ACC {accuracy[0]:.1f} to {accuracy[-1]:.1f}"
    return holds, f"{numbers}, ΔDP {first:.1f}, {most:.1f} at most, {last:.1f} at last"


def _holds(bound: Mapping[str, Any]) -> Verdict:
    return bool(bound["holds"]), f"{bound['measured']:.3g} ≤ {bound['bound']:.3g}"


def _case_tables(found: ItemResults) -> list[Table]:
    rows: list[Row] = []
    for result in found.of():
        same, different = (result.measured["cases"][name]["mean"] for name in _PAIRS)
        difference = None if None in (same, different) else same - different
        means = {"same label": same, "different label": different, "difference": difference}
        numbers = {name: number(value, 3) for name, value in means.items()}
        rows.append({"data set": TITLES[result.cell.dataset], "method": result.cell.label, **numbers})
    return [table("cases", rows, words=2)]


def _case_figures(found: ItemResults) -> dict[str, Figure]:
    key = {f"pairs of {name}": look for name, look in _PAIRS.items()}
    key["mean"] = {"color": GREY, "marker": "v", "linestyle": ""}
    labels = found.labels()
    figure = grid(found, labels, _histograms, labels, key, "cases-distributions", sharex=True)
    pictures = {f"cases-{dataset}": _neighbourhoods(found.of(dataset)) for dataset in found.datasets().values()}
    return {**figure, **pictures}


def _histograms(ax: Axes, found: ItemResults, dataset: str, label: str) -> None:
    for result, (name, look) in product(found.of(dataset, label), _PAIRS.items()):
        pairs = result.measured["cases"][name]
        shares = 100 * np.array(pairs["histogram"], dtype=float)
        edges = np.linspace(0, 1, len(shares) + 1)
        ax.stairs(shares, edges, linewidth=1.3, **look)
        ax.stairs(shares, edges, color=look["color"], fill=True, alpha=0.15)
        if pairs["mean"] is not None:
            # On the upper edge, where it hides nothing.
            ax.plot(pairs["mean"], 1.0, "v", color=look["color"], transform=ax.get_xaxis_transform(), clip_on=False)
    ax.set_xlim(0, 1)
    ax.set_ylim(bottom=0)


def _neighbourhoods(results: list[CellResult]) -> Figure:
    pictures = [result.measured["cases"]["neighbourhoods"] for result in results]
    figure, axes = panels(len(pictures[0]), len(results), 2.2)
    for (i, row), (j, result) in product(enumerate(axes), enumerate(results)):
        _neighbourhood(row[j], pictures[j][i])
        axes[0][j].set_title(f"{TITLES[result.cell.dataset]}, {result.cell.label}")
    nodes: dict[str, Any] = {"linestyle": "", "markeredgecolor": "black", "markersize": 7}
    key = {
        **{f"label {i}": {"marker": "h", "color": colour, **nodes} for i, colour in enumerate(_LABEL_COLOURS)},
        **{f"group {i}": {"marker": marker, "color": "white", **nodes} for i, marker in enumerate(_GROUP_MARKERS)},
        "to the other group, wider if more similar": {"color": BLUE, "linewidth": 3},
        "within the group": {"color": _PALE, "linewidth": 3},
    }
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
    cases = {where: result.measured["cases"] for where, result in _by_place(found, *OURS).items()}
    yield claim("cases-pairs", cases, _similar_pairs)
    pictures: dict[str, Mapping[str, Any]] = {}
    for where, case in cases.items():
        pictures |= {f"{where}, label {picture['centre']['label']}": picture for picture in case["neighbourhoods"]}
    yield claim("cases-neighbours", pictures, _similar_neighbours)


def _similar_pairs(case: Mapping[str, Any]) -> Verdict:
    same, different = ([] if case[name]["mean"] is None else [case[name]["mean"]] for name in _PAIRS)
    return compare(same, different, "{:.3f} against {:.3f}")


def _similar_neighbours(picture: Mapping[str, Any]) -> Verdict:
    nodes, centre = pd.DataFrame(picture["neighbours"]), picture["centre"]
    others = nodes[nodes["group"] != centre["group"]]
    is_same = others["label"] == centre["label"]
    return compare(others["similarity"][is_same], others["similarity"][~is_same], "{:.2f} against {:.2f}")


def _runtime_cells(d: str) -> list[Cell]:
    """Return every method once more, alone on the machine, without what is only recorded for the history."""
    timed = {label: c[0].but(training={"track_discrepancy": False}) for label, c in methods(d).items()}
    return [Cell(d, label, (c,), (0,), measures=(TIMING,)) for label, c in timed.items() if label != SMOOTHING]


def _epoch_seconds(found: ItemResults, dataset: str) -> dict[str, float]:
    """Return the mean time of an epoch by label, of the methods that were measured."""
    return {
        r.cell.label: fmean(record["seconds"] / record["epochs"] for record in r.records) for r in found.of(dataset)
    }


def _runtime_tables(found: ItemResults) -> list[Table]:
    labels = found.labels()
    content: Columns = {"method": labels}
    for title, dataset in found.datasets().items():
        times = dict.fromkeys(("GCN", *labels), math.nan) | _epoch_seconds(found, dataset)
        content[f"{title}: ms per epoch"] = [number(1000 * times[label], 1) for label in labels]
        content[f"{title}: × GCN"] = [number(times[label] / times["GCN"], 1) for label in labels]
        content[f"{title}: paper, s"] = [number(paper.SECONDS[dataset].get(method_of(label)), 1) for label in labels]
    environments = [record["environment"] for result in found.of() for record in result.records]
    machines = {f"{e['machine']} with {e['threads']} thread(s), torch {e['torch']}" for e in environments}
    return [table("runtime", content, machines=" and ".join(sorted(machines)))]


def _runtime_figures(found: ItemResults) -> dict[str, Figure]:
    labels, datasets = found.labels(), found.datasets()
    figure, (axes,) = panels(1, len(datasets), 2.6, sharey=True)
    for ax, (title, dataset) in zip(axes, datasets.items(), strict=True):
        times = _epoch_seconds(found, dataset)
        values = 1000 * np.array([times.get(label, math.nan) for label in labels])
        bars = ax.barh(range(len(labels)), values, color=[style(label)["color"] for label in labels])
        for place, (bar, label, value) in enumerate(zip(bars, labels, values, strict=True)):
            bar.set_alpha(0.55 if label.endswith(PAPERS) else 1.0)
            if label in times:
                ax.annotate(f"{value:.3g}", (value, place), (3, 0), textcoords="offset points", va="center", fontsize=7)
        # Room for the numbers at the ends of the bars.
        ax.set(title=title, xlabel="milliseconds per epoch", xlim=(0, 1.25 * np.nanmax(values)))
        ax.grid(visible=False, axis="y")
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].invert_yaxis()
    return {"runtime": figure}


def _runtime_claims(found: ItemResults) -> Iterator[Claim]:
    times = {title: _epoch_seconds(found, dataset) for title, dataset in found.datasets().items()}
    for variant, suffix in VARIANTS.items():
        yield claim("runtime-faster", times, _faster, f"GMMD{suffix}", variant=variant)
        yield claim("runtime-simple", times, _simpler, suffix, variant=variant)


def _faster(times: Mapping[str, float], name: str) -> Verdict:
    others = {label: times[label] for label in ("NIFTY", "FairGNN", "EDITS", "FairVGNN") if label in times}
    require(others)
    words = ", ".join(f"{label} {1000 * time:.3g}" for label, time in others.items())
    return times[name] < min(others.values()), f"{1000 * times[name]:.3g} ms; {words}"


def _simpler(times: Mapping[str, float], suffix: str) -> Verdict:
    full, simple = (1000 * times[f"{name}{suffix}"] for name in OURS)
    return compare([simple], [full], "{:.3g} ms against {:.3g} ms", lower=True)


STATS = Item("stats", _stats_cells, _stats_tables, _stats_claims)
THEORY = Item("theory", _model_cells, _theory_tables, _theory_claims, _theory_figures)
CASES = Item("cases", _model_cells, _case_tables, _case_claims, _case_figures)
RUNTIME = Item("runtime", _runtime_cells, _runtime_tables, _runtime_claims, _runtime_figures)
