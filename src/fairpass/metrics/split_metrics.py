"""What validation measures at every epoch: the metrics of the selection rule, and the best threshold.

All score vectors are measured at once: one of 250 nodes takes about 0.25 ms, a population of 32 about 0.8 ms.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from fairpass.errors import DataError
from fairpass.metrics import catalog
from fairpass.metrics.catalog import SELECTION, UTILITY
from fairpass.metrics.counts import Counts, Nodes
from fairpass.metrics.inputs import Sample, Values, as_threshold, check_number, report_undefined
from fairpass.parameters import MOST_CLASSES, check_index

Objective = Literal["accuracy", "f1", "balanced_accuracy", "selection"]

_OBJECTIVES: dict[str, Callable[[Counts], Tensor]] = {
    "accuracy": catalog.accuracy,
    "f1": catalog.f1,
    "balanced_accuracy": catalog.balanced_accuracy,
    "selection": lambda counts: catalog.selection_score([metric(counts) for metric in SELECTION]),
}
# Values this close are one value computed from different counts.
_TIE = 1e-12


class SplitMetrics:
    """AUC, F1, ACC, ΔDP and ΔEO (fractions) of scores for one fixed set of nodes.

    What does not change from epoch to epoch is prepared once, on the device of `y`.

    Args:
        y: Labels `[N]`, 0..C-1; every class must occur.
        sens: Groups `[N]`; negative for unknown, which counts for AUC, F1 and ACC only. There must be two or more, and
            each must have a node of each class that counts as positive.
        num_classes: C; with more than two, scores are `[..., N, C]` and the largest decides.
        threshold: A binary prediction is positive where its score is above this; may be changed between calls, also to
            one for each score vector, `[..., 1]`.
        label_names: Names of all labels, for errors; by default their numbers.
        group_names: Names of all groups, likewise.
    """

    names = tuple(metric.label for metric in SELECTION)  # of the last axis of the results

    def __init__(
        self,
        y: Tensor,
        sens: Tensor,
        *,
        num_classes: int = 2,
        threshold: float | Tensor = 0.5,
        label_names: Sequence[str] = (),
        group_names: Sequence[str] = (),
    ) -> None:
        if y.ndim != 1 or y.shape != sens.shape or not y.numel():
            raise DataError(f"'y' and 'sens' must have one shape [N] (got {list(y.shape)}, {list(sens.shape)})")
        check_number("num_classes", num_classes, 2, MOST_CLASSES)
        check_index("sens", int(sens.max()))
        if y.min() < 0 or y.max() >= num_classes:
            low, high = int(y.min()), int(y.max())
            raise DataError(f"'y' must lie in 0..{num_classes - 1}, without unlabelled nodes (got {low}..{high})")
        self._nodes = Nodes(y, sens, label_names or [str(c) for c in range(num_classes)], group_names, torch.float32)
        for metric in SELECTION:
            report_undefined(metric.title, metric.missing(self._nodes))
        self.threshold = threshold if isinstance(threshold, Tensor) else as_threshold(threshold)
        self._shape = (y.numel(),) if num_classes == 2 else (y.numel(), num_classes)

    @torch.no_grad()
    def __call__(self, scores: Tensor, decisions: Tensor | None = None) -> Tensor:
        """Map scores `[..., N]` (more than two classes: `[..., N, C]`) to `[..., 5]`, ordered as `names`.

        Predicted classes `[..., N]` may be given if they do not follow from one threshold or the largest score.
        A score vector that holds a NaN gets five NaN; others are not affected.
        """
        if scores.shape[-len(self._shape) :] != self._shape:
            expected = ", ".join(map(str, self._shape))
            raise DataError(f"'scores' must have shape [..., {expected}] (got {list(scores.shape)})")
        if not scores.is_floating_point():
            raise DataError(f"'scores' must hold floating-point numbers, not hard predictions (got {scores.dtype})")
        scores = scores.float() if scores.element_size() < 4 else scores
        if decisions is None:
            decisions = scores > self.threshold if len(self._shape) == 1 else scores.argmax(-1)
        counts = self._nodes.counts(decisions, scores)
        numbers = torch.stack([metric(counts) for metric in SELECTION], dim=-1)
        broken = scores.isnan().flatten(-len(self._shape)).any(-1, keepdim=True)
        return numbers.masked_fill(broken, torch.nan)


def selection(numbers: Tensor) -> Tensor:
    """Return `AUC + F1 + ACC - ΔDP - ΔEO` of `[..., 5]`: validation selects epoch and configuration by this."""
    return numbers[..., : len(UTILITY)].sum(-1) - numbers[..., len(UTILITY) :].sum(-1)


def best_threshold(
    y: Values, scores: Values, *, sens: Values | None = None, objective: Objective = "accuracy"
) -> float:
    """Return the threshold t for which the predictions `scores > t` are best.

    N scores allow at most N + 1 different predictions; one sort and cumulative counts try them all in O(N log N). Among
    equally good thresholds the one nearest 0.5 is taken, so 0.5 stays unless another one is better. Otherwise it lies
    midway between two neighbouring scores.

    Args:
        y: Labels `[N]`, binary, both present.
        scores: Probabilities of the positive class `[N]`, or of both `[N, 2]`.
        sens: Groups `[N]`, needed by the objective "selection" only.
        objective: What to maximise; "selection" is `AUC + F1 + ACC - ΔDP - ΔEO`.
    """
    if objective not in _OBJECTIVES:
        raise DataError(f"'objective' must be one of {sorted(_OBJECTIVES)} (got {objective!r})")
    if objective == "selection" and sens is None:
        raise DataError("'sens' must be given for objective 'selection' (got None)")
    sample = Sample(y, None, sens, scores=scores)
    nodes = sample.nodes
    if len(nodes.labels) > 2:
        raise DataError(f"'scores' must be binary, {len(nodes.labels)} classes have no threshold")
    sample.check_probabilities()
    measured = SELECTION if objective == "selection" else ()
    report_undefined(objective, nodes.missing_labels() + [reason for m in measured for reason in m.missing(nodes)])
    return float(ThresholdSearch(sample.y, sample.sens, objective)(sample.scores))


class ThresholdSearch:
    """The best thresholds for one fixed set of nodes with labels 0 and 1; see `best_threshold`."""

    def __init__(self, y: Tensor, sens: Tensor, objective: Objective) -> None:
        self._nodes, self._objective = Nodes(y, sens, ["0", "1"]), objective

    @torch.no_grad()
    def __call__(self, scores: Tensor) -> Tensor:
        """Map scores `[..., N]` to thresholds `[...]`; nan where the objective is undefined for all cuts."""
        ordered, order = scores.sort(dim=-1)
        # Row k holds the counts that are left when the k lowest scores are below the threshold.
        below = pad(self._nodes.cells[0][order].cumsum(-2), (0, 0, 1, 0))
        # AUC is the same for all thresholds, so any value of it will do.
        left = (self._nodes.total.flatten() - below).unsqueeze(-2)
        quality = _OBJECTIVES[self._objective](Counts(self._nodes, left, left.new_zeros(1)))
        # Equal scores fall on one side: between them there is no cut.
        distinct = pad(ordered[..., 1:] > ordered[..., :-1], (1, 1), value=True)
        quality = quality.where(distinct, -torch.inf)
        cuts = _cuts(ordered)
        as_good = quality >= quality.amax(-1, keepdim=True) - _TIE
        nearest = (cuts - 0.5).abs().where(as_good, torch.inf).argmin(-1, keepdim=True)
        return cuts.gather(-1, nearest)[..., 0].masked_fill(~as_good.any(-1), torch.nan)


def _cuts(ordered: Tensor) -> Tensor:
    """Return one threshold for each way to cut sorted scores `[..., N]`, from "all positive" to "none".

    Thresholds have the dtype of the scores, so that no later comparison rounds one to a score.
    """
    lowest, below, above = ordered[..., :1], ordered[..., :-1], ordered[..., 1:]
    middle = torch.maximum(below / 2 + above / 2, below)
    middle = torch.where(middle < above, middle, below)
    cuts = torch.cat((lowest.nextafter(torch.full_like(lowest, -torch.inf)), middle, ordered[..., -1:]), -1)
    # In its own interval 0.5 is as good as any.
    half = torch.searchsorted(ordered, torch.full_like(lowest, 0.5), right=True)
    return cuts.scatter(-1, half, 0.5)
