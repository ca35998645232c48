"""Several networks of one shape computed at once: parameters, and what is drawn at random, have a leading axis.

Every module of this package takes parameters with or without that axis, so one definition serves the single network
and the population. Each member draws from its own generator, and draws the same numbers as it would alone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Generator, Tensor, nn

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
    """Return `x` with each entry zeroed with probability `p`, and the others scaled up."""
    generators = _generators.get()
    if generators is None or not training or not p:
        return nn.functional.dropout(x, p, training)
    noise = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    for member, generator in zip(noise, generators, strict=True):
        member.bernoulli_(1 - p, generator=generator)
    return x * noise.div_(1 - p)


class Linear(nn.Linear):
    """`nn.Linear`, whose weight and bias may have a leading axis of members."""

    def forward(self, x: Tensor) -> Tensor:
        """Return `x W' + b`, `(..., N, out_features)`."""
        if self.weight.dim() == 2:
            return super().forward(x)
        return torch.matmul(x, self.weight.mT) + self.bias.unsqueeze(-2)


def as_kernel_argument(value: float | Tensor) -> float | Tensor:
    """Return a hyper-parameter, a number or `(B, 1, 1)` for `B` members, as kernels take it: a number or `(B,)`."""
    return value[..., 0, 0] if isinstance(value, Tensor) else value
