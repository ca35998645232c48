"""Sweeps over parameters: smoothness and fairness, layers, the kernel's width, depth, and accuracy against bias."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairpass.experiments import settings
from fairpass.experiments.cells import METRICS, Cell, CellResult
from fairpass.experiments.figures import grid, style
from fairpass.experiments.item import CLOSE, Claim, Item, ItemResults, Verdict, claim, compare, require
from fairpass.experiments.settings import GMMDS
from fairpass.experiments.tables import MISSING, metric_tables
from fairpass.experiments.texts import TITLES
from fairpass.metrics.catalog import BY_LABEL

_ALPHAS = (0.03, 0.1, 0.3, 0.7, 1.0, 3.0, 10.0)


def _sweep(d: str, methods: Iterable[str], **axes: Sequence[Any]) -> list[Cell]:
    """Return cells on a grid of parameters."""
    cells = []
    for label, values in product(methods, product(*axes.values())):
        at = dict(zip(axes, values, strict=True))
        candidate = settings.ours(GMMDS[label], d, training={"epochs": settings.SWEEP_EPOCHS[d]}, **at)
        cells.append(Cell(d, label, (candidate,), at=at))
    return cells


def _heat_map(ax: Axes, found: ItemResults, dataset: str, metric: str) -> None:
    made = pd.DataFrame([{**result.cell.at, "value": result.mean(metric)} for result in found.of(dataset)])
    values = made.pivot(index="lambda_s", columns="weight", values="value")
    values = values.reindex(index=found.positions("lambda_s"), columns=found.positions("weight"))
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
    if dataset == [*found.datasets(found.item.drawn_from).values()][-1]:
        ax.set_xlabel("weight of fairness")


def _lines(found: ItemResults) -> dict[str, Figure]:
    """Draw the five metrics against a parameter, with a band of one standard deviation."""
    titles, key = [BY_LABEL[metric].symbol for metric in METRICS], {label: style(label) for label in found.labels()}
    return grid(found, METRICS, _line, titles, key, sharex=True)


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
    (axis,) = found.cells[0].at
    if axis == "alpha":
        ax.set_xscale("log")
    else:
        ax.set_xticks(found.positions(axis))


def _along(results: Iterable[CellResult], axis: str) -> pd.DataFrame:
    """Return the metrics along an axis, averaged over the others."""
    rows = [{axis: r.cell.at[axis], **r.means} for r in results if r.is_defined]
    return pd.DataFrame(rows, columns=[axis, *METRICS, "utility", "bias"], dtype=float).groupby(axis).mean()


def _weight_claims(found: ItemResults) -> Iterator[Claim]:
    datasets = found.datasets().items()
    smoothness, fairness = ({t: _along(found.of(d), axis) for t, d in datasets} for axis in ("lambda_s", "weight"))
    german, bail = ({title: line for title, line in smoothness.items() if title == one} for one in ("German", "Bail"))
    yield claim("hyper-german", german, _best_inside, "ACC", "λs")
    yield claim("hyper-bail", bail, _changes, "ACC", 1)
    falls, rises = claim("hyper-bias", bail, _changes, "DP", -1), claim("hyper-bias", german, _changes, "DP", 1)
    yield Claim(falls.text, falls.checks + rises.checks)
    yield claim("hyper-middle", smoothness, _better, "ACC", (0.5, 1.0), (0.1,), "ACC {:.1f} against {:.1f}")
    yield claim("hyper-weight", fairness, _changes, "DP", -1)


def _line_claims(found: ItemResults) -> Iterator[Claim]:
    (axis,) = found.cells[0].at
    places = product(found.datasets().items(), found.labels())
    lines = {f"{title}, {label}": _along(found.of(d, label), axis) for (title, d), label in places}
    for key, check, *given in _CHECKS[found.item.name]:
        yield claim(key, lines, check, *given)


def _best_inside(line: pd.DataFrame, metric: str, axis: str) -> Verdict:
    require(line, points=3)
    best = line[metric].idxmax()
    return line.index[0] < best < line.index[-1], f"best {line[metric].max():.1f} at {axis} = {best:g}"


def _changes(line: pd.DataFrame, metric: str, sign: int) -> Verdict:
    """Check that a metric rises (sign 1) or falls (-1) from one end of the line to the other."""
    require(line, points=2)
    first, *_, last = line[metric].tolist()
    numbers = f"{BY_LABEL[metric].symbol} {first:.1f} at {line.index[0]:g}, {last:.1f} at {line.index[-1]:g}"
    # As printed: what differs by less is the same.
    return sign * (round(last, 1) - round(first, 1)) > 0, numbers


def _falls(line: pd.DataFrame) -> Verdict:
    require(line, points=2)
    first, *_, last = line["bias"]
    steps, falling = len(line) - 1, int((line["bias"].diff() < 0).sum())
    return last < first and 2 * falling > steps, f"{first:.1f} to {last:.1f}, falling in {falling} of {steps} steps"


def _enough(line: pd.DataFrame, few: Sequence[int], utility: int, axis: str) -> Verdict:
    """Check that no other position is more than a point better than these few in utility (if 1, not 0) minus bias."""
    values, is_few = line["utility"] * utility - line["bias"], line.index.isin(few)
    inside, outside = values[is_few], values[~is_few]
    require(inside, outside)
    best, other = inside.max(), outside.max()
    numbers = f"{abs(best):.1f} at {axis} = {inside.idxmax():g}, {abs(other):.1f} at {outside.idxmax():g}"
    return other <= best + CLOSE, numbers


def _flat(line: pd.DataFrame) -> Verdict:
    require(line, points=2)
    low, high = line["ACC"].min(), line["ACC"].max()
    return high - low <= CLOSE, f"{low:.1f} to {high:.1f}"


def _better(line: pd.DataFrame, metric: str, first: Sequence[float], second: Sequence[float], *words: str) -> Verdict:
    """Check that a mean, of accuracy or of bias, is better at the first positions than at the second ones."""
    one, other = (line[metric][line.index.isin(positions)] for positions in (first, second))
    return compare(one, other, *words, lower=metric == "bias")


# What the paper claims about a line: the claim, its check, and the check's arguments.
_CHECKS: Mapping[str, Sequence[tuple[Any, ...]]] = {
    "layers": (
        ("layers-utility", _best_inside, "utility", "K"),
        ("layers-bias", _falls),
        ("layers-enough", _enough, (2, 3, 4), 1, "K"),
    ),
    "alpha": (("alpha-accuracy", _flat), ("alpha-bias", _better, "bias", _ALPHAS[3:], _ALPHAS[:3])),
    "mlp": (("mlp-accuracy", _best_inside, "ACC", "M"), ("mlp-enough", _enough, (2, 4), 0, "M")),
}
_HEAT_MAPS = partial(grid, columns=("ACC", "DP"), draw=_heat_map)
_TABLES = partial(metric_tables, group=lambda cell: cell.label)
_WEIGHTS = partial(_sweep, methods=("GMMD",), lambda_s=(0.0, 0.1, 0.5, 1.0, 2.0), weight=(0.0, 0.1, 1.0, 10.0, 100.0))
_LAYERS = partial(_sweep, methods=GMMDS, K=range(1, 9))
_WIDTHS = partial(_sweep, methods=GMMDS, alpha=_ALPHAS)
_DEPTHS = partial(_sweep, methods=GMMDS, num_layers=(1, 2, 4, 6))

HYPER = Item("hyper", _WEIGHTS, _TABLES, _weight_claims, _HEAT_MAPS, figure_only=True, drawn_from=2)
LAYERS = Item("layers", _LAYERS, _TABLES, _line_claims, _lines, figure_only=True, drawn_from=2)
ALPHA = Item("alpha", _WIDTHS, _TABLES, _line_claims, _lines, figure_only=True, drawn_from=2)
MLP = Item("mlp", _DEPTHS, _TABLES, _line_claims, _lines, figure_only=True, drawn_from=2)
