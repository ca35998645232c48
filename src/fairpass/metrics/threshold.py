"""The best threshold on validation scores: an exact search over all cuts that change a prediction."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from fairpass.errors import DataError
from fairpass.metrics import catalog
from fairpass.metrics.counts import Counts, Nodes
from fairpass.metrics.inputs import Sample, Values, report_undefined

Objective = Literal["accuracy", "f1", "balanced_accuracy", "selection"]

_OBJECTIVES: dict[str, Callable[[Counts], Tensor]] = {
    "accuracy": catalog.accuracy,
    "f1": catalog.f1,
    "balanced_accuracy": catalog.balanced_accuracy,
    "selection": lambda counts: catalog.selection_score([metric(counts) for metric in catalog.SELECTION]),
}
# Values this close are one value computed from different counts.
_TIE = 1e-12


def best_threshold(
    y: Values, scores: Values, *, sens: Values | None = None, objective: Objective = "accuracy"
) -> float:
    """Return the threshold t for which the predictions `scores > t` are best.

    N scores allow at most N + 1 different predictions; one sort and cumulative counts try them all in O(N log N). Among
    equally good thresholds the one nearest 0.5 is taken, so 0.5 stays unless another one is better. Otherwise it lies
    midway between two neighbouring scores.

    Args:
        y: Labels `[N]`, binary, both present.
        scores: Scores of the positive class `[N]`, or probabilities `[N, 2]`.
        sens: Groups `[N]`, needed by the objective "selection" only.
        objective: What to maximise; "selection" is `AUC + F1 + ACC - ΔDP - ΔEO`.

    """
    if objective not in _OBJECTIVES:
        raise DataError(f"'objective' must be one of {sorted(_OBJECTIVES)} (got {objective!r})")
    if objective == "selection" and sens is None:
        raise DataError("'sens' must be given for objective 'selection' (got None)")
    sample = Sample(y, None, sens, scores=scores)
    classes = len(sample.nodes.labels)
    if classes > 2:
        raise DataError(f"'scores' must be binary, {classes} classes have no threshold")
    measured = catalog.SELECTION if objective == "selection" else ()
    reasons = [reason for metric in measured for reason in metric.missing(sample.nodes)]
    report_undefined(objective, [*sample.nodes.missing_labels(), *reasons])
    return float(ThresholdSearch(sample.y, sample.sens, objective)(sample.scores))


class ThresholdSearch:
    """The best thresholds for one fixed set of nodes, of many score vectors at once; see `best_threshold`.

    Args:
        y: Labels `[N]`, 0 and 1.
        sens: Groups `[N]`, negative for unknown.
        objective: What to maximise.
    """

    def __init__(self, y: Tensor, sens: Tensor, objective: Objective) -> None:
        groups = [str(group) for group in range(max(int(sens.max()) + 1, 0))]
        self._nodes, self._objective = Nodes(y, sens, ["0", "1"], groups), objective

    @torch.no_grad()
    def __call__(self, scores: Tensor) -> Tensor:
        """Map scores `[..., N]` to thresholds `[...]`; nan where the objective is undefined for all cuts."""
        ordered, order = scores.sort(dim=-1, stable=True)
        # Row k holds the counts that are left when the k lowest scores are below the threshold.
        cells = self._nodes.cells[0]
        below = torch.nn.functional.pad(cells[order].cumsum(-2), (0, 0, 1, 0))
        # AUC is the same for all thresholds, so any value of it will do.
        counts = self._nodes.from_cells((cells.sum(0) - below).unsqueeze(-2), cells.new_zeros(1))
        quality = _OBJECTIVES[self._objective](counts)
        # Equal scores fall on one side: between them there is no cut.
        distinct = torch.nn.functional.pad(ordered[..., 1:] > ordered[..., :-1], (1, 1), value=True)
        quality = quality.masked_fill(~distinct, -torch.inf)
        cuts = _cuts(ordered)
        as_good = quality >= quality.amax(-1, keepdim=True) - _TIE
        nearest = (cuts - 0.5).abs().masked_fill(~as_good, torch.inf).argmin(-1, keepdim=True)
        return cuts.gather(-1, nearest)[..., 0].masked_fill(~as_good.any(-1), torch.nan)


def _cuts(ordered: Tensor) -> Tensor:
    """Return one threshold for each way to cut sorted scores `[..., N]`, from "all positive" to "none".

    Thresholds have the dtype of the scores, so that no later comparison rounds one to a score.
    """
    below, above = ordered[..., :-1], ordered[..., 1:]
    middle = torch.maximum(below / 2 + above / 2, below)
    middle = torch.where(middle < above, middle, below)
    lowest = torch.nextafter(ordered[..., :1], torch.full_like(ordered[..., :1], -torch.inf))
    cuts = torch.cat((lowest, middle, ordered[..., -1:]), -1)
    # In its own interval 0.5 is as good as any.
    half = torch.searchsorted(ordered, torch.full_like(ordered[..., :1], 0.5), right=True)
    return cuts.scatter(-1, half, 0.5)
