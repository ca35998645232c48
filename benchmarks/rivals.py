"""GMMD beside what a user would really take instead, on seven graphs: five runs each, settings chosen on validation.

Bail and Credit have the published split and five seeds. The other graphs have one split for each seed. Epoch,
threshold and, where a method has several candidates, its settings are chosen on validation, by the same rule for all.
Every run is a record in `results/rivals`: an interrupted call continues where it stopped.
"""

import math
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.result import Cell as Number
from benchmarks.result import Result, Table
from fairpass.datasets import is_available, load
from fairpass.experiments import Cell, CellResult
from fairpass.methods import GMMD
from fairpass.runs import Configuration, Progress, RunStore, executor_for
from fairpass.runs import run as make_runs

RECORDS = Path(__file__).parent / "results" / "rivals"
METRICS = ("AUC", "F1", "ACC", "DP", "EO")
PUBLISHED = ("bail", "credit")
SOCIAL = ("reed98", "amherst41", "johns-hopkins55")
CENSUS = ("adult", "income")
GRAPHS = (*PUBLISHED, *SOCIAL, *CENSUS)

# The same for every method: the threshold that is most accurate on validation, no momentary dip of the differences.
_CHOICE = {"threshold": "accuracy", "window": 10, "track_discrepancy": False}
_RECIPE = ("epochs", "patience", "learning_rate", "weight_decay")
_PLAIN = ("constant", "logistic", "mlp", "gcn", "sage")
_RIVALS = ("thresholds", "exponentiated-gradient")
_OTHERS = ("fmp", "mmd", "fairgnn", "gin", "nifty", "edits", "gat", "fairvgnn")
# Few epochs, because each of them takes many passes.
_FAIRVGNN_EPOCHS = 40


def run(quick: bool) -> Result:
    graphs = [name for name in (GRAPHS[-2:-1] if quick else GRAPHS) if is_available(name)]
    store = RunStore(RECORDS)
    cells = {name: _cells(name, quick) for name in graphs}
    jobs = int(os.environ.get("FAIRPASS_JOBS", "2"))
    specs = [spec for found in cells.values() for cell in found for spec in cell.specs()]
    # What every graph has comes first, the methods that only two graphs have last, the slowest at the end.
    common = (*_PLAIN, *_RIVALS, "gmmd")
    for methods in (common, *((name,) for name in _OTHERS)):
        some = [spec for spec in specs if spec.configuration.method in methods]
        make_runs(some, store, executor=executor_for(jobs), progress=_tell)
    store.pack([spec.key for spec in specs], RECORDS / "all.jsonl")
    return Result("rivals", [_table(name, found, store) for name, found in cells.items()])


def _tell(progress: Progress) -> None:
    left = progress.seconds / progress.done * (progress.total - progress.done) / 60
    print(f"{progress.done} of {progress.total} runs, {progress.what}; about {left:.0f} min left", flush=True)


def _cells(graph: str, quick: bool) -> list[Cell]:
    methods = [*_PLAIN, *_RIVALS]
    if graph in CENSUS and not quick:
        methods += _OTHERS
    rows = {name: _candidates(name) for name in methods}
    rows |= {
        "gmmd, auto": [_gmmd(encoder="auto")],
        "gmmd, tuned": [_gmmd(encoder="auto"), *(_gmmd(encoder=e, fair_steps=8) for e in ("linear", "mlp", "gcn"))],
    }
    if graph in CENSUS:
        for encoder in ("linear", "mlp"):
            rows[f"gmmd {encoder}, plain"] = [_gmmd(encoder=encoder, fair_steps=0)]
            rows[f"gmmd {encoder}, dp"] = [_gmmd(encoder=encoder, fair_steps=8)]
            rows[f"gmmd {encoder}, eo"] = [_gmmd(encoder=encoder, fair_steps=8, criterion="eo")]
    seeds = tuple(range(2 if quick else 5))
    return [Cell(graph, label, tuple(c), seeds, resplit=graph not in PUBLISHED) for label, c in rows.items()]


def _candidates(name: str) -> list[Configuration]:
    if name in (*_RIVALS, "constant", "logistic"):
        return [Configuration(name, {}, _CHOICE, "standard")]
    epochs = _FAIRVGNN_EPOCHS if name == "fairvgnn" else 200
    usual = Configuration(name, {}, {**_CHOICE, "epochs": epochs}, "standard")
    if name not in ("mlp", "gcn", "sage"):
        return [usual]
    # The plain networks may also train as GMMD does.
    recipe = {k: v for k, v in GMMD.default_training().to_dict().items() if k in _RECIPE}
    return [usual, usual.but(training=recipe, dropout=0.0)]


def _gmmd(**parameters: object) -> Configuration:
    if parameters["encoder"] != "auto":
        parameters["lambda_s"] = 0.0
    return Configuration("gmmd", parameters, _CHOICE, "standard")


def _table(graph: str, cells: Sequence[Cell], store: RunStore) -> Table:
    rows: list[dict[str, Number]] = []
    for cell in cells:
        chosen = CellResult.of(cell, store)
        if chosen is not None:
            rows.append({"method": cell.label, **_numbers(chosen), "chosen": _words(cell, chosen)})
    title = f"{graph}: test nodes, mean over {len(cell.seeds)} runs (± half of a 95 % interval), percent"
    return Table(f"{title}. {_by_chance(graph, cells, store)}", rows)


def _by_chance(graph: str, cells: Sequence[Cell], store: RunStore) -> str:
    """Return the DP that an unbiased predictor has by chance on this number of test nodes."""
    found = [record for cell in cells if cell.label == "gcn" for record in map(store.get, cell.specs()) if record]
    rate = statistics.mean(record["test"]["positive_rate"] for record in found) / 100
    data = load(graph) if graph in PUBLISHED else load(graph, split_seed=0)
    sizes = data.sens[data.test_mask].bincount().tolist()
    # The mean absolute value of a normal variable with the variance of the difference between two shares.
    variance = rate * (1 - rate) * sum(1 / size for size in sizes)
    chance = 100 * (2 / math.pi * variance) ** 0.5
    return f"A predictor without any bias that selects as many as the GCN has a DP of {chance:.1f} by chance"


def _numbers(chosen: CellResult) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for metric in METRICS:
        values = chosen.values(metric)
        # Student's t for the few runs there are.
        half = {2: 12.71, 5: 2.776}[len(values)] * statistics.stdev(values) / len(values) ** 0.5
        found[metric] = f"{statistics.mean(values):.1f} ± {half:.1f}"
    found["seconds"] = statistics.mean(record["seconds"] for record in chosen.records)
    return found


def _words(cell: Cell, chosen: CellResult) -> str:
    words = [
        f"{k} {v}" for k, v in chosen.configuration.parameters.items() if len(cell.candidates) > 1 and k != "lambda_s"
    ]
    return ", ".join([*words, *(["near constant"] if chosen.is_near_constant else [])])
