"""From the values of a search to a classifier: what is varied, what is fixed, and that a method knows all of it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from fairpass.methods import NodeClassifier, method
from fairpass.parameters import Choice, Dimension
from fairpass.training import Training
from fairpass.training.population import COMMON_SETTINGS
from fairpass.tuning.front import Point
from fairpass.tuning.spaces import Space

_SETTINGS = tuple(field.name for field in fields(Training) if field.name != "seed")


@dataclass(frozen=True)
class Configurations:
    """All classifiers that a search may try. Parameters of the method and training settings go by their names.

    Attributes:
        method: name of the method.
        fixed: values that are not the default, and the same for all.
        varied: what differs from one to another.
    """

    method: str
    fixed: Mapping[str, Any]
    varied: Mapping[str, Dimension]

    @classmethod
    def of(cls, name: str, space: Space, fixed: Mapping[str, Any]) -> "Configurations":
        """Return the configurations of a space of which some parameters may be fixed; every end of it is tried."""
        known = [*_parameters(method(name)), *_SETTINGS]
        for argument, values in (("space", space), ("fixed", fixed)):
            for parameter in values:
                if parameter == "seed":
                    raise ValueError(f"'{argument}' must not hold 'seed': every configuration has all of 'seeds'")
                if parameter not in known:
                    raise ValueError(
                        f"'{argument}' must hold parameters of {name!r} or training settings: {', '.join(known)} "
                        f"(got {parameter!r})"
                    )
        single = {
            key: each.values[0] for key, each in space.items() if isinstance(each, Choice) and not each.values[1:]
        }
        fixed = {**single, **fixed}
        varied = {key: dimension for key, dimension in space.items() if key not in fixed}
        if not varied:
            raise ValueError(f"there must be something to vary for {name!r} (got nothing that is not fixed)")
        made = cls(name, fixed, varied)
        made.check()
        return made

    def check(self) -> None:
        """Raise `ValueError` if a method does not take a value."""
        first = self.first()
        for name, dimension in self.varied.items():
            for value in dimension.ends():
                self.classifier({**first, name: value})

    def first(self) -> dict[str, Any]:
        """Return the values at the lower ends, or the first of them."""
        return {name: dimension.ends()[0] for name, dimension in self.varied.items()}

    def classifier(self, values: Mapping[str, Any], *, seed: int = 0) -> NodeClassifier:
        """Return the classifier with these values of what is varied."""
        found = method(self.method)
        given = {**self.fixed, **{name: self.varied[name].read(value) for name, value in values.items()}}
        known = _parameters(found)
        parameters = {name: value for name, value in given.items() if name in known}
        settings = {name: value for name, value in given.items() if name not in parameters}
        usual = found(**parameters).training  # of a method whose settings depend on its parameters, too
        return found(**parameters, training=usual.but(**settings, seed=seed))

    @property
    def epochs(self) -> int:
        """Return how many epochs a classifier is trained at most, unless that is varied."""
        return self.classifier(self.first()).training.epochs

    def default(self) -> dict[str, Any]:
        """Return the values that the method has by itself, as far as the search can find them."""
        found = method(self.method)
        itself = found()
        values = {**itself.training.to_dict(), **itself.hyperparameters}
        return {name: values[name] for name, dimension in self.varied.items() if dimension.contains(values[name])}

    def shape(self) -> list[str]:
        """Return what is varied and cannot differ among classifiers that train as one population."""
        found = method(self.method)
        shared = {*_parameters(found), *COMMON_SETTINGS} - {*found.per_member}
        return [name for name in self.varied if name in shared]

    def point(self, values: Mapping[str, Any], **outcome: Any) -> Point:
        """Return how a configuration did."""
        classifier = self.classifier(values)
        training = classifier.training.to_dict()
        del training["seed"]
        return Point(self.method, classifier.hyperparameters, training, **outcome)

    def describe(self) -> dict[str, Any]:
        """Return what tells these configurations from others, as plain values."""
        varied = {name: str(dimension) for name, dimension in self.varied.items()}
        first = self.point(self.first(), validation={})
        values = {**first.training, **first.parameters}
        return {
            "method": self.method,
            "varied": varied,
            "fixed": {name: value for name, value in values.items() if name not in varied},
        }


def _parameters(found: type[NodeClassifier]) -> list[str]:
    return [name for name in found.declared if name != "training"]
