"""How similar two nodes are to a fitted model: the kernel of their representations."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.methods.base import NodeClassifier
from fairpass.nn.fairness import spread
from fairpass.training import Task


@torch.no_grad()
def logits_of(model: NodeClassifier, data: Data) -> Tensor:
    logits: Tensor = model.program_.eval()(Task(data, model.training.device, need_masks=False))
    return logits.cpu()


def likeness(logits: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return the Gaussian kernel of the logits of nodes `first` and `second`, as wide as the spread of all logits."""
    width = spread(logits, None).clamp(min=1e-12)
    return (-(logits[first] - logits[second]).square().sum(-1) / width).exp()


def evenly(count: int, most: int) -> Tensor:
    """Return at most `most` of `count` indices, evenly spaced from the first to the last."""
    return torch.linspace(0, count - 1, min(count, most)).round().long()
