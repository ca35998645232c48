"""The main comparison: every method on every data set."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairpass.experiments import paper, settings
from fairpass.experiments.cells import METRICS, Cell, CellResult, Means, average_ranks, better_of, is_better
from fairpass.experiments.figures import BLUE, GREY, grid, legend
from fairpass.experiments.item import CLOSE, Claim, Item, ItemResults, NotMeasured, Rows, claim
from fairpass.experiments.metric_tables import metric_tables
from fairpass.experiments.paper import OURS, PAPERS, method_of
from fairpass.experiments.settings import BASELINES, DATASETS, GMMDS, baseline, papers, plain, recommended
from fairpass.experiments.tables import MISSING, Entry, Table, emphasised, number, table
from fairpass.experiments.texts import TITLES, listed
from fairpass.methods import method
from fairpass.metrics.catalog import BY_LABEL
from fairpass.runs import StoredRecord

CONSTANT = "constant"
VARIANTS = {"as we recommend it": "", "as the paper defines it": PAPERS}
"""Of GMMD and GMMD-S, with the ends of their labels."""
_RIVALS = ("FairGNN", "FairVGNN", "EDITS", "NIFTY", "FMP")


def _cells() -> list[Cell]:
    cells = []
    for d in DATASETS:
        cells += [Cell(d, CONSTANT, settings.CONSTANT, (0,)), Cell(d, "GCN", plain(d))]
        cells += [Cell(d, label, baseline(name, d)) for label, name in BASELINES.items()]
        cells += [Cell(d, f"{label}{PAPERS}", papers(name, d)) for label, name in GMMDS.items()]
        cells.append(Cell(d, f"smoothing{PAPERS}", papers("gmmd", d, lambda_f=(0.0,))))
        cells += [Cell(d, label, recommended(name, d)) for label, name in GMMDS.items()]
    return cells


def _printed(cell: Cell) -> paper.PrintedRow | None:
    return paper.MAIN[cell.dataset].get(method_of(cell.label))


def _tables(found: ItemResults) -> list[Table]:
    by_dataset = metric_tables(found, printed=_printed, group=lambda cell: None if cell.label == CONSTANT else 0)
    return [*by_dataset, _ranks(found), _target(found), _configurations(found)]


def _average_ranks(found: ItemResults, keep: Callable[[CellResult], bool]) -> dict[str, float]:
    tables = []
    for dataset in found.datasets().values():
        labels = {r.cell.label for r in found.of(dataset) if r.cell.label != CONSTANT and keep(r)}
        tables.append({label: row for label, row in found.rows(dataset).items() if label in labels})
    return average_ranks(tables)


def _is_variant(suffix: str, result: CellResult) -> bool:
    """Whether a row is no GMMD at all, or this variant of it."""
    label = result.cell.label
    return label not in OURS if suffix else not label.endswith(PAPERS)


def _ranks(found: ItemResults) -> Table:
    kinds = {
        "all rows": _average_ranks(found, lambda _: True),
        "GMMD as recommended": _average_ranks(found, partial(_is_variant, "")),
        "GMMD as the paper's": _average_ranks(found, partial(_is_variant, PAPERS)),
        "without near-constant": _average_ranks(found, lambda result: not result.is_near_constant),
    }
    printed = {
        "paper, printed": paper.RANKS["main"],
        "paper, recomputed": average_ranks(map(paper.means, paper.MAIN.values())),
    }
    labels = [label for label in found.labels() if label != CONSTANT]
    columns = {kind: [number(ranks.get(label)) for label in labels] for kind, ranks in kinds.items()}
    columns |= {kind: [number(ranks.get(method_of(label))) for label in labels] for kind, ranks in printed.items()}
    marked = {kind: emphasised(entries, lowest=True) for kind, entries in columns.items()}
    titles = list(found.datasets())
    return table("main-ranks", {"method": labels, **marked}, cells=len(METRICS) * len(titles), datasets=listed(titles))


def _target(found: ItemResults) -> Table:
    rows, met = [], dict.fromkeys((*OURS, "better of both"), 0)
    for (title, dataset), metric in product(found.datasets().items(), METRICS):
        goal, means = paper.target(dataset, metric), found.rows(dataset)
        row: dict[str, str | Entry] = {"data set": title, "metric": BY_LABEL[metric].symbol}
        row["paper's better"] = number(goal)
        values = {label: means[label][metric] for label in OURS if label in means}
        if values:
            values["better of both"] = better_of(values.values(), metric)
        for name in met:
            is_met = name in values and not is_better(goal, values[name], metric)
            met[name] += is_met
            row[name] = number(values.get(name))
            row[f"{name}: met"] = "yes" if is_met else "no" if name in values else MISSING
        rows.append(row)
    total = {f"{name}: met": f"{count} of {len(rows)}" for name, count in met.items()}
    rows.append({**dict.fromkeys(rows[0], ""), "data set": "all", **total})
    return table("main-target", rows, words=2)


def count_met(found: ItemResults) -> str:
    """Return in how many cells the better of our two methods is as good as the better of the paper's two."""
    return found.tables[-2].rows[-1][-1].text


def _configurations(found: ItemResults) -> Table:
    rows = []
    for result in found.of():
        if result.cell.label != CONSTANT:
            candidates, record = result.cell.candidates, result.records[0]
            row = {"data set": TITLES[result.cell.dataset], "method": result.cell.label}
            row["candidate"] = f"{1 + candidates.index(result.configuration)} of {len(candidates)}"
            row["features"] = record["scale"]
            row["settings that are not the method's defaults"] = ", ".join(_settings(record)) or "defaults"
            rows.append(row)
    return table("main-configurations", rows, words=5)


def _settings(record: StoredRecord) -> Iterator[str]:
    default = method(record["method"])()
    usual = {**default.default_training().to_dict(), **default.hyperparameters}
    chosen: dict[str, Any] = {**record["parameters"], **record["training"]}
    for name, value in chosen.items():
        if name not in ("seed", "device", "track_discrepancy") and value != usual[name]:
            yield f"{name}={f'{value:g}' if isinstance(value, float) else 'none' if value is None else value}"


def _figures(found: ItemResults) -> dict[str, Figure]:
    labels, titles = found.labels(), [f"{BY_LABEL[metric].symbol} (%)" for metric in METRICS]
    figure, axes = grid(found, METRICS, _dots, height=2.3, titles=titles, row_label="{}", sharey="row")
    for first, *_ in axes:
        first.set_yticks(range(len(labels)), labels)
        first.invert_yaxis()
        first.yaxis.label.set_fontweight("bold")
    ours = Line2D([], [], color=BLUE, marker="o", label="ours, ± one standard deviation")
    theirs = Line2D([], [], color=GREY, marker="D", markerfacecolor="white", linestyle="", label="printed in the paper")
    legend(figure, [ours, theirs])
    return {"main": figure}


def _dots(ax: Axes, found: ItemResults, dataset: str, metric: str) -> None:
    for place, label in enumerate(found.labels()):
        if printed := paper.MAIN[dataset].get(method_of(label)):
            ax.plot(printed[metric][0], place, "D", color=GREY, markerfacecolor="white", markersize=4)
        for result in found.of(dataset, label):
            std = None if math.isnan(result.std(metric)) else result.std(metric)
            ax.errorbar(result.mean(metric), place, xerr=std, color=BLUE, marker="o", markersize=4, linewidth=1.2)
    ax.margins(x=0.1)
    ax.locator_params(axis="x", nbins=3)


def _claims(found: ItemResults) -> Iterator[Claim]:
    yield claim("main-ranks", VARIANTS, _best_ranks, found)
    tables = {title: found.rows(dataset) for title, dataset in found.datasets().items()}
    for variant, suffix in VARIANTS.items():
        gmmd, simple = (f"{name}{suffix}" for name in OURS)
        yield claim("main-wins", {rival: rival for rival in _RIVALS}, _wins, gmmd, tables.values(), variant=variant)
        yield claim("main-fairer", tables, _fairer_than_gcn, gmmd, variant=variant)
        yield claim("main-simple", tables, versus, simple, gmmd, is_no_worse, variant=variant)


def _best_ranks(suffix: str, found: ItemResults) -> tuple[bool, str]:
    ranks = _average_ranks(found, partial(_is_variant, suffix))
    ours = {name: ranks.pop(f"{name}{suffix}") for name in OURS if f"{name}{suffix}" in ranks}
    if len(ours) < len(OURS) or not ranks:
        raise NotMeasured
    best = min(ranks, key=lambda name: ranks[name])
    words = " and ".join(f"{name} {rank:.2f}" for name, rank in ours.items())
    return max(ours.values()) < ranks[best], f"{words}, the best other method, {best}, {ranks[best]:.2f}"


def most_cells(pairs: Iterable[tuple[Means, Means]]) -> tuple[bool, str]:
    """Return whether the first rows of the pairs are better than the second in most metrics, and in how many."""
    wins = [is_better(ours[metric], theirs[metric], metric) for ours, theirs in pairs for metric in METRICS]
    if not wins:
        raise NotMeasured
    return 2 * sum(wins) > len(wins), f"{sum(wins)} of {len(wins)} cells"


def _wins(rival: str, name: str, tables: Iterable[Rows]) -> tuple[bool, str]:
    return most_cells((rows[name], rows[rival]) for rows in tables if name in rows and rival in rows)


def _fairer_than_gcn(rows: Rows, name: str) -> tuple[bool, str]:
    ours, gcn = rows[name], rows["GCN"]
    lost = gcn["utility"] - ours["utility"]
    words = ", ".join(f"Δ{metric} {ours[metric]:.1f} against {gcn[metric]:.1f}" for metric in ("DP", "EO"))
    is_fairer = all(is_better(ours[metric], gcn[metric], metric) for metric in ("DP", "EO"))
    change = f"{abs(lost):.1f} points {'less' if lost > 0 else 'more'} utility"
    return is_fairer and lost <= CLOSE, f"{words}, {change}"


def balance(row: Means) -> str:
    """Return utility and bias in words."""
    return f"utility {row['utility']:.1f}, bias {row['bias']:.1f}"


def versus(rows: Rows, name: str, other: str, holds: Callable[[float, float], bool]) -> tuple[bool, str]:
    """Return whether the differences of two rows in utility and in bias are as claimed, and the numbers."""
    ours, theirs = rows[name], rows[other]
    differences = ours["utility"] - theirs["utility"], ours["bias"] - theirs["bias"]
    return holds(*differences), f"{balance(ours)} against {balance(theirs)}"


def is_no_worse(utility: float, bias: float) -> bool:
    """Return whether differences in utility and in bias are at most a point to the worse."""
    return utility >= -CLOSE and bias <= CLOSE


MAIN = Item("main", _cells, _tables, _claims, _figures)
