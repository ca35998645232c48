"""Small layers of encoders, for one network or for several of one shape that are computed at once.

The parameters of such members, and what they draw at random, have a leading axis. Every module of this package takes
parameters with or without it. Each member has its own generator, and draws the same numbers as it would alone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

import torch
from torch import Generator, Tensor, nn

from fairpass.nn.validation import LateBuffers, check_buffers
from fairpass.world import world

InputScale = Literal["given", "standard", "minmax"]
NormStatistics = Literal["batch", "keep", "fitted"]

_EPSILON = 1e-5  # added to the variance, as in `nn.BatchNorm1d`
_generators: ContextVar[Sequence[Generator] | None] = ContextVar("generators", default=None)


@contextmanager
def members(generators: Sequence[Generator]) -> Iterator[None]:
    """Treat the leading axis of what is computed inside as members, which draw from these generators."""
    token = _generators.set(generators)
    try:
        yield
    finally:
        _generators.reset(token)


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    generators = _generators.get()
    if generators is None or not training or not p:
        return world().dropout(x, p, training)
    noise = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    for member, generator in zip(noise, generators, strict=True):
        member.bernoulli_(1 - p, generator=generator)
    return x * noise.div_(1 - p)


def as_kernel_argument(value: float | Tensor) -> float | Tensor:
    """Return a hyper-parameter, a number or `(B, 1, 1)` for `B` members, as kernels take it: a number or `(B,)`."""
    return value[..., 0, 0] if isinstance(value, Tensor) else value


class Linear(nn.Linear):
    """`nn.Linear`, whose weight and bias may have a leading axis of members."""

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.dim() == 2:
            return super().forward(x)
        return torch.matmul(x, self.weight.mT) + self.bias.unsqueeze(-2)


class NodeNorm(LateBuffers):
    """Batch normalisation whose batch is the whole graph: each channel has mean 0 and variance 1 over its nodes.

    A network that sees all nodes at every pass needs no running statistics, and is the same in training and in
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
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.statistics == "fitted" and self.mean is not None and self.scale is not None:
            normalised = (x - self.mean) * self.scale
        else:
            mean = world().mean(x, -2)
            centred = x - mean
            scale = (world().mean(centred.square(), -2) + _EPSILON).rsqrt()
            if self.statistics == "keep":
                self.mean, self.scale = mean.detach().flatten(), scale.detach().flatten()
            normalised = centred * scale
        return normalised * self.weight.unsqueeze(-2) + self.bias.unsqueeze(-2)

    def check(self) -> None:
        """Raise `ValueError` unless the statistics, if there are any, are a number for each channel."""
        check_buffers(self, dict.fromkeys(("mean", "scale"), tuple(self.weight.shape)))


def node_norms(module: nn.Module) -> list[NodeNorm]:
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


class FeatureScaler(nn.Module):
    """Shifts and scales each feature by its statistics on the fitted graph, on which `fit` measures them.

    `"given"` leaves the features as they are, `"standard"` gives them mean 0 and variance 1, and `"minmax"` the range
    from -1 to 1. A constant feature becomes 0.
    """

    shift: Tensor
    factor: Tensor

    def __init__(self, scale: InputScale, channels: int) -> None:
        super().__init__()
        self.scale = scale
        if scale != "given":
            self.register_buffer("shift", torch.zeros(channels))
            self.register_buffer("factor", torch.ones(channels))

    def fit(self, x: Tensor) -> None:
        if self.scale == "given":
            return
        if self.scale == "standard":
            shift = world().mean(x, 0)[0]
            spread = world().mean((x - shift).square(), 0)[0].sqrt() if world().is_shared else x.std(0, correction=0)
        else:
            low, high = world().bounds(x, 0)
            shift, spread = (low + high) / 2, (high - low) / 2
        self.shift, self.factor = shift, torch.where(spread > 0, 1 / spread, 0.0)

    def extra_repr(self) -> str:
        return repr(self.scale)

    def forward(self, x: Tensor) -> Tensor:
        return x if self.scale == "given" else (x - self.shift) * self.factor
