"""What several methods share: parameters of their networks, kinds of programs, and published settings."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from fairpass.methods.base import NodeClassifier
from fairpass.nn import Encoder
from fairpass.nn.convolution import Backbone
from fairpass.parameters import Choice, parameter
from fairpass.training import Program, Task


def backbone() -> Any:
    return parameter("gcn", "convolution of the network")


def num_layers(**declaration: Any) -> Any:
    return parameter(2, "number of layers of the network", at_least=1, limit=100, **declaration)


def hidden(**declaration: Any) -> Any:
    return parameter(16, "width of the hidden layers", at_least=1, limit=100_000, **declaration)


def dropout(default: float = 0.5, *, searched: bool = True, **declaration: Any) -> Any:
    search = Choice(0.0, 0.2, 0.5, 0.8) if searched else None
    return parameter(default, "probability of dropping a hidden unit", search, at_least=0, below=1, **declaration)


def widths(classifier: Any, task: Task) -> tuple[int, ...]:
    return (task.num_features, *[classifier.hidden] * (classifier.num_layers - 1), task.num_classes)


def encode(network: Encoder, x: Tensor, task: Task) -> Tensor:
    """Return the output of a network on a graph with features `x`."""
    encoded: Tensor = network(x, None if network.backbone is None else task.operator(network.backbone))
    return encoded


class Published(NodeClassifier):
    """A method whose authors published settings for the benchmark graphs."""

    # For "german" or, with one backbone only, "german/gin": parameters and training settings, if not the defaults.
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def authors(cls, data_set: str, *, backbone: Backbone = "gcn", **training: Any) -> Self:
        """Return the method with the settings of its authors.

        Args:
            data_set: `"german"`, `"bail"` or `"credit"`.
            backbone: convolution of the network; without settings of its own, it gets those of `"gcn"`.
            training: training settings that replace those of the authors, e.g. `seed=1`.
        """
        known = tuple(name for name in cls.published if "/" not in name)
        if data_set not in known:
            raise ValueError(f"'data_set' must be one of {known} (got {data_set!r})")
        values = {**cls.published.get(f"{data_set}/{backbone}", cls.published[data_set]), "backbone": backbone}
        settings = {name: values.pop(name) for name in values.keys() - cls.declared.keys()}
        return cls(**values, training=cls.recommended_training.but(**{**settings, **training}))


class Network(Program):
    """An encoder of the features on the graph, trained with cross-entropy."""

    def __init__(self, network: Encoder) -> None:
        super().__init__()
        self.network = network

    @property
    def is_random(self) -> bool:
        return self.network.dropout > 0

    def forward(self, task: Task) -> Tensor:
        return encode(self.network, task.x, task)


class SeveralOptimizers(Program):
    """Networks that are trained in turn, each by its own optimizer."""

    def minimise(self, loss: Tensor, *optimizers: str) -> float:
        self.zero_grad()  # all networks, because a loss also reaches those that it must not change
        torch.autograd.backward(loss)
        for name in optimizers:
            self.optimizers[name].step()
        return float(loss.detach())
