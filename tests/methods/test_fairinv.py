"""FairINV: its penalty in closed form, what a partition learns, the loss, and that it never reads the groups."""

from typing import Any

import pytest
import torch
from tests.methods.ingredients import changed, small_graph, some_unknown
from torch import Tensor, nn
from torch_geometric.data import Data

from fairpass.methods import GAT, GCN, GIN, SAGE, FairINV
from fairpass.methods.fairinv import (
    _Invariant,
    _reference_logits,
    invariance_penalty,
    learn_partition,
    scale_gradients,
    standardised,
)
from fairpass.training import Task, Training, seeded

QUICK: dict[str, Any] = {"reference_epochs": 30, "partition_epochs": 30}
LAST = Training(epochs=5, select="last", track_discrepancy=False)


def prepared(model: FairINV, task: Task) -> _Invariant:
    with seeded(0, deterministic=True):
        program = model.build(task)
        assert isinstance(program, _Invariant)
        program.prepare(task, model.training)
        program.configure(model.training)
    return program


def soft(nodes: int, environments: int) -> Tensor:
    return torch.randn(nodes, environments, dtype=torch.float64).softmax(1)


# The penalty


@pytest.mark.parametrize("classes", [2, 4])
def test_penalty_is_what_autograd_finds(classes: int) -> None:
    logits = 3 * torch.randn(40, classes, dtype=torch.float64)
    labels, assignments = torch.randint(classes, (40,)), soft(40, 3)
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    losses = nn.functional.cross_entropy(scale * logits, labels, reduction="none")
    expected = logits.new_zeros(())
    for environment in assignments.T:
        (gradient,) = torch.autograd.grad((losses * environment).mean(), scale, retain_graph=True)
        expected = expected + gradient.square()
    torch.testing.assert_close(invariance_penalty(assignments, scale_gradients(logits, labels)), expected)


def test_standardised_gradients_favour_no_single_environment() -> None:
    gradients = -torch.rand(50, dtype=torch.float64) / 1000  # of a model that fits all its nodes
    alone, halves = torch.zeros(50, 2, dtype=torch.float64), torch.zeros(50, 2, dtype=torch.float64)
    alone[:, 0] = 1
    halves[torch.arange(50), (gradients > gradients.median()).long()] = 1
    assert invariance_penalty(alone, gradients) > invariance_penalty(halves, gradients)
    shifted = standardised(gradients)
    torch.testing.assert_close(shifted.var(correction=0), torch.ones((), dtype=torch.float64))
    torch.testing.assert_close(invariance_penalty(alone, shifted), torch.zeros((), dtype=torch.float64))
    assert invariance_penalty(halves, shifted) > 0.1
    assert bool((standardised(torch.zeros(5)) == 0).all())


# The partition


@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat", "sage"])
def test_learning_raises_the_penalty_of_a_partition(data: Data, backbone: Any) -> None:
    task, training = Task(data), FairINV.recommended_training
    model = FairINV(backbone=backbone, environments=3, reference_epochs=30, partition_epochs=100)
    gradients = standardised(scale_gradients(_reference_logits(task, model, training), task.train_labels))
    found = []
    for how in (model.with_params(partition_epochs=0), model):
        torch.manual_seed(1)
        assignments = learn_partition(task, gradients, how, training)
        assert assignments.shape == (len(task.train_nodes), 3)
        assert not assignments.requires_grad
        assert bool((assignments >= 0).all())
        torch.testing.assert_close(assignments.sum(1), torch.ones(len(assignments)))
        found.append(float(invariance_penalty(assignments, gradients)))
    # No partition has more than one that parts the gradients by their sign.
    most = float(gradients.clamp(min=0).mean().square() + gradients.clamp(max=0).mean().square())
    assert found[0] < 0.1 * most
    assert 0.3 * most < found[1] < most + 1e-6


def test_environments_without_nodes_are_left_out(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    def lopsided(task: Task, *_: Any) -> Tensor:
        return torch.tensor([[1.0, 0.0]]).expand(len(task.train_nodes), 2)

    monkeypatch.setattr("fairpass.methods.fairinv.learn_partition", lopsided)
    program, task = prepared(FairINV(reference_epochs=0, partitions=1), Task(data)), Task(data)
    assert program.assignments is not None
    assert program.assignments.shape[1] == 1
    logits = torch.randn(150, 2)
    expected = nn.functional.cross_entropy(logits[task.train_nodes], task.train_labels)
    torch.testing.assert_close(program.loss(logits, task), expected)


# The loss


@pytest.mark.parametrize("classes", [2, 3])
def test_loss_is_the_variance_and_the_mean_of_the_environments(classes: int) -> None:
    task = Task(small_graph(150, classes=classes))
    program = prepared(FairINV(alpha=0.3, environments=3, partitions=2, reference_epochs=5, partition_epochs=5), task)
    assert program.assignments is not None
    assert program.assignments.shape == (len(task.train_nodes), 6)
    logits = torch.randn(150, classes)
    logarithms = logits.log_softmax(1)
    risks = []
    for environment in program.assignments.T:
        total = sum(
            float(weight) * -float(logarithms[node, task.y[node]])
            for weight, node in zip(environment, task.train_nodes, strict=True)
        )
        risks.append(total / float(environment.sum()))
    mean = sum(risks) / 6
    variance = sum((risk - mean) ** 2 for risk in risks) / 6
    assert float(program.loss(logits, task)) == pytest.approx((variance + 0.3 * mean) / 0.3, rel=1e-5)


def test_a_small_alpha_brings_the_losses_of_the_environments_together(data: Data) -> None:
    task = Task(data)

    def spread(alpha: float) -> float:
        model = FairINV(alpha=alpha, dropout=0.0, reference_epochs=30, partition_epochs=60)
        program = prepared(model, task)
        for _ in range(60):
            program.step(task)
        logits = program(task)[task.train_nodes]
        assert program.assignments is not None
        losses = nn.functional.cross_entropy(logits.detach(), task.train_labels, reduction="none")
        return float((losses @ program.assignments / program.assignments.sum(0)).std())

    assert spread(0.03) < 0.5 * spread(100.0)


@pytest.mark.parametrize("plain", [GCN, GIN, GAT, SAGE])
def test_one_environment_is_the_plain_network(data: Data, plain: type[GCN]) -> None:
    model = FairINV(backbone=plain.name, **QUICK, training=LAST)  # type: ignore[arg-type] # a plain method's name
    expected = plain(training=LAST).fit(data)
    control = model.control().fit(data)
    assert control.history_ == expected.history_
    assert torch.equal(control.predict_proba(data), expected.predict_proba(data))
    # With `alpha` so large that the variance is nothing and equal environments, the formula itself says the same.
    task, program = Task(data), prepared(model.with_params(alpha=1e12), Task(data))
    program.assignments = torch.full((len(task.train_nodes), 2), 0.5)
    logits = torch.randn(150, 2)
    torch.testing.assert_close(program.loss(logits, task), prepared(model.control(), task).loss(logits, task))


def test_a_partition_leaves_the_random_numbers_of_the_epochs_alone(data: Data) -> None:
    task, states = Task(data), []
    for model in (FairINV(**QUICK), FairINV(**QUICK).control()):
        with seeded(0, deterministic=True):
            model.build(task).prepare(task, model.training)
            states.append(torch.get_rng_state())
    assert torch.equal(*states)


# The groups


@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat", "sage"])
def test_the_groups_are_never_read(data: Data, backbone: Any) -> None:
    fitted = []
    for sens in (data.sens, data.sens.flip(0), some_unknown(data, 0.8).sens):
        model = FairINV(backbone=backbone, **QUICK, training=LAST).fit(changed(data, sens=sens))
        fitted.append(model.predict_proba(changed(data, sens=None)))
    assert torch.equal(fitted[0], fitted[1])
    assert torch.equal(fitted[0], fitted[2])


# Settings


def test_settings_of_the_authors() -> None:
    nba = FairINV.authors("nba", epochs=7)
    assert (nba.alpha, nba.num_layers, nba.partition_rate, nba.training.epochs) == (1.0, 1, 0.1, 7)
    assert FairINV.authors("bail").alpha == 10.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, r"'alpha' must be positive \(got 0.0\)"),
        ({"environments": 0}, r"'environments' must be at least 1 \(got 0\)"),
        ({"partitions": 0}, r"'partitions' must be at least 1 \(got 0\)"),
        ({"reference_epochs": -1}, r"'reference_epochs' must be at least 0 \(got -1\)"),
    ],
)
def test_wrong_parameters_are_errors_before_fit(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FairINV(**parameters)
