from pathlib import Path
from typing import Any

import pytest
import torch
from tests.methods.ingredients import changed, small_graph, some_unknown
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import FairGNN
from fairpass.methods.fairgnn import _Adversarial, _covariance
from fairpass.training import Task, Training, seeded


def prepared(model: FairGNN, task: Task, seed: int = 0) -> _Adversarial:
    with seeded(seed, deterministic=True):
        program = model.build(task)
        assert isinstance(program, _Adversarial)
        program.prepare(task, model.training)
        program.configure(model.training)
    return program


def eligible(data: Data) -> Tensor:
    mask: Tensor = (data.sens >= 0) & ~data.val_mask & ~data.test_mask
    return mask


# The sensitive attribute, known for some nodes


@pytest.mark.parametrize("graph", [small_graph(), some_unknown(small_graph())])
def test_only_some_nodes_are_known_and_never_those_of_validation_or_test(graph: Data) -> None:
    task = Task(graph)
    known = prepared(FairGNN(num_known=20, estimator_epochs=0), task).known_nodes(task)
    assert len(known) == len(set(known.tolist())) == 20
    assert bool(eligible(graph)[known].all())
    assert torch.equal(known, prepared(FairGNN(num_known=20, estimator_epochs=0), task).known_nodes(task))
    other = prepared(FairGNN(num_known=20, estimator_epochs=0), task, seed=1).known_nodes(task)
    assert not torch.equal(known, other)
    for number in (None, 10_000):
        program = prepared(FairGNN(num_known=number, estimator_epochs=0), task)
        assert torch.equal(program.known_nodes(task), eligible(graph).nonzero().flatten())


def test_what_is_not_known_does_not_matter(data: Data) -> None:
    """The fit is the same whatever the groups of nodes that are not known, apart from its evaluation."""
    task = Task(data)
    model = FairGNN(num_known=30, estimator_epochs=20, training=Training(epochs=3, select="last"))
    known = prepared(model, task).known_nodes(task)
    secret = torch.ones(150, dtype=torch.bool)
    secret[known] = False
    other = changed(data, sens=torch.where(secret & ~eligible(data), 1 - data.sens, data.sens))
    assert not torch.equal(other.sens, data.sens)
    fitted = [model.set_params().fit(graph).predict_proba(data) for graph in (data, other)]
    assert torch.equal(*fitted)


def test_estimator_learns_the_attribute_of_the_other_nodes(data: Data) -> None:
    task = Task(data)
    model = FairGNN(num_known=40, estimator_epochs=150, training=Training(learning_rate=0.01))
    program = prepared(model, task)
    beliefs, known = program.beliefs(task), program.known_nodes(task)
    assert torch.equal(beliefs[known, 0], data.sens[known].float())
    assert not beliefs.requires_grad
    hidden = torch.ones(150, dtype=torch.bool)
    hidden[known] = False
    assert float(((beliefs[:, 0] > 0.5).long() == data.sens)[hidden].float().mean()) > 0.8
    assert bool(((beliefs[hidden] > 0) & (beliefs[hidden] < 1)).all())


@pytest.mark.parametrize(
    ("parameters", "epochs", "expected"),
    [({}, 7, 7), ({}, 801, 800), ({"estimator_epochs": 3}, 7, 3), ({"estimator_epochs": 9}, 7, 7)],
    ids=["training's", "authors'", "given", "too many"],
)
def test_the_estimator_is_trained_no_longer_than_the_network(
    data: Data, monkeypatch: pytest.MonkeyPatch, parameters: dict[str, Any], epochs: int, expected: int
) -> None:
    passes: list[Any] = []
    monkeypatch.setattr(torch.autograd, "backward", passes.append)
    prepared(FairGNN(**parameters, training=Training(epochs=epochs)), Task(data))
    assert len(passes) == expected


def test_more_groups_have_a_column_each(data: Data) -> None:
    graph = small_graph(240, groups=3)
    task = Task(graph)
    program = prepared(FairGNN(estimator_epochs=2), task)
    beliefs, known = program.beliefs(task), program.known_nodes(task)
    assert beliefs.shape == (240, 3)
    assert torch.equal(beliefs[known], nn.functional.one_hot(graph.sens[known], 3).float())
    losses = program.train().epoch(task)
    assert losses["covariance"] > 0


# The losses


def test_covariance_is_that_of_numpy() -> None:
    sens, score = torch.rand(50, 1, dtype=torch.float64), torch.rand(50, 1, dtype=torch.float64)
    expected = torch.cov(torch.cat([sens, score], 1).T, correction=0)[0, 1].abs()
    torch.testing.assert_close(_covariance(sens, score), expected)


@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat", "sage"])
def test_an_epoch_takes_the_two_stated_steps(data: Data, backbone: Any) -> None:
    task = Task(data)
    model = FairGNN(alpha=3.0, beta=0.7, dropout=0.0, estimator_epochs=3, backbone=backbone)
    mine, expected = (prepared(model, task).train() for _ in range(2))
    losses = mine.epoch(task)

    s, y = expected.beliefs(task), data.y[:, None].float()
    h = expected.encoder(task.x, task.operator(backbone))
    logit = expected.classifier(h)
    label = bce(logit[data.train_mask], y[data.train_mask])
    score = logit.sigmoid()
    covariance = ((s - s.mean()) * (score - score.mean())).mean().abs()
    adversary = bce(expected.adversary(h), s)
    loss = label + 3.0 * covariance - 0.7 * adversary
    assert losses == pytest.approx(
        {"loss": loss.item(), "label": label.item(), "covariance": covariance.item(), "adversary": adversary.item()},
        abs=1e-6,
    )
    parts = nn.ModuleList([expected.encoder, expected.classifier])
    adversarial = torch.autograd.grad(bce(expected.adversary(h.detach()), s), list(expected.adversary.parameters()))
    for parameter, gradient in zip(
        parts.parameters(), torch.autograd.grad(loss, list(parts.parameters())), strict=True
    ):
        parameter.grad = gradient
    for parameter, gradient in zip(expected.adversary.parameters(), adversarial, strict=True):
        parameter.grad = gradient
    for optimizer in expected.optimizers.values():
        optimizer.step()
    for (name, value), other in zip(mine.named_parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(value, other, msg=name)


def adversary_accuracy(program: _Adversarial, task: Task, sens: Tensor) -> float:
    program.eval()
    with torch.no_grad():
        guess = program.adversary(program.encoder(task.x, task.operator("gcn")))[:, 0] > 0
    right = (guess.long() == sens).float()
    return float((right[sens == 0].mean() + right[sens == 1].mean()) / 2)


def test_adversary_loses_accuracy_while_the_encoder_trains_against_it(data: Data) -> None:
    task = Task(data)
    training = Training(learning_rate=5e-3)
    program = prepared(FairGNN(beta=0.0, alpha=0.0, estimator_epochs=100, training=training), task)
    with seeded(0, deterministic=True):
        for _ in range(150):
            program.train().epoch(task)
        before = adversary_accuracy(program, task, data.sens)
        program.settings.beta = 0.5
        # The two chase each other in circles, so it is the mean over the chase that counts.
        during = []
        for _ in range(150):
            program.train().epoch(task)
            during.append(adversary_accuracy(program, task, data.sens))
    assert before > 0.75
    assert sum(during) / len(during) < before - 0.2


def test_covariance_falls_with_its_weight(data: Data) -> None:
    def covariance(alpha: float) -> float:
        training = Training(epochs=100, learning_rate=5e-3, select="last")
        model = FairGNN(alpha=alpha, beta=0.0, estimator_epochs=50, training=training).fit(data)
        score = model.predict_proba(data)[:, 1]
        return abs(float(torch.cov(torch.stack([score, data.sens.float()]))[0, 1]))

    assert covariance(30.0) < 0.5 * covariance(0.0)


# Files, and what it does not take


@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat", "sage"])
def test_every_backbone_is_kept_in_a_file(data: Data, tmp_path: Path, backbone: Any) -> None:
    model = FairGNN(backbone=backbone, estimator_epochs=2, training=Training(epochs=2)).fit(data)
    loaded = FairGNN.load(model.save(tmp_path / "model"))
    assert torch.equal(loaded.predict_proba(data), model.predict_proba(data))


def test_configuration_of_the_benchmark_graphs() -> None:
    german = FairGNN.authors("german", epochs=7)
    assert (german.num_known, german.num_layers, german.training.epochs) == (100, 1, 7)
    with pytest.raises(ValueError, match=r"'data_set' must be one of .* \(got 'pokec'\)"):
        FairGNN.authors("pokec")


def test_unsuitable_data_is_refused(data: Data) -> None:
    model = FairGNN(training=Training(epochs=1))
    with pytest.raises(DataError, match=r"'data.y' must have 2 labels for FairGNN \(got 3\)"):
        model.fit(small_graph(240, classes=3))
    lone = torch.where(eligible(data) & (data.sens == 1), -1, data.sens)
    lone[(data.train_mask & (data.sens == 1)).nonzero()[0]] = 1
    with pytest.raises(DataError, match=r"must give FairGNN nodes of every group .* \(got group sizes \[2, 0\]\)"):
        FairGNN(num_known=2, training=Training(epochs=1, seed=1)).fit(changed(data, sens=lone))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, r"'alpha' must be at least 0 \(got -1.0\)"),
        ({"beta": -1.0}, r"'beta' must be at least 0 \(got -1.0\)"),
        ({"num_known": 1}, r"'num_known' must be at least 2 \(got 1\)"),
        ({"estimator_epochs": -1}, r"'estimator_epochs' must be at least 0 \(got -1\)"),
        ({"backbone": "cheb"}, r"'backbone' must be one of .* \(got 'cheb'\)"),
        ({"num_layers": 0}, r"'num_layers' must be at least 1 \(got 0\)"),
        ({"hidden": 0}, r"'hidden' must be at least 1 \(got 0\)"),
        ({"dropout": 1.5}, r"'dropout' must be at least 0 and below 1 \(got 1.5\)"),
    ],
)
def test_wrong_parameters_are_errors_before_fit(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FairGNN(**parameters)
