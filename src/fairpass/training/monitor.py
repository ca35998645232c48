"""What is measured at every epoch: the metrics on the validation nodes, and how far apart the groups are."""

from math import nan, sqrt
from typing import Any

import torch
from torch import Tensor

from fairpass.metrics.split_metrics import SplitMetrics, ThresholdSearch, selection
from fairpass.nn.fairness import spread
from fairpass.theory import RepresentationBound
from fairpass.training.program import scores
from fairpass.training.settings import Training
from fairpass.training.task import Task

# Logits beyond this are scaled down before their distances are taken.
_LARGEST = 1e12


class EpochMonitor:
    """Measures the logits of an epoch, of many models at once, with one `threshold` and `track_discrepancy`."""

    def __init__(self, task: Task, training: Training) -> None:
        task.check_split("train")
        task.check_split("val")
        self.task, self.training = task, training
        self.nodes = task.nodes("val")
        y, sens = task.y[self.nodes], task.sens[self.nodes]
        self.metrics = SplitMetrics(y, sens, num_classes=task.num_classes)
        self.search = None
        if isinstance(training.threshold, str) and task.num_classes == 2:
            self.search = ThresholdSearch(y, sens, training.threshold)
        # Theorem 4.2 is about two groups only.
        self.bound = RepresentationBound(task.x, task.groups) if task.num_groups == 2 else None

    @torch.no_grad()
    def __call__(self, logits: Tensor) -> list[dict[str, Any]]:
        """Return for each of `(B, N, C)` logits the fields of an `EpochRecord` apart from epoch and losses."""
        # One node without an output makes the epoch useless; nan is never selected.
        broken = ~logits.isfinite().flatten(1).all(1)
        on_validation = scores(logits.index_select(1, self.nodes).softmax(-1))
        if bool(broken.any()):
            on_validation[broken] = nan
        thresholds = self._thresholds(on_validation, broken)
        if thresholds is not None:
            self.metrics.threshold = thresholds[:, None]
        numbers = self.metrics(on_validation)
        found = self._discrepancy(logits, broken) if self.training.track_discrepancy else [{} for _ in logits]
        columns: dict[str, list[Any]] = {
            "metrics": [dict(zip(SplitMetrics.names, row, strict=True)) for row in numbers.tolist()],
            "selection": selection(numbers).tolist(),
            "threshold": [None] * len(logits) if thresholds is None else thresholds.tolist(),
            "discrepancy": found,
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _thresholds(self, on_validation: Tensor, broken: Tensor) -> Tensor | None:
        """Return the threshold of each model, `(B,)`; with more than two classes there is none."""
        if self.task.num_classes > 2:
            return None
        if self.search is not None:
            return self.search(on_validation.nan_to_num(0.5)).masked_fill(broken, 0.5)
        fixed = torch.tensor(self.training.threshold, dtype=torch.float64, device=broken.device)
        return fixed.expand(len(broken))

    def _discrepancy(self, logits: Tensor, broken: Tensor) -> list[dict[str, float]]:
        """Return how far apart the groups' logits are, for a kernel as wide as the spread of all logits."""
        if bool(broken.any()):
            logits = logits.masked_fill(broken[:, None, None], 0.0)
        # The squares of huge logits overflow. The kernel's width follows the logits, so scaling changes nothing.
        largest = logits.abs().amax((1, 2), keepdim=True)
        if bool((largest > _LARGEST).any()):
            logits = logits / (largest / _LARGEST).clamp(min=1.0)
        if logits.shape[-1] == 2 and not bool(logits.sum(-1).any()):
            # Opposite logits, as GMMD has them, lie on a line: one column has their distances, at less cost.
            logits = sqrt(2) * logits[..., 1:]
        similar = self.task.groups.similarities(logits, 1 / spread(logits).clamp(min=1e-12))
        count, within, everywhere = similar.shape[-1], similar.diagonal(0, -2, -1).sum(-1), similar.sum((-2, -1))
        similarity = ((everywhere - within) / (count * (count - 1))).masked_fill(broken, nan)
        columns = {"mmd2": (count * within - everywhere).masked_fill(broken, nan), "similarity": similarity}
        if self.bound is not None:
            columns["bound"] = self.bound(similarity)
        return [dict(zip(columns, row, strict=True)) for row in torch.stack(list(columns.values()), 1).tolist()]
