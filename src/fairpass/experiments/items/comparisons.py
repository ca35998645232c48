"""Comparisons of methods: all of them, on other backbones, with parts left out, and with each of our changes."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairpass.experiments import paper, settings
from fairpass.experiments.cells import METRICS, Cell, CellResult, Means, average_ranks, better_of, is_better
from fairpass.experiments.figures import BLUE, GREY, grid
from fairpass.experiments.item import CLOSE, Claim, Item, ItemResults, Rows, Verdict, claim, require
from fairpass.experiments.paper import OURS, PAPERS, method_of
from fairpass.experiments.tables import MISSING, Row, Table, emphasised, metric_tables, number, table
from fairpass.experiments.texts import TITLES, listed
from fairpass.methods import method
from fairpass.metrics.catalog import BY_LABEL
from fairpass.nn.convolution import Backbone
from fairpass.runs import StoredRecord

CONSTANT = "constant"
VARIANTS = {"as we recommend it": "", "as the paper defines it": PAPERS}  # of GMMD, with the ends of their labels
_RIVALS = ("FairGNN", "FairVGNN", "EDITS", "NIFTY", "FMP")
_BACKBONES: tuple[Backbone, ...] = ("gin", "gat")
_PAPERS = "paper's, "  # starts the labels of the paper's variants in the ablation


def _main_cells(d: str) -> list[Cell]:
    compared = settings.methods(d)
    ours = {label: compared.pop(label) for label in [*compared] if label not in ("GCN", *settings.BASELINES)}
    later = {label: settings.later(name, d) for label, name in settings.LATER.items()}
    cells = [Cell(d, label, candidates) for label, candidates in (compared | later | ours).items()]
    return [Cell(d, CONSTANT, settings.MAJORITY, (0,)), *cells]


def _main_tables(found: ItemResults) -> list[Table]:
    by_dataset = metric_tables(
        found,
        printed=lambda cell: paper.MAIN[cell.dataset].get(method_of(cell.label)),
        group=lambda cell: None if cell.label == CONSTANT else 0,
    )
    return [*by_dataset, _ranks(found), _target(found), _configurations(found)]


def _average_ranks(found: ItemResults, keep: Callable[[CellResult], bool]) -> dict[str, float]:
    datasets = found.datasets().values()
    return average_ranks(found.rows(d, lambda r: r.cell.label != CONSTANT and keep(r)) for d in datasets)


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
    rows: list[Row] = []
    met = dict.fromkeys((*OURS, "better of both"), 0)
    for (title, dataset), metric in product(found.datasets().items(), METRICS):
        goal, means = paper.target(dataset, metric), found.rows(dataset)
        row: Row = {"data set": title, "metric": BY_LABEL[metric].symbol, "paper's better": number(goal)}
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


def _configurations(found: ItemResults) -> Table:
    rows: list[Row] = []
    for result in found.of():
        if result.cell.label != CONSTANT:
            candidates, record = result.cell.candidates, result.records[0]
            rows.append(
                {
                    "data set": TITLES[result.cell.dataset],
                    "method": result.cell.label,
                    "candidate": f"{1 + candidates.index(result.configuration)} of {len(candidates)}",
                    "features": record["scale"],
                    "settings that are not the method's defaults": ", ".join(_settings(record)) or "defaults",
                }
            )
    return table("main-configurations", rows, words=5)


def _settings(record: StoredRecord) -> Iterator[str]:
    default = method(record["method"])()
    usual = {**default.default_training().to_dict(), **default.hyperparameters}
    for name, value in {**record["parameters"], **record["training"]}.items():
        if name not in ("seed", "device", "track_discrepancy") and value != usual[name]:
            yield f"{name}={f'{value:g}' if isinstance(value, float) else 'none' if value is None else value}"


def _main_figures(found: ItemResults) -> dict[str, Figure]:
    key = {
        "ours, ± one standard deviation": {"color": BLUE, "marker": "o"},
        "printed in the paper": {"color": GREY, "marker": "D", "markerfacecolor": "white", "linestyle": ""},
    }
    titles = [f"{BY_LABEL[metric].symbol} (%)" for metric in METRICS]
    return grid(found, METRICS, _dots, titles, key, sharey="row")


def _dots(ax: Axes, found: ItemResults, dataset: str, metric: str) -> None:
    labels = found.labels()
    for place, label in enumerate(labels):
        if printed := paper.MAIN[dataset].get(method_of(label)):
            ax.plot(printed[metric][0], place, "D", color=GREY, markerfacecolor="white", markersize=4)
        for result in found.of(dataset, label):
            std = None if math.isnan(result.std(metric)) else result.std(metric)
            ax.errorbar(result.mean(metric), place, xerr=std, color=BLUE, marker="o", markersize=4, linewidth=1.2)
    ax.margins(x=0.1)
    ax.locator_params(axis="x", nbins=3)
    # The axes of a row share theirs.
    if metric == METRICS[-1]:
        ax.set_yticks(range(len(labels)), labels)
        ax.invert_yaxis()
    ax.yaxis.label.set_fontweight("bold")


def _main_claims(found: ItemResults) -> Iterator[Claim]:
    yield claim("main-ranks", VARIANTS, _best_ranks, found)
    tables = {title: found.rows(dataset) for title, dataset in found.datasets().items()}
    for variant, suffix in VARIANTS.items():
        gmmd, simple = (f"{name}{suffix}" for name in OURS)
        yield claim("main-wins", {r: r for r in _RIVALS}, partial(_wins, tables.values(), (gmmd,)), variant=variant)
        yield claim("main-fairer", tables, _fairer_than_gcn, gmmd, variant=variant)
        yield claim(
            "main-simple", tables, _versus, simple, gmmd, lambda u, b: u >= -CLOSE and b <= CLOSE, variant=variant
        )


def _best_ranks(suffix: str, found: ItemResults) -> Verdict:
    ranks = _average_ranks(found, partial(_is_variant, suffix))
    ours = {name: ranks.pop(f"{name}{suffix}") for name in OURS}
    require(ranks)
    best = min(ranks, key=lambda name: ranks[name])
    words = " and ".join(f"{name} {rank:.2f}" for name, rank in ours.items())
    return max(ours.values()) < ranks[best], f"{words}, the best other method, {best}, {ranks[best]:.2f}"


def _wins(tables: Iterable[Rows], names: Iterable[str], rival: str) -> Verdict:
    """Check that the named rows are better than the rival's in most metrics of the tables that have both."""
    pairs = [(rows[name], rows[rival]) for rows in tables for name in names if {name, rival} <= rows.keys()]
    wins = [is_better(ours[metric], theirs[metric], metric) for ours, theirs in pairs for metric in METRICS]
    require(wins)
    return 2 * sum(wins) > len(wins), f"{sum(wins)} of {len(wins)} cells"


def _fairer_than_gcn(rows: Rows, name: str) -> Verdict:
    ours, gcn = rows[name], rows["GCN"]
    lost = gcn["utility"] - ours["utility"]
    words = ", ".join(f"Δ{metric} {ours[metric]:.1f} against {gcn[metric]:.1f}" for metric in ("DP", "EO"))
    is_fairer = all(is_better(ours[metric], gcn[metric], metric) for metric in ("DP", "EO"))
    change = f"{abs(lost):.1f} points {'less' if lost > 0 else 'more'} utility"
    return is_fairer and lost <= CLOSE, f"{words}, {change}"


def _balance(row: Means) -> str:
    return f"utility {row['utility']:.1f}, bias {row['bias']:.1f}"


def _versus(rows: Rows, name: str, other: str, holds: Callable[[float, float], bool]) -> Verdict:
    """Check the differences of two rows in utility and in bias."""
    ours, theirs = rows[name], rows[other]
    differences = ours["utility"] - theirs["utility"], ours["bias"] - theirs["bias"]
    return holds(*differences), f"{_balance(ours)} against {_balance(theirs)}"


def _backbone_cells(d: str) -> list[Cell]:
    cells = []
    for backbone in _BACKBONES:
        # Attention along every edge for ten masks at once takes seconds per epoch on the large graphs.
        is_slow = backbone == "gat" and d != "german"
        fair = settings.baseline("fairvgnn", d, backbone)[0]
        methods = {
            "vanilla": settings.plain(d, backbone)[0].but(training={"epochs": 100}),
            "FairVGNN": fair.but(training={"epochs": 10}) if is_slow else fair,
            **{label: settings.recommended(name, d, backbone)[0] for label, name in settings.GMMDS.items()},
        }
        at = {"backbone": backbone.upper()}
        cells += [Cell(d, label, settings.scaled(d, c), at=at) for label, c in methods.items()]
    return cells


def _printed_backbone(cell: Cell) -> paper.PrintedRow | None:
    return paper.BACKBONES[cell.dataset][cell.at["backbone"]].get(cell.label)


def _backbone_claims(found: ItemResults) -> Iterator[Claim]:
    places = product(found.datasets().items(), found.positions("backbone"))
    tables = {f"{title}, {backbone}": [found.rows(d, backbone=backbone)] for (title, d), backbone in places}
    yield claim("backbones", tables, _wins, OURS, "FairVGNN")


def _ablation_cells(d: str) -> list[Cell]:
    shorter = {"epochs": settings.PARTS_EPOCHS[d]}
    variants = settings.variants("ablation", d)
    return [Cell(d, label, (c.but(training=shorter),)) for label, c in variants.items()]


def _printed_ablation(cell: Cell) -> paper.PrintedRow | None:
    # Our full model uses all nodes, which the paper calls w/o sample; its full model is our sampled one.
    names = {"full": "w/o sample", "sampled": "GMMD", f"{_PAPERS}full": "GMMD"}
    name = names.get(cell.label, cell.label.removeprefix(_PAPERS))
    return paper.ABLATION.get(cell.dataset, {}).get(name)


def _ablation_claims(found: ItemResults) -> Iterator[Claim]:
    tables: dict[str, Rows] = {}
    for title, dataset in found.datasets().items():
        rows = found.rows(dataset).items()
        tables[f"{title}, recommended"] = {label: row for label, row in rows if not label.startswith(_PAPERS)}
        papers = {label.removeprefix(_PAPERS): row for label, row in rows if label.startswith(_PAPERS)}
        tables[f"{title}, paper's"] = papers
    yield claim("ablation-smoothing", tables, _versus, "w/o fair", "full", lambda u, b: u >= -CLOSE and b > 0)
    yield claim("ablation-fairness", tables, _fairness_alone)
    yield claim("ablation-full", tables, _best_part)
    yield claim("ablation-sampling", tables, _sampling)


def _fairness_alone(rows: Rows) -> Verdict:
    full, smoothing, alone = rows["full"], rows["w/o fair"], rows["w/o smooth"]
    holds = alone["bias"] < smoothing["bias"] and alone["utility"] < full["utility"]
    return holds, f"{_balance(alone)}; bias w/o fair {smoothing['bias']:.1f}, full utility {full['utility']:.1f}"


def _best_part(rows: Rows) -> Verdict:
    parts = ("full", "w/o smooth", "w/o fair", "w/o both")
    ranks = average_ranks([{label: row for label, row in rows.items() if label in parts}])
    require(ranks, points=2)
    return ranks["full"] == min(ranks.values()), ", ".join(f"{label} {rank:.1f}" for label, rank in ranks.items())


def _sampling(rows: Rows) -> Verdict:
    sampled, everything = ("sampled", "full") if "sampled" in rows else ("full", "w/o sample")
    return _versus(rows, sampled, everything, lambda utility, bias: max(abs(utility), abs(bias)) <= CLOSE)


def _beyond_cells(d: str) -> list[Cell]:
    cells = []
    epochs = {"selected": "validation", "last": "last"}
    for (epoch, select), (label, c) in product(epochs.items(), settings.variants("beyond", d).items()):
        # At the last epoch nothing was chosen on validation, so the threshold is not, either.
        training = {"select": select, "threshold": 0.5, "epochs": settings.PARTS_EPOCHS[d]}
        cells.append(Cell(d, label, (c.but(training=training),), at={"epoch": epoch}))
    return cells


_BACKBONE_TABLES = partial(metric_tables, printed=_printed_backbone, group=lambda cell: cell.at["backbone"])
_ABLATION_TABLES = partial(
    metric_tables, label="variant", printed=_printed_ablation, group=lambda cell: cell.label.startswith(_PAPERS)
)
_BEYOND_TABLES = partial(metric_tables, label="variant", group=lambda cell: cell.at["epoch"])

MAIN = Item("main", _main_cells, _main_tables, _main_claims, _main_figures)
BACKBONES = Item("backbones", _backbone_cells, _BACKBONE_TABLES, _backbone_claims)
ABLATION = Item("ablation", _ablation_cells, _ABLATION_TABLES, _ablation_claims)
BEYOND = Item("beyond", _beyond_cells, _BEYOND_TABLES)
