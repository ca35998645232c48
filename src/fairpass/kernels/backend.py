"""The interface of a kernel backend: one way to compute kernel sums between given points.

A backend implements `sum` and `vjp` without autograd; everything else has a default here. Shapes in all backends:
targets `(B, N, d)`, sources `(B, M, d)`, strengths `(B, M, q)`, alpha `(B,)`; a sum is `(B, N, q)`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from fairpass.kernels.box import Box, fit_box
from fairpass.world import world

EPS = 1e-7

Gradients = tuple[Tensor, Tensor, Tensor]


@dataclass(eq=False)
class Problem:
    """The points, without gradient, and the kernel of a sum."""

    targets: Tensor
    sources: Tensor  # the very same tensor if the points are the same
    alpha: Tensor
    columns: int = 1  # of the strengths
    eps: float = EPS
    directions: int | None = None  # of the sliced backend; None for its default
    is_piece: bool = False  # of a split problem: such problems are many, so their features are not kept

    @property
    def is_same(self) -> bool:
        return self.targets is self.sources

    @cached_property
    def pairs(self) -> int:
        return self.targets.shape[0] * self.targets.shape[1] * self.sources.shape[1]

    @cached_property
    def centred(self) -> tuple[Tensor, Tensor]:
        """Targets and sources as `(B, d, n)` in float64, with the targets' mean as origin."""
        points = _nodes_last(self.targets)
        origin = world().mean(points, -1)
        others = points if self.is_same else _nodes_last(self.sources).sub_(origin)
        return points.sub_(origin), others

    @cached_property
    def box(self) -> Box:
        return fit_box(self.centred[:1] if self.is_same else self.centred, self.alpha, self.eps)


def described(value: object) -> str:
    """Return what a message says was given in the place of a tensor of the right kind."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    layout = "" if value.layout == torch.strided else f", {value.layout}"
    return f"shape {tuple(value.shape)}, {value.dtype}{layout}"


def _nodes_last(points: Tensor) -> Tensor:
    return torch.empty_like(points.mT, dtype=torch.float64, memory_format=torch.contiguous_format).copy_(points.mT)


class KernelBackend(ABC):
    """Sums of a kernel for one problem."""

    name: ClassVar[str]
    max_dimension: ClassVar[float] = math.inf

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @abstractmethod
    def sum(self, w: Tensor) -> Tensor:
        """Return `sum_j k(t_i, s_j) w_j`."""

    @abstractmethod
    def vjp(self, w: Tensor, grad: Tensor) -> Gradients:
        """Return the gradients of `<grad, sum(w)>` by targets, sources and strengths."""

    def gram(self, w: Tensor) -> Tensor:
        """Return the quadratic forms `w' K w` of the columns, `(B, q, q)`; the targets must be the sources."""
        return w.mT @ self.sum(w)

    def slope(self, points: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        """Return the slopes of the sums, `(B, N, q, d)`, differentiable, and `gram` as a constant."""
        slopes, sums = self.slopes_and_sums(points, points, w)
        return slopes, w.detach().mT @ sums.detach()

    def differentiable_sum(self, t: Tensor, s: Tensor, w: Tensor) -> Tensor:
        """Return `sum(w)` as a differentiable function of the problem's points, with gradient, and of the strengths."""
        out: Tensor = _Sum.apply(t, s, w, self)  # type: ignore[no-untyped-call] # torch's own
        return out

    def slopes_and_sums(self, t: Tensor, s: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        """Return `2 alpha sum_j k_ij (s_j - t_i) w_j`, `(B, N, q, d)`, and the sums, both differentiable."""
        q, d = w.shape[-1], s.shape[-1]
        # One sum with the strengths [w, w x s]. Far from the origin its two halves would nearly cancel.
        origin = world().total(s.detach().sum(1, keepdim=True)) / max(1, world().count(s.shape[1]))
        strengths = torch.cat([w, (w[..., :, None] * (s - origin)[..., None, :]).flatten(-2)], -1)
        joint = self.differentiable_sum(t, s, strengths)
        sums, moved = joint[..., :q], torch.unflatten(joint[..., q:], -1, (q, d))
        slopes = moved - sums[..., None] * (t - origin)[..., None, :]
        return 2 * self.problem.alpha[:, None, None, None] * slopes, sums

    def differentiable_vjp(self, t: Tensor, s: Tensor, w: Tensor, grad: Tensor) -> Gradients:
        """Return `vjp` from differentiable operations, so that it can be differentiated again."""
        problem, back = self.problem, self
        if not problem.is_same:
            back = type(self)(replace(problem, targets=problem.sources, sources=problem.targets))
        by_target, _ = self.slopes_and_sums(t, s, w)
        by_source, by_strength = back.slopes_and_sums(s, t, grad)
        return (by_target * grad[..., None]).sum(-2), (by_source * w[..., None]).sum(-2), by_strength


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, t: Tensor, s: Tensor, w: Tensor, backend: KernelBackend) -> Tensor:
        ctx.backend = backend
        ctx.save_for_backward(t, s, w)
        return backend.sum(w)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        t, s, w = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True
            return *ctx.backend.differentiable_vjp(t, s, w, grad), None
        return *ctx.backend.vjp(w, grad), None


def pull_back(function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of `<grad, function(*inputs)>` by all inputs, differentiable."""
    # Views, because the same tensor may be several inputs.
    leaves = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in inputs]
    return torch.autograd.grad(function(*leaves), leaves, grad, create_graph=True)
