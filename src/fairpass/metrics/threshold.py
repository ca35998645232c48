"""The best threshold on validation scores: an exact sweep over every cut that tells predictions apart."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fairpass.errors import DataError
from fairpass.metrics.counts import Counts, cells
from fairpass.metrics.group import delta_eo
from fairpass.metrics.inputs import (
    Floats,
    Values,
    as_groups,
    as_labels,
    as_names,
    as_scores,
    is_defined,
    missing_labels,
    names_of_scored,
)

Objective = Literal["accuracy", "f1", "balanced_accuracy", "selection"]

# AUC, the remaining term of the selection rule, is the same for all thresholds.
_OBJECTIVES: dict[str, Callable[[Counts], Tensor]] = {
    "accuracy": Counts.accuracy,
    "f1": Counts.f1,
    "balanced_accuracy": Counts.balanced_accuracy,
    "selection": lambda c: c.f1() + c.accuracy() - c.delta_dp() - c.delta_eo(),
}

# Values this close are one value computed from different counts.
_TIE = 1e-12


def best_threshold(
    y: Values, scores: Values, *, sens: Values | None = None, objective: Objective = "accuracy"
) -> float:
    """Return the threshold t for which the predictions `scores > t` are best, among all there are.

    The N scores allow at most N + 1 different predictions; sorting them once and counting from below tries
    them all in O(N log N). Of equally good thresholds the one nearest 0.5 is taken, so that 0.5 stays where
    nothing beats it. Otherwise it lies midway between two neighbouring scores.

    Args:
        y: Labels `[N]`, binary, both present.
        scores: Scores of the positive class `[N]`, or probabilities `[N, 2]`.
        sens: Groups `[N]`, needed by the objective "selection" only.
        objective: What to maximise; "selection" is `AUC + F1 + ACC - Delta_DP - Delta_EO`.

    """
    if objective not in _OBJECTIVES:
        raise DataError(f"'objective' must be one of {sorted(_OBJECTIVES)} (got {objective!r})")
    if objective == "selection" and sens is None:
        raise DataError("'sens' must be given for objective 'selection' (got None)")
    labels = as_labels(y)
    values = as_scores(scores, labels.size)
    if values.ndim == 2:
        raise DataError(f"'scores' must be binary, {values.shape[1]} classes have no threshold")
    is_defined(objective, missing_labels(labels, names_of_scored(None, labels, values)), "error")

    groups = np.full_like(labels, -1) if sens is None else as_groups(sens, labels.size)
    num_groups = len(as_names(None, "sens", groups))
    order = np.argsort(values, kind="stable")
    node_cells = cells(torch.from_numpy(labels[order]), torch.from_numpy(groups[order]), 2, num_groups)[0]
    distinct, first = np.unique(values[order], return_index=True)

    # not_selected[k]: the counts of the nodes below the k-th distinct score.
    not_selected = torch.nn.functional.pad(node_cells.double().cumsum(0), (0, 0, 1, 0))
    not_selected = not_selected[torch.from_numpy(np.append(first, labels.size))]
    total = not_selected[-1]
    counts = Counts.from_cells((total - not_selected).unsqueeze(1), total.unsqueeze(0))

    quality = _OBJECTIVES[objective](counts).numpy()
    if np.isnan(quality).any():
        delta_eo(labels, labels, sens=groups)  # raises, and says which group has no positive node
    cuts = _cuts(distinct)
    best = cuts[quality >= quality.max() - _TIE]
    return float(best[np.abs(best - 0.5).argmin()])


def _cuts(distinct: Floats) -> Floats:
    """Return one threshold for each way to cut the sorted distinct scores, from "all positive" to "none".

    Thresholds have the dtype of the scores, so that no later comparison rounds one onto a score.
    """
    below, above = distinct[:-1], distinct[1:]
    middle = np.maximum(below / 2 + above / 2, below)
    middle = np.where(middle < above, middle, below)
    cuts: Floats = np.concatenate((np.nextafter(distinct[:1], -np.inf), middle, distinct[-1:]))
    cuts[np.searchsorted(distinct, 0.5, side="right")] = 0.5  # in its own interval 0.5 is as good as any
    return cuts
