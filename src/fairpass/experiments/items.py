"""The paper's tables and figures, and ours, each as the cells it consists of.

What an item shows is a function of the records of its cells' runs; this is all that says what to run. A quick run has
two seeds, few epochs and one candidate for each cell.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from fairpass.experiments import settings
from fairpass.experiments.runner import TIMING
from fairpass.experiments.settings import DATASETS, baseline, constant, paper, plain, recommended
from fairpass.experiments.spec import Cell, Configuration
from fairpass.nn.convolution import Backbone

METHODS = ("gmmd", "gmmd-s")
LABELS = {"gmmd": "GMMD", "gmmd-s": "GMMD-S"}
BASELINES = {
    "nifty": "NIFTY",
    "edits": "EDITS",
    "fairgnn": "FairGNN",
    "fairvgnn": "FairVGNN",
    "fmp": "FMP",
    "mmd": "MMD",
}
FIVE, THREE, TWO, ONE = (0, 1, 2, 3, 4), (0, 1, 2), (0, 1), (0,)
# A sweep over many configurations has fewer seeds on the large graphs.
SWEEP_SEEDS = {"german": FIVE, "credit": THREE, "bail": THREE}
SWEEP_EPOCHS = {"german": 200, "credit": 40, "bail": 40}
# What leaves parts out is compared at more epochs.
PARTS_EPOCHS = {"german": 200, "credit": 80, "bail": 80}

QUICK_EPOCHS, QUICK_POINTS = 20, 3
# What some methods do before their first epoch.
QUICK_PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "fairgnn": {"estimator_epochs": 40},
    "edits": {"debias_epochs": 10},
}

_OTHER_BACKBONES: tuple[Backbone, ...] = ("gin", "gat")


def _ours(name: str, dataset: str, **changes: Any) -> Configuration:
    """Return what we recommend, with one thing changed: the first candidate, for sweeps."""
    return recommended(name, dataset)[0].but(**changes)


def _sweep(name: str, dataset: str, **changes: Any) -> Configuration:
    return _ours(name, dataset, **changes).but(training={"epochs": SWEEP_EPOCHS[dataset]})


def stats() -> list[Cell]:
    """Return the data sets' statistics."""
    return [Cell(d, d, constant(), ONE, measures=("statistics",)) for d in DATASETS]


def main() -> list[Cell]:
    """Return the main table: every method on every data set."""
    cells = []
    for d in DATASETS:
        cells += [Cell(d, "constant", constant(), ONE), Cell(d, "GCN", plain(d))]
        cells += [Cell(d, label, baseline(name, d)) for name, label in BASELINES.items()]
        cells += [Cell(d, f"{LABELS[name]} (paper's)", paper(name, d)) for name in METHODS]
        cells.append(Cell(d, "smoothing (paper's)", paper("gmmd", d, lambda_f=(0.0,))))
        cells += [Cell(d, LABELS[name], recommended(name, d)) for name in METHODS]
    return cells


def backbones() -> list[Cell]:
    """Return the methods on the other two backbones."""
    cells = []
    for d, backbone in product(DATASETS, _OTHER_BACKBONES):
        at = {"backbone": backbone.upper()}
        # Attention along every edge for ten masks at once takes seconds an epoch on the large graphs.
        is_slow = backbone == "gat" and d != "german"
        vanilla = plain(d, backbone)[0].but(training={"epochs": 100})
        fair = baseline("fairvgnn", d, backbone)[0]
        fair = fair.but(training={"epochs": 10}) if is_slow else fair
        seeds = ONE if is_slow else FIVE if d == "german" else TWO
        methods = {"vanilla": vanilla, "FairVGNN": fair}
        methods |= {LABELS[name]: recommended(name, d, backbone)[0] for name in METHODS}
        cells += [Cell(d, label, settings.scaled(d, c), seeds, at) for label, c in methods.items()]
    return cells


def ablation() -> list[Cell]:
    """Return GMMD with parts left out, as we recommend it and as the paper defines it."""
    cells = []
    for d in DATASETS:
        full, sampled = _ours("gmmd", d), paper("gmmd", d)[0]
        variants: Mapping[str, Configuration] = {
            "full": full,
            "w/o smooth": full.but(lambda_s=0.0),
            "w/o fair": full.but(fair_steps=0),
            "w/o both": full.but(lambda_s=0.0, fair_steps=0),
            "sampled": full.but(sample=settings.SAMPLES[d]),
            "paper's, full": sampled,
            "paper's, w/o smooth": sampled.but(lambda_s=0.0),
            "paper's, w/o fair": sampled.but(lambda_f=0.0),
            "paper's, w/o both": sampled.but(lambda_s=0.0, lambda_f=0.0),
            "paper's, w/o sample": sampled.but(sample=None),
        }
        cells += [
            Cell(d, label, (c.but(training={"epochs": PARTS_EPOCHS[d]}),), SWEEP_SEEDS[d])
            for label, c in variants.items()
        ]
    return cells


def hyper() -> list[Cell]:
    """Return GMMD over a grid of the weights of smoothness and fairness."""
    return [
        Cell(
            d,
            "GMMD",
            (_sweep("gmmd", d, lambda_s=lambda_s, weight=weight),),
            SWEEP_SEEDS[d],
            {"lambda_s": lambda_s, "weight": weight},
        )
        for d in DATASETS
        for lambda_s, weight in product((0.0, 0.1, 0.5, 1.0, 2.0), (0.0, 0.1, 1.0, 10.0, 100.0))
    ]


def layers() -> list[Cell]:
    """Return both methods with one to eight layers of message passing."""
    return _along("K", tuple(range(1, 9)))


def alpha() -> list[Cell]:
    """Return both methods with kernels of different widths."""
    return _along("alpha", (0.03, 0.1, 0.3, 0.7, 1.0, 3.0, 10.0))


def mlp() -> list[Cell]:
    """Return both methods with perceptrons of different depth."""
    return _along("num_layers", (1, 2, 4, 6))


def _along(parameter: str, values: tuple[Any, ...]) -> list[Cell]:
    return [
        Cell(d, LABELS[name], (_sweep(name, d, **{parameter: value}),), SWEEP_SEEDS[d], {parameter: value})
        for d in DATASETS
        for name in METHODS
        for value in values
    ]


_LOOKED_AT = ("curves", "theorems", "cases")


def theory() -> list[Cell]:
    """Return the training curves of a plain and a fair method, and the theorems' bounds."""
    return cases()


def cases() -> list[Cell]:
    """Return how similar a plain and the fair methods find nodes of different groups."""
    cells = []
    for d in DATASETS:
        methods = {"GCN": plain(d)[0], **{LABELS[name]: _ours(name, d) for name in METHODS}}
        for label, c in methods.items():
            # Scaled features and a fixed threshold: one that is chosen at every epoch hides how a model learns.
            shown = c.but(scale="minmax", training={"threshold": 0.5})
            cells.append(Cell(d, label, (shown,), ONE, measures=_LOOKED_AT))
    return cells


def runtime() -> list[Cell]:
    """Return every method once more, alone on the machine."""
    cells = []
    for d in DATASETS:
        methods = {
            "GCN": plain(d)[0],
            **{label: baseline(name, d)[0] for name, label in BASELINES.items()},
            **{f"{LABELS[name]} (paper's)": paper(name, d)[0] for name in METHODS},
            **{LABELS[name]: _ours(name, d) for name in METHODS},
        }
        # Without what is only recorded for the history.
        training = {"track_discrepancy": False}
        cells += [Cell(d, label, (c.but(training=training),), ONE, measures=(TIMING,)) for label, c in methods.items()]
    return cells


_FAIRNESS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "GMMD": tuple({"fair_steps": j} for j in (0, 1, 4, 12)),
    "GMMD-S": tuple({"fair_steps": j} for j in (1, 4, 12)),
    "NIFTY": tuple({"similarity": v} for v in (0.2, 0.5, 0.8)),
    "FairGNN": tuple({"alpha": a, "beta": b} for a, b in ((1.0, 0.01), (10.0, 0.1), (50.0, 1.0))),
    "FairVGNN": tuple({"ratio": r, "clip": c} for r, c in ((0.0, 0.1), (1.0, 0.1), (1.0, 1.0))),
    "EDITS": tuple({"tau": t} for t in (0.01, 0.05, 0.3)),
    "FMP": tuple({"lambda_f": f} for f in (1.0, 10.0, 100.0)),
    "MMD": tuple({"weight": w} for w in (0.1, 1.0, 10.0, 100.0)),
}


def pareto() -> list[Cell]:
    """Return every method with fairness weighed little to much; GCN for comparison."""
    cells = []
    for d in DATASETS:
        start = {
            **{label: baseline(name, d)[0] for name, label in BASELINES.items()},
            **{LABELS[name]: _ours(name, d, training={"epochs": PARTS_EPOCHS[d]}) for name in METHODS},
        }
        seeds = TWO if d == "german" else ONE
        cells.append(Cell(d, "GCN", plain(d)[:1], seeds))
        for label, steps in _FAIRNESS.items():
            for number, changes in enumerate(steps):
                # Scores, not a threshold that hides what the method did.
                c = start[label].but(training={"threshold": "accuracy"}, **changes)
                cells.append(Cell(d, label, (c,), seeds, {"step": number, **changes}))
    return cells


def beyond() -> list[Cell]:
    """Return what each of our changes to the paper's method does, at the selected epoch and at the last."""
    cells = []
    for d in DATASETS:
        ours, theirs = _ours("gmmd", d), paper("gmmd", d)[0]
        variants = {
            "recommended": ours,
            "sampled": ours.but(sample=settings.SAMPLES[d]),
            "paper's step": ours.but(step="paper"),
            "fixed bandwidth": ours.but(bandwidth="fixed"),
            "the paper's": theirs,
            "the paper's, all nodes": theirs.but(sample=None),
        }
        for (label, c), select in product(variants.items(), ("validation", "last")):
            # At the last epoch nothing was chosen on validation, so the threshold is not, either.
            chosen = {"select": select, "threshold": 0.5, "epochs": PARTS_EPOCHS[d]}
            cells.append(Cell(d, label, (c.but(training=chosen),), SWEEP_SEEDS[d], {"epoch": select}))
    return cells


ITEMS: Mapping[str, Callable[[], list[Cell]]] = {
    "stats": stats,
    "main": main,
    "backbones": backbones,
    "ablation": ablation,
    "hyper": hyper,
    "layers": layers,
    "theory": theory,
    "alpha": alpha,
    "mlp": mlp,
    "cases": cases,
    "runtime": runtime,
    "pareto": pareto,
    "beyond": beyond,
}


def cells_of(item: str, *, quick: bool = False) -> list[Cell]:
    """Return the cells of an item.

    Args:
        item: its name, one of `ITEMS`.
        quick: two seeds, few epochs, the first candidate, and no more than three points along an axis.
    """
    if item not in ITEMS:
        raise ValueError(f"'item' must be one of {', '.join(ITEMS)} (got {item!r})")
    cells = ITEMS[item]()
    return _quick(cells) if quick else cells


def _quick(cells: list[Cell]) -> list[Cell]:
    kept: dict[str, list[Any]] = {}
    for cell in cells:
        for name, value in cell.at.items():
            kept.setdefault(name, [])
            if value not in kept[name]:
                kept[name].append(value)
    # Evenly over an axis of numbers, ends included.
    for name, values in kept.items():
        if len(values) > QUICK_POINTS and not isinstance(values[0], str):
            last = len(values) - 1
            kept[name] = [values[round(i * last / (QUICK_POINTS - 1))] for i in range(QUICK_POINTS)]
    return [
        replace(cell, candidates=(_short(cell.candidates[0]),), seeds=cell.seeds[:2])
        for cell in cells
        if all(value in kept[name] for name, value in cell.at.items())
    ]


def _short(configuration: Configuration) -> Configuration:
    if configuration.method == "constant":
        return configuration
    epochs = configuration.classifier(0).training.epochs
    quick = QUICK_PARAMETERS.get(configuration.method, {})
    return configuration.but(training={"epochs": min(epochs, QUICK_EPOCHS)}, **quick)
