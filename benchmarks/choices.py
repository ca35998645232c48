"""What each default buys: momentum of the fair steps, calibration by isotonic regression, selection over a window.

Differences between two settings are paired: the same splits, the same seeds.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data

from benchmarks.result import Cell, Result, Table
from fairpass.datasets import is_available, load
from fairpass.methods import GMMD, Logistic
from fairpass.runs import fit_all

METRICS = ("AUC", "F1", "ACC", "DP", "EO")
Floats = NDArray[np.float64]


def run(quick: bool) -> Result:
    splits = range(2 if quick else 10)
    graphs = [name for name in ("german", "nba", "reed98", "adult") if is_available(name)][: 1 if quick else None]
    tables = [_momentum(quick), _calibration(range(2 if quick else 5)), _window(graphs, splits)]
    return Result("choices", tables)


def _momentum(quick: bool) -> Table:
    name = "bail" if is_available("bail") and not quick else "adult"
    data, rows = load(name), []
    for steps, momentum in ((0, False), (4, False), (4, True), (12, False), (12, True)):
        model = _gmmd("linear", fair_steps=steps, momentum=momentum, epochs=20 if quick else 200, learning_rate=0.1)
        model.fit(data)
        row: dict[str, Cell] = {"data": name, "fair steps": steps, "momentum": "yes" if momentum else "no"}
        rows.append(row | dict(model.evaluate(data).percent()))
    return Table("Momentum: linear encoder, seed 0, test nodes", rows)


def _gmmd(encoder: Any, *, seed: int = 0, window: int = 10, epochs: int = 300, **options: Any) -> GMMD:
    learning_rate = options.pop("learning_rate", GMMD.default_training().learning_rate)
    training = GMMD.default_training().but(
        epochs=epochs,
        seed=seed,
        window=window,
        learning_rate=learning_rate,
        threshold="accuracy",
        track_discrepancy=False,
    )
    return GMMD(encoder=encoder, lambda_s=0.0, training=training, **options)


def _calibration(splits: Sequence[int]) -> Table:
    """How far off is the true positive rate of a group, estimated on validation, from that of all nodes?"""
    ways: Mapping[str, Callable[[Floats, Floats], Callable[[Floats], Floats]]] = {
        "sigmoid": _sigmoid,
        "isotonic regression": _isotonic,
    }
    rows: list[dict[str, Cell]] = []
    for name in (n for n in ("adult", "income") if is_available(n)):
        errors: dict[tuple[str, int], list[float]] = {}
        for split in splits:
            data = load(name, split_seed=split)
            model = Logistic(training=Logistic.default_training().but(threshold="accuracy")).fit(data)
            probability = model.predict_proba(data)[:, 1].double().numpy().clip(1e-9, 1 - 1e-9)
            decided = probability > (model.threshold_ or 0.5)
            for group in (0, 1):
                for way, error in _errors(data, np.log(probability / (1 - probability)), decided, group, ways).items():
                    errors.setdefault((way, group), []).append(error)
        for (way, group), found in errors.items():
            rms = statistics.fmean(error**2 for error in found) ** 0.5
            rows.append({"data": name, "group": group, "estimate": way, "root mean squared error": rms})
    return Table("True positive rate of a logistic regression, estimated on validation, points", rows)


def _errors(
    data: Data,
    score: Floats,
    decided: NDArray[np.bool_],
    group: int,
    ways: Mapping[str, Callable[[Floats, Floats], Callable[[Floats], Floats]]],
) -> dict[str, float]:
    y, members = data.y.numpy() == 1, data.sens.numpy() == group
    held_out = data.val_mask.numpy() & members
    true = decided[members & y].mean()
    found = {"counted on validation positives": decided[held_out & y].mean()}
    for way, fit in ways.items():
        weight = fit(score[held_out], y[held_out])(score[members])
        found[way] = (weight * decided[members]).sum() / weight.sum()
    return {way: 100 * float(rate - true) for way, rate in found.items()}


def _sigmoid(score: Floats, y: Floats) -> Callable[[Floats], Floats]:
    fitted = LogisticRegression(C=1e6).fit(score[:, None], y)
    return lambda at: fitted.predict_proba(at[:, None])[:, 1]


def _isotonic(score: Floats, y: Floats) -> Callable[[Floats], Floats]:
    fitted = IsotonicRegression(out_of_bounds="clip").fit(score, y)
    return lambda at: np.asarray(fitted.predict(at))


def _window(graphs: Sequence[str], splits: Sequence[int]) -> Table:
    """Does averaging the validation criterion over ten epochs choose epochs that are better on test nodes?"""
    rows: list[dict[str, Cell]] = []
    for name in graphs:
        encoder = "gcn" if name in ("nba", "reed98") else "mlp"
        gains = []
        for split in splits:
            data = load(name, split_seed=split)
            pair = [_gmmd(encoder, seed=split, window=window) for window in (1, 10)]
            fit_all(pair, data)
            momentary, averaged = (model.evaluate(data).percent() for model in pair)
            gains.append({metric: averaged[metric] - momentary[metric] for metric in METRICS})
        row: dict[str, Cell] = {"data": name, "encoder": encoder, "splits": len(splits)}
        for metric in METRICS:
            row[metric] = _interval([gain[metric] for gain in gains])
        row["AUC + F1 + ACC - DP - EO"] = _interval(
            [gain["AUC"] + gain["F1"] + gain["ACC"] - gain["DP"] - gain["EO"] for gain in gains]
        )
        rows.append(row)
    return Table("Window of 10 epochs against 1: difference on test nodes (95 % interval over splits), points", rows)


def _interval(values: Sequence[float]) -> str:
    half = float(stats.t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5
    return f"{statistics.fmean(values):+.2f} ± {half:.2f}"
