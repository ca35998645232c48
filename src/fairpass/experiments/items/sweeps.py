"""Sweeps over parameters: the weights of smoothness and fairness, layers, the kernel's width, and depth."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise, product
from operator import itemgetter
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairpass.experiments.cells import METRICS, Cell
from fairpass.experiments.figures import grid, legend, style
from fairpass.experiments.item import CLOSE, Claim, Item, ItemResults, NotMeasured, Rows, claim
from fairpass.experiments.metric_tables import metric_tables
from fairpass.experiments.settings import DATASETS, GMMDS, SWEEP_SEEDS, ours
from fairpass.experiments.tables import MISSING, Table
from fairpass.experiments.texts import TITLES
from fairpass.metrics.catalog import BY_LABEL

_EPOCHS = {"german": 200, "credit": 40, "bail": 40}

Value = Callable[[Mapping[str, float]], float]
"""What a claim looks at in a row."""


def _sweep(methods: Iterable[str], axes: Mapping[str, Sequence[Any]]) -> list[Cell]:
    """Return cells on a grid of parameters."""
    cells = []
    for d, label, values in product(DATASETS, methods, product(*axes.values())):
        at = dict(zip(axes, values, strict=True))
        candidate = ours(GMMDS[label], d, training={"epochs": _EPOCHS[d]}, **at)
        cells.append(Cell(d, label, (candidate,), SWEEP_SEEDS[d], at))
    return cells


def _tables(found: ItemResults) -> list[Table]:
    return metric_tables(found, (*found.cells[0].at, "method"), group=lambda cell: cell.label)


def _heat_maps(found: ItemResults) -> dict[str, Figure]:
    datasets = found.datasets(at_least=2)
    if not datasets:
        return {}
    rows = ["weight of smoothness, $\\lambda_s$"] * len(datasets)
    figure, axes = grid(datasets, ("ACC", "DP"), partial(_heat_map, found), row_height=2.45, row_labels=rows)
    for ax in axes[-1]:
        ax.set_xlabel("weight of fairness")
    return {found.item.name: figure}


def _heat_map(found: ItemResults, ax: Axes, dataset: str, metric: str) -> None:
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


def _lines(found: ItemResults, axis: str, x_label: str, scale: str) -> dict[str, Figure]:
    """Draw the five metrics against a parameter, with a band of one standard deviation."""
    datasets = found.datasets(at_least=2)
    if not datasets:
        return {}
    figure, axes = grid(
        datasets,
        METRICS,
        partial(_line, found),
        row_height=1.6,
        titles=[BY_LABEL[metric].symbol for metric in METRICS],
        row_labels=[f"{TITLES[dataset]} (%)" for dataset in datasets],
        sharex=True,
    )
    for ax in (ax for row in axes for ax in row):
        if scale == "log":
            ax.set_xscale("log")
        else:
            ax.set_xticks(found.positions(axis))
    figure.supxlabel(x_label, fontsize=8)
    legend(figure, [Line2D([], [], label=label, **style(label)) for label in found.labels()])
    return {found.item.name: figure}


def _line(found: ItemResults, ax: Axes, dataset: str, metric: str) -> None:
    for label in found.labels():
        results = found.of(dataset, label)
        x = [next(iter(result.cell.at.values())) for result in results]
        mean = np.array([result.mean(metric) for result in results])
        std = np.nan_to_num([result.std(metric) for result in results])
        ax.plot(x, mean, **style(label, markersize=3))
        low, high = np.maximum(mean - std, 0), np.minimum(mean + std, 100)
        ax.fill_between(x, low, high, color=style(label)["color"], alpha=0.15, linewidth=0)
    ax.margins(y=0.12)


def _weight_claims(found: ItemResults) -> Iterator[Claim]:
    smoothness = {title: _averaged(found, dataset, "lambda_s") for title, dataset in found.titled().items()}
    fairness = {title: _averaged(found, dataset, "weight") for title, dataset in found.titled().items()}
    german, bail = ({name: smoothness[name]} if name in smoothness else {} for name in ("German", "Bail"))
    yield claim(
        "On German, too much or too little smoothing costs accuracy: the best λs is neither the least nor the most.",
        partial(_best_inside, itemgetter("ACC"), "λs"),
        german,
    )
    yield claim("On Bail, accuracy rises with λs and stays.", partial(_changes, "ACC", 1), bail)
    both = claim(
        "ΔDP falls with λs on Bail, where edges cross between groups, and rises on German, where they do not.",
        partial(_changes, "DP", -1),
        bail,
    )
    rising = claim(both.text, partial(_changes, "DP", 1), german)
    yield Claim(both.text, both.checks + rising.checks)
    yield claim("λs from 0.5 to 1 is more accurate than 0.1.", _middle, smoothness)
    yield claim("A larger weight of fairness lowers ΔDP.", partial(_changes, "DP", -1), fairness)


def _averaged(found: ItemResults, dataset: str, axis: str) -> Rows:
    """Return the metrics along one axis of the grid, averaged over the other."""
    frame = pd.DataFrame([{axis: result.cell.at[axis], **result.means} for result in found.of(dataset)])
    return Rows(frame.groupby(axis).mean().to_dict("index"))


def _along(found: ItemResults) -> dict[str, Rows]:
    """Return the metrics along the parameter, for each data set and method."""
    return {
        f"{title}, {label}": Rows({next(iter(r.cell.at.values())): r.means for r in found.of(dataset, label)})
        for title, dataset in found.titled().items()
        for label in found.labels()
    }


def _layer_claims(found: ItemResults) -> Iterator[Claim]:
    lines = _along(found)
    utility = partial(_best_inside, itemgetter("utility"), "K")
    yield claim("Utility first rises and then falls with the number of layers.", utility, lines)
    yield claim("Bias falls with the number of layers.", _falls, lines)
    yield claim(
        "Two to four layers are enough: no other number is more than a point better in utility minus bias.",
        partial(_enough, (2, 3, 4), lambda row: row["utility"] - row["bias"], "K"),
        lines,
    )


def _alpha_claims(found: ItemResults) -> Iterator[Claim]:
    lines = _along(found)
    text = f"α has little influence on accuracy: at most {CLOSE:g} point between the best and the worst."
    yield claim(text, _flat, lines)
    yield claim("A larger α (0.7 or more) is less biased.", _wide, lines)


def _depth_claims(found: ItemResults) -> Iterator[Claim]:
    lines = _along(found)
    accuracy = partial(_best_inside, itemgetter("ACC"), "M")
    yield claim("Accuracy first rises and then falls with the depth of the perceptron.", accuracy, lines)
    yield claim(
        "Two or four layers are enough for fairness: no other depth is more than a point less biased.",
        partial(_enough, (2, 4), lambda row: -row["bias"], "M"),
        lines,
    )


def _at_least(points: int, line: Rows) -> None:
    if len(line) < points:
        raise NotMeasured


def _best_inside(value: Value, axis: str, line: Rows) -> tuple[bool, str]:
    _at_least(3, line)
    best = max(line, key=lambda x: value(line[x]))
    return min(line) < best < max(line), f"best {value(line[best]):.1f} at {axis} = {best:g}"


def _changes(metric: str, sign: int, line: Rows) -> tuple[bool, str]:
    """Check that a metric rises (sign 1) or falls (-1) from one end of the line to the other."""
    _at_least(2, line)
    first, last = (line[x][metric] for x in (min(line), max(line)))
    numbers = f"{BY_LABEL[metric].symbol} {first:.1f} at {min(line):g}, {last:.1f} at {max(line):g}"
    # As printed: what differs by less is the same.
    return sign * (round(last, 1) - round(first, 1)) > 0, numbers


def _middle(line: Rows) -> tuple[bool, str]:
    middle, little = fmean(line[x]["ACC"] for x in (0.5, 1.0)), line[0.1]["ACC"]
    return middle > little, f"ACC {middle:.1f} against {little:.1f}"


def _falls(line: Rows) -> tuple[bool, str]:
    _at_least(2, line)
    values = [line[x]["bias"] for x in sorted(line)]
    steps, falling = len(values) - 1, sum(after < before for before, after in pairwise(values))
    numbers = f"{values[0]:.1f} to {values[-1]:.1f}, falling in {falling} of {steps} steps"
    return values[-1] < values[0] and 2 * falling > steps, numbers


def _enough(few: Sequence[int], value: Value, axis: str, line: Rows) -> tuple[bool, str]:
    values = {x: value(row) for x, row in line.items()}
    inside, outside = ([x for x in values if (x in few) is is_inside] for is_inside in (True, False))
    if not inside or not outside:
        raise NotMeasured
    best, other = max(inside, key=values.__getitem__), max(outside, key=values.__getitem__)
    numbers = f"{abs(values[best]):.1f} at {axis} = {best:g}, {abs(values[other]):.1f} at {other:g}"
    return values[other] <= values[best] + CLOSE, numbers


def _flat(line: Rows) -> tuple[bool, str]:
    _at_least(2, line)
    values = [row["ACC"] for row in line.values()]
    return max(values) - min(values) <= CLOSE, f"{min(values):.1f} to {max(values):.1f}"


def _wide(line: Rows) -> tuple[bool, str]:
    small, large = ([row["bias"] for x, row in line.items() if (x >= 0.7) is is_large] for is_large in (False, True))
    if not small or not large:
        raise NotMeasured
    return fmean(large) < fmean(small), f"{fmean(large):.1f} against {fmean(small):.1f}"


def _item(
    name: str,
    axis: str,
    values: Sequence[float],
    x_label: str,
    claims: Callable[[ItemResults], Iterable[Claim]],
    scale: str = "linear",
) -> Item:
    """Return an item that varies one parameter of both methods."""
    cells, figures = partial(_sweep, GMMDS, {axis: values}), partial(_lines, axis=axis, x_label=x_label, scale=scale)
    return Item(name, cells, _tables, claims, figures, figure_only=True)


_WEIGHTS = {"lambda_s": (0.0, 0.1, 0.5, 1.0, 2.0), "weight": (0.0, 0.1, 1.0, 10.0, 100.0)}
_WIDTHS = (0.03, 0.1, 0.3, 0.7, 1.0, 3.0, 10.0)

HYPER = Item("hyper", partial(_sweep, ("GMMD",), _WEIGHTS), _tables, _weight_claims, _heat_maps, figure_only=True)
LAYERS = _item("layers", "K", range(1, 9), "layers of message passing, K", _layer_claims)
ALPHA = _item("alpha", "alpha", _WIDTHS, "kernel parameter α", _alpha_claims, scale="log")
MLP = _item("mlp", "num_layers", (1, 2, 4, 6), "layers of the perceptron, M", _depth_claims)
