"""What to run: a method with its settings, on a graph, with a seed."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from fairpass.documents import STRICT
from fairpass.methods import NodeClassifier, method
from fairpass.methods.estimator import stored_parameters
from fairpass.training import Training
from fairpass.training.tensors import to_json


@dataclass(frozen=True)
class Configuration:
    """A method with its settings.

    Attributes:
        method: its name in the registry.
        parameters: hyper-parameters; those left out have the method's defaults.
        training: settings of the training loop, without the seed; those left out have the method's defaults.
        scale: feature scaling of a benchmark graph: `"minmax"`, `"standard"` or `"none"`.
        kind: the class, for methods that are not in the registry.
    """

    __pydantic_config__ = STRICT

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    scale: str = "minmax"
    kind: type[NodeClassifier] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, classifier: NodeClassifier) -> Self:
        """Return the configuration of a classifier, with every setting but the seed."""
        training = {name: value for name, value in classifier.training.to_dict().items() if name != "seed"}
        return cls(classifier.name, classifier.hyperparameters, training, kind=type(classifier))

    def but(self, *, training: Mapping[str, Any] | None = None, scale: str | None = None, **parameters: Any) -> Self:
        parameters, training = {**self.parameters, **parameters}, {**self.training, **(training or {})}
        return replace(self, parameters=parameters, training=training, scale=scale or self.scale)

    def classifier(self, seed: int = 0) -> NodeClassifier:
        found = self.kind or method(self.method)
        defaults = found(**self.parameters).training
        return found(**self.parameters, training=defaults.but(**self.training, seed=seed))

    def control(self) -> Self:
        """Return the configuration with fairness switched off and everything else equal."""
        control = self.classifier().control()
        return self.but(**{name: getattr(control, name) for name in control.switched_off})

    def to_dict(self) -> dict[str, Any]:
        """Return method, parameters and training as plain JSON values (tuples become lists)."""
        parameters = stored_parameters(self.parameters)
        return _plain({"method": self.method, "parameters": parameters, "training": self.training})


@dataclass(frozen=True)
class RunSpec:
    """One run: a configuration on a graph with a seed.

    Attributes:
        dataset: name of a benchmark, or any name under which :func:`fairpass.runs.run` is given the graph.
        measures: what to measure in addition to the evaluation.
        split: seed of a benchmark's split; None for the published one.
        name: how a comparison calls the configuration; by default the method's name.
    """

    dataset: str
    configuration: Configuration
    seed: int = 0
    measures: tuple[str, ...] = ()
    split: int | None = None
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.configuration.method

    def classifier(self) -> NodeClassifier:
        return self.configuration.classifier(self.seed)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything the result depends on, with all defaults filled in, as plain JSON values.

        Settings added since version 0.1 are included only if they differ from the old behaviour, and the version of a
        method from 2 on.
        """
        classifier = self.classifier()
        values: dict[str, Any] = {
            "dataset": self.dataset,
            "scale": self.configuration.scale,
            "method": self.configuration.method,
            "parameters": _without(classifier.before, stored_parameters(classifier.hyperparameters)),
            "training": _without(Training.before, classifier.training.to_dict()),
            "measures": self.measures,
        }
        if classifier.version > 1:
            values["version"] = classifier.version
        return _plain(values if self.split is None else {**values, "split": self.split})

    @cached_property
    def key(self) -> str:
        """Name of the run's record; it changes with anything that the result depends on."""
        digest = hashlib.sha256(to_json(self.identity).encode()).hexdigest()[:16]
        return f"{self.dataset}-{self.configuration.method}-{digest}"


def _without(added: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in added or value != added[name]}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(to_json(values))
    return plain
