"""What fairness costs: training time, and accuracy."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairpass.experiments.cells import Cell, CellResult
from fairpass.experiments.figures import GREY, grid, legend, panels, style
from fairpass.experiments.item import Claim, Item, ItemResults, NotMeasured, claim
from fairpass.experiments.items.main import VARIANTS
from fairpass.experiments.paper import OURS, PAPERS, SECONDS, method_of
from fairpass.experiments.settings import (
    BASELINES,
    DATASETS,
    FAIRNESS,
    GMMDS,
    PARTS_EPOCHS,
    baseline,
    ours,
    papers,
    plain,
)
from fairpass.experiments.tables import Entry, Table, emphasised, number, table
from fairpass.experiments.texts import TITLES
from fairpass.metrics.catalog import BY_LABEL, UNFAIRNESS
from fairpass.runs import TIMING
from fairpass.tuning.front import dominated_area, non_dominated

_BIASES = tuple(metric.label for metric in UNFAIRNESS)


def _runtime_cells() -> list[Cell]:
    """Return every method once more, alone on the machine."""
    cells = []
    for d in DATASETS:
        methods = {
            "GCN": plain(d)[0],
            **{label: baseline(name, d)[0] for label, name in BASELINES.items()},
            **{f"{label}{PAPERS}": papers(name, d)[0] for label, name in GMMDS.items()},
            **{label: ours(name, d) for label, name in GMMDS.items()},
        }
        # Without what is only recorded for the history.
        training = {"track_discrepancy": False}
        cells += [Cell(d, label, (c.but(training=training),), (0,), measures=(TIMING,)) for label, c in methods.items()]
    return cells


def _epoch_seconds(found: ItemResults, dataset: str) -> dict[str, float]:
    """Return the mean time of an epoch by label, of the methods that were measured."""
    return {
        result.cell.label: fmean(record["seconds"] / record["epochs"] for record in result.records)
        for result in found.of(dataset)
    }


def _runtime_tables(found: ItemResults) -> list[Table]:
    content: dict[str, Sequence[str | Entry]] = {"method": (labels := found.labels())}
    for title, dataset in found.datasets().items():
        times = _epoch_seconds(found, dataset)
        gcn = times.get("GCN", math.nan)
        content[f"{title}: ms per epoch"] = [number(1000 * times.get(label, math.nan), 1) for label in labels]
        content[f"{title}: × GCN"] = [number(times.get(label, math.nan) / gcn, 1) for label in labels]
        content[f"{title}: paper, s"] = [number(SECONDS[dataset].get(method_of(label)), 1) for label in labels]
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
        ax.set(title=title, xlabel="milliseconds per epoch")
        ax.grid(visible=False, axis="y")
        # Room for the numbers at the ends of the bars.
        ax.set_xlim(0, 1.25 * np.nanmax(values))
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].invert_yaxis()
    return {"runtime": figure}


def _runtime_claims(found: ItemResults) -> Iterator[Claim]:
    times = {title: _epoch_seconds(found, dataset) for title, dataset in found.datasets().items()}
    for variant, suffix in VARIANTS.items():
        yield claim("runtime-faster", times, _faster, f"GMMD{suffix}", variant=variant)
        yield claim("runtime-simple", times, _simpler, suffix, variant=variant)


def _faster(times: Mapping[str, float], name: str) -> tuple[bool, str]:
    others = {label: times[label] for label in ("NIFTY", "FairGNN", "EDITS", "FairVGNN") if label in times}
    if name not in times or not others:
        raise NotMeasured
    words = ", ".join(f"{label} {1000 * time:.3g}" for label, time in others.items())
    return times[name] < min(others.values()), f"{1000 * times[name]:.3g} ms; {words}"


def _simpler(times: Mapping[str, float], suffix: str) -> tuple[bool, str]:
    full, simple = (times.get(f"{name}{suffix}") for name in OURS)
    if full is None or simple is None:
        raise NotMeasured
    return simple < full, f"{1000 * simple:.3g} ms against {1000 * full:.3g} ms"


def _pareto_cells() -> list[Cell]:
    """Return every method with fairness weighed little to much; GCN for comparison."""
    cells = []
    for d in DATASETS:
        start = {
            **{label: baseline(name, d)[0] for label, name in BASELINES.items()},
            **{label: ours(name, d, training={"epochs": PARTS_EPOCHS[d]}) for label, name in GMMDS.items()},
        }
        seeds = (0, 1) if d == "german" else (0,)
        cells.append(Cell(d, "GCN", plain(d)[:1], seeds))
        for label, steps in FAIRNESS.items():
            for step, changes in enumerate(steps):
                # The most accurate threshold, because one chosen for fairness hides what the method did.
                c = start[label].but(training={"threshold": "accuracy"}, **changes)
                cells.append(Cell(d, label, (c,), seeds, {"step": step, **changes}))
    return cells


def _point(result: CellResult, bias: str) -> tuple[float, float]:
    return result.mean("ACC"), result.mean(bias)


def _front(results: Sequence[CellResult], bias: str) -> list[tuple[float, float]]:
    """Return accuracy and bias of the results that no other beats, near-constant ones apart."""
    points = [_point(result, bias) for result in results if not result.is_near_constant]
    return sorted(points[i] for i in non_dominated(points))


def _pareto_tables(found: ItemResults) -> list[Table]:
    labels, references = found.labels(), []
    content: dict[str, Sequence[str | Entry]] = {"method": labels}
    for (title, dataset), bias in product(found.datasets().items(), _BIASES):
        points = [_point(result, bias) for result in found.of(dataset)]
        reference = min(accuracy for accuracy, _ in points), max(bias for _, bias in points)
        whole = (max(accuracy for accuracy, _ in points) - reference[0]) * reference[1]
        entries = []
        for label in labels:
            results = found.of(dataset, label)
            area = dominated_area(_front(results, bias), reference=reference)
            entries.append(number(100 * area / whole if results and whole > 0 else None, 1))
        symbol = BY_LABEL[bias].symbol
        content[f"{title}: {symbol}"] = emphasised(entries, lowest=False)
        references.append(f"{title} ACC {reference[0]:.1f}, {symbol} {reference[1]:.1f}")
    return [table("pareto", content, references="; ".join(references))]


def _pareto_figures(found: ItemResults) -> dict[str, Figure]:
    figure, _ = grid(found, _BIASES, _fronts, height=2.5, row_label="ACC (%)", sharey="row")
    handles = [Line2D([], [], label=label, **style(label, linestyle="-")) for label in found.labels()]
    hollow = Line2D([], [], marker="o", color=GREY, markerfacecolor="white", linestyle="", label="near constant")
    legend(figure, [*handles, hollow], columns=5)
    return {"pareto": figure}


def _fronts(ax: Axes, found: ItemResults, dataset: str, bias: str) -> None:
    for label in found.labels():
        results = found.of(dataset, label)
        front = _front(results, bias)
        # From a point to the next more accurate one nothing better was found, so these are steps, not slopes.
        line = style(label, linestyle="-", marker="", drawstyle="steps-post", linewidth=1, alpha=0.8)
        ax.plot([bias for _, bias in front], [accuracy for accuracy, _ in front], **line)
        for result in results:
            accuracy, unfairness = _point(result, bias)
            dot = style(label, linestyle="", markersize=5, clip_on=False)
            face = "white" if result.is_near_constant else dot["color"]
            ax.plot(unfairness, accuracy, markerfacecolor=face, **dot)
    ax.set_xlabel(f"{BY_LABEL[bias].symbol} (%)")
    ax.set_xlim(left=0)
    if bias == _BIASES[0]:
        ax.set_title(TITLES[dataset], loc="left", fontweight="bold")


RUNTIME = Item("runtime", _runtime_cells, _runtime_tables, _runtime_claims, _runtime_figures)
PARETO = Item("pareto", _pareto_cells, _pareto_tables, make_figures=_pareto_figures, drawn_from=2)
