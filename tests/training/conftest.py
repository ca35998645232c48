"""A small graph, and a program whose every epoch is written down beforehand."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets import synthetic
from fairpass.training import Program, Task, Training


@pytest.fixture
def data() -> Data:
    return synthetic(120, avg_degree=6, num_features=4, group_fraction=0.5)


@pytest.fixture
def task(data: Data) -> Task:
    return Task(data)


class Scripted(Program):
    """In epoch `e` it is wrong about the first `mistakes[e]` validation nodes; at -1 a test node gets nan."""

    epochs_done: Tensor

    def __init__(self, mistakes: Sequence[int]) -> None:
        super().__init__()
        self.mistakes = mistakes
        self.register_buffer("epochs_done", torch.zeros((), dtype=torch.long))

    def configure(self, training: Training) -> None:
        self.optimizers = {}

    def epoch(self, task: Task) -> dict[str, float]:
        self.epochs_done += 1  # in place: a state that was kept must not follow
        return {"loss": 1 / float(self.epochs_done), "other": 0.5}

    def forward(self, task: Task) -> Tensor:
        wrong = self.mistakes[int(self.epochs_done) - 1]
        score = torch.where(task.y == 1, 1.0, -1.0)
        if wrong < 0:
            score[task.nodes("test")[0]] = torch.nan
        else:
            score[task.nodes("val")[:wrong]] *= -1
        return torch.stack([-score, score], 1)


@pytest.fixture
def scripted() -> Callable[..., Scripted]:
    return lambda *mistakes: Scripted(mistakes)
