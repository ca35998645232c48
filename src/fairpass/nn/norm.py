"""Normalisation over the nodes of a graph."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from fairpass.nn.buffers import check_buffers

# Below this a variance counts as none, as in `nn.BatchNorm1d`.
_EPSILON = 1e-5


class NodeNorm(nn.Module):
    """Batch normalisation whose batch is the whole graph: each channel has mean 0 and variance 1 over its nodes.

    A network that sees all nodes at every pass needs no running statistics while it is trained, and without them it is
    the same in training and in evaluation. Those of the fitted graph are kept at the end, so that a node's output need
    not depend on who else is scored with it.

    Args:
        channels: number of columns.
    """

    mean: Tensor | None
    scale: Tensor | None

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", None)
        self.register_buffer("scale", None)
        self.statistics: Literal["batch", "keep", "fitted"] = "batch"

    def reset_parameters(self) -> None:
        """Reset to no scale and no shift."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised `(..., N, channels)`."""
        if self.statistics == "fitted" and self.mean is not None and self.scale is not None:
            return self._affine((x - self.mean) * self.scale)
        mean = x.mean(-2, keepdim=True)
        centred = x - mean
        scale = (centred.square().mean(-2, keepdim=True) + _EPSILON).rsqrt()
        if self.statistics == "keep":
            self.mean, self.scale = mean.detach().flatten(), scale.detach().flatten()
        return self._affine(centred * scale)

    def _affine(self, x: Tensor) -> Tensor:
        return x * self.weight.unsqueeze(-2) + self.bias.unsqueeze(-2)

    @property
    def is_fitted(self) -> bool:
        """Return whether statistics were kept."""
        return self.mean is not None

    def check(self) -> None:
        """Raise `ValueError` unless the statistics, if there are any, are a number for each channel."""
        channels = len(self.weight)
        check_buffers(self, {"mean": (channels,), "scale": (channels,)})


def node_norms(module: nn.Module) -> list[NodeNorm]:
    """Return all normalisations in a module."""
    return [each for each in module.modules() if isinstance(each, NodeNorm)]


@contextmanager
def norm_statistics(module: nn.Module, statistics: Literal["keep", "fitted", "batch"]) -> Iterator[None]:
    """Let a module's normalisations keep the statistics of what passes inside, or use those kept, or the batch's."""
    norms = node_norms(module)
    for norm in norms:
        norm.statistics = statistics
    try:
        yield
    finally:
        for norm in norms:
            norm.statistics = "batch"
