"""The metrics of the selection rule for many score vectors at once, in torch, fast enough for every epoch.

One score vector of 250 nodes takes about 0.25 ms, a population of 32 about 0.8 ms (one thread). `evaluate` gives the
full record.
"""

import torch
from torch import Tensor

from fairpass.errors import DataError
from fairpass.metrics.catalog import SELECTION, UTILITY
from fairpass.metrics.counts import Nodes
from fairpass.metrics.inputs import report_undefined


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

    """

    names = tuple(metric.label for metric in SELECTION)
    """What the last axis of the results holds."""

    def __init__(self, y: Tensor, sens: Tensor, *, num_classes: int = 2, threshold: float | Tensor = 0.5) -> None:
        if y.ndim != 1 or y.shape != sens.shape or not y.numel():
            raise DataError(f"'y' and 'sens' must have one shape [N] (got {list(y.shape)}, {list(sens.shape)})")
        if num_classes < 2 or y.min() < 0 or y.max() >= num_classes:
            low, high = int(y.min()), int(y.max())
            raise DataError(f"'y' must lie in 0..{num_classes - 1}, without unlabelled nodes (got {low}..{high})")
        groups = [str(group) for group in range(max(int(sens.max()) + 1, 0))]
        self._nodes = Nodes(y, sens, [str(c) for c in range(num_classes)], groups, torch.float32)
        for metric in SELECTION:
            report_undefined(metric.title, metric.missing(self._nodes))
        self.threshold = threshold
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
