"""Variants of the methods: other backbones, parts left out, and what each of our changes does."""

from collections.abc import Iterator
from itertools import product

from fairpass.experiments import paper
from fairpass.experiments.cells import Cell, average_ranks
from fairpass.experiments.item import CLOSE, Claim, Item, ItemResults, NotMeasured, Rows, balance, claim, versus
from fairpass.experiments.items.main import most_cells
from fairpass.experiments.metric_tables import metric_tables
from fairpass.experiments.settings import (
    DATASETS,
    GMMDS,
    PARTS_EPOCHS,
    SAMPLES,
    SWEEP_SEEDS,
    baseline,
    ours,
    papers,
    plain,
    recommended,
    scaled,
)
from fairpass.experiments.tables import Table
from fairpass.nn.convolution import Backbone

_OTHER_BACKBONES: tuple[Backbone, ...] = ("gin", "gat")
_PAPERS = "paper's, "
_PARTS = ("full", "w/o smooth", "w/o fair", "w/o both")


def _backbone_cells() -> list[Cell]:
    cells = []
    for d, backbone in product(DATASETS, _OTHER_BACKBONES):
        # Attention along every edge for ten masks at once takes seconds per epoch on the large graphs.
        is_slow = backbone == "gat" and d != "german"
        seeds = (0,) if is_slow else (0, 1, 2, 3, 4) if d == "german" else (0, 1)
        fair = baseline("fairvgnn", d, backbone)[0]
        methods = {
            "vanilla": plain(d, backbone)[0].but(training={"epochs": 100}),
            "FairVGNN": fair.but(training={"epochs": 10}) if is_slow else fair,
            **{label: recommended(name, d, backbone)[0] for label, name in GMMDS.items()},
        }
        at = {"backbone": backbone.upper()}
        cells += [Cell(d, label, scaled(d, c), seeds, at) for label, c in methods.items()]
    return cells


def _backbone_tables(found: ItemResults) -> list[Table]:
    return metric_tables(
        found,
        ("backbone", "method"),
        printed=lambda cell: paper.BACKBONES[cell.dataset][cell.at["backbone"]].get(cell.label),
        group=lambda cell: cell.at["backbone"],
    )


def _backbone_claims(found: ItemResults) -> Iterator[Claim]:
    backbones = [backbone.upper() for backbone in _OTHER_BACKBONES]
    yield claim(
        "On GIN and GAT, GMMD and GMMD-S are better than FairVGNN in most cells.",
        lambda rows: most_cells((rows[name], rows["FairVGNN"]) for name in paper.OURS if name in rows),
        {
            f"{title}, {backbone}": found.rows(dataset, backbone=backbone)
            for title, dataset in found.titled().items()
            for backbone in backbones
        },
    )


def _ablation_cells() -> list[Cell]:
    cells = []
    for d in DATASETS:
        full, sampled = ours("gmmd", d), papers("gmmd", d)[0]
        variants = {
            "full": full,
            "w/o smooth": full.but(lambda_s=0.0),
            "w/o fair": full.but(fair_steps=0),
            "w/o both": full.but(lambda_s=0.0, fair_steps=0),
            "sampled": full.but(sample=SAMPLES[d]),
            f"{_PAPERS}full": sampled,
            f"{_PAPERS}w/o smooth": sampled.but(lambda_s=0.0),
            f"{_PAPERS}w/o fair": sampled.but(lambda_f=0.0),
            f"{_PAPERS}w/o both": sampled.but(lambda_s=0.0, lambda_f=0.0),
            f"{_PAPERS}w/o sample": sampled.but(sample=None),
        }
        training = {"epochs": PARTS_EPOCHS[d]}
        cells += [Cell(d, label, (c.but(training=training),), SWEEP_SEEDS[d]) for label, c in variants.items()]
    return cells


def _printed_ablation(cell: Cell) -> paper.PrintedRow | None:
    # Our full model uses all nodes, which the paper calls w/o sample; its full model is our sampled one.
    names = {"full": "w/o sample", "sampled": "GMMD", f"{_PAPERS}full": "GMMD"}
    name = names.get(cell.label, cell.label.removeprefix(_PAPERS))
    return paper.ABLATION.get(cell.dataset, {}).get(name)


def _ablation_tables(found: ItemResults) -> list[Table]:
    return metric_tables(
        found, ("variant",), printed=_printed_ablation, group=lambda cell: cell.label.startswith(_PAPERS)
    )


def _ablation_claims(found: ItemResults) -> Iterator[Claim]:
    tables = {}
    for title, dataset in found.titled().items():
        rows = found.rows(dataset)
        tables[f"{title}, recommended"] = Rows({k: row for k, row in rows.items() if not k.startswith(_PAPERS)})
        theirs = {k.removeprefix(_PAPERS): row for k, row in rows.items() if k.startswith(_PAPERS)}
        tables[f"{title}, paper's"] = Rows(theirs)
    for text, check in {
        "Smoothing alone (w/o fair) is as useful as the full model, and more biased.": _smoothing,
        "Fairness alone (w/o smooth) is less biased than smoothing alone, and less useful than the full model.": (
            _fairness
        ),
        "The full model has the best average rank among those with parts left out.": _full,
        "Sampling nodes is comparable with using all of them.": _sampling,
    }.items():
        yield claim(text, check, tables)


def _smoothing(rows: Rows) -> tuple[bool, str]:
    full, alone = rows["full"], rows["w/o fair"]
    return alone["utility"] >= full["utility"] - CLOSE and alone["bias"] > full["bias"], versus(alone, full)


def _fairness(rows: Rows) -> tuple[bool, str]:
    full, smoothing, alone = rows["full"], rows["w/o fair"], rows["w/o smooth"]
    holds = alone["bias"] < smoothing["bias"] and alone["utility"] < full["utility"]
    return holds, f"{balance(alone)}; bias w/o fair {smoothing['bias']:.1f}, full utility {full['utility']:.1f}"


def _full(rows: Rows) -> tuple[bool, str]:
    ranks = average_ranks([{label: row for label, row in rows.items() if label in _PARTS}])
    if "full" not in ranks or len(ranks) < 2:
        raise NotMeasured
    return ranks["full"] == min(ranks.values()), ", ".join(f"{label} {rank:.1f}" for label, rank in ranks.items())


def _sampling(rows: Rows) -> tuple[bool, str]:
    sampled, everything = ("sampled", "full") if "sampled" in rows else ("full", "w/o sample")
    few, all_ = rows[sampled], rows[everything]
    return all(abs(few[name] - all_[name]) <= CLOSE for name in ("utility", "bias")), versus(few, all_)


def _beyond_cells() -> list[Cell]:
    cells = []
    for d in DATASETS:
        recommendation, theirs = ours("gmmd", d), papers("gmmd", d)[0]
        variants = {
            "recommended": recommendation,
            "sampled": recommendation.but(sample=SAMPLES[d]),
            "paper's step": recommendation.but(step="paper"),
            "fixed bandwidth": recommendation.but(bandwidth="fixed"),
            "the paper's": theirs,
            "the paper's, all nodes": theirs.but(sample=None),
        }
        for (epoch, select), (label, c) in product((("selected", "validation"), ("last", "last")), variants.items()):
            # At the last epoch nothing was chosen on validation, so the threshold is not, either.
            training = {"select": select, "threshold": 0.5, "epochs": PARTS_EPOCHS[d]}
            cells.append(Cell(d, label, (c.but(training=training),), SWEEP_SEEDS[d], {"epoch": epoch}))
    return cells


def _beyond_tables(found: ItemResults) -> list[Table]:
    return metric_tables(found, ("epoch", "variant"), group=lambda cell: cell.at["epoch"])


BACKBONES = Item("backbones", _backbone_cells, _backbone_tables, _backbone_claims)
ABLATION = Item("ablation", _ablation_cells, _ablation_tables, _ablation_claims)
BEYOND = Item("beyond", _beyond_cells, _beyond_tables)
