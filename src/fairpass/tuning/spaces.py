"""The search spaces that methods declare, and the configurations in a space."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

from fairpass.methods import NodeClassifier, method, names
from fairpass.methods.estimator import Estimator, SpaceKind
from fairpass.methods.registry import OWN
from fairpass.parameters import Choice, Dimension, Integers, LogUniform, Uniform
from fairpass.runs import Configuration
from fairpass.training import Training
from fairpass.training.population import COMMON_SETTINGS
from fairpass.tuning.front import Point

# The dimensions of a space are offered with it.
__all__ = ["GRIDS", "RECOMMENDED", "Choice", "Configurations", "Integers", "LogUniform", "Space", "Uniform"]
__all__ += ["combinations", "space_of"]

Space = Mapping[str, Dimension]


def space_of(name: str, kind: SpaceKind = "recommended") -> Space:
    """Return the search space of a method; for an unknown one, the settings of Adam.

    `"recommended"` is ours; `"grid"` is finite, and for GMMD and GMMD-S the paper's.
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


@dataclass(frozen=True)
class Configurations:
    """All configurations that a search may try.

    `fixed` and `varied` hold hyper-parameters of the method and training settings by name; the rest are defaults.
    """

    method: str
    fixed: Mapping[str, Any]
    varied: Mapping[str, Dimension]

    @classmethod
    def of(cls, name: str, space: Space, fixed: Mapping[str, Any]) -> "Configurations":
        """Return the configurations of a space; raise `ValueError` if the method does not accept all of them."""
        known = [*_parameters(method(name)), *(setting for setting in Training.declared if setting != "seed")]
        for argument, key in [*(("space", key) for key in space), *(("fixed", key) for key in fixed)]:
            if key == "seed":
                raise ValueError(f"'{argument}' must not hold 'seed': every configuration has all of 'seeds'")
            if key not in known:
                allowed = f"parameters of {name!r} or training settings: {', '.join(known)}"
                raise ValueError(f"'{argument}' must hold {allowed} (got {key!r})")
        choices = {key: each.values for key, each in space.items() if isinstance(each, Choice)}
        fixed = {**{key: values[0] for key, values in choices.items() if len(values) == 1}, **fixed}
        varied = {key: dimension for key, dimension in space.items() if key not in fixed}
        if not varied:
            raise ValueError(f"there must be something to vary for {name!r} (got nothing that is not fixed)")
        made = cls(name, fixed, varied)
        for key, dimension in varied.items():
            for value in dimension.ends():
                made.classifier({**made.first(), key: value})
        return made

    def first(self) -> dict[str, Any]:
        return {name: dimension.ends()[0] for name, dimension in self.varied.items()}

    def classifier(self, values: Mapping[str, Any], *, seed: int = 0) -> NodeClassifier:
        given = {**self.fixed, **{name: self.varied[name].read(value) for name, value in values.items()}}
        known = _parameters(method(self.method))
        parameters = {name: value for name, value in given.items() if name in known}
        training = {name: value for name, value in given.items() if name not in known}
        return Configuration(self.method, parameters, training).classifier(seed)

    def default(self) -> dict[str, Any]:
        """Return the method's defaults of what is varied, as far as the search can find them."""
        itself = method(self.method)()
        values = {**itself.training.to_dict(), **itself.hyperparameters}
        return {name: values[name] for name, dimension in self.varied.items() if dimension.contains(values[name])}

    def shape(self) -> list[str]:
        """Return what is varied but must be the same for classifiers that train as one population."""
        found = method(self.method)
        shared = {*_parameters(found), *COMMON_SETTINGS} - {*found.per_member}
        return [name for name in self.varied if name in shared]

    def point(self, values: Mapping[str, Any], **outcome: Any) -> Point:
        made = Configuration.of(self.classifier(values))
        return Point(made.method, made.parameters, made.training, **outcome)

    def describe(self) -> dict[str, Any]:
        """Return what distinguishes these configurations from others, as plain values."""
        varied = {name: str(dimension) for name, dimension in self.varied.items()}
        first = self.point(self.first())
        fixed = {name: value for name, value in {**first.training, **first.parameters}.items() if name not in varied}
        return {"method": self.method, "varied": varied, "fixed": fixed}


def _parameters(found: type[NodeClassifier]) -> list[str]:
    return [name for name in found.declared if name != "training"]
