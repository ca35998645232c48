"""Sums of kernels over all nodes, their slopes and their quadratic forms, to a given tolerance."""

import math
from typing import TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor

from fairpass.errors import NotFiniteError
from fairpass.kernels.backend import EPS, KernelBackend, Problem, described
from fairpass.kernels.dispatch import Backend, check_backend, choose, fit_line
from fairpass.kernels.pairwise import Laplace, warn_of_pairs


class SumOptions(TypedDict, total=False):
    """How kernel sums are computed: the keywords of :func:`gauss_sum`."""

    eps: float
    backend: Backend
    directions: int | None


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
    r"""Return :math:`\sum_j \exp(-\alpha \|t_i - s_j\|^2)\, w_j` for every target, shape `(..., N, q)`.

    In at most three dimensions the error is at most `eps` times :math:`\sum_j |w_j|`, plus rounding: in float32
    mostly a few 1e-7 of the same sum and at worst a few 1e-6, however wide the points are spread. In more dimensions
    few points are summed pair by pair, exactly up to rounding, and many points with slices, a kernel close to the
    Gaussian. If :math:`\alpha \|t_i - s_j\|^2` is 0.3 on average, a slope is then off by less than 5 %, less with more
    `directions`; if it is 3, by a third to a half.

    Differentiable any number of times in the points and the strengths; `alpha` is a constant.

    Args:
        targets: points `t`, shape `(..., N, d)`.
        sources: points `s`, shape `(..., M, d)`; if they are the targets, pass the very same tensor to save time.
        strengths: weights `w`, shape `(..., M, q)`.
        alpha: positive number, or one for each problem of the leading batch axes.
        eps: tolerance of the spectral and split backends.
        backend: `"dense"` holds the kernel matrix (the oracle); `"tiled"` visits all pairs in bounded memory;
            `"spectral"` is O(N) in at most three dimensions; `"split"` cuts wide spans into pieces; `"sliced"` is
            O(N) in any dimension, for a kernel close to the Gaussian. `"auto"` takes the cheapest by a cost model,
            slices only in more than three dimensions and with a `NarrowKernelWarning` if they are far off; `"exact"`
            takes the cheapest except slices. Both give a `QuadraticCostWarning` before they visit more than 2^28 pairs.
        directions: number of frequencies of the sliced backend, rounded up to complete orthonormal sets; by default
            `2 d (d + 2)`, at most 1,024. They are drawn from a fixed seed, the same in every call.

    Example:
        >>> points = torch.tensor([[0.0], [1.0]])
        >>> gauss_sum(points, points, torch.ones(2, 1), 1.0)
        tensor([[1.3679],
                [1.3679]])
    """
    problem, inputs, shape = _batched(targets, sources, strengths, alpha, eps, backend, directions)
    out = choose(problem, backend).differentiable_sum(*inputs)
    return out.reshape(*shape, *out.shape[-2:])


def laplace_sum(targets: Tensor, sources: Tensor, strengths: Tensor, alpha: float | Tensor) -> Tensor:
    r"""Return :math:`\sum_j \exp(-\alpha \|t_i - s_j\|_1)\, w_j`, pair by pair in bounded memory.

    Arguments and shapes as for :func:`gauss_sum`. Differentiable twice. More than 2^28 pairs give a
    `QuadraticCostWarning` before they are visited.
    """
    problem, inputs, shape = _batched(targets, sources, strengths, alpha)
    warn_of_pairs(problem, "the Gaussian kernel takes time proportional to the nodes")
    out = Laplace(problem).differentiable_sum(*inputs)
    return out.reshape(*shape, *out.shape[-2:])


def gauss_slope(
    points: Tensor, strengths: Tensor, alpha: float | Tensor, **options: Unpack[SumOptions]
) -> tuple[Tensor, Tensor]:
    r"""Return the gradient of each column's sum, :math:`\sum_j k(x, x_j) w_j`, by `x` at each point `x_i`.

    It is :math:`2\alpha \sum_j k_{ij} (x_j - x_i) w_j`, shape `(..., N, q, d)`, at half the cost of the sums in it.
    The error is a few `eps` times :math:`\sqrt{\alpha} \sum_j |w_j|`, plus rounding, which here depends on the size
    of the coordinates. Differentiable any number of times. The second result is :math:`w^\top K w`, shape
    `(..., q, q)`, as a constant. Arguments as for :func:`gauss_sum`, with the `points` as targets and sources.
    """
    backend, t, w, shape = _for_points(points, strengths, alpha, options)
    slopes, gram = backend.slope(t, w)
    return slopes.reshape(*shape, *slopes.shape[-3:]), gram.reshape(*shape, *gram.shape[-2:])


@torch.no_grad()
def gauss_gram(points: Tensor, strengths: Tensor, alpha: float | Tensor, **options: Unpack[SumOptions]) -> Tensor:
    r"""Return :math:`\sum_{ij} w_{ip} k_{ij} w_{jq}` for every two columns, shape `(..., q, q)`, without gradient.

    The error is at most `eps` times :math:`\sum_i |w_{ip}| \sum_j |w_{jq}|`, plus rounding. Arguments as for
    :func:`gauss_slope`.
    """
    backend, _, w, shape = _for_points(points, strengths, alpha, options)
    gram = backend.gram(w)
    return gram.reshape(*shape, *gram.shape[-2:])


def _for_points(
    points: Tensor, strengths: Tensor, alpha: float | Tensor, options: SumOptions
) -> tuple[KernelBackend, Tensor, Tensor, tuple[int, ...]]:
    """Return the backend for slopes, points and strengths with gradient, and the shape of the batch."""
    problem, (t, _, w), shape = _batched(points, None, strengths, alpha, **options)
    backend = options.get("backend", "auto")
    chosen: KernelBackend | None = fit_line(problem, backend)
    if chosen is None:  # else the points are finite
        _check_finite("points", points)
        chosen = choose(problem, backend)
    return chosen, t, w, shape


def _check_finite(name: str, points: Tensor) -> None:
    # The sum is not finite if one of them is not, and takes a thirtieth of the time to look at each.
    if not math.isfinite(points.detach().sum()) and not bool(torch.isfinite(points).all()):
        raise NotFiniteError(f"'{name}' must be finite (got NaN or infinity)")


def _batched(
    targets: Tensor,
    sources: Tensor | None,
    strengths: Tensor,
    alpha: float | Tensor,
    eps: float = EPS,
    backend: Backend = "auto",
    directions: int | None = None,
) -> tuple[Problem, tuple[Tensor, Tensor, Tensor], tuple[int, ...]]:
    """Check the arguments of a sum and give every tensor exactly one batch axis.

    Returns the problem, its targets, sources and strengths with gradient, and the shape of the batch. Without `sources`
    the targets are both, and whether they are finite is not checked.
    """
    first, last = ("points", "points") if sources is None else ("targets", "sources")
    others = targets if sources is None else sources
    for name, tensor in ((first, targets), (last, others), ("strengths", strengths)):
        is_usable = isinstance(tensor, Tensor) and tensor.dim() >= 2 and tensor.dtype == targets.dtype
        if not is_usable or tensor.dtype not in (torch.float32, torch.float64):
            shown = described(tensor)
            raise ValueError(f"'{name}' must have two axes or more, float32 or float64 like the others (got {shown})")
    dimension, count = targets.shape[-1], others.shape[-2]
    if dimension == 0:
        raise ValueError(f"'{first}' must have at least one dimension (got shape {tuple(targets.shape)})")
    if dimension != others.shape[-1]:
        shown = f"{dimension} and {others.shape[-1]}"
        raise ValueError(f"'targets' and 'sources' must have points of the same dimension (got {shown})")
    if count != strengths.shape[-2]:
        shown = f"{strengths.shape[-2]} for {count}"
        raise ValueError(f"'strengths' must have one row for each of the {last} (got {shown})")
    if isinstance(alpha, Tensor) and alpha.requires_grad:
        raise ValueError("'alpha' must be a constant: detach it (gradients by alpha are not provided)")
    a = torch.as_tensor(alpha, dtype=targets.dtype, device=targets.device)
    if not all(0 < value < math.inf for value in a.reshape(-1).tolist()):
        raise NotFiniteError(f"'alpha' must be positive and finite (got {alpha})")
    if sources is not None:
        _check_finite(first, targets)
        _check_finite(last, others)
    shape: tuple[int, ...] = ()
    if a.dim() or max(targets.dim(), others.dim(), strengths.dim()) > 2:
        leading = [tuple(tensor.shape[:-2]) for tensor in (targets, others, strengths)]
        try:
            shape = np.broadcast_shapes(*leading, a.shape)
        except ValueError as error:
            shown = f"{', '.join(map(str, leading))} and {tuple(a.shape)}"
            raise ValueError(f"batch axes of points, 'strengths' and 'alpha' must broadcast (got {shown})") from error

    def batched(tensor: Tensor) -> Tensor:
        if not shape:
            return tensor[None]
        return tensor.expand(*shape, *tensor.shape[-2:]).reshape(math.prod(shape), *tensor.shape[-2:])

    t, alphas = batched(targets), a.expand(shape).reshape(-1) if shape else a[None]
    s = t if targets is others else batched(others)
    fixed = t.detach()
    problem = Problem(fixed, fixed if s is t else s.detach(), alphas, strengths.shape[-1], eps, directions)
    check_backend(backend, problem)
    return problem, (t, s, batched(strengths)), shape
