"""FairVGNN: its masks, its clamp, its adversary, and that the masks' shared work is the literal one."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import to_dense_adj

from fairpass.datasets import synthetic
from fairpass.errors import DataError
from fairpass.methods import FairVGNN
from fairpass.methods.fairvgnn import ENCODERS, MaskedEncoder, MaskedGAT, MaskedGIN, MaskedSAGE, _FairViews, attended
from fairpass.nn import SparseOperator
from fairpass.nn.convolution import Backbone
from fairpass.training import Task, Training

BACKBONES: tuple[Backbone, ...] = ("gcn", "gin", "gat", "sage")


@pytest.fixture(scope="module")
def data() -> Data:
    return synthetic(200, avg_degree=8, num_features=6, feature_leakage=3.0, seed=1)


def program_for(task: Task, **parameters: Any) -> _FairViews:
    torch.manual_seed(0)
    method = FairVGNN(**parameters)
    program = method.build(task)
    assert isinstance(program, _FairViews)
    program.configure(method.training)
    return program.train()


def literal_layer(encoder: MaskedEncoder, task: Task) -> Callable[[Tensor], Tensor]:
    """Return the layer with an encoder's parameters, from PyG or PyTorch, for features that are already masked."""
    hidden, features = encoder.linear.weight.shape
    if isinstance(encoder, MaskedGIN):
        adjacency = to_dense_adj(task.edge_index, max_num_nodes=task.num_nodes)[0] + torch.eye(task.num_nodes)
        return lambda x: nn.functional.batch_norm(
            encoder.linear(adjacency @ x), None, None, encoder.scale, encoder.bias, training=True
        )
    if isinstance(encoder, MaskedSAGE):
        sage = SAGEConv(features, hidden)
        sage.lin_l.weight, sage.lin_l.bias, sage.lin_r.weight = encoder.linear.weight, encoder.bias, encoder.root.weight
        return lambda x: sage(x, task.edge_index)
    layer = GATConv(features, hidden) if isinstance(encoder, MaskedGAT) else GCNConv(features, hidden)
    layer.lin.weight, layer.bias = encoder.linear.weight, encoder.bias
    if isinstance(encoder, MaskedGAT):
        layer.att_src = nn.Parameter(encoder.attention.b_source.detach().T[None])
        layer.att_dst = nn.Parameter(encoder.attention.b_target.detach().T[None])
    return lambda x: layer(x, task.edge_index)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_shared_work_is_the_literal_masked_pass(task: Task, backbone: Backbone) -> None:
    torch.manual_seed(0)
    encoder = ENCODERS[backbone](task.num_features, 4)
    nn.init.normal_(encoder.bias)
    head = nn.Linear(4, 1)
    masks = torch.rand(3, task.num_features, requires_grad=True)
    layer = literal_layer(encoder, task)
    literal = torch.stack([head(layer(task.x * mask))[:, 0] for mask in masks])
    shared = encoder(encoder.view(task, slice(None)), masks, head)
    torch.testing.assert_close(shared, literal, rtol=1e-4, atol=1e-4)
    (expected,) = torch.autograd.grad(literal.square().mean(), masks)
    (actual,) = torch.autograd.grad(shared.square().mean(), masks)
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)
    some = torch.tensor([3, 50, 199])
    torch.testing.assert_close(encoder(encoder.view(task, some), masks, head), shared[:, some], rtol=1e-4, atol=1e-4)


def test_gradient_of_attention() -> None:
    torch.manual_seed(0)
    structure = SparseOperator.from_edge_index(torch.tensor([[0, 1, 2, 3, 4, 0], [1, 0, 1, 4, 3, 3]]), 6, "gat")
    vectors = [torch.randn(6, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(lambda t, s, v: attended(t, s, v, structure, 0.2), vectors)


def test_gin_evaluates_with_running_statistics(task: Task) -> None:
    torch.manual_seed(0)
    encoder, head, masks = MaskedGIN(task.num_features, 4), nn.Linear(4, 1), torch.rand(1, task.num_features)
    view = encoder.view(task, slice(None))
    for _ in range(200):
        trained = encoder(view, masks, head)
    torch.testing.assert_close(encoder.eval()(view, masks, head), trained, rtol=1e-3, atol=1e-3)


def test_masks_are_drawn_by_gumbel_softmax(task: Task) -> None:
    program = program_for(task, K=4000)
    with torch.no_grad():
        program.theta.copy_(torch.linspace(-2, 2, 12).view(6, 2).flip(0))
    masks = program.masks().detach()
    assert masks.shape == (4000, 6)
    assert 0 <= float(masks.min()) <= float(masks.max()) <= 1
    # A mask's column is above a half as often as its first component wins.
    expected = program.theta.detach().softmax(-1)[:, 0]
    torch.testing.assert_close((masks > 0.5).float().mean(0), expected, atol=0.03, rtol=0)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_clamp_holds_after_every_epoch(task: Task, backbone: Backbone) -> None:
    program = program_for(task, K=3, clip=0.05, backbone=backbone)
    for seed in range(3):
        torch.manual_seed(seed)
        bound = 0.05 * program.masks().detach().mean(0)
        torch.manual_seed(seed)
        program.epoch(task)
        weight = program.encoder.linear.weight.detach().abs()
        assert bool((weight <= bound).all())
        assert bool((weight == bound).any())
        if isinstance(program.encoder, MaskedSAGE):
            assert bool((program.encoder.root.weight.detach().abs() <= bound).all())


def accuracy(program: _FairViews, task: Task, masks: Tensor) -> float:
    """Return how often the discriminator guesses the group, over nodes and masks."""
    with torch.no_grad():
        guess = program.logits(task, "known", masks, program.discriminator) > 0
    return float((guess == (task.sens == 1)).float().mean())


@pytest.mark.parametrize("backbone", BACKBONES)
def test_adversary_loses_accuracy_while_masks_and_encoder_train_against_it(task: Task, backbone: Backbone) -> None:
    program = program_for(task, K=5, ratio=0.0, backbone=backbone)
    for optimizer in program.optimizers.values():
        optimizer.param_groups[0]["lr"] = 0.03
    masks = program.masks().detach()
    for _ in range(60):
        program.minimise(program.discriminator_loss(task, masks), "discriminator", "encoder")
    before, loss = accuracy(program, task, masks), program.generator_loss(task, masks).item()
    untouched = [p.clone() for p in program.discriminator.parameters()]
    for _ in range(60):
        program.minimise(program.generator_loss(task, program.masks()), "masks", "encoder")
    fresh = program.masks().detach()
    assert before > 0.9
    assert accuracy(program, task, fresh) < before - 0.1
    assert program.generator_loss(task, fresh).item() < loss / 4
    for old, new in zip(untouched, program.discriminator.parameters(), strict=True):
        assert torch.equal(old, new)


def test_training_against_the_adversary_leaves_it_worse_off(data: Data) -> None:
    def last_loss(g_epochs: int) -> float:
        training = Training(epochs=30, learning_rate=0.01, weight_decay=0, track_discrepancy=False)
        model = FairVGNN(g_epochs=g_epochs, adversary_rate=0.01, ratio=0.0, clip=0.3, training=training)
        return model.fit(data).history_[-1].losses["discriminator"]

    assert last_loss(10) > last_loss(0) + 0.1


def test_a_feature_that_gives_the_group_away_is_masked(data: Data) -> None:
    leaky = Data(**{**data.to_dict(), "x": torch.cat([data.x, 4 * data.sens[:, None] - 2.0], 1), "feature_names": None})
    training = Training(epochs=60, learning_rate=0.001, track_discrepancy=False)
    model = FairVGNN(adversary_rate=0.05, ratio=0.02, training=training).fit(leaky)
    theta = model.program_.get_parameter("theta").detach()
    kept = theta.softmax(-1)[:, 0]
    assert float(kept[-1]) < float(kept[:-1].min())


def test_unknown_groups_take_no_part(data: Data) -> None:
    known = torch.arange(200) % 3 > 0
    partly = Data(**{**data.to_dict(), "sens": torch.where(known, data.sens, -1)})
    for backbone in BACKBONES:
        task, whole = Task(partly), Task(data)
        program = program_for(task, backbone=backbone)
        masks = program.masks().detach()
        logits = program.logits(whole, "all", masks, program.discriminator)[:, known]
        expected = nn.functional.binary_cross_entropy_with_logits(logits, data.sens[known].float().expand(10, -1))
        torch.testing.assert_close(program.discriminator_loss(task, masks), expected)
        fooled = (logits.sigmoid() - 0.5).square().mean() + (masks - 1).square().mean()
        torch.testing.assert_close(program.generator_loss(task, masks), fooled)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_every_backbone_learns_the_labels(data: Data, backbone: Backbone) -> None:
    training = Training(epochs=15, learning_rate=0.01, weight_decay=0, track_discrepancy=False)
    model = FairVGNN(K=4, backbone=backbone, training=training).fit(data)
    assert model.history_[-1].losses["loss"] < model.history_[0].losses["loss"]
    assert model.evaluate(data).auc > 0.75
    assert torch.equal(model.predict_proba(data), model.predict_proba(data))


def test_prediction_is_the_mean_over_fixed_masks(task: Task) -> None:
    program = program_for(task).eval()
    masks = program.masks(torch.Generator().manual_seed(0))
    expected = program.logits(task, "all", masks, program.classifier).mean(0)
    torch.testing.assert_close(program(task)[:, 1] - program(task)[:, 0], expected)


def test_authors_settings() -> None:
    german, bail, credit = (FairVGNN.authors(name) for name in ("german", "bail", "credit"))
    assert (german.d_epochs, german.c_epochs, german.g_epochs) == (5, 5, 5)
    assert (german.clip, german.ratio, german.training.epochs) == (0.1, 0.5, 400)
    assert (bail.d_epochs, bail.c_epochs, bail.g_epochs) == (5, 10, 10)
    assert (bail.clip, bail.ratio, bail.training.epochs) == (1.0, 1.0, 300)
    assert (credit.ratio, credit.training.learning_rate) == (0.0, 0.01)
    assert FairVGNN.authors("bail", backbone="gat", seed=3).training.seed == 3
    assert FairVGNN.authors("german", backbone="gin").d_epochs == 10
    with pytest.raises(ValueError, match=r"'data_set' must be one of .* \(got 'pokec'\)"):
        FairVGNN.authors("pokec")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"K": 0}, "'K' must be at least 1"),
        ({"c_epochs": 0}, "'c_epochs' must be at least 1"),
        ({"g_epochs": -1}, "'g_epochs' must be at least 0"),
        ({"clip": -0.1}, "'clip' must be at least 0"),
        ({"tau": 0.0}, "'tau' must be positive .got 0.0"),
        ({"adversary_rate": -1.0}, "'adversary_rate' must be positive"),
        ({"backbone": "cheb"}, "'backbone' must be one of"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FairVGNN(**parameters)


def test_only_two_labels_and_two_groups(data: Data) -> None:
    for name, what in (("y", "labels"), ("sens", "groups")):
        other = Data(**{**data.to_dict(), name: torch.arange(200) % 3, "label_names": None, "group_names": None})
        with pytest.raises(DataError, match=f"must have 2 {what} for FairVGNN .got 3"):
            FairVGNN().fit(other)
