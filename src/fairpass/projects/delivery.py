"""Which of the tuned configurations to deliver, and whether it keeps the limits that were asked for.

With limits, a few candidates are trained and checked on nodes that had no part in the search. They are checked in a
fixed order, the safest first, until one is not shown to be within the limits, and the most useful that was shown is
delivered. In that order no correction for several checks is needed (fixed sequence testing, as in Learn then Test,
Angelopoulos et al. 2021, arXiv:2110.01052): the first candidate that is beyond the limits is taken for one within them
with probability 1 - confidence at most, and none is looked at after a failure.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets.splits import stratified_split
from fairpass.errors import DataError
from fairpass.methods import NodeClassifier
from fairpass.metrics.detectable import detectable
from fairpass.metrics.limits import CheckedOn
from fairpass.metrics.promise import Promise, check_promise
from fairpass.projects.config import FEW_LABELS
from fairpass.training import Task
from fairpass.tuning import Decision, Point, candidates, decide
from fairpass.tuning.front import MOST_ROOM

FOLDS = 5

# Trains a configuration with one seed.
Fit = Callable[[Point, Data], NodeClassifier]
# Searches for configurations on a graph, and returns what it tried.
Search = Callable[[Data, int], Sequence[Point]]


@dataclass(frozen=True)
class Delivery:
    """The configuration to deliver, why, and what the check said."""

    decision: Decision
    promise: Promise | None = None
    model: NodeClassifier | None = None  # as it was checked; None if it is not trained yet


def checked_on(data: Data, wanted: str = "auto") -> CheckedOn:
    """Return which nodes check a limit: the safety nodes if there are any, and those of all folds if labels are few."""
    has_safety = data.get("safety_mask") is not None
    if wanted == "safety" and not has_safety:
        raise DataError("'check' must not be 'safety': the split has no safety nodes (give 'fractions' a fourth part)")
    labelled = int((data.y >= 0).sum())
    if wanted == "cross-fitting" or (wanted == "auto" and not has_safety and labelled < FEW_LABELS):
        return "cross-fitting"
    return "safety" if has_safety and wanted != "test" else "test"


def deliver(
    data: Data,
    points: Sequence[Point],
    *,
    fit: Fit,
    search: Search,
    limits: Mapping[str, float],
    confidence: float = 0.95,
    check: str = "auto",
    fairness: float | None = None,
) -> Delivery:
    """Choose among points by validation and, if there are limits, check the choice on other nodes.

    Args:
        data: The graph.
        points: What the search on it has tried.
        fit: Trains a configuration.
        search: Searches again, for cross-fitting: the search on all nodes has seen the labels of every fold.
        limits: Limits by name; none: nothing is checked.
        confidence: Of the check.
        check: "safety", "test" or "cross-fitting"; "auto" takes what the graph allows.
        fairness: The trade-off, without limits.
    """
    if not limits:
        return Delivery(decide(points, fairness=fairness))
    on = checked_on(data, check)
    if on == "cross-fitting":
        decision = _predicted_to_pass(points, limits, margins(data, limits, confidence, on))
        return Delivery(decision, cross_fitted(data, search, fit, limits, confidence))
    checked: list[tuple[Point, NodeClassifier, Promise]] = []
    for point in candidates(points, limits, margins(data, limits, confidence, on)):
        model = fit(point, data)
        checked.append((point, model, promise_of(model, data, limits, confidence, on)))
        if checked[-1][-1].verdict != "shown":
            break
    shown = [each for each in checked if each[-1].verdict == "shown"]
    reason = "It is the configuration most likely to keep the limits on validation, and the check did not show it."
    if shown:
        reason = "It was the one configuration to check, and it is shown to keep the limits."
    if shown and len(checked) > 1:
        reason = f"Of {len(checked)} configurations, checked in turn, it is the most useful shown to keep the limits."
    point, model, promise = (shown or checked)[-1]
    return Delivery(Decision(point, reason, met=bool(shown)), replace(promise, candidates=len(checked)), model)


def promise_of(
    model: NodeClassifier, data: Data, limits: Mapping[str, float], confidence: float, on: CheckedOn, **scoring: Any
) -> Promise:
    """Check a model on the labelled safety or test nodes of a graph; `scoring` goes to `predict`."""
    task = Task(data, need_masks=False)
    nodes = task.nodes("safety" if on == "safety" else "test")
    if not len(nodes):
        raise DataError(f"'{on}_mask' must hold labelled nodes to check limits on (got none)")
    return _check(task, nodes, model.predict(data, **scoring), limits, confidence, on)


def _check(
    task: Task, nodes: Tensor, decided: Tensor, limits: Mapping[str, float], confidence: float, on: CheckedOn
) -> Promise:
    """Check decisions for some nodes; a group or label of which there is none is not shown to be within limits."""
    return check_promise(
        task.y[nodes],
        decided[nodes],
        sens=task.sens[nodes],
        limits=limits,
        confidence=confidence,
        group_names=task.group_names or [str(group) for group in range(task.num_groups)],
        label_names=task.label_names or [str(label) for label in range(task.num_classes)],
        on=on,
    )


def margins(data: Data, limits: Mapping[str, float], confidence: float, on: CheckedOn) -> dict[str, float]:
    """Return about how far below its limit a difference must be to be shown on the nodes of the check.

    Of these nodes only the number counts: their labels must have no part in which models are checked. So they are taken
    to be like those of training and validation.
    """
    task = Task(data)
    seen = torch.cat([task.nodes(part) for part in ("train", "val")])
    fewer = 1.0 if on == "cross-fitting" else math.sqrt(len(seen) / max(len(task.nodes(on)), 1))
    # One-sided: `detectable` is about both sides.
    y = task.y[seen].cpu().numpy()
    found = detectable(y, task.sens[seen].cpu().numpy(), level=2 * confidence - 1)
    counts = np.bincount(y, minlength=task.num_classes)
    rarest = counts[1] if task.num_classes == 2 else counts.min()
    # A ratio of shares is off by as much as a share is, relative to it.
    ratio = found.delta_dp * len(y) / max(int(rarest), 1)
    both = {"max_dp": found.delta_dp, "max_eo": found.delta_eo, "min_impact_ratio": ratio}
    made = {name: fewer * margin for name, margin in both.items()}
    return {name: 0.0 if math.isnan(made[name]) else min(made[name], 1.0) for name in limits}


def _predicted_to_pass(points: Sequence[Point], limits: Mapping[str, float], margin: Mapping[str, float]) -> Decision:
    """Return the most useful point that is expected to be within the limits, or the safest."""
    first, *_ = candidates(points, limits, margin, rooms=[MOST_ROOM])
    return Decision(first, "It is the most useful configuration that is expected to keep the limits, or the safest.")


def cross_fitted(
    data: Data, search: Search, fit: Fit, limits: Mapping[str, float], confidence: float, folds: int = FOLDS
) -> Promise:
    """Check models of several folds, each on a fold that it did not see, all predictions together.

    Each model is made like the delivered one: a search on the other folds, and the choice among what it tried. Test
    nodes have no part in it.
    """
    decided = torch.full_like(data.y, -1)
    for number, part in enumerate(fold_graphs(data, folds)):
        chosen = _predicted_to_pass(search(part, number), limits, margins(data, limits, confidence, "cross-fitting"))
        held_out = part.safety_mask
        decided[held_out] = fit(chosen.point, part).predict(part)[held_out]
    nodes = torch.nonzero(decided >= 0).flatten()
    return _check(Task(data), nodes, decided, limits, confidence, "cross-fitting")


def fold_graphs(data: Data, folds: int, seed: int = 0) -> list[Data]:
    """Return the graph once for each fold, whose nodes are its safety nodes; the others are split as before."""
    y, sens = data.y.cpu().numpy(), data.sens.cpu().numpy()
    seen = np.zeros(len(y), dtype=bool)
    for part in ("train_mask", "val_mask", "safety_mask"):
        if data.get(part) is not None:
            seen |= data[part].cpu().numpy()
    seen &= y >= 0
    fold_of, generator = np.full(len(y), -1), np.random.default_rng(seed)
    for group in np.unique(sens[seen]):
        ids = generator.permutation(np.flatnonzero(seen & (sens == group)))
        fold_of[ids] = np.arange(len(ids)) % folds
    train, val = (int(data[f"{part}_mask"].sum()) for part in ("train", "val"))
    made = []
    for fold in range(folds):
        rest = np.where(seen & (fold_of != fold), y, -1)
        # `stratified_split` makes three parts; what it takes for testing goes to validation.
        half = val / (train + val) / 2
        split = stratified_split(rest, sens, fractions=(1 - 2 * half, half, half), seed=seed + fold)
        part = copy.copy(data)
        part.train_mask, part.val_mask = torch.from_numpy(split.train), torch.from_numpy(split.val | split.test)
        part.safety_mask = torch.from_numpy(fold_of == fold)
        made.append(part)
    return made
