"""The search spaces that methods declare."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, get_args

from fairpass.methods import method, names
from fairpass.methods.estimator import Estimator, SpaceKind
from fairpass.methods.registry import OWN
from fairpass.parameters import Choice, Dimension, Integers

Space = Mapping[str, Dimension]


def space_of(name: str, kind: SpaceKind = "recommended") -> Space:
    """Return the search space of a method; for an unknown one, the settings of Adam.

    Args:
        name: the method's name.
        kind: `"recommended"` for ours, `"grid"` for a finite one; for GMMD and GMMD-S that is the paper's.
    """
    if kind not in get_args(SpaceKind):
        raise ValueError(f"'kind' must be one of {get_args(SpaceKind)} (got {kind!r})")
    return method(name).space(kind) if name in names() else Estimator.space(kind)


RECOMMENDED: Mapping[str, Space] = {name: space_of(name) for name in OWN}
"""What we recommend for the library's methods: intervals around values that are known to work."""

GRIDS: Mapping[str, Space] = {name: space_of(name, "grid") for name in OWN}
"""The paper's grid for its methods, and small ones around the authors' values for the others."""


def combinations(space: Space) -> Iterator[dict[str, Any]]:
    """Return every configuration of a finite space; the last parameter changes fastest."""
    values = []
    for name, dimension in space.items():
        if isinstance(dimension, Choice):
            values.append(dimension.values)
        elif isinstance(dimension, Integers):
            values.append(tuple(range(int(dimension.low), int(dimension.high) + 1)))
        else:
            raise ValueError(f"'{name}' must be a Choice or Integers for the strategy 'grid' (got {dimension})")
    return (dict(zip(space, combination, strict=True)) for combination in product(*values))
