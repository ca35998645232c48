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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch_geometric.data import Data

from benchmarks.result import Cell, Result, Table
from benchmarks.seldonian import RIVALS
from fairpass.datasets import is_available, load, synthetic
from fairpass.datasets.splits import stratified_split
from fairpass.files import finite, write_text
from fairpass.methods import GMMD, Logistic, NodeClassifier
from fairpass.methods.gmmd import Criterion
from fairpass.metrics.catalog import SELECTION
from fairpass.metrics.evaluation import Evaluation, impact_ratio
from fairpass.metrics.inputs import Sample
from fairpass.metrics.limits import LIMITS, Comparison
from fairpass.metrics.promise import group_counts
from fairpass.projects.delivery import cross_fitted, deliver, margins, promise_of
from fairpass.runs import Configuration, fit_all
from fairpass.tuning import Point, candidates, decide
from fairpass.tuning.front import MOST_ROOM

RECORDS = Path(__file__).parent / "results" / "promise"
LARGE = ("adult", "income", "credit", "synthetic")
SMALL = ("german", "nba")
SPLITS = 100
CROSSED = 30  # of the small graphs by cross-fitting, which takes five fits for one
CONFIDENCE = 0.95
_VARIED = ("criterion", "fair_steps")
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
    found: dict[str, list[tuple[Mapping[str, float], list[dict[str, Any]]]]] = {}
    people = {}
    for name in names:
        records = _records(name, splits)
        people[name] = Split(records[0]).people
        jobs = int(os.environ.get("FAIRPASS_JOBS", "2"))
        with ProcessPoolExecutor(jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            outcomes = list(pool.map(partial(_outcomes, name), records))
        found[name] = [(limits, [each[place] for each in outcomes]) for place, limits in enumerate(ASKED[name])]
    large, small = ([name for name in group if name in names] for group in (LARGE, SMALL))
    tables = []
    if large:
        title = f"{splits} random splits each: what was promised, and what was true for the people held out"
        tables.append(Table(title, [_kept(name, *each) for name in large for each in found[name]]))
        title = "The same model and safety nodes, checked in other ways: percent of the splits called shown"
        tables.append(Table(title, [_compared(name, *each) for name in large for each in found[name]]))
        title = (
            "Every model checked by itself, also those that nobody would choose: how often one beyond the limit passes"
        )
        tables.append(Table(title, [_alone(name, *each) for name in large for each in found[name]]))
    if small:
        title = f"Small graphs, {splits} random splits ({min(splits, CROSSED)} by cross-fitting): percent by answer"
        rows = [_answers(name, *each, people[name], "safety nodes") for name in small for each in found[name]]
        for name in small:
            crossed = _records(name, min(splits, CROSSED), _cross_record, "-cross-fitting")
            for place, limits in enumerate(ASKED[name]):
                answers = [record["answers"][place] for record in crossed]
                rows.append(_answers(name, limits, answers, crossed[0]["people"], "cross-fitting"))
        tables.append(Table(title, rows))
    return Result("promise", tables)


def _records(
    name: str, splits: int, make: Callable[[str, int], dict[str, Any]] | None = None, suffix: str = ""
) -> list[dict[str, Any]]:
    path = RECORDS / f"{name}{suffix}.json"
    made: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    for seed in range(len(made), splits):
        made.append((make or _split_record)(name, seed))
        write_text(path, json.dumps(made))
        print(f"{name}{suffix}: {len(made)} of {splits} splits", flush=True)
    return made[:splits]


def _cross_record(name: str, seed: int) -> dict[str, Any]:
    """Check each limit by cross-fitting: the models of a fold are fitted once, and chosen for each limit."""
    data = copy.copy(_whole(name))
    known = np.where(data.sens.numpy() >= 0, data.y.numpy(), -1)
    split = stratified_split(known, data.sens.numpy(), fractions=(0.5, 0.25, 0.25), seed=seed)
    data.update({part: torch.from_numpy(mask) for part, mask in split.masks().items() if mask is not None})
    fitted: dict[int, tuple[list[Point], list[NodeClassifier]]] = {}

    def search(part: Data, number: int) -> list[Point]:
        if number not in fitted:
            models = _models(name)
            fit_all(models, part)
            fitted[number] = [_point(model, part) for model in models], models
        return fitted[number][0]

    def fit(point: Point, _: Data) -> NodeClassifier:
        return next(
            model for points, models in fitted.values() for p, model in zip(points, models, strict=True) if p is point
        )

    found = [cross_fitted(data, search, fit, limits, CONFIDENCE) for limits in ASKED[name]]
    answers = [{"verdict": each.verdict, "bound": each.checks[0].bound} for each in found]
    return {"seed": seed, "people": found[0].people, "answers": answers}


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
        found = _point(model, data)
        # Without the settings that all configurations have in common.
        varied = {name: found.parameters[name] for name in _VARIED if name in found.parameters}
        point: dict[str, Any] = {"method": found.method, "parameters": varied}
        point |= {"validation": found.validation, "near_constant": found.near_constant}
        made.append({"point": point, "true": finite(true), "safety": _packed(predicted.tolist())})
    # The same people in the same order for every model, as counts by group and label.
    cells = [[int(((safety["sens"] == g) & (safety["y"] == y)).sum()) for y in (0, 1)] for g in (0, 1)]
    return {"seed": seed, "cells": cells, "models": made}


def _packed(decided: list[int]) -> str:
    """Return decisions as one hexadecimal number, to keep the records small."""
    return f"{int(''.join(map(str, decided)), 2):x}"


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


class Recorded:
    """Stands in for a fitted model: what it said of the safety nodes."""

    def __init__(self, safety: str, people: int) -> None:
        self.decided = torch.tensor([int(mark) for mark in f"{int(safety, 16):0{people}b}"])

    def predict(self, _: Data) -> torch.Tensor:
        return self.decided


class Split:
    """The safety nodes of one split, and the models that were fitted on it."""

    def __init__(self, record: dict[str, Any]) -> None:
        cells = [(group, y, count) for group, row in enumerate(record["cells"]) for y, count in enumerate(row)]
        people = sum(count for _, _, count in cells)
        y, sens = (torch.tensor(np.repeat([cell[k] for cell in cells], [cell[2] for cell in cells])) for k in (1, 0))
        nobody, everybody = torch.zeros(people, dtype=torch.bool), torch.ones(people, dtype=torch.bool)
        # The order of the check depends on shares of labels and groups in training, which are those of a random sample.
        masks = {"train_mask": everybody, "val_mask": nobody, "test_mask": nobody, "safety_mask": everybody}
        edges = torch.empty(2, 0, dtype=torch.long)
        self.people, self.data = people, Data(x=torch.zeros(people, 1), edge_index=edges, y=y, sens=sens, **masks)
        self.points = [Point(**each["point"]) for each in record["models"]]
        self.models = [Recorded(each["safety"], people) for each in record["models"]]
        self.true = [each["true"] for each in record["models"]]

    def fit(self, point: Point, _: Data) -> Any:
        return self.models[self.points.index(point)]

    def outcomes(self, limits: Mapping[str, float]) -> dict[str, Any]:
        """Return the answers of `fairpass run`, of one check alone, of other ways to check, and of validation."""
        common: dict[str, Any] = {"limits": limits, "confidence": CONFIDENCE}
        found = deliver(self.data, self.points, fit=self.fit, search=_never, check="safety", **common)
        assert found.promise is not None
        # Other ways to check look at one candidate: the most useful that is expected to pass.
        margin = margins(self.data, limits, CONFIDENCE, "safety")
        alone, *_ = candidates(self.points, limits, margin, rooms=[MOST_ROOM])
        once = promise_of(self.fit(alone, self.data), self.data, on="safety", **common)
        counts = [count.tally for count in once.checks[0].counts]
        by_validation = decide(self.points, **limits)
        return {
            "verdict": found.promise.verdict,
            "bound": found.promise.checks[0].bound,
            "true": self._true(found.decision.point, limits),
            "once": once.verdict == "shown",
            "once_true": self._true(alone, limits),
            "rivals": {name: is_shown(counts, limits, 1 - CONFIDENCE) for name, is_shown in RIVALS.items()},
            "each": [self._is_shown_alone(number, limits) for number in range(len(self.points))],
            "claimed": by_validation.met,
            "claimed_true": self._true(by_validation.point, limits),
        }

    def _is_shown_alone(self, number: int, limits: Mapping[str, float]) -> tuple[bool, bool]:
        """Return whether a model is truly beyond a limit, and whether it is called shown."""
        ((kind, limit),) = limits.items()
        sample = Sample(self.data.y, self.models[number].decided, self.data.sens)
        counts = list(group_counts(sample, LIMITS[kind]))
        verdict = Comparison(LIMITS[kind], limit, 1 - CONFIDENCE, counts, self.people, "safety").verdict()
        return _beyond(self._true(self.points[number], limits), limits), verdict == "shown"

    def _true(self, point: Point, limits: Mapping[str, float]) -> float:
        (kind,) = limits
        value = self.true[self.points.index(point)][kind]
        return math.nan if value is None else value


def _outcomes(name: str, record: dict[str, Any]) -> list[dict[str, Any]]:
    split = Split(record)
    return [split.outcomes(limits) for limits in ASKED[name]]


def _never(data: Data, number: int) -> Sequence[Point]:
    raise AssertionError("there are safety nodes: nothing is searched again")


def _beyond(value: float, limits: Mapping[str, float]) -> bool:
    ((kind, limit),) = limits.items()
    return not value >= limit if LIMITS[kind].is_ratio else not value <= limit


def _row(name: str, limits: Mapping[str, float]) -> dict[str, Cell]:
    ((kind, limit),) = limits.items()
    return {"graph": name, "limit": f"{LIMITS[kind].title} {'≥' if LIMITS[kind].is_ratio else '≤'} {limit:g}"}


def _percent(found: Sequence[bool]) -> str:
    return f"{100 * sum(found) / len(found):.0f}"


def _false(shown: Sequence[bool], true: Sequence[float], limits: Mapping[str, float]) -> int:
    """Return how often "shown" was wrong."""
    return sum(said and _beyond(value, limits) for said, value in zip(shown, true, strict=True))


def _kept(name: str, limits: Mapping[str, float], outcomes: Sequence[dict[str, Any]]) -> dict[str, Cell]:
    found = {key: [each[key] for each in outcomes] for key in outcomes[0]}
    answers = {answer: [verdict == answer for verdict in found["verdict"]] for answer in _ANSWERS}
    wrong = _false(answers["shown"], found["true"], limits)
    too_strict = sum(answers["violated"]) - _false(answers["violated"], found["true"], limits)
    chance = stats.binomtest(wrong, len(outcomes), 1 - CONFIDENCE, alternative="greater").pvalue
    quantiles = np.nanquantile(found["true"], [0.05, 0.5, 0.95])
    return _row(name, limits) | {
        "true value (5, 50, 95 %)": ", ".join(f"{value:.3f}" for value in quantiles),
        **{f"{answer}, %": _percent(said) for answer, said in answers.items()},
        "shown, but exceeded": f"{wrong} of {sum(answers['shown'])}",
        "p-value against 5 %": f"{chance:.2f}",
        "violated, but kept": f"{too_strict} of {sum(answers['violated'])}",
        "by validation alone: exceeded": f"{_false(found['claimed'], found['claimed_true'], limits)} of "
        f"{sum(found['claimed'])}",
    }


def _compared(name: str, limits: Mapping[str, float], outcomes: Sequence[dict[str, Any]]) -> dict[str, Cell]:
    true = [each["once_true"] for each in outcomes]
    rules = {"ours": [each["once"] for each in outcomes]}
    rules |= {rule: [each["rivals"][rule] for each in outcomes] for rule in RIVALS}
    cells: dict[str, Cell] = {
        rule: f"{_percent(shown)} ({_false(shown, true, limits)} exceeded)" for rule, shown in rules.items()
    }
    cells["ours, several candidates"] = _percent([each["verdict"] == "shown" for each in outcomes])
    return _row(name, limits) | cells


def _alone(name: str, limits: Mapping[str, float], outcomes: Sequence[dict[str, Any]]) -> dict[str, Cell]:
    checked = [pair for each in outcomes for pair in each["each"]]
    beyond, within = ([shown for is_beyond, shown in checked if is_beyond == wanted] for wanted in (True, False))
    return _row(name, limits) | {
        "beyond the limit": len(beyond),
        "of them shown": sum(beyond),
        "of them shown, %": _percent(beyond) if beyond else "-",
        "within the limit": len(within),
        "of these shown, %": _percent(within) if within else "-",
    }


def _answers(
    name: str, limits: Mapping[str, float], outcomes: Sequence[dict[str, Any]], people: int, on: str
) -> dict[str, Cell]:
    answers = {f"{answer}, %": _percent([each["verdict"] == answer for each in outcomes]) for answer in _ANSWERS}
    bound = float(np.median([each["bound"] for each in outcomes]))
    return _row(name, limits) | {"checked on": on, "people": people, **answers, "median bound": f"{bound:.2f}"}
