"""The registry of backends, and the choice of the cheapest one for a Gaussian sum."""

import warnings
from typing import Literal

from fairpass.errors import NarrowKernelWarning
from fairpass.kernels.backend import KernelBackend, Problem
from fairpass.kernels.box import MAX_DIMENSION, feature_count
from fairpass.kernels.cost import PIECE, pairwise_cost, sliced_cost
from fairpass.kernels.directions import default_directions
from fairpass.kernels.pairwise import Dense, Tiled, all_pairs
from fairpass.kernels.sliced import Sliced
from fairpass.kernels.spectral import Line, Spectral
from fairpass.kernels.split import FEW_PAIRS, Split, undivided
from fairpass.world import world

Backend = Literal["auto", "exact", "dense", "tiled", "spectral", "split", "sliced"]
# A new backend is one class and one entry here.
BACKENDS: dict[str, type[KernelBackend]] = {cls.name: cls for cls in (Dense, Tiled, Spectral, Split, Sliced)}

_BY_MOMENTS = ("auto", "spectral", "sliced")  # those that a shared world can add up

# A box of fewer reaches than this is not worth the time it takes to see if it can be cut, nor is a sum that
# takes less time than a handful of pieces.
NARROW, HANDFUL = 6.0, 8
# Where alpha times the mean squared distance exceeds this, sliced slopes are off by more than a sixth.
NARROW_KERNEL = 2.0


def check_backend(backend: str, problem: Problem) -> None:
    names, dimension = ("auto", "exact", *BACKENDS), problem.targets.shape[-1]
    if backend not in names:
        raise ValueError(f"'backend' must be one of {names} (got {backend!r})")
    if not 0 < problem.eps < 0.1:
        raise ValueError(f"'eps' must be between 0 and 0.1 (got {problem.eps})")
    if problem.directions is not None and problem.directions < 1:
        raise ValueError(f"'directions' must be at least 1 (got {problem.directions})")
    most = BACKENDS[backend].max_dimension if backend in BACKENDS else dimension
    if dimension > most:
        raise ValueError(f"'backend' {backend!r} needs points in at most {most} dimensions (got {dimension})")
    if world().is_shared and backend not in _BY_MOMENTS:
        # Pairs of points are in different processes; moments add up.
        raise ValueError(f"'backend' must be one of {_BY_MOMENTS} for a graph in parts (got {backend!r})")


def fit_line(problem: Problem, backend: str) -> Line | None:
    """Return the faster backend for slopes of many points on a line, unless they are too far apart."""
    is_wanted = backend == "spectral" or (backend in ("auto", "exact") and problem.pairs > FEW_PAIRS)
    if problem.targets.shape[-1] > 1:
        return None
    if world().is_shared:
        return Line.fit(problem)
    return Line.fit(problem) if is_wanted and problem.pairs else None


def choose(problem: Problem, backend: str) -> KernelBackend:
    """Return the backend of this name, or the cheapest one for `"auto"` and `"exact"`."""
    dimension = problem.targets.shape[-1]
    if world().is_shared and backend == "auto":
        # By what all processes know, however few points this one has.
        backend = Sliced.name if dimension > MAX_DIMENSION else Spectral.name
    if backend in BACKENDS and (problem.pairs * problem.columns or world().is_shared):
        return BACKENDS[backend](problem)
    if problem.pairs * problem.columns == 0:
        return Tiled(problem)
    if is_sliced(problem.targets.shape[1], problem.sources.shape[1], dimension, backend, problem.directions):
        if problem.directions is None:
            _warn_if_narrow(problem)
        return Sliced(problem)
    if problem.pairs <= FEW_PAIRS or dimension > MAX_DIMENSION:
        return all_pairs(problem)
    if max(problem.box.sizes) > feature_count(NARROW, problem.eps, dimension):
        cost = min(pairwise_cost(problem.pairs, problem.columns), Spectral.cost(problem))
        split = Split(problem) if cost > HANDFUL * PIECE else None
        if split is not None and split.cost < cost:
            return split
    return undivided(problem)


def is_sliced(n: int, m: int, dimension: int, backend: str, directions: int | None = None) -> bool:
    # For "auto" this depends on neither the columns nor the batch, so that all sums of a layer have the same kernel.
    if backend != "auto" or dimension <= MAX_DIMENSION:
        return backend == "sliced"
    if world().is_shared:
        return True
    return sliced_cost(n + m, directions or default_directions(dimension)) < pairwise_cost(n * m, 1)


def _warn_if_narrow(problem: Problem) -> None:
    narrowest = float((2 * problem.alpha * problem.centred[0].square().sum(1).mean(-1)).max())
    if narrowest > NARROW_KERNEL:
        text = (
            f"the kernel is narrow for sliced sums: 'alpha' times the mean squared distance is {narrowest:.2g}, and "
            f"above {NARROW_KERNEL:g} slopes are off by more than a sixth; use an adaptive bandwidth, a smaller "
            "'alpha', more 'directions', or backend 'exact'"
        )
        warnings.warn(text, NarrowKernelWarning, stacklevel=3)
