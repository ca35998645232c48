"""The step after training that finds a threshold for each group."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.metrics import GroupThresholds, SplitMetrics, selection
from fairpass.metrics.group_thresholds import check_groups_have_both_labels
from fairpass.training import Program, Task, Training
from fairpass.training.program import scores


def check_thresholds(task: Task) -> None:
    if task.num_classes != 2:
        raise DataError(f"'data.y' must have 2 labels for thresholds per group (got {task.num_classes})")
    nodes = task.nodes("val")
    sens = task.sens[nodes]
    if unknown := int((sens < 0).sum()):
        raise DataError(f"'data.sens' must be known on validation for thresholds per group (got {unknown} unknown)")
    task.check_split("val")
    check_groups_have_both_labels(task.y[nodes].cpu().numpy(), sens.cpu().numpy(), task.group_names)


@torch.no_grad()
def fit_thresholds(program: Program, task: Task, training: Training) -> dict[str, Any]:
    """Return what a model's header says of its thresholds: the rule, and its metrics on validation."""
    program.eval()
    probabilities: Tensor = program(task).softmax(-1).cpu()
    nodes, y, sens = task.nodes("val").cpu(), task.y.cpu(), task.sens.cpu()
    rule = GroupThresholds.fit(y[nodes], scores(probabilities[nodes]), sens=sens[nodes], constraint=training.constraint)
    decided = torch.from_numpy(rule.decide(probabilities, sens=sens, seed=training.seed))
    numbers = SplitMetrics(y[nodes], sens[nodes])(scores(probabilities[nodes]), decided[nodes])
    metrics = dict(zip(SplitMetrics.names, numbers.tolist(), strict=True))
    validation = {"metrics": metrics, "selection": float(selection(numbers)), "threshold": None}
    return {"threshold": None, "group_thresholds": rule.to_dict(), "validation": validation}


def decide_by_group(
    rule: GroupThresholds, data: Data, probabilities: Tensor, nodes: Tensor | None, seed: int
) -> Tensor:
    """Return the decisions on some nodes of a graph, by default all; the draws are those of all nodes in any case."""
    unknown = torch.full((len(probabilities),), -1)
    sens = unknown if data.get("sens") is None else data.sens
    decided = torch.from_numpy(rule.decide(probabilities, sens=sens, seed=seed))
    decided = decided if nodes is None else decided[nodes]
    if undecided := int((decided < 0).sum()):
        raise DataError(f"'data.sens' must be known for thresholds per group (got {undecided} nodes of unknown group)")
    return decided
