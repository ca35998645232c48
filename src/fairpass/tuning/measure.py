"""How a configuration did: its metrics on validation and test over the seeds, and whether it is near constant."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import NodeClassifier
from fairpass.metrics import SplitMetrics
from fairpass.metrics.evaluation import NEAR_CONSTANT_SHARE
from fairpass.training import Task
from fairpass.training.program import scores


class Measure:
    """Measures fitted classifiers on one graph."""

    def __init__(self, data: Data) -> None:
        self.data = data
        task = Task(data)
        self.num_nodes = task.num_nodes
        self.validation, self.test = task.nodes("val"), None
        try:
            self.test = task.nodes("test")
            self.metrics = SplitMetrics(task.y[self.test], task.sens[self.test], num_classes=task.num_classes)
        except DataError:  # there is no test split, or it lacks a label or group
            self.test = None

    def __call__(self, seeds: Sequence[NodeClassifier]) -> dict[str, Any]:
        """Return `validation`, `test` and `near_constant` of one configuration, fitted with several seeds."""
        tested, constant = [], 0
        for model in seeds:
            probabilities = model.predict_proba(self.data)
            predicted = model.decide(self.data, probabilities, self.validation)
            # The full evaluation decides, but is slow: few configurations need it.
            if int(predicted.bincount().max()) / len(predicted) >= NEAR_CONSTANT_SHARE:
                constant += model.evaluate(self.data, "val", undefined="nan").near_constant
            if self.test is not None:
                decided = model.decide(self.data, probabilities, self.test)
                numbers = self.metrics(scores(probabilities[self.test]), decided).tolist()
                tested.append(dict(zip(SplitMetrics.names, numbers, strict=True)))
        return {
            "validation": _mean([model.selected_.metrics for model in seeds]),
            "test": _mean(tested) if tested else None,
            "near_constant": 2 * constant >= len(seeds),
        }


def _mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: fmean(row[name] for row in rows) for name in SplitMetrics.names}
