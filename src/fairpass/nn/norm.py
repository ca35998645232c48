"""Normalisation over the nodes of a graph."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from fairpass.nn.validation import LateBuffers, check_buffers

NormStatistics = Literal["batch", "keep", "fitted"]

# Added to the variance, as in `nn.BatchNorm1d`.
_EPSILON = 1e-5


class NodeNorm(LateBuffers):
    """Batch normalisation whose batch is the whole graph: each channel has mean 0 and variance 1 over its nodes.

    A network that sees all nodes at every pass needs no running statistics, and is then the same in training and in
    evaluation. The statistics of the fitted graph are kept at the end of training, so that a node's output does not
    depend on who else is scored with it.
    """

    mean: Tensor | None
    scale: Tensor | None

    def __init__(self, channels: int) -> None:
        super().__init__("mean", "scale")
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.statistics: NormStatistics = "batch"

    def reset_parameters(self) -> None:
        """Reset to no scale and no shift."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised `(..., N, channels)`."""
        if self.statistics == "fitted" and self.mean is not None and self.scale is not None:
            normalised = (x - self.mean) * self.scale
        else:
            mean = x.mean(-2, keepdim=True)
            centred = x - mean
            scale = (centred.square().mean(-2, keepdim=True) + _EPSILON).rsqrt()
            if self.statistics == "keep":
                self.mean, self.scale = mean.detach().flatten(), scale.detach().flatten()
            normalised = centred * scale
        return normalised * self.weight.unsqueeze(-2) + self.bias.unsqueeze(-2)

    def check(self) -> None:
        """Raise `ValueError` unless the statistics, if there are any, are a number for each channel."""
        check_buffers(self, dict.fromkeys(("mean", "scale"), tuple(self.weight.shape)))


def node_norms(module: nn.Module) -> list[NodeNorm]:
    """Return all normalisations in a module."""
    return [each for each in module.modules() if isinstance(each, NodeNorm)]


@contextmanager
def norm_statistics(module: nn.Module, statistics: NormStatistics) -> Iterator[None]:
    """Let a module's normalisations use the batch's statistics inside, or keep these, or use the kept ones."""
    norms = node_norms(module)
    for norm in norms:
        norm.statistics = statistics
    try:
        yield
    finally:
        for norm in norms:
            norm.statistics = "batch"
