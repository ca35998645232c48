"""Sweeps over parameters: the weights of smoothness and fairness, layers, the kernel's width, and depth."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise, product
from operator import itemgetter
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairpass.experiments.cells import METRICS, Cell, Means
from fairpass.experiments.figures import grid, legend, style
from fairpass.experiments.item import CLOSE, Claim, Item, ItemResults, NotMeasured, Rows, claim, greater
from fairpass.experiments.metric_tables import metric_tables
from fairpass.experiments.settings import DATASETS, GMMDS, SWEEP_EPOCHS, SWEEP_SEEDS, ours
from fairpass.experiments.tables import MISSING
from fairpass.experiments.texts import TEXTS, TITLES
from fairpass.metrics.catalog import BY_LABEL


def _sweep(methods: Iterable[str], **axes: Sequence[Any]) -> list[Cell]:
    """Return cells on a grid of parameters."""
    cells = []
    for d, label, values in product(DATASETS, methods, product(*axes.values())):
        at = dict(zip(axes, values, strict=True))
        candidate = ours(GMMDS[label], d, training={"epochs": SWEEP_EPOCHS[d]}, **at)
        cells.append(Cell(d, label, (candidate,), SWEEP_SEEDS[d], at))
    return cells


def _heat_maps(found: ItemResults) -> dict[str, Figure]:
    label = "weight of smoothness, $\\lambda_s$"
    figure, axes = grid(found, ("ACC", "DP"), _heat_map, height=2.45, row_label=label)
    for ax in axes[-1]:
        ax.set_xlabel("weight of fairness")
    return {"hyper": figure}


def _heat_map(ax: Axes, found: ItemResults, dataset: str, metric: str) -> None:
    made = pd.DataFrame([{**result.cell.at, "value": result.mean(metric)} for result in found.of(dataset)])
    values = made.pivot(index="lambda_s", columns="weight", values="value").reindex(
        index=found.positions("lambda_s"), columns=found.positions("weight")
    )
    mesh = ax.pcolormesh(values.to_numpy(), cmap="cividis")
    ax.grid(visible=False)
    ax.set_xticks(np.arange(values.shape[1]) + 0.5, [f"{weight:g}" for weight in values.columns])
    ax.set_yticks(np.arange(values.shape[0]) + 0.5, [f"{lambda_s:g}" for lambda_s in values.index])
    ax.tick_params(length=0)
    low, high = np.nanmin(values), np.nanmax(values)
    for (i, j), value in np.ndenumerate(values):
        # Dark fields of the colour map have light letters.
        is_dark = high > low and (value - low) / (high - low) < 0.5
        text = MISSING if math.isnan(value) else f"{value:.1f}"
        ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", color="white" if is_dark else "black", fontsize=7)
    ax.figure.colorbar(mesh, ax=ax, pad=0.02).outline.set_visible(False)
    ax.set_title(f"{TITLES[dataset]}: {BY_LABEL[metric].symbol} (%)")


def _lines(found: ItemResults) -> dict[str, Figure]:
    """Draw the five metrics against a parameter, with a band of one standard deviation."""
    (axis,) = found.cells[0].at
    titles = [BY_LABEL[metric].symbol for metric in METRICS]
    figure, axes = grid(found, METRICS, _line, height=1.6, titles=titles, row_label="{} (%)", sharex=True)
    for ax in chain.from_iterable(axes):
        if axis == "alpha":
            ax.set_xscale("log")
        else:
            ax.set_xticks(found.positions(axis))
    figure.supxlabel(TEXTS["axes"][axis], fontsize=8)
    legend(figure, [Line2D([], [], label=label, **style(label)) for label in found.labels()])
    return {found.item.name: figure}


def _line(ax: Axes, found: ItemResults, dataset: str, metric: str) -> None:
    for label in found.labels():
        results = found.of(dataset, label)
        x = [position for result in results for position in result.cell.at.values()]
        mean = np.array([result.mean(metric) for result in results])
        std = np.nan_to_num([result.std(metric) for result in results])
        ax.plot(x, mean, **style(label, markersize=3))
        low, high = np.maximum(mean - std, 0), np.minimum(mean + std, 100)
        ax.fill_between(x, low, high, color=style(label)["color"], alpha=0.15, linewidth=0)
    ax.margins(y=0.12)


def _weight_claims(found: ItemResults) -> Iterator[Claim]:
    smoothness, fairness = (
        {title: _averaged(found, dataset, axis) for title, dataset in found.datasets().items()}
        for axis in ("lambda_s", "weight")
    )
    german, bail = ({title: line for title, line in smoothness.items() if title == one} for one in ("German", "Bail"))
    yield claim("hyper-german", german, _best_inside, itemgetter("ACC"), "λs")
    yield claim("hyper-bail", bail, _changes, "ACC", 1)
    falls, rises = claim("hyper-bias", bail, _changes, "DP", -1), claim("hyper-bias", german, _changes, "DP", 1)
    yield Claim(falls.text, falls.checks + rises.checks)
    yield claim("hyper-middle", smoothness, _middle)
    yield claim("hyper-weight", fairness, _changes, "DP", -1)


def _averaged(found: ItemResults, dataset: str, axis: str) -> Rows:
    """Return the metrics along one axis of the grid, averaged over the other."""
    means = pd.DataFrame([{axis: r.cell.at[axis], **r.means} for r in found.of(dataset)]).groupby(axis).mean()
    return Rows({x: {str(metric): value for metric, value in row.items()} for x, row in means.iterrows()})


def _along(found: ItemResults) -> dict[str, Rows]:
    """Return the metrics along the parameter, for each data set and method."""
    return {
        f"{title}, {label}": Rows((x, r.means) for r in found.of(dataset, label) for x in r.cell.at.values())
        for title, dataset in found.datasets().items()
        for label in found.labels()
    }


def _layer_claims(found: ItemResults) -> Iterator[Claim]:
    yield claim("layers-utility", _along(found), _best_inside, itemgetter("utility"), "K")
    yield claim("layers-bias", _along(found), _falls)
    yield claim("layers-enough", _along(found), _enough, (2, 3, 4), lambda row: row["utility"] - row["bias"], "K")


def _alpha_claims(found: ItemResults) -> Iterator[Claim]:
    yield claim("alpha-accuracy", _along(found), _flat)
    yield claim("alpha-bias", _along(found), _wide)


def _depth_claims(found: ItemResults) -> Iterator[Claim]:
    yield claim("mlp-accuracy", _along(found), _best_inside, itemgetter("ACC"), "M")
    yield claim("mlp-enough", _along(found), _enough, (2, 4), lambda row: -row["bias"], "M")


def _require(*parts: Mapping[Any, Any] | Sequence[Any], points: int = 1) -> None:
    if min(map(len, parts)) < points:
        raise NotMeasured


def _best_inside(line: Rows, value: Callable[[Means], float], axis: str) -> tuple[bool, str]:
    _require(line, points=3)
    best = max(line, key=lambda x: value(line[x]))
    return min(line) < best < max(line), f"best {value(line[best]):.1f} at {axis} = {best:g}"


def _changes(line: Rows, metric: str, sign: int) -> tuple[bool, str]:
    """Check that a metric rises (sign 1) or falls (-1) from one end of the line to the other."""
    _require(line, points=2)
    first, last = (line[x][metric] for x in (min(line), max(line)))
    numbers = f"{BY_LABEL[metric].symbol} {first:.1f} at {min(line):g}, {last:.1f} at {max(line):g}"
    # As printed: what differs by less is the same.
    return sign * (round(last, 1) - round(first, 1)) > 0, numbers


def _middle(line: Rows) -> tuple[bool, str]:
    holds, numbers = greater([line[x]["ACC"] for x in (0.5, 1.0)], [line[0.1]["ACC"]])
    return holds, f"ACC {numbers}"


def _falls(line: Rows) -> tuple[bool, str]:
    _require(line, points=2)
    values = [line[x]["bias"] for x in sorted(line)]
    steps, falling = len(values) - 1, sum(after < before for before, after in pairwise(values))
    numbers = f"{values[0]:.1f} to {values[-1]:.1f}, falling in {falling} of {steps} steps"
    return values[-1] < values[0] and 2 * falling > steps, numbers


def _enough(line: Rows, few: Sequence[int], value: Callable[[Means], float], axis: str) -> tuple[bool, str]:
    values = {x: value(row) for x, row in line.items()}
    inside, outside = [x for x in values if x in few], [x for x in values if x not in few]
    _require(inside, outside)
    best, other = max(inside, key=values.__getitem__), max(outside, key=values.__getitem__)
    numbers = f"{abs(values[best]):.1f} at {axis} = {best:g}, {abs(values[other]):.1f} at {other:g}"
    return values[other] <= values[best] + CLOSE, numbers


def _flat(line: Rows) -> tuple[bool, str]:
    _require(line, points=2)
    values = [row["ACC"] for row in line.values()]
    return max(values) - min(values) <= CLOSE, f"{min(values):.1f} to {max(values):.1f}"


def _wide(line: Rows) -> tuple[bool, str]:
    large, small = ([row["bias"] for x, row in line.items() if (x >= 0.7) is is_large] for is_large in (True, False))
    _require(large, small)
    return fmean(large) < fmean(small), f"{fmean(large):.1f} against {fmean(small):.1f}"


_TABLES = partial(metric_tables, group=lambda cell: cell.label)
_WEIGHTS = partial(_sweep, ("GMMD",), lambda_s=(0.0, 0.1, 0.5, 1.0, 2.0), weight=(0.0, 0.1, 1.0, 10.0, 100.0))
_LAYERS = partial(_sweep, GMMDS, K=range(1, 9))
_DEPTHS = partial(_sweep, GMMDS, num_layers=(1, 2, 4, 6))
_WIDTHS = partial(_sweep, GMMDS, alpha=(0.03, 0.1, 0.3, 0.7, 1.0, 3.0, 10.0))

HYPER = Item("hyper", _WEIGHTS, _TABLES, _weight_claims, _heat_maps, figure_only=True, drawn_from=2)
LAYERS = Item("layers", _LAYERS, _TABLES, _layer_claims, _lines, figure_only=True, drawn_from=2)
ALPHA = Item("alpha", _WIDTHS, _TABLES, _alpha_claims, _lines, figure_only=True, drawn_from=2)
MLP = Item("mlp", _DEPTHS, _TABLES, _depth_claims, _lines, figure_only=True, drawn_from=2)
