"""What to run, as data: configurations of methods, and the cells of tables and figures they belong to."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from fairpass.methods import NodeClassifier, method
from fairpass.training.tensors import to_json

# Training settings added since version 0.1, and the value that means "as before"; a method's own are in its `before`. A
# setting that has this value is left out of a run's identity, so that records made before it existed are still found.
ADDED_SINCE_0_1: Mapping[str, Any] = {"postprocess": "none", "constraint": "demographic_parity", "window": 1}


@dataclass(frozen=True)
class Configuration:
    """A method with its settings.

    Attributes:
        method: its name in the registry.
        parameters: hyper-parameters that are not the method's defaults.
        training: settings of the training loop that are not the method's defaults.
        scale: how the features are scaled: `"minmax"`, `"standard"` or `"none"`.
    """

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    scale: str = "minmax"

    def but(self, *, training: Mapping[str, Any] | None = None, scale: str | None = None, **parameters: Any) -> Self:
        """Return the configuration with some settings changed."""
        return replace(
            self,
            parameters={**self.parameters, **parameters},
            training={**self.training, **(training or {})},
            scale=scale or self.scale,
        )

    def classifier(self, seed: int) -> NodeClassifier:
        """Return the unfitted classifier."""
        found = method(self.method)
        usual = found(**self.parameters).training
        return found(**self.parameters, training=usual.but(**self.training, seed=seed))


@dataclass(frozen=True)
class Spec:
    """One run: a configuration on a data set with a seed, and what is measured in addition to its evaluation.

    `split` is the seed of the split; None stands for the published one.
    """

    dataset: str
    configuration: Configuration
    seed: int = 0
    measures: tuple[str, ...] = ()
    split: int | None = None

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Return everything the result depends on, with all defaults filled in, as plain JSON values.

        What was added since version 0.1 is in it only if it changes something.
        """
        classifier = self.configuration.classifier(self.seed)
        values: dict[str, Any] = {
            "dataset": self.dataset,
            "scale": self.configuration.scale,
            "method": self.configuration.method,
            "parameters": _without(classifier.before, classifier.hyperparameters),
            "training": _without(ADDED_SINCE_0_1, classifier.training.to_dict()),
            "measures": list(self.measures),
        }
        if self.split is not None:
            values["split"] = self.split
        plain: dict[str, Any] = json.loads(to_json(values))
        return plain

    @cached_property
    def key(self) -> str:
        """Return the name of the run's record: another one if anything about the run changes."""
        digest = hashlib.sha256(to_json(self.identity).encode()).hexdigest()[:16]
        return f"{self.dataset}-{self.configuration.method}-{digest}"


def _without(added: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without those that were added since 0.1 and are as before."""
    return {name: value for name, value in values.items() if name not in added or value != added[name]}


@dataclass(frozen=True)
class Cell:
    """One entry of a table or one point of a figure: what validation prefers among some configurations.

    Attributes:
        dataset: its name.
        label: what readers see, e.g. "FairGNN".
        candidates: configurations to choose from, on validation, by the mean over the seeds.
        seeds: of the runs.
        at: where the point lies, e.g. `{"K": 3}`.
        measures: what is measured in addition to the evaluation.
        resplit: whether each seed is also that of a split of its own; else all have the published one.
    """

    dataset: str
    label: str
    candidates: tuple[Configuration, ...]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    at: Mapping[str, Any] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    resplit: bool = False

    def runs(self, candidate: Configuration) -> list[Spec]:
        """Return the runs of one candidate, seed by seed."""
        return [
            Spec(self.dataset, candidate, seed, self.measures, seed if self.resplit else None) for seed in self.seeds
        ]

    def specs(self) -> Iterator[Spec]:
        """Return all runs."""
        for candidate in self.candidates:
            yield from self.runs(candidate)
