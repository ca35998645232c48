"""Every method of the registry through the battery, and a toy that keeps what it prepares in buffers."""

from collections.abc import Iterator
from typing import ClassVar

import pytest
import torch
from tests.methods.battery import MethodBattery
from torch import Tensor, nn

from fairpass.methods import NodeClassifier, method, names, registry
from fairpass.training import Program, Task, Training


class TestEveryMethod(MethodBattery):
    @pytest.fixture(scope="class", params=names())
    @classmethod
    def kind(cls, request: pytest.FixtureRequest) -> type[NodeClassifier]:
        return method(request.param)


class Toy(NodeClassifier):
    """Debiases the features at random before it trains: what it finds has the shape of the graph."""

    name: ClassVar[str] = "toy"
    summary: ClassVar[str] = "a toy"

    def build(self, task: Task) -> Program:
        return _Toy(task.num_features, task.num_classes)


class _Toy(Program):
    shift: Tensor
    nodes: Tensor

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, classes)
        self.register_buffer("shift", None)
        self.register_buffer("nodes", torch.zeros(0))

    def prepare(self, task: Task, training: Training) -> None:
        known = task.sens >= 0
        self.shift = task.x[known].mean(0) + torch.rand(task.num_features)
        self.nodes = torch.nonzero(known).flatten()

    def forward(self, task: Task) -> Tensor:
        logits: Tensor = self.linear(task.x - self.shift)
        return logits


class TestPreparation(MethodBattery):
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def registered(cls) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(registry.OWN, "toy", f"{__name__}:Toy")
            yield

    @pytest.fixture(scope="class")
    @classmethod
    def kind(cls) -> type[NodeClassifier]:
        return Toy
