"""How nodes are scored after training: against which nodes, and what happens if a node's group is not known."""

from typing import Literal

import torch
from torch import Tensor

from fairpass.errors import DataError
from fairpass.nn.calibration import GroupEstimator
from fairpass.training.task import Task

ReferenceName = Literal["fitted", "batch"]
UnknownGroup = Literal["none", "estimate", "error"]


def group_shares(task: Task, num_groups: int, unknown_group: UnknownGroup, estimator: GroupEstimator) -> Tensor:
    """Return the probability that each node is in each group of the fitted graph, `(N, G)`.

    It is 1 for a node's own group. If that is not known, `unknown_group` decides: `"none"` gives a row of zeros, so
    that no group's correction is applied; `"estimate"` the estimator's probabilities; `"error"` raises `DataError`.
    """
    largest = int(task.sens.max())
    if largest >= num_groups:
        raise DataError(f"'data.sens' must be one of the {num_groups} groups of the fitted graph (got {largest})")
    unknown = task.sens < 0
    shares = torch.nn.functional.one_hot(task.sens.clamp(min=0), num_groups).to(task.x)
    shares[unknown] = 0.0
    if unknown_group == "none" or not bool(unknown.any()):
        return shares
    if unknown_group == "error":
        raise DataError(
            f"'data.sens' must be known for every node with unknown_group='error' (got {int(unknown.sum())} unknown)"
        )
    if estimator.is_empty:
        raise DataError("'unknown_group' cannot be 'estimate': this model was stored without an estimate of the groups")
    return torch.where(unknown[:, None], estimator(task.x), shares)
