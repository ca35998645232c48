"""How often a limit that was called "shown" is exceeded, and how often it can be shown at all: 100 random splits each.

On Adult, Income, Credit and synthetic graphs each split has 1,000 training nodes, 1,000 for the choice among six
configurations, and 2,000 safety nodes; everybody else is held out, and tells the true difference. On the synthetic
graphs the safety nodes are drawn from the people whose true difference is taken, so it is exact. German and NBA are too
small for that: they only show how often anything can be shown. Every split is kept in `results/promise`: an interrupted
call continues where it stopped.
"""

import copy
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch_geometric.data import Data

from benchmarks.result import Cell, Result, Table
from fairpass.datasets import is_available, load, synthetic
from fairpass.datasets.splits import stratified_split
from fairpass.files import finite, write_text
from fairpass.methods import GMMD, Logistic, NodeClassifier
from fairpass.methods.gmmd import Criterion
from fairpass.metrics.catalog import SELECTION
from fairpass.metrics.evaluation import Evaluation, impact_ratio
from fairpass.metrics.promise import LIMITS, Promise
from fairpass.metrics.two_rates import Tally
from fairpass.projects.delivery import deliver, margins, promise_of
from fairpass.runs import Configuration, fit_all
from fairpass.tuning import Point, candidates, decide

RECORDS = Path(__file__).parent / "results" / "promise"
LARGE = ("adult", "income", "credit", "synthetic")
SMALL = ("german", "nba")
SPLITS = 100
CONFIDENCE = 0.95
_ANSWERS = ("shown", "not shown", "violated")
# Limits at which both answers occur.
ASKED: Mapping[str, Sequence[Mapping[str, float]]] = {
    "adult": [{"max_dp": 0.05}, {"max_dp": 0.08}, {"max_eo": 0.12}, {"min_impact_ratio": 0.8}],
    "income": [{"max_dp": 0.03}, {"max_dp": 0.05}, {"max_eo": 0.15}, {"min_impact_ratio": 0.8}],
    "credit": [{"max_dp": 0.05}, {"max_dp": 0.08}, {"max_eo": 0.06}, {"min_impact_ratio": 0.9}],
    "synthetic": [{"max_dp": 0.05}, {"max_dp": 0.08}, {"max_eo": 0.08}, {"min_impact_ratio": 0.85}],
    "german": [{"max_dp": 0.1}, {"max_dp": 0.2}, {"max_dp": 0.3}, {"min_impact_ratio": 0.6}],
    "nba": [{"max_dp": 0.1}, {"max_dp": 0.2}, {"max_dp": 0.3}, {"min_impact_ratio": 0.6}],
}


def run(quick: bool) -> Result:
    torch.set_num_threads(1)  # beside other programs, two threads are slower
    splits = 4 if quick else SPLITS
    names = [name for name in (*LARGE, *SMALL) if name == "synthetic" or is_available(name)]
    if chosen := os.environ.get("FAIRPASS_GRAPHS"):
        names = [name for name in names if name in chosen.split(",")]
    records = {name: _records(name, splits) for name in names}
    tables = []
    if large := [name for name in LARGE if name in names]:
        title = f"{splits} random splits each: what was promised, and what was true for the people held out"
        rows = [_kept(name, limits, records[name]) for name in large for limits in ASKED[name]]
        tables.append(Table(title, rows))
        title = "The same models and safety nodes, checked in other ways: percent of the splits called shown"
        rows = [_compared(name, limits, records[name]) for name in large for limits in ASKED[name]]
        tables.append(Table(title, rows))
    if small := [name for name in SMALL if name in names]:
        title = f"Small graphs, {splits} random splits each: percent of the splits by answer"
        rows = [_answers(name, limits, records[name]) for name in small for limits in ASKED[name]]
        tables.append(Table(title, rows))
    return Result("promise", tables)


def _records(name: str, splits: int) -> list[dict[str, Any]]:
    path = RECORDS / f"{name}.json"
    made: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    for seed in range(len(made), splits):
        made.append(_split_record(name, seed))
        write_text(path, json.dumps(made))
        print(f"{name}: {len(made)} of {splits} splits", flush=True)
    return made[:splits]


def _split_record(name: str, seed: int) -> dict[str, Any]:
    """Fit all configurations on one split, and keep what they say of the safety nodes and of the people held out."""
    data = _graph(name, seed)
    models = _models(name)
    for error in fit_all(models, data):
        if error is not None:
            raise error
    safety = {part: data[part][data.safety_mask] for part in ("y", "sens")}
    order = np.lexsort((safety["y"].numpy(), safety["sens"].numpy()))
    made = []
    for model in models:
        held_out = model.evaluate(data, "test", undefined="nan")
        true = {kind: _value(held_out, kind) for kind in LIMITS}
        predicted = model.predict(data)[data.safety_mask][order]
        point = _point(model, data)
        made.append({"point": point.to_dict(), "true": finite(true), "safety": "".join(map(str, predicted.tolist()))})
    # The same people in the same order for every model, as counts by group and label.
    cells = [[int(((safety["sens"] == g) & (safety["y"] == y)).sum()) for y in (0, 1)] for g in (0, 1)]
    return {"seed": seed, "cells": cells, "models": made}


def _value(found: Evaluation, kind: str) -> float:
    return impact_ratio(found.groups) if LIMITS[kind].is_ratio else found.metrics[LIMITS[kind].metric]


@cache
def _whole(name: str) -> Data:
    return load(name, scale="standard", keep_sensitive=False)


def _graph(name: str, seed: int) -> Data:
    if name == "synthetic":
        # Where the edges carry information, and the groups differ in their base rates.
        data = synthetic(16_000, seed=seed, label_bias=0.15, feature_signal=1.5)
    else:
        data = copy.copy(_whole(name))
    y, sens = data.y.numpy(), data.sens.numpy()
    known = np.where(sens >= 0, y, -1)
    if name in SMALL:
        split = stratified_split(known, sens, fractions=(0.4, 0.2, 0.2, 0.2), seed=seed)
        masks = {part: mask for part, mask in split.masks().items() if mask is not None}
    else:
        # Not the seed itself: `synthetic` shuffles its nodes with it, and the same numbers would sort them again.
        order = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(known >= 0))
        parts = dict(zip(("train", "val", "safety", "test"), np.split(order, [1000, 2000, 4000]), strict=True))
        masks = {f"{part}_mask": np.isin(np.arange(len(y)), ids) for part, ids in parts.items()}
        if name == "synthetic":
            masks["test_mask"] |= masks["safety_mask"]
    data.update({part: torch.from_numpy(mask) for part, mask in masks.items()})
    return data


def _models(name: str) -> list[NodeClassifier]:
    encoder = "gcn" if name in ("synthetic", "nba") else "linear"
    training = GMMD.default_training().but(epochs=100, window=10, track_discrepancy=False)
    common: dict[str, Any] = {"encoder": encoder, "lambda_s": 0.0, "K": 1, "training": training}
    fair: list[tuple[Criterion, int]] = [("dp", 2), ("dp", 4), ("dp", 12), ("eo", 4), ("eo", 12)]
    made = [GMMD(fair_steps=steps, criterion=criterion, **common) for criterion, steps in fair]
    return [Logistic(), *made]


def _point(model: NodeClassifier, data: Data) -> Point:
    found = model.evaluate(data, "val", undefined="nan")
    metrics = {metric.label: found.metrics[metric.key] for metric in SELECTION} | {"IR": impact_ratio(found.groups)}
    kept = {name: value for name, value in metrics.items() if not math.isnan(value)}
    configuration = Configuration.of(model)
    return Point(
        configuration.method,
        configuration.parameters,
        configuration.training,
        validation=kept,
        near_constant=found.near_constant,
    )


def _outcome(promise: Promise, model: NodeClassifier, data: Data, kind: str) -> dict[str, Any]:
    (check,) = promise.checks
    return {
        "verdict": promise.verdict,
        "estimate": check.estimate,
        "bound": check.bound,
        "counts": [(count.selected, count.people) for count in check.counts],
        "true": _true(model, data, kind),
    }


def _true(model: NodeClassifier, data: Data, kind: str) -> float:
    """Return the difference, or the ratio, on the people held out."""
    found = model.evaluate(data, "test", undefined="nan")
    return impact_ratio(found.groups) if LIMITS[kind].is_ratio else found.metrics[LIMITS[kind].metric]


@dataclass(frozen=True)
class _Verdicts:
    """Answers, and what was true, over the splits."""

    shown: list[bool]
    beyond: list[bool]

    @property
    def false(self) -> int:
        """How often "shown" was wrong."""
        return sum(shown and beyond for shown, beyond in zip(self.shown, self.beyond, strict=True))


def _beyond(value: float, limits: Mapping[str, float]) -> bool:
    ((kind, limit),) = limits.items()
    return value < limit if LIMITS[kind].is_ratio else value > limit


def _of(name: str, limits: Mapping[str, float], records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    place = list(ASKED[name]).index(limits)
    return [record["outcomes"][place] for record in records]


def _row(name: str, limits: Mapping[str, float]) -> dict[str, Cell]:
    ((kind, limit),) = limits.items()
    return {"graph": name, "limit": f"{LIMITS[kind].title} {'≥' if LIMITS[kind].is_ratio else '≤'} {limit:g}"}


def _percent(count: int, of: int) -> str:
    return f"{100 * count / of:.0f}" if of else "-"


def _kept(name: str, limits: Mapping[str, float], records: list[dict[str, Any]]) -> dict[str, Cell]:
    outcomes = _of(name, limits, records)
    delivered = [each["delivered"] for each in outcomes]
    beyond = [_beyond(each["true"], limits) for each in delivered]
    found = _Verdicts([each["verdict"] == "shown" for each in delivered], beyond)
    violated = [each["verdict"] == "violated" for each in delivered]
    validation = _Verdicts(
        [each["validation"]["claimed"] for each in outcomes],
        [_beyond(each["validation"]["true"], limits) for each in outcomes],
    )
    wrong = sum(said and not is_beyond for said, is_beyond in zip(violated, beyond, strict=True))
    true = np.quantile([each["true"] for each in delivered], [0.05, 0.5, 0.95])
    splits = len(records)
    return _row(name, limits) | {
        "true value: 5, 50, 95 %": ", ".join(f"{value:.3f}" for value in true),
        "shown, %": _percent(sum(found.shown), splits),
        "not shown, %": _percent(splits - sum(found.shown) - sum(violated), splits),
        "violated, %": _percent(sum(violated), splits),
        "shown wrongly": f"{found.false} of {sum(found.shown)} ({_upper(found.false, splits)})",
        "violated wrongly": f"{wrong} of {sum(violated)}",
        "validation alone: wrongly": f"{validation.false} of {sum(validation.shown)}",
    }


def _upper(false: int, splits: int) -> str:
    """Return whether so many errors in so many splits can be chance at the 5 % that are allowed."""
    p = stats.binomtest(false, splits, 1 - CONFIDENCE, alternative="greater").pvalue
    return f"p {p:.2f}"


def _compared(name: str, limits: Mapping[str, float], records: list[dict[str, Any]]) -> dict[str, Cell]:
    outcomes = [each["once"] for each in _of(name, limits, records)]
    beyond = [_beyond(each["true"], limits) for each in outcomes]
    found = {"ours": _Verdicts([each["verdict"] == "shown" for each in outcomes], beyond)}
    for rule, width in (("Seldonian, Student's t", _student), ("Seldonian, Hoeffding", _hoeffding)):
        found[rule] = _Verdicts([_seldonian(each["counts"], limits, width) for each in outcomes], beyond)
    cells: dict[str, Cell] = {}
    for rule, verdicts in found.items():
        cells[rule] = f"{_percent(sum(verdicts.shown), len(records))} ({verdicts.false} wrongly)"
    delivered = [each["delivered"]["verdict"] for each in _of(name, limits, records)]
    cells["ours, several candidates"] = _percent(delivered.count("shown"), len(records))
    return _row(name, limits) | cells


def _seldonian(counts: Sequence[Sequence[int]], limits: Mapping[str, float], width: Any) -> bool:
    """Check as in Thomas et al. 2019: bounds of both rates' differences, with the error split between them."""
    ((kind, limit),) = limits.items()
    first, second = (Tally(*each) for each in counts)
    error = (1 - CONFIDENCE) / 2
    for a, b in ((first, second), (second, first)):
        # What must be below zero: a difference minus its limit, or the share that is asked for minus the one that is.
        weight, shift = (limit, 0.0) if LIMITS[kind].is_ratio else (1.0, limit)
        if weight * a.rate - b.rate - shift + width(a, b, weight, error) > 0:
            return False
    return True


def _student(a: Tally, b: Tally, weight: float, error: float) -> float:
    parts = [weight**2 * a.rate * (1 - a.rate) / (a.people - 1), b.rate * (1 - b.rate) / (b.people - 1)]
    freedom = sum(parts) ** 2 / max(
        sum(part**2 / (n - 1) for part, n in zip(parts, (a.people, b.people), strict=True)), 1e-300
    )
    return float(stats.t.isf(error, max(freedom, 1.0))) * math.sqrt(sum(parts))


def _hoeffding(a: Tally, b: Tally, weight: float, error: float) -> float:
    return sum(scale * math.sqrt(math.log(2 / error) / (2 * each.people)) for scale, each in ((weight, a), (1.0, b)))


def _answers(name: str, limits: Mapping[str, float], records: list[dict[str, Any]]) -> dict[str, Cell]:
    verdicts = [each["delivered"]["verdict"] for each in _of(name, limits, records)]
    bounds = [each["delivered"]["bound"] for each in _of(name, limits, records)]
    people = int(np.median([record["people"] for record in records]))
    answers = {f"{answer}, %": _percent(verdicts.count(answer), len(records)) for answer in _ANSWERS}
    return _row(name, limits) | {"people": people} | answers | {"median bound": f"{np.median(bounds):.2f}"}
