"""The benchmark's figures: accuracy against bias, critical differences, effects against the method's own control."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairpass.experiments.benchmark.results import BIASES, BenchmarkResults, front
from fairpass.experiments.benchmark.tables import hypervolume_frames, rank_frame, symbol
from fairpass.experiments.figures import BLUE, GREEN, GREY, ORANGE, house_style, panels
from fairpass.experiments.inference import bootstrap_interval, critical_difference, friedman_p_value, mean_interval
from fairpass.methods import method

# One colour and marker for each stage, so that many rows need no more colours; ours stand out.
_STAGES = {
    "plain": (GREY, "x"),
    "pre-processing": (GREEN, "s"),
    "in-processing": (ORANGE, "^"),
    "post-processing": ("#CC79A7", "D"),
}
_OURS = (BLUE, "o")


def _look(found: BenchmarkResults, label: str) -> tuple[str, str]:
    name = next(entry.method for entry in found.protocol.entries if entry.label == label)
    return _OURS if name.startswith("gmmd") else _STAGES[method(name).stage]


def front_figure(found: BenchmarkResults) -> Figure | None:
    """Draw the mean accuracy and bias of every row on every graph, and the front that no row beats."""
    graphs = [graph for graph in found.protocol.graphs if found.by_split(graph)]
    if not graphs:
        return None
    figure, axes = panels(len(graphs), len(BIASES), 2.4)
    for row, graph in zip(axes, graphs, strict=True):
        for ax, bias in zip(row, BIASES, strict=True):
            _draw_front(ax, found, graph, bias)
        row[0].set_ylabel(f"{graph}\nACC (%)")
    for ax, bias in zip(axes[-1], BIASES, strict=True):
        ax.set_xlabel(f"{symbol(bias)} (%)")
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="", label=label)
        for label, (colour, marker) in {"GMMD": _OURS, **_STAGES}.items()
    ]
    handles.append(Line2D([], [], color="black", linewidth=0.8, label="front of the means"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), columnspacing=1.0)
    return figure


def _draw_front(ax: Axes, found: BenchmarkResults, graph: str, bias: str) -> None:
    points = {}
    for label, table in found.by_split(graph, bias).items():
        if table["near_constant"].mean() > 0.5:
            continue
        points[label] = (float(table["ACC"].mean()), float(table[bias].mean()))
        colour, marker = _look(found, label)
        across, up = (mean_interval(table[metric]).half for metric in (bias, "ACC"))
        errors: dict[str, Any] = {
            "xerr": None if math.isnan(across) else across,
            "yerr": None if math.isnan(up) else up,
        }
        ax.errorbar(
            points[label][1], points[label][0], **errors, color=colour, marker=marker, markersize=4, linewidth=0.5
        )
    if not points:
        return
    best = front(list(points.values()))
    ax.step([bias for _, bias in best], [acc for acc, _ in best], where="post", color="black", linewidth=0.8, zorder=0)
    on_front = sorted((point, label) for label, point in points.items() if point in best)
    for place, (point, label) in enumerate(on_front):
        # Neighbours on the front are close: one label above the line, the next below.
        offset = (3, 3) if place % 2 else (3, -7)
        ax.annotate(label, (point[1], point[0]), offset, textcoords="offset points", fontsize=5.5)
    # The intervals of few splits may be wide: the axes show the means.
    _fit_axis(ax.set_xlim, [bias for _, bias in points.values()], floor=0.0)
    _fit_axis(ax.set_ylim, [acc for acc, _ in points.values()])


def _fit_axis(set_limits: Callable[..., Any], values: Sequence[float], floor: float | None = None) -> None:
    margin = 0.1 * ((max(values) - min(values)) or 1.0)
    set_limits(min(values) - margin if floor is None else floor, max(values) + margin)


def rank_figure(found: BenchmarkResults) -> Figure | None:
    """Draw average ranks over the graphs with Nemenyi's critical difference: rows joined by a bar do not differ."""
    frames = {
        "AUC + F1 + ACC - ΔDP - ΔEO": rank_frame(found, "criterion"),
        **{symbol(metric): rank_frame(found, metric) for metric in ("ACC", *BIASES)},
        **{
            f"hypervolume of ACC and {symbol(bias)}": frame.rank(axis=1, ascending=False)
            for bias, frame in hypervolume_frames(found).items()
        },
    }
    frames = {title: frame for title, frame in frames.items() if min(frame.shape) >= 2}
    if not frames:
        return None
    most = max(frame.shape[1] for frame in frames.values())
    figure, axes = panels((len(frames) + 1) // 2, 2, 0.4 + 0.15 * most)
    flat = [ax for row in axes for ax in row]
    for ax, (title, frame) in zip(flat, frames.items(), strict=False):
        _draw_ranks(ax, found, frame)
        p = friedman_p_value(frame)
        ax.set_title(f"{title} (Friedman p = {p:.2g})" if not math.isnan(p) else title, fontsize=8)
    for ax in flat[len(frames) :]:
        ax.set_axis_off()
    return figure


def _draw_ranks(ax: Axes, found: BenchmarkResults, frame: pd.DataFrame) -> None:
    average = frame.mean().sort_values()
    width = critical_difference(frame.shape[1], frame.shape[0])
    for place, (label, rank) in enumerate(average.items()):
        colour, marker = _look(found, str(label))
        ax.plot(rank, place, marker=marker, color=colour, markersize=4)
    for place, (start, end) in enumerate(_cliques(average.to_list(), width)):
        x = average.iloc[end] + 0.35 + 0.3 * place
        ax.plot([x, x], [start - 0.3, end + 0.3], color="black", linewidth=1.6, solid_capstyle="butt")
    ax.plot([1, 1 + width], [-1.4, -1.4], color="black", linewidth=1.6)
    ax.annotate(f"critical difference {width:.1f}", (1 + width, -1.4), (4, -2), textcoords="offset points", fontsize=6)
    ax.set_yticks(range(len(average)), [str(label) for label in average.index], fontsize=6)
    ax.set_ylim(len(average) - 0.5, -2.2)
    ax.set_xlabel("average rank")
    ax.grid(visible=False, axis="y")


def _cliques(sorted_ranks: Sequence[float], width: float) -> list[tuple[int, int]]:
    """Return the longest runs of neighbours in the ranking whose ends are less than `width` apart."""
    found: list[tuple[int, int]] = []
    for start, rank in enumerate(sorted_ranks):
        end = max(i for i, other in enumerate(sorted_ranks) if other - rank < width)
        if end > start and not any(first <= start and end <= last for first, last in found):
            found.append((start, end))
    return found


def effect_figure(found: BenchmarkResults) -> Figure | None:
    """Draw the effect of every fair row on ΔDP, ΔEO and ACC against its own control; grey if it is not resolved."""
    fair = [entry for entry in found.protocol.entries if entry.is_fair]
    graphs = [graph for graph in found.protocol.graphs if any(not found.effects(graph, e).empty for e in fair)]
    if not graphs or not fair:
        return None
    metrics = (*BIASES, "ACC")
    figure, (axes,) = panels(1, len(metrics), 0.5 + 0.3 * len(fair), sharey=True)
    spread = 0.8 / len(graphs)
    for ax, metric in zip(axes, metrics, strict=True):
        estimates = []
        for place, entry in enumerate(fair):
            for i, graph in enumerate(graphs):
                effects = found.effects(graph, entry)
                if effects.empty:
                    continue
                interval = bootstrap_interval(effects[metric].dropna())
                estimates.append(interval.estimate)
                is_better = (interval.estimate > 0) == (metric == "ACC")
                colour = (BLUE if is_better else "#D55E00") if interval.is_resolved else "#bbbbbb"
                y = place - 0.4 + spread * (i + 0.5)
                ax.plot([interval.low, interval.high], [y, y], color=colour, linewidth=0.9)
                ax.plot(interval.estimate, y, ".", color=colour, markersize=3)
        ax.axvline(0, color="black", linewidth=0.6)
        _fit_axis(ax.set_xlim, [0.0, *estimates])
        ax.set_title(f"{symbol(metric)}, method minus control")
        ax.grid(visible=False, axis="y")
        for place in range(1, len(fair)):
            ax.axhline(place - 0.5, color="#eeeeee", linewidth=0.6)
    axes[0].set_yticks(range(len(fair)), [entry.label for entry in fair])
    axes[0].invert_yaxis()
    handles = [
        Line2D([], [], color=BLUE, label="resolved, better"),
        Line2D([], [], color="#D55E00", label="resolved, worse"),
        Line2D([], [], color="#bbbbbb", label="not resolved"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def all_figures(found: BenchmarkResults) -> dict[str, Figure]:
    with house_style():
        made = {"fronts": front_figure(found), "ranks": rank_figure(found), "effects": effect_figure(found)}
    return {f"benchmark-{name}": figure for name, figure in made.items() if figure is not None}
