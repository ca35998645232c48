r"""The primitives of this package: sums of kernels over all nodes, and the slopes of such sums.

`gauss_sum(targets, sources, strengths, alpha)` is :math:`\sum_j e^{-\alpha \|t_i - s_j\|^2} w_j`, to a stated
tolerance, by whichever backend is cheapest. The maximum mean discrepancy, its gradient (the message of GMMD), its
witness function and the inter-group similarity are all such sums.
"""

from typing import Any, get_args

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from fairpass.kernels.dispatch import Backend, Plan, choose
from fairpass.kernels.pairwise import GAUSSIAN, LAPLACE, TILE_PAIRS, Kernel, pairwise_sum, pairwise_vjp
from fairpass.kernels.spectral import (
    MAX_DIMENSION,
    Expansion,
    spectral_slope,
    spectral_slope_vjp,
    spectral_sum,
    spectral_vjp,
)
from fairpass.kernels.split import split_sum, split_vjp

EPS = 1e-7


def gauss_sum(
    targets: Tensor,
    sources: Tensor,
    strengths: Tensor,
    alpha: float | Tensor,
    *,
    eps: float = EPS,
    backend: Backend = "auto",
) -> Tensor:
    r"""Return :math:`\sum_j \exp(-\alpha \|t_i - s_j\|^2)\, w_j` for every target.

    The error is at most `eps` times :math:`\sum_j |w_j|`, plus rounding (in float32 about 1e-7 of the same).
    Differentiable, twice and more, in the points and the strengths; `alpha` is a constant.

    Args:
        targets: points `t`, shape `(..., N, d)`.
        sources: points `s`, shape `(..., M, d)`; pass the very same tensor as `targets` where they are the same
            points, and its features are computed once.
        strengths: weights `w`, shape `(..., M, q)`.
        alpha: positive number, or one for each problem of the leading batch axes.
        eps: tolerance of the spectral and split backends.
        backend: `"dense"` holds the kernel matrix (the oracle); `"tiled"` visits all pairs in bounded memory;
            `"spectral"` is O(N) in at most three dimensions; `"split"` cuts wide spans into slabs; `"auto"` takes
            the cheapest by a cost model.

    Returns:
        Tensor of shape `(..., N, q)`.

    Example:
        >>> points = torch.tensor([[0.0], [1.0]])
        >>> gauss_sum(points, points, torch.ones(2, 1), 1.0)
        tensor([[1.3679],
                [1.3679]])
    """
    t, s, w, a, shape = _as_batch(targets, sources, strengths, alpha)
    _check_backend(backend, eps, t.shape[-1])
    out = _sum(t, s, w, a, GAUSSIAN, backend, eps)
    return out.reshape(*shape, *out.shape[-2:])


def laplace_sum(targets: Tensor, sources: Tensor, strengths: Tensor, alpha: float | Tensor) -> Tensor:
    r"""Return :math:`\sum_j \exp(-\alpha \|t_i - s_j\|_1)\, w_j`, pair by pair in bounded memory.

    Arguments and shapes as for :func:`gauss_sum`. Differentiable twice.
    """
    t, s, w, a, shape = _as_batch(targets, sources, strengths, alpha)
    out = _sum(t, s, w, a, LAPLACE, "tiled", EPS)
    return out.reshape(*shape, *out.shape[-2:])


def gauss_slope(
    points: Tensor,
    strengths: Tensor,
    alpha: float | Tensor,
    *,
    eps: float = EPS,
    backend: Backend = "auto",
) -> tuple[Tensor, Tensor]:
    r"""Return the gradient of each column's sum at each point: :math:`\nabla_{x}\sum_j k(x, x_j) w_j` at `x = x_i`.

    The same as :math:`2\alpha \sum_j k_{ij} (x_j - x_i) w_j`, at a third of the cost of the sums it consists of.
    Differentiable, twice and more. The sums themselves come with it for almost nothing, as constants.

    Args:
        points: targets and sources alike, shape `(..., N, d)`.
        strengths: weights `w`, shape `(..., N, q)`.
        alpha: as for :func:`gauss_sum`, and so are `eps` and `backend`.

    Returns:
        The slopes, shape `(..., N, q, d)`, and the sums without gradient, shape `(..., N, q)`.
    """
    t, _, w, a, shape = _as_batch(points, points, strengths, alpha)
    _check_backend(backend, eps, t.shape[-1])
    fixed = t.detach()
    plan = choose(fixed, fixed, w.shape[-1], a, backend, eps)
    if plan.expansions is not None:
        slopes, sums = _Slope.apply(t, w, a, plan.expansions[0], eps)  # type: ignore[no-untyped-call] # torch's own
    else:
        slopes, sums = _slope_from_sums(t, w, a, plan.backend, eps)
    return slopes.reshape(*shape, *slopes.shape[-3:]), sums.detach().reshape(*shape, *sums.shape[-2:])


def _check_backend(backend: str, eps: float, dimension: int) -> None:
    if backend not in get_args(Backend):
        raise ValueError(f"'backend' must be one of {get_args(Backend)} (got {backend!r})")
    if not 0 < eps < 0.1:
        raise ValueError(f"'eps' must be between 0 and 0.1 (got {eps})")
    if backend in ("spectral", "split") and dimension > MAX_DIMENSION:
        raise ValueError(f"backend {backend!r} needs points in at most {MAX_DIMENSION} dimensions (got {dimension})")


def _as_batch(
    targets: Tensor, sources: Tensor, strengths: Tensor, alpha: float | Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, torch.Size]:
    """Check the arguments and give every tensor exactly one batch axis."""
    for name, tensor in (("targets", targets), ("sources", sources), ("strengths", strengths)):
        if tensor.dim() < 2 or not tensor.is_floating_point():
            raise ValueError(
                f"'{name}' must be a floating point tensor of at least two axes "
                f"(got shape {tuple(tensor.shape)}, {tensor.dtype})"
            )
    if targets.shape[-1] != sources.shape[-1] or targets.shape[-1] == 0:
        raise ValueError(
            f"'targets' and 'sources' must have points of the same dimension "
            f"(got {targets.shape[-1]} and {sources.shape[-1]})"
        )
    if sources.shape[-2] != strengths.shape[-2]:
        raise ValueError(
            f"'strengths' must have one row for each source (got {strengths.shape[-2]} for {sources.shape[-2]})"
        )
    if isinstance(alpha, Tensor) and alpha.requires_grad:
        raise ValueError("'alpha' must be a constant: detach it (gradients by alpha are not provided)")
    a = torch.as_tensor(alpha, dtype=targets.dtype, device=targets.device)
    if a.numel() == 0 or not bool(((a > 0) & torch.isfinite(a)).all()):
        raise ValueError(f"'alpha' must be positive and finite (got {alpha})")
    shape = torch.broadcast_shapes(targets.shape[:-2], sources.shape[:-2], strengths.shape[:-2], a.shape)

    def batched(tensor: Tensor) -> Tensor:
        return tensor.expand(*shape, *tensor.shape[-2:]).reshape(-1, *tensor.shape[-2:])

    t = batched(targets)
    s = t if targets is sources else batched(sources)
    return t, s, batched(strengths), a.expand(shape).reshape(-1), shape


def _sum(t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, kernel: Kernel, backend: Backend, eps: float) -> Tensor:
    out: Tensor = _Sum.apply(t, s, w, alpha, kernel, backend, eps)  # type: ignore[no-untyped-call] # torch's own
    return out


class _Sum(torch.autograd.Function):
    """Ties a backend's sum and its vector-Jacobian product together; differentiable again when asked to be."""

    @staticmethod
    def forward(
        ctx: Any, t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, kernel: Kernel, backend: Backend, eps: float
    ) -> Tensor:
        plan = choose(t, s, w.shape[-1], alpha, backend, eps)
        ctx.kernel, ctx.backend, ctx.eps, ctx.plan, ctx.same = kernel, backend, eps, plan, t is s
        ctx.save_for_backward(t, s, w, alpha)
        return _solve(plan, kernel, t, s, w, alpha, eps)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override] # torch's own
        t, s, w, alpha = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True
            by = _differentiable_vjp(t, s, w, alpha, grad, ctx.kernel, ctx.backend, ctx.eps)
        else:
            by = _solve_vjp(ctx.plan, ctx.kernel, t, t if ctx.same else s, w, alpha, grad, ctx.eps)
        return *by, None, None, None, None


class _Slope(torch.autograd.Function):
    """The spectral slope of a sum; its own derivative, too, is an evaluation of moments."""

    @staticmethod
    def forward(
        ctx: Any, points: Tensor, w: Tensor, alpha: Tensor, expansion: Expansion, eps: float
    ) -> tuple[Tensor, Tensor]:
        ctx.expansion, ctx.eps = expansion, eps
        ctx.save_for_backward(points, w, alpha)
        slopes, sums = spectral_slope(expansion, w)
        ctx.mark_non_differentiable(sums)
        return slopes, sums

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override] # torch's own
        points, w, alpha = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True
            with torch.enable_grad():
                slopes, _ = _slope_from_sums(points, w, alpha, "spectral", ctx.eps)
                by = torch.autograd.grad(slopes, (points, w), grad, create_graph=True)
        else:
            by = spectral_slope_vjp(ctx.expansion, w, grad)
        return *by, None, None, None


def _slope_from_sums(
    points: Tensor, w: Tensor, alpha: Tensor, backend: Backend, eps: float
) -> tuple[Tensor, Tensor]:
    """Return `2 alpha (sum_j k_ij w_j x_j - x_i sum_j k_ij w_j)`, `(B, N, q, d)`, and the plain sums."""
    q, d = w.shape[-1], points.shape[-1]
    strengths = torch.cat([w, (w[..., :, None] * points[..., None, :]).flatten(-2)], -1)
    joint = _sum(points, points, strengths, alpha, GAUSSIAN, backend, eps)
    plain, moved = joint[..., :q], joint[..., q:].unflatten(-1, (q, d))
    return 2 * alpha[:, None, None, None] * (moved - plain[..., None] * points[..., None, :]), plain


def _differentiable_vjp(
    t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, grad: Tensor, kernel: Kernel, backend: Backend, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Express the gradients through differentiable operations, so that they can be differentiated again."""
    if kernel is not GAUSSIAN:
        return _tiled_vjp(t, s, w, alpha, grad, kernel)

    def by_point(a: Tensor, b: Tensor, of_a: Tensor, of_b: Tensor) -> Tensor:
        # 2 alpha sum_j (g_i . w_j) k_ij (s_j - t_i), all of it from one sum with the strengths [w, w x s].
        q, d = of_b.shape[-1], b.shape[-1]
        strengths = torch.cat([of_b, (of_b[..., :, None] * b[..., None, :]).flatten(-2)], -1)
        joint = _sum(a, b, strengths, alpha, kernel, backend, eps)
        plain, moved = joint[..., :q], joint[..., q:].unflatten(-1, (q, d))
        pulled = (of_a[..., None] * moved).sum(-2) - (of_a * plain).sum(-1, keepdim=True) * a
        return 2 * alpha[:, None, None] * pulled

    return by_point(t, s, grad, w), by_point(s, t, w, grad), _sum(s, t, grad, alpha, kernel, backend, eps)


def _tiled_vjp(
    t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, grad: Tensor, kernel: Kernel
) -> tuple[Tensor, Tensor, Tensor]:
    """Differentiate tile by tile; each tile's kernel matrix is made anew when the result is differentiated."""

    def tile(rows: Tensor, pulled: Tensor, s: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        weights = kernel.values(rows, s, alpha)
        by_target, by_source = kernel.pull_back(weights * (pulled @ w.mT), rows, s, alpha)
        return by_target, by_source, weights.mT @ pulled

    size = max(1, TILE_PAIRS // max(1, s.shape[1] * len(t)))
    parts = [
        checkpoint(tile, rows, pulled, s, w, use_reentrant=False)
        for rows, pulled in zip(t.split(size, 1), grad.split(size, 1), strict=True)
    ]
    by_target, by_source, by_strength = zip(*parts, strict=True)
    return torch.cat(by_target, 1), torch.stack(by_source).sum(0), torch.stack(by_strength).sum(0)


def _solve(plan: Plan, kernel: Kernel, t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, eps: float) -> Tensor:
    if plan.expansions is not None:
        return spectral_sum(*plan.expansions, w)
    if plan.backend == "split":

        def solve(t: Tensor, s: Tensor, w: Tensor, alpha: Tensor) -> Tensor:
            return _solve(choose(t, s, w.shape[-1], alpha, "auto", eps), kernel, t, s, w, alpha, eps)

        return split_sum(t, s, w, alpha, eps, solve)
    return pairwise_sum(kernel, t, s, w, alpha, None if plan.backend == "dense" else TILE_PAIRS)


def _solve_vjp(
    plan: Plan, kernel: Kernel, t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, grad: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    if plan.expansions is not None:
        return spectral_vjp(*plan.expansions, w, grad)
    if plan.backend == "split":

        def solve(t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return _solve_vjp(choose(t, s, w.shape[-1], alpha, "auto", eps), kernel, t, s, w, alpha, grad, eps)

        return split_vjp(t, s, w, alpha, grad, eps, solve)
    return pairwise_vjp(kernel, t, s, w, alpha, grad, None if plan.backend == "dense" else TILE_PAIRS)
