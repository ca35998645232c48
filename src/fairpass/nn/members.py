"""Several networks of one shape computed at once: parameters, and what is drawn at random, have a leading axis.

Every module of this package takes parameters with or without that axis, so that one definition serves the single
network and the population. What is drawn for a member comes from the member's own generator: it is what the member
would have drawn alone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Generator, Tensor, nn

_generators: ContextVar[Sequence[Generator] | None] = ContextVar("generators", default=None)


@contextmanager
def members(generators: Sequence[Generator]) -> Iterator[None]:
    """Let the leading axis of what is computed inside be members, and each draw from its own generator."""
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


def one_per_problem(value: float | Tensor) -> float | Tensor:
    """Return a hyper-parameter, a number or `(B, 1, 1)`, as kernels take it: a number or `(B,)`."""
    return value[..., 0, 0] if isinstance(value, Tensor) else value
