from pathlib import Path
from typing import Any

import pytest
import torch
from tests.methods.ingredients import changed, small_graph, some_unknown
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import FairSIN
from fairpass.methods.fairsin import _Neutralised, other_group_means
from fairpass.training import Task, Training, seeded
from fairpass.training.program import adam


def built(model: FairSIN, task: Task) -> _Neutralised:
    with seeded(0, deterministic=True):
        program = model.build(task)
    assert isinstance(program, _Neutralised)
    program.prepare(task, model.training)
    program.configure(model.training)
    return program.train()


def copies(module: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in module.parameters()]


def is_unchanged(module: nn.Module, before: list[Tensor]) -> bool:
    return all(torch.equal(now, then) for now, then in zip(module.parameters(), before, strict=True))


# The estimator


@pytest.mark.parametrize("graph", [small_graph(), some_unknown(small_graph()), small_graph(120, groups=3)])
def test_targets_are_the_mean_features_of_neighbours_in_other_groups(graph: Data) -> None:
    # One direction of some edges is missing, some are double, and a node is its own neighbour.
    edges = torch.cat([graph.edge_index[:, 7:], graph.edge_index[:, -5:], torch.tensor([[3], [3]])], 1)
    graph = changed(graph, edge_index=edges)
    sens = graph.sens.tolist()
    neighbours: dict[int, set[int]] = {}
    for source, target in edges.T.tolist():
        if -1 not in (sens[source], sens[target]) and sens[source] != sens[target]:
            neighbours.setdefault(target, set()).add(source)
    nodes, means = other_group_means(Task(graph))
    assert nodes.tolist() == sorted(neighbours)
    expected = torch.stack([graph.x[list(neighbours[node])].mean(0) for node in sorted(neighbours)])
    torch.testing.assert_close(means, expected)


def test_estimator_learns_its_targets_and_nothing_else_trains_it(data: Data) -> None:
    task = Task(data)
    program = built(FairSIN(training=Training(learning_rate=0.01)), task)
    _, means = other_group_means(task)
    spread = float(mse_loss(means.mean(0).expand_as(means), means))
    for _ in range(150):
        losses = program.epoch(task)
    assert losses["estimator"] < 0.6 * spread  # better than the mean of all

    program.settings.estimator_steps = 0
    before = copies(program.estimator)
    program.epoch(task)
    assert is_unchanged(program.estimator, before)
    assert not program.neutralise(task.x).requires_grad


def test_groups_must_be_connected(data: Data) -> None:
    source, target = data.edge_index
    apart = changed(data, edge_index=data.edge_index[:, data.sens[source] == data.sens[target]])
    with pytest.raises(DataError, match=r"must connect nodes of different groups for FairSIN \(got no such edge\)"):
        FairSIN(training=Training(epochs=1)).fit(apart)
    FairSIN(training=Training(epochs=1)).control().fit(apart)


# What the network sees


@pytest.mark.parametrize("training", [True, False])
def test_the_network_sees_neutralised_features_in_training_and_in_prediction(data: Data, training: bool) -> None:
    task = Task(data)
    program = built(FairSIN(delta=2.5, dropout=0.0), task).train(training)
    seen = []
    program.encoder.register_forward_pre_hook(lambda _, args: seen.append(args[0].detach()))
    if training:
        program.settings.estimator_steps = 0
        program.epoch(task)
    else:
        program(task)
    torch.testing.assert_close(seen[0], data.x + 2.5 * program.estimator(data.x).detach())


def test_predictions_after_a_fit_are_those_of_neutralised_features(data: Data) -> None:
    model = FairSIN(delta=3.0, training=Training(epochs=5, select="last")).fit(data)
    program = model.program_
    assert isinstance(program, _Neutralised)
    program.eval()
    x = data.x + 3.0 * program.estimator(data.x)
    expected, raw = (
        program.classifier(program.encoder(features, Task(data).operator("gcn"))).softmax(-1).detach()
        for features in (x, data.x)
    )
    torch.testing.assert_close(model.predict_proba(data), expected)
    assert float((raw - expected).abs().max()) > 1e-3
    nobody = changed(data, sens=torch.full_like(data.sens, -1))
    assert torch.equal(model.predict_proba(nobody), model.predict_proba(data))


def test_without_estimate_and_discriminator_it_is_the_plain_network_bit_by_bit(data: Data) -> None:
    task = Task(data)
    model = FairSIN().control()
    control, plain = built(model, task), built(model, task)
    parts = nn.ModuleList([plain.encoder, plain.classifier])
    optimizer = adam(parts, model.training)
    with seeded(1, deterministic=True):
        losses = [control.epoch(task)["loss"] for _ in range(5)]
    with seeded(1, deterministic=True):
        for expected in losses:
            loss = cross_entropy(
                plain.classifier(plain.encoder(data.x, task.operator("gcn")))[data.train_mask], data.y[data.train_mask]
            )
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            assert loss.item() == expected
    assert is_unchanged(nn.ModuleList([control.encoder, control.classifier]), copies(parts))


# The discriminator


def test_a_step_of_the_discriminator_leaves_all_else_alone(data: Data) -> None:
    task = Task(data)
    program = built(FairSIN(), task)
    others = nn.ModuleList([program.encoder, program.classifier, program.estimator])
    before, own = copies(others), copies(program.discriminator)
    program.discriminate(program.represent(task), task)
    assert is_unchanged(others, before)
    assert all(parameter.grad is None for parameter in others.parameters())
    assert not is_unchanged(program.discriminator, own)


@pytest.mark.parametrize("graph", [small_graph(), some_unknown(small_graph()), small_graph(120, groups=3)])
@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat", "sage"])
def test_an_epoch_takes_the_stated_steps(graph: Data, backbone: Any) -> None:
    task = Task(graph)
    model = FairSIN(delta=1.5, adversary=0.7, dropout=0.0, estimator_steps=3, backbone=backbone)
    mine, expected = built(model, task), built(model, task)
    losses = mine.epoch(task)

    nodes, means = other_group_means(task)
    for _ in range(3):
        estimation = mse_loss(expected.estimator(graph.x[nodes]), means)
        _step(expected, estimation, "estimator")
    x = graph.x + 1.5 * expected.estimator(graph.x).detach()
    known = graph.sens >= 0
    h = expected.encoder(x, task.operator(backbone))
    label = cross_entropy(expected.classifier(h)[graph.train_mask], graph.y[graph.train_mask])
    guess = cross_entropy(expected.discriminator(h[known]), graph.sens[known])
    again = cross_entropy(expected.discriminator(h[known].detach()), graph.sens[known])
    _step(expected, label - 0.7 * guess, "classifier")
    _step(expected, again, "discriminator")
    stated = {"loss": label - 0.7 * guess, "label": label, "estimator": estimation, "discriminator": again}
    assert losses == pytest.approx({name: value.item() for name, value in stated.items()}, abs=1e-6)
    assert next(iter(losses)) == "loss"
    for (name, value), other in zip(mine.named_parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(value, other, msg=name)


def _step(program: _Neutralised, loss: Tensor, name: str) -> None:
    optimizer = program.optimizers[name]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = gradient
    optimizer.step()


def test_the_encoder_works_against_the_discriminator(data: Data) -> None:
    """An encoder that helped it would lower its loss."""
    task = Task(data)

    def loss(adversary: float) -> float:
        training = Training(learning_rate=5e-3)
        program = built(FairSIN(delta=0.0, adversary=adversary, dropout=0.0, training=training), task)
        # The two chase each other in circles, so it is the mean over the chase that counts.
        found = [program.epoch(task)["discriminator"] for _ in range(200)]
        return sum(found[100:]) / 100

    left_alone, opposed = loss(1e-9), loss(1.0)
    assert left_alone < 0.5
    assert opposed > left_alone + 0.1


# Files and parameters


@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat", "sage"])
def test_every_backbone_is_kept_in_a_file(data: Data, tmp_path: Path, backbone: Any) -> None:
    model = FairSIN(backbone=backbone, training=Training(epochs=2)).fit(data)
    loaded = FairSIN.load(model.save(tmp_path / "model"))
    assert torch.equal(loaded.predict_proba(data), model.predict_proba(data))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"delta": -1.0}, r"'delta' must be at least 0 \(got -1.0\)"),
        ({"adversary": -1.0}, r"'adversary' must be at least 0 \(got -1.0\)"),
        ({"estimator_steps": 0}, r"'estimator_steps' must be at least 1 \(got 0\)"),
    ],
)
def test_wrong_parameters_are_errors_before_fit(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FairSIN(**parameters)
