"""People who come after the fit: how long one of them takes, and what is lost if their group is not known."""

import statistics
import time

import torch
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data

from benchmarks.result import Cell, Result, Table
from fairpass.datasets import is_available, load, synthetic
from fairpass.methods import GMMD, NodeClassifier
from fairpass.metrics import evaluate
from fairpass.runs import fit_all
from fairpass.training import Task

GRAPHS = ("german", "credit", "bail", "adult")


def run(quick: bool) -> Result:
    return Result("people", [_one_person(quick), _unknown_groups(quick)])


def _one_person(quick: bool) -> Table:
    rows: list[dict[str, Cell]] = []
    for nodes in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
        data = synthetic(nodes, avg_degree=20, seed=0)
        model = GMMD(training=GMMD.default_training().but(epochs=5)).fit(data)
        person = Data(x=data.x[:1], sens=data.sens[:1], edge_index=torch.empty(2, 0, dtype=torch.long))
        model.predict(person)
        taken = []
        for _ in range(200):
            start = time.perf_counter()
            model.predict(person)
            taken.append(1000 * (time.perf_counter() - start))
        row: dict[str, Cell] = {"fitted nodes": nodes, "median, ms": statistics.median(taken)}
        rows.append(row | {"95 % within, ms": statistics.quantiles(taken, n=20)[-1]})
    return Table("Prediction of one person without edges, model in memory, 200 calls", rows)


def _unknown_groups(quick: bool) -> Table:
    rows: list[dict[str, Cell]] = []
    for name in [name for name in GRAPHS if is_available(name)][: 1 if quick else None]:
        splits = [load(name, split_seed=seed, keep_sensitive=False) for seed in range(1 if quick else 5)]
        found: dict[str, list[dict[str, float]]] = {}
        aucs = []
        for seed, data in enumerate(splits):
            training = GMMD.default_training().but(seed=seed, threshold="accuracy", track_discrepancy=False)
            fair, plain = GMMD(training=training), GMMD(fair_steps=0, training=training)
            errors = [error for error in fit_all([fair, plain], data) if error]
            if errors:
                raise errors[0]
            hidden = data.clone()
            hidden.sens = torch.where(data.test_mask, -1, data.sens)
            aucs.append(_auc_of_estimate(data))
            for way, measured in {
                "no fair steps": _measure(plain, data, data),
                "group known": _measure(fair, data, data),
                "unknown: estimate": _measure(fair, hidden, data, unknown_group="estimate"),
                "unknown: none": _measure(fair, hidden, data, unknown_group="none"),
            }.items():
                found.setdefault(way, []).append(measured)
        for way, each_split in found.items():
            row: dict[str, Cell] = {"data": name, "test nodes": way, "AUC of the estimate": statistics.mean(aucs)}
            rows.append(row | {key: statistics.mean(each[key] for each in each_split) for key in each_split[0]})
    return Table("The test nodes' group unknown at prediction, not a feature; mean of five splits, percent", rows)


def _measure(model: NodeClassifier, shown: Data, data: Data, **scoring: str) -> dict[str, float]:
    """Return the metrics on the test nodes by their true groups, of predictions on a graph that may hide them."""
    test = data.test_mask & (data.y >= 0) & (data.sens >= 0)
    scores = model.predict_proba(shown, **scoring)[test, 1]  # type: ignore[arg-type] # their names are the choices
    threshold = 0.5 if model.threshold_ is None else model.threshold_
    return dict(evaluate(data.y[test], scores, sens=data.sens[test], threshold=threshold).percent())


def _auc_of_estimate(data: Data) -> float:
    """Return how well the groups of the test nodes are told from their features, by an estimate that never saw them."""
    seen = data.clone()
    seen.sens = torch.where(data.test_mask, -1, data.sens)
    probabilities = Task(seen).group_estimator(data.x)
    test = data.test_mask & (data.sens >= 0)
    return 100 * float(roc_auc_score(data.sens[test].numpy(), probabilities[test, 1].numpy()))
