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
    as_names(None, "sens", groups)  # raises if their numbers have gaps
    search = ThresholdSearch(torch.tensor(labels.copy()), torch.tensor(groups.copy()), objective)
    found = search(torch.tensor(values.copy()))
    if bool(found.isnan()):
        delta_eo(labels, labels, sens=groups)  # raises, and says which group has no positive node
    return float(found)


class ThresholdSearch:
    """The best thresholds for one fixed set of nodes, of many score vectors at once; see `best_threshold`.

    Args:
        y: labels `[N]`, 0 and 1.
        sens: groups `[N]`, negative for unknown.
        objective: what to maximise.
    """

    def __init__(self, y: Tensor, sens: Tensor, objective: Objective) -> None:
        self._quality = _OBJECTIVES[objective]
        self._cells = cells(y, sens, 2, max(int(sens.max()) + 1, 0))[0].double()
        self._total = self._cells.sum(0, keepdim=True)

    @torch.no_grad()
    def __call__(self, scores: Tensor) -> Tensor:
        """Map scores `[..., N]` to thresholds `[...]`; nan where no cut has a defined quality."""
        ordered, order = scores.sort(dim=-1, stable=True)
        # selected[..., k, :]: the counts that are left when the k lowest scores are below the threshold.
        below = torch.nn.functional.pad(self._cells[order].cumsum(-2), (0, 0, 1, 0))
        quality = self._quality(Counts.from_cells((self._total - below).unsqueeze(-2), self._total))
        # Equal scores fall on one side: between them there is no cut.
        tells_apart = torch.nn.functional.pad(ordered[..., 1:] > ordered[..., :-1], (1, 1), value=True)
        quality = quality.masked_fill(~tells_apart, -torch.inf)
        cuts = _cuts(ordered)
        as_good = quality >= quality.amax(-1, keepdim=True) - _TIE
        nearest = (cuts - 0.5).abs().masked_fill(~as_good, torch.inf).argmin(-1, keepdim=True)
        return cuts.gather(-1, nearest)[..., 0].masked_fill(~as_good.any(-1), torch.nan)


def _cuts(ordered: Tensor) -> Tensor:
    """Return one threshold for each way to cut sorted scores `[..., N]`, from "all positive" to "none".

    Thresholds have the dtype of the scores, so that no later comparison rounds one onto a score.
    """
    below, above = ordered[..., :-1], ordered[..., 1:]
    middle = torch.maximum(below / 2 + above / 2, below)
    middle = torch.where(middle < above, middle, below)
    lowest = torch.nextafter(ordered[..., :1], torch.full_like(ordered[..., :1], -torch.inf))
    cuts = torch.cat((lowest, middle, ordered[..., -1:]), -1)
    # In its own interval 0.5 is as good as any.
    half = torch.searchsorted(ordered, torch.full_like(ordered[..., :1], 0.5), right=True)
    return cuts.scatter(-1, half, 0.5)
