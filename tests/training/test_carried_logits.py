"""The logits of an evaluation serve the next epoch; and what comes after the last epoch."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from fairpass.methods import FMP, GCN, GMMD, GMMDS, MMD, MLPClassifier, NodeClassifier
from fairpass.training import EpochRecord, Program, Task, Training, seeded, train
from fairpass.training.population import Member, train_population

TRAINING = Training(epochs=8)


def interrupt(record: EpochRecord) -> None:
    if record.epoch == 3:
        raise KeyboardInterrupt


def recomputing(classifier: NodeClassifier) -> NodeClassifier:
    """Return the classifier with a program that runs the network again for every epoch."""
    build = classifier.build

    def build_random(task: Task) -> Program:
        program = build(task)
        kind = type(program)
        program.__class__ = type(kind.__name__, (kind,), {"is_random": True})
        assert not program.carries_logits
        return program

    classifier.build = build_random  # type: ignore[method-assign] # the same classifier, but for this
    return classifier


def same_fit(one: NodeClassifier, other: NodeClassifier, data: Data) -> bool:
    first, second = one.program_.state_dict(), other.program_.state_dict()
    assert first.keys() == second.keys()
    return (
        one.history_ == other.history_
        and one.epoch_ == other.epoch_
        and all(torch.equal(first[name], second[name]) for name in first)
        and torch.equal(one.predict_proba(data), other.predict_proba(data))
    )


CASES: list[tuple[type[NodeClassifier], dict[str, Any]]] = [
    (GMMD, {}),
    (GMMD, {"criterion": "eo", "encoder": "gcn", "norm": True, "scale": "standard"}),
    (GMMDS, {"step": "paper", "lambda_f": 5.0, "columns": "all"}),
    (MLPClassifier, {"dropout": 0.0}),
    (MMD, {"dropout": 0.0}),
    (FMP, {"dropout": 0.0}),
]


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_carrying_changes_no_bit_of_a_fit(
    data: Data, tmp_path: Path, kind: type[NodeClassifier], options: dict[str, Any]
) -> None:
    carried = kind(training=TRAINING, **options).fit(data)
    assert carried.program_.carries_logits
    assert carried.program_.evaluated is None  # nothing is held after the fit
    assert same_fit(carried, recomputing(kind(training=TRAINING, **options)).fit(data), data)
    # A resumed fit has nothing to carry into its first epoch.
    path = tmp_path / "fit"
    with pytest.raises(KeyboardInterrupt):
        kind(training=TRAINING, **options).fit(data, callbacks=[interrupt], checkpoint=path)
    assert same_fit(carried, kind(training=TRAINING, **options).fit(data, checkpoint=path), data)


@pytest.mark.parametrize(
    ("model", "carries"),
    [
        (GMMD(), True),
        (GMMD(dropout=0.5), False),
        (GMMD(sample=10), False),
        (GMMD(encoder=nn.Linear), False),
        (GCN(), False),
        (GCN(dropout=0.0), True),
    ],
)
def test_only_what_is_the_same_in_training_is_carried(task: Task, model: NodeClassifier, carries: bool) -> None:
    assert model.build(task).carries_logits == carries


class Counting(Program):
    """A linear map that counts its passes, and notes in `finish` what it has become."""

    noted: Tensor | None

    def __init__(self, features: int = 4) -> None:
        super().__init__()
        self.linear, self.passes, self.modes = nn.Linear(features, 2), 0, list[bool]()
        self.register_buffer("noted", None)

    @property
    def is_random(self) -> bool:
        return False

    def forward(self, task: Task) -> Tensor:
        self.passes += 1
        out: Tensor = self.linear(task.x)
        return out

    def finish(self, task: Task) -> None:
        self.modes.append(self.training)
        self.noted = self.linear.weight.detach().clone()


class OwnEpoch(Counting):
    """One with an epoch of its own, about which nothing is known."""

    def epoch(self, task: Task) -> dict[str, float]:
        return super().epoch(task)


def test_an_epoch_costs_one_pass(task: Task) -> None:
    with seeded(0, deterministic=True):
        program, own = Counting(), OwnEpoch()
        own.load_state_dict(program.state_dict())
        train(program, task, Training(epochs=5))
        train(own, task, Training(epochs=5))
    assert program.passes == 6  # the first epoch has nothing to start from
    assert own.passes == 10
    assert torch.equal(program.linear.weight, own.linear.weight)


@pytest.mark.parametrize("select", ["validation", "last"])
def test_finish_is_called_once_with_the_selected_parameters(task: Task, select: Any) -> None:
    with seeded(0, deterministic=True):
        program = Counting()
        train(program, task, Training(epochs=6, learning_rate=0.5, select=select))
    assert program.modes == [False]
    assert program.noted is not None
    assert torch.equal(program.noted, program.linear.weight)
    assert "noted" in program.state_dict()


def test_finish_in_a_population_is_that_of_each_member_alone(task: Task) -> None:
    settings = [
        Training(epochs=6, learning_rate=0.5, seed=0),
        Training(epochs=3, learning_rate=0.1, seed=1, select="last"),
        Training(epochs=6, learning_rate=0.01, seed=2, select="last"),
    ]
    alone = []
    for training in settings:
        with seeded(training.seed, deterministic=True):
            program = Counting()
            train(program, task, training)
        alone.append(program)
    population = []
    for training in settings:
        with seeded(training.seed, deterministic=True):
            population.append(Member(Stackable(), training, torch.Generator()))
    train_population(population, task)
    for member, expected in zip(population, alone, strict=True):
        trained = member.program
        assert isinstance(trained, Counting)
        assert trained.modes == [False]
        assert trained.noted is not None
        assert torch.equal(trained.noted, trained.linear.weight)
        torch.testing.assert_close(trained.noted, expected.noted)


class Stackable(Counting):
    """The same, with parameters that may have a leading axis of members."""

    def forward(self, task: Task) -> Tensor:
        return task.x @ self.linear.weight.mT + self.linear.bias.unsqueeze(-2)


def test_finish_is_not_called_for_a_fit_that_diverged(task: Task) -> None:
    with seeded(0, deterministic=True):
        bad, good = Stackable(), Stackable()
        with torch.no_grad():
            bad.linear.bias.fill_(torch.nan)
        population = [Member(program, Training(epochs=2), torch.Generator()) for program in (bad, good)]
        train_population(population, task)
    assert (len(bad.modes), len(good.modes)) == (0, 1)
