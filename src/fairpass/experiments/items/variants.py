"""Variants of the methods: other backbones, parts left out, and what each of our changes does."""

from collections.abc import Iterator
from functools import partial
from itertools import product

from fairpass.experiments import paper, settings
from fairpass.experiments.cells import Cell, average_ranks
from fairpass.experiments.item import CLOSE, Claim, Item, ItemResults, NotMeasured, Rows, claim
from fairpass.experiments.items.main import balance, most_cells, versus
from fairpass.experiments.metric_tables import metric_tables
from fairpass.nn.convolution import Backbone

_OTHER_BACKBONES: tuple[Backbone, ...] = ("gin", "gat")
_PAPERS = "paper's, "


def _backbone_cells() -> list[Cell]:
    cells = []
    for d, backbone in product(settings.DATASETS, _OTHER_BACKBONES):
        # Attention along every edge for ten masks at once takes seconds per epoch on the large graphs.
        is_slow = backbone == "gat" and d != "german"
        seeds = (0,) if is_slow else (0, 1, 2, 3, 4) if d == "german" else (0, 1)
        fair = settings.baseline("fairvgnn", d, backbone)[0]
        methods = {
            "vanilla": settings.plain(d, backbone)[0].but(training={"epochs": 100}),
            "FairVGNN": fair.but(training={"epochs": 10}) if is_slow else fair,
            **{label: settings.recommended(name, d, backbone)[0] for label, name in settings.GMMDS.items()},
        }
        at = {"backbone": backbone.upper()}
        cells += [Cell(d, label, settings.scaled(d, c), seeds, at) for label, c in methods.items()]
    return cells


def _printed_backbone(cell: Cell) -> paper.PrintedRow | None:
    return paper.BACKBONES[cell.dataset][cell.at["backbone"]].get(cell.label)


def _backbone_claims(found: ItemResults) -> Iterator[Claim]:
    tables = {
        f"{title}, {backbone}": found.rows(dataset, backbone=backbone)
        for title, dataset in found.datasets().items()
        for backbone in found.positions("backbone")
    }
    yield claim("backbones", tables, _beats_fairvgnn)


def _beats_fairvgnn(rows: Rows) -> tuple[bool, str]:
    return most_cells((rows[name], rows["FairVGNN"]) for name in paper.OURS if name in rows)


def _ablation_cells() -> list[Cell]:
    cells = []
    for d in settings.DATASETS:
        full, sampled = settings.ours("gmmd", d), settings.papers("gmmd", d)[0]
        variants = {
            "full": full,
            "w/o smooth": full.but(lambda_s=0.0),
            "w/o fair": full.but(fair_steps=0),
            "w/o both": full.but(lambda_s=0.0, fair_steps=0),
            "sampled": full.but(sample=settings.SAMPLES[d]),
            f"{_PAPERS}full": sampled,
            f"{_PAPERS}w/o smooth": sampled.but(lambda_s=0.0),
            f"{_PAPERS}w/o fair": sampled.but(lambda_f=0.0),
            f"{_PAPERS}w/o both": sampled.but(lambda_s=0.0, lambda_f=0.0),
            f"{_PAPERS}w/o sample": sampled.but(sample=None),
        }
        training = {"epochs": settings.PARTS_EPOCHS[d]}
        cells += [Cell(d, label, (c.but(training=training),), settings.SWEEP_SEEDS[d]) for label, c in variants.items()]
    return cells


def _printed_ablation(cell: Cell) -> paper.PrintedRow | None:
    # Our full model uses all nodes, which the paper calls w/o sample; its full model is our sampled one.
    names = {"full": "w/o sample", "sampled": "GMMD", f"{_PAPERS}full": "GMMD"}
    name = names.get(cell.label, cell.label.removeprefix(_PAPERS))
    return paper.ABLATION.get(cell.dataset, {}).get(name)


def _ablation_claims(found: ItemResults) -> Iterator[Claim]:
    tables: dict[str, Rows] = {}
    for title, dataset in found.datasets().items():
        recommended_rows, papers_rows = tables[f"{title}, recommended"], tables[f"{title}, paper's"] = Rows(), Rows()
        for label, row in found.rows(dataset).items():
            rows = papers_rows if label.startswith(_PAPERS) else recommended_rows
            rows[label.removeprefix(_PAPERS)] = row
    yield claim("ablation-smoothing", tables, versus, "w/o fair", "full", lambda u, b: u >= -CLOSE and b > 0)
    yield claim("ablation-fairness", tables, _fairness)
    yield claim("ablation-full", tables, _full)
    yield claim("ablation-sampling", tables, _sampling)


def _fairness(rows: Rows) -> tuple[bool, str]:
    full, smoothing, alone = rows["full"], rows["w/o fair"], rows["w/o smooth"]
    holds = alone["bias"] < smoothing["bias"] and alone["utility"] < full["utility"]
    return holds, f"{balance(alone)}; bias w/o fair {smoothing['bias']:.1f}, full utility {full['utility']:.1f}"


def _full(rows: Rows) -> tuple[bool, str]:
    parts = ("full", "w/o smooth", "w/o fair", "w/o both")
    ranks = average_ranks([{label: row for label, row in rows.items() if label in parts}])
    if "full" not in ranks or len(ranks) < 2:
        raise NotMeasured
    return ranks["full"] == min(ranks.values()), ", ".join(f"{label} {rank:.1f}" for label, rank in ranks.items())


def _sampling(rows: Rows) -> tuple[bool, str]:
    sampled, everything = ("sampled", "full") if "sampled" in rows else ("full", "w/o sample")
    return versus(rows, sampled, everything, lambda utility, bias: max(abs(utility), abs(bias)) <= CLOSE)


def _beyond_cells() -> list[Cell]:
    cells = []
    for d in settings.DATASETS:
        recommendation, theirs = settings.ours("gmmd", d), settings.papers("gmmd", d)[0]
        variants = {
            "recommended": recommendation,
            "sampled": recommendation.but(sample=settings.SAMPLES[d]),
            "paper's step": recommendation.but(step="paper"),
            "fixed bandwidth": recommendation.but(bandwidth="fixed"),
            "the paper's": theirs,
            "the paper's, all nodes": theirs.but(sample=None),
        }
        for (epoch, select), (label, c) in product((("selected", "validation"), ("last", "last")), variants.items()):
            # At the last epoch nothing was chosen on validation, so the threshold is not, either.
            training = {"select": select, "threshold": 0.5, "epochs": settings.PARTS_EPOCHS[d]}
            cells.append(Cell(d, label, (c.but(training=training),), settings.SWEEP_SEEDS[d], {"epoch": epoch}))
    return cells


_BACKBONE_TABLES = partial(metric_tables, printed=_printed_backbone, group=lambda cell: cell.at["backbone"])
_ABLATION_TABLES = partial(
    metric_tables, label="variant", printed=_printed_ablation, group=lambda cell: cell.label.startswith(_PAPERS)
)
_BEYOND_TABLES = partial(metric_tables, label="variant", group=lambda cell: cell.at["epoch"])

BACKBONES = Item("backbones", _backbone_cells, _BACKBONE_TABLES, _backbone_claims)
ABLATION = Item("ablation", _ablation_cells, _ABLATION_TABLES, _ablation_claims)
BEYOND = Item("beyond", _beyond_cells, _BEYOND_TABLES)
