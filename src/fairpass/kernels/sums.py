r"""The primitives of this package: sums of kernels over all nodes, and the slopes of such sums.

`gauss_sum(targets, sources, strengths, alpha)` is :math:`\sum_j e^{-\alpha \|t_i - s_j\|^2} w_j`, to a stated
tolerance, by whichever backend is cheapest. The maximum mean discrepancy, its gradient (the message of GMMD),
its witness function and the inter-group similarity are all such sums.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from fairpass.kernels.arguments import as_batch, check_backend, check_finite
from fairpass.kernels.dispatch import FEW_PAIRS, Backend, Plan, choose, warn_of_pairs
from fairpass.kernels.expansion import Expanded
from fairpass.kernels.line import Line, fit_line
from fairpass.kernels.pairwise import GAUSSIAN, LAPLACE, TILE_PAIRS, Kernel, pairwise_sum, pairwise_vjp
from fairpass.kernels.sliced import SlicedExpansion, differentiable_slope, differentiable_sum, sliced_slope_vjp
from fairpass.kernels.spectral import (
    spectral_gram,
    spectral_slope,
    spectral_slope_vjp,
    spectral_sum,
    spectral_vjp,
)
from fairpass.kernels.split import Cut, split_sum, split_vjp

EPS = 1e-7


def gauss_sum(
    targets: Tensor,
    sources: Tensor,
    strengths: Tensor,
    alpha: float | Tensor,
    *,
    eps: float = EPS,
    backend: Backend = "auto",
    directions: int | None = None,
) -> Tensor:
    r"""Return :math:`\sum_j \exp(-\alpha \|t_i - s_j\|^2)\, w_j` for every target.

    In at most three dimensions the error is at most `eps` times :math:`\sum_j |w_j|`, plus rounding: in float32
    mostly a few 1e-7 of the same sum and at worst a few 1e-6, wherever the points lie and however wide they are spread.
    In more dimensions few points are summed pair by pair, with no error but rounding. Many take slices: a kernel
    close to the Gaussian, which `directions.py` defines. Its error depends on how wide the points are spread: where
    :math:`\alpha \|t_i - s_j\|^2` is 0.3 in the mean, a slope is off by less than 5 %, and by less with more
    `directions`; where it is 3, by a third to a half.

    Differentiable, twice and more, in the points and the strengths; `alpha` is a constant.

    Args:
        targets: points `t`, shape `(..., N, d)`.
        sources: points `s`, shape `(..., M, d)`; pass the very same tensor as `targets` where they are the
            same points, and its features are computed once.
        strengths: weights `w`, shape `(..., M, q)`.
        alpha: positive number, or one for each problem of the leading batch axes.
        eps: tolerance of the spectral and split backends.
        backend: `"dense"` holds the kernel matrix (the oracle); `"tiled"` visits all pairs in bounded memory;
            `"spectral"` is O(N) in at most three dimensions; `"split"` cuts wide spans to pieces; `"sliced"` is
            O(N) in any dimension, for a kernel close to the Gaussian. `"auto"` takes the cheapest by a cost model,
            slices in more than three dimensions only, with a `NarrowKernelWarning` where these are far off;
            `"exact"` the cheapest but slices. Before these two visit more than 2^28 pairs they give a
            `QuadraticCostWarning`.
        directions: number of frequencies of the sliced backend, rounded up to complete orthonormal sets; by default
            `2 d (d + 2)`, at most 1,024. They are drawn from a fixed seed, the same in every call.

    Returns:
        Tensor of shape `(..., N, q)`.

    Example:
        >>> points = torch.tensor([[0.0], [1.0]])
        >>> gauss_sum(points, points, torch.ones(2, 1), 1.0)
        tensor([[1.3679],
                [1.3679]])
    """
    t, s, w, a, shape = as_batch(targets, sources, strengths, alpha)
    check_backend(backend, eps, t.shape[-1], directions)
    out = _sum(t, s, w, a, GAUSSIAN, choose(t, s, w.shape[-1], a, backend, eps, directions), eps)
    return out.reshape(*shape, *out.shape[-2:])


def laplace_sum(targets: Tensor, sources: Tensor, strengths: Tensor, alpha: float | Tensor) -> Tensor:
    r"""Return :math:`\sum_j \exp(-\alpha \|t_i - s_j\|_1)\, w_j`, pair by pair in bounded memory.

    Arguments and shapes as for :func:`gauss_sum`. Differentiable twice. More than 2^28 pairs give a
    `QuadraticCostWarning` before they are visited.
    """
    t, s, w, a, shape = as_batch(targets, sources, strengths, alpha)
    warn_of_pairs(t.shape[1], s.shape[1], len(t), "the Gaussian kernel takes time proportional to the nodes")
    out = _sum(t, s, w, a, LAPLACE, Plan("tiled"), EPS)
    return out.reshape(*shape, *out.shape[-2:])


def gauss_slope(
    points: Tensor,
    strengths: Tensor,
    alpha: float | Tensor,
    *,
    eps: float = EPS,
    backend: Backend = "auto",
    directions: int | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Return the gradient of each column's sum, :math:`\sum_j k(x, x_j) w_j`, by `x` at each point `x_i`.

    It is :math:`2\alpha \sum_j k_{ij} (x_j - x_i) w_j`, at half the cost of the sums it consists of, with an
    error of a few `eps` times :math:`\sqrt{\alpha} \sum_j |w_j|`, plus rounding, in which here the digits of the
    coordinates themselves count; with slices as :func:`gauss_sum` says. Differentiable, twice and more. The quadratic
    forms of the strengths come with it for almost nothing, as constants.

    Args:
        points: targets and sources alike, shape `(..., N, d)`.
        strengths: weights `w`, shape `(..., N, q)`.
        alpha: as for :func:`gauss_sum`, and so are `eps`, `backend` and `directions`.

    Returns:
        The slopes, shape `(..., N, q, d)`, and :math:`w^\top K w` as of :func:`gauss_gram`, shape `(..., q, q)`.
    """
    t, _, w, a, shape = as_batch(points, points, strengths, alpha, names=("points", "points"), finite=True)
    check_backend(backend, eps, t.shape[-1], directions)
    line = _line(t, a, backend, eps)
    plan = choose(t, t, w.shape[-1], a, backend, eps, directions) if line is None else Plan("spectral")
    expansion = plan.expansions[0] if plan.expansions is not None else line
    if expansion is not None:
        slopes, gram = _Slope.apply(t, w, a, expansion, eps)  # type: ignore[no-untyped-call] # torch's own
    else:
        slopes, sums = _slopes(t, t, w, a, plan, eps)
        gram = w.detach().mT @ sums.detach()
    return slopes.reshape(*shape, *slopes.shape[-3:]), gram.reshape(*shape, *gram.shape[-2:])


@torch.no_grad()
def gauss_gram(
    points: Tensor,
    strengths: Tensor,
    alpha: float | Tensor,
    *,
    eps: float = EPS,
    backend: Backend = "auto",
    directions: int | None = None,
) -> Tensor:
    r"""Return :math:`\sum_{ij} w_{ip} k_{ij} w_{jq}` for every two columns, without gradient.

    In an expansion in waves these are inner products of small moment tensors: nothing is evaluated at the points.
    The error is at most `eps` times :math:`\sum_i |w_{ip}| \sum_j |w_{jq}|`, plus rounding.

    Args:
        points: shape `(..., N, d)`.
        strengths: weights `w`, shape `(..., N, q)`.
        alpha: as for :func:`gauss_sum`, and so are `eps`, `backend` and `directions`.

    Returns:
        Tensor of shape `(..., q, q)`.
    """
    t, _, w, a, shape = as_batch(points, points, strengths, alpha, names=("points", "points"), finite=True)
    check_backend(backend, eps, t.shape[-1], directions)
    line = _line(t, a, backend, eps)
    if line is not None:
        gram = line.gram(w)
    else:
        plan = choose(t, t, w.shape[-1], a, backend, eps, directions)
        if plan.expansions is not None:
            gram = spectral_gram(plan.expansions[0], w)
        else:
            gram = w.mT @ _solve(plan, GAUSSIAN, t, t, w, a, eps)
    return gram.reshape(*shape, *gram.shape[-2:])


def _line(points: Tensor, alpha: Tensor, backend: Backend, eps: float) -> Line | None:
    """Return the points as a line if they are in one dimension, and enough for it, but not too far apart.

    If it returns None, it has seen that they are finite.
    """
    batch, n, dimension = points.shape
    wanted = backend == "spectral" or (backend in ("auto", "exact") and batch * n * n > FEW_PAIRS)
    line = fit_line(points, alpha, eps) if wanted and dimension == 1 and batch * n else None
    if line is None:
        check_finite("points", points)
    return line


def _sum(t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, kernel: Kernel, plan: Plan, eps: float) -> Tensor:
    out: Tensor = _Sum.apply(t, s, w, alpha, kernel, plan, eps)  # type: ignore[no-untyped-call] # torch's own
    return out


class _Sum(torch.autograd.Function):
    """Ties a backend's sum and its vector-Jacobian product together; differentiable again when asked."""

    @staticmethod
    def forward(
        ctx: Any, t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, kernel: Kernel, plan: Plan, eps: float
    ) -> Tensor:
        ctx.kernel, ctx.plan, ctx.eps = kernel, plan, eps
        ctx.save_for_backward(t, s, w, alpha)
        return _solve(plan, kernel, t, s, w, alpha, eps)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        t, s, w, alpha = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True
            by = _differentiable_vjp(t, s, w, alpha, grad, ctx.kernel, ctx.plan, ctx.eps)
        else:
            by = _solve_vjp(ctx.plan, ctx.kernel, t, s, w, alpha, grad, ctx.eps)
        return *by, None, None, None, None


class _Slope(torch.autograd.Function):
    """The slope of a sum by an expansion in waves; its own derivative, too, is an evaluation of moments."""

    @staticmethod
    def forward(
        ctx: Any, points: Tensor, w: Tensor, alpha: Tensor, expansion: Expanded | Line, eps: float
    ) -> tuple[Tensor, Tensor]:
        slopes, gram, ctx.moments = expansion.slope(w) if isinstance(expansion, Line) else spectral_slope(expansion, w)
        ctx.expansion, ctx.eps = expansion, eps
        ctx.save_for_backward(points, w, alpha)
        ctx.mark_non_differentiable(gram)
        return slopes, gram

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        points, w, alpha = ctx.saved_tensors
        is_sliced = isinstance(ctx.expansion, SlicedExpansion)
        if not torch.is_grad_enabled():
            by_strength = ctx.needs_input_grad[1]
            if isinstance(ctx.expansion, Line):
                by = ctx.expansion.slope_vjp(w, ctx.moments, grad, by_strength=by_strength)
            else:
                vjp: Any = sliced_slope_vjp if is_sliced else spectral_slope_vjp
                by = vjp(ctx.expansion, w, ctx.moments, grad, by_strength=by_strength)
            return *by, None, None, None
        # create_graph=True
        if is_sliced:
            slopes = differentiable_slope(ctx.expansion.box, points, w)
        else:
            plan = choose(points, points, w.shape[-1], alpha, "spectral", ctx.eps)
            slopes, _ = _slopes(points, points, w, alpha, plan, ctx.eps)
        wanted = [x for x, needed in zip((points, w), ctx.needs_input_grad, strict=False) if needed]
        found = iter(torch.autograd.grad(slopes, wanted, grad, create_graph=True))
        return *(next(found) if needed else None for needed in ctx.needs_input_grad[:2]), None, None, None


def _slopes(t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, plan: Plan, eps: float) -> tuple[Tensor, Tensor]:
    """Return `2 alpha sum_j k_ij (s_j - t_i) w_j`, `(B, N, q, d)`, and the plain sums, both differentiable.

    All of it comes from one sum with the strengths `[w, w x s]`. Far from the origin its two halves would
    nearly cancel, so the origin is put in the middle of the sources, those of each piece if there are pieces.
    """
    if plan.cuts is not None:
        return _slopes_by_piece(t, s, w, alpha, plan.cuts, eps)
    q, d = w.shape[-1], s.shape[-1]
    origin = s.detach().sum(1, keepdim=True) / max(1, s.shape[1])
    strengths = torch.cat([w, (w[..., :, None] * (s - origin)[..., None, :]).flatten(-2)], -1)
    joint = _sum(t, s, strengths, alpha, GAUSSIAN, plan, eps)
    plain, moved = joint[..., :q], torch.unflatten(joint[..., q:], -1, (q, d))
    return 2 * alpha[:, None, None, None] * (moved - plain[..., None] * (t - origin)[..., None, :]), plain


def _slopes_by_piece(
    t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, cuts: list[Cut], eps: float
) -> tuple[Tensor, Tensor]:
    slopes, plain, places = [], [], []
    for b, (pieces, _) in enumerate(cuts):
        one = slice(b, b + 1)
        for mine, theirs in pieces:
            piece = t[one, mine], s[one, theirs], w[one, theirs], alpha[one]
            plan = choose(piece[0], piece[1], w.shape[-1], alpha[one], "auto", eps, may_split=False)
            slope, value = _slopes(*piece, plan, eps)
            slopes.append(slope[0])
            plain.append(value[0])
            places.append(b * t.shape[1] + mine)
    # All pieces are put in their places at once: one by one, each would copy the whole for its backward.
    count, index = t.shape[0] * t.shape[1], torch.cat(places)
    q, d = w.shape[-1], t.shape[-1]
    return (
        t.new_zeros((count, q, d)).index_copy(0, index, torch.cat(slopes)).reshape(*t.shape[:2], q, d),
        t.new_zeros((count, q)).index_copy(0, index, torch.cat(plain)).reshape(*t.shape[:2], q),
    )


def _differentiable_vjp(
    t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, grad: Tensor, kernel: Kernel, plan: Plan, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Express the gradients through differentiable operations, so that they can be differentiated again."""
    if kernel is not GAUSSIAN:
        return _tiled_vjp(t, s, w, alpha, grad, kernel)
    if plan.expansions is not None and isinstance(plan.expansions[0], SlicedExpansion):
        # The slope of this kernel is not one of its sums. Views, as the targets may be the sources.
        leaves = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in (t, s, w)]
        sums = differentiable_sum(plan.expansions[0].box, *leaves)
        by_target, by_source, by_strength = torch.autograd.grad(sums, leaves, grad, create_graph=True)
        return by_target, by_source, by_strength
    back = choose(s, t, w.shape[-1], alpha, plan.backend, eps)
    by_target, _ = _slopes(t, s, w, alpha, plan, eps)
    by_source, by_strength = _slopes(s, t, grad, alpha, back, eps)
    return (by_target * grad[..., None]).sum(-2), (by_source * w[..., None]).sum(-2), by_strength


def _tiled_vjp(
    t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, grad: Tensor, kernel: Kernel
) -> tuple[Tensor, Tensor, Tensor]:
    """Differentiate tile by tile; each tile's kernel matrix is computed again when this is differentiated."""

    def tile(rows: Tensor, pulled: Tensor, s: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        weights = kernel.values(rows, s, alpha)
        by_target, by_source = kernel.pull_back(weights * (pulled @ w.mT), rows, s, alpha)
        return by_target, by_source, weights.mT @ pulled

    size = max(1, TILE_PAIRS // max(1, s.shape[1] * len(t)))
    parts = [
        checkpoint(tile, rows, pulled, s, w, use_reentrant=False)
        for rows, pulled in zip(torch.split(t, size, 1), torch.split(grad, size, 1), strict=True)
    ]
    by_target, by_source, by_strength = zip(*parts, strict=True)
    return torch.cat(by_target, 1), torch.stack(by_source).sum(0), torch.stack(by_strength).sum(0)


def _solve(plan: Plan, kernel: Kernel, t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, eps: float) -> Tensor:
    if plan.expansions is not None:
        return spectral_sum(*plan.expansions, w)
    if plan.cuts is not None:

        def solve(t: Tensor, s: Tensor, w: Tensor, alpha: Tensor) -> Tensor:
            plan = choose(t, s, w.shape[-1], alpha, "auto", eps, may_split=False)
            return _solve(plan, kernel, t, s, w, alpha, eps)

        return split_sum(t, s, w, alpha, plan.cuts, solve)
    return pairwise_sum(kernel, t, s, w, alpha, None if plan.backend == "dense" else TILE_PAIRS)


def _solve_vjp(
    plan: Plan, kernel: Kernel, t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, grad: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    if plan.expansions is not None:
        return spectral_vjp(*plan.expansions, w, grad)
    if plan.cuts is not None:

        def solve(t: Tensor, s: Tensor, w: Tensor, alpha: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            plan = choose(t, s, w.shape[-1], alpha, "auto", eps, may_split=False)
            return _solve_vjp(plan, kernel, t, s, w, alpha, grad, eps)

        return split_vjp(t, s, w, alpha, grad, plan.cuts, solve)
    return pairwise_vjp(kernel, t, s, w, alpha, grad, None if plan.backend == "dense" else TILE_PAIRS)
