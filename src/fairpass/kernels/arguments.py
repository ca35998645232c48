"""What the kernel sums accept: checked before any work, and brought to one shape."""

import math
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from fairpass.kernels.box import MAX_DIMENSION
from fairpass.kernels.dispatch import Backend

_TYPES = (torch.float32, torch.float64)


def check_backend(backend: str, eps: float, dimension: int, directions: int | None = None) -> None:
    """Raise if there is no such backend, or not for points of this dimension, or not to this tolerance."""
    if backend not in get_args(Backend):
        raise ValueError(f"'backend' must be one of {get_args(Backend)} (got {backend!r})")
    if not 0 < eps < 0.1:
        raise ValueError(f"'eps' must be between 0 and 0.1 (got {eps})")
    if directions is not None and directions < 1:
        raise ValueError(f"'directions' must be at least 1 (got {directions})")
    if backend in ("spectral", "split") and dimension > MAX_DIMENSION:
        raise ValueError(f"'backend' {backend!r} needs points in at most {MAX_DIMENSION} dimensions (got {dimension})")


def check_finite(name: str, points: Tensor) -> None:
    """Raise if one of the points is not finite."""
    # The sum is not finite if one of them is not, and takes a thirtieth of the time to look at each.
    if not math.isfinite(points.detach().sum()) and not bool(torch.isfinite(points).all()):
        raise ValueError(f"'{name}' must be finite (got NaN or infinity)")


def as_batch(
    targets: Tensor,
    sources: Tensor,
    strengths: Tensor,
    alpha: float | Tensor,
    names: tuple[str, str] = ("targets", "sources"),
    *,
    finite: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, tuple[int, ...]]:
    """Check the arguments of a sum and give every tensor exactly one batch axis.

    Returns targets `(B, N, d)`, sources `(B, M, d)`, strengths `(B, M, q)`, alpha `(B,)` and the shape of the
    batch. Where the targets are the very same tensor as the sources, they still are. If it is known that the points
    are `finite`, or asked later, they are not looked at.
    """
    points = {names[0]: targets, names[1]: sources}
    dtype = targets.dtype
    for name, tensor in (*points.items(), ("strengths", strengths)):
        if tensor.dim() < 2 or tensor.dtype != dtype or dtype not in _TYPES:
            raise ValueError(
                f"'{name}' must be a tensor of at least two axes, float32 or float64 like the others "
                f"(got shape {tuple(tensor.shape)}, {tensor.dtype})"
            )
    if targets.shape[-1] == 0:
        raise ValueError(f"'{names[0]}' must have at least one dimension (got shape {tuple(targets.shape)})")
    if targets.shape[-1] != sources.shape[-1]:
        raise ValueError(
            f"'targets' and 'sources' must have points of the same dimension "
            f"(got {targets.shape[-1]} and {sources.shape[-1]})"
        )
    if sources.shape[-2] != strengths.shape[-2]:
        raise ValueError(
            f"'strengths' must have one row for each of the {names[1]} "
            f"(got {strengths.shape[-2]} for {sources.shape[-2]})"
        )
    if isinstance(alpha, Tensor) and alpha.requires_grad:
        raise ValueError("'alpha' must be a constant: detach it (gradients by alpha are not provided)")
    a = torch.as_tensor(alpha, dtype=dtype, device=targets.device)
    if not all(0 < value < math.inf for value in a.reshape(-1).tolist()):
        raise ValueError(f"'alpha' must be positive and finite (got {alpha})")
    if not finite:
        for name, tensor in points.items():
            check_finite(name, tensor)
    leading = [tuple(tensor.shape[:-2]) for tensor in (*points.values(), strengths)]
    if not any(leading) and a.dim() == 0:
        t = targets[None]
        return t, t if targets is sources else sources[None], strengths[None], a[None], ()
    try:
        shape = np.broadcast_shapes(*leading, a.shape)
    except ValueError as error:
        raise ValueError(
            f"the batch axes of the points, the 'strengths' and 'alpha' must broadcast "
            f"(got {', '.join(map(str, leading))} and {tuple(a.shape)})"
        ) from error

    def batched(tensor: Tensor) -> Tensor:
        return tensor.expand(*shape, *tensor.shape[-2:]).reshape(math.prod(shape), *tensor.shape[-2:])

    t = batched(targets)
    s = t if targets is sources else batched(sources)
    return t, s, batched(strengths), a.expand(shape).reshape(-1), shape
