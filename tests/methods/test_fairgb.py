from typing import Any

import pytest
import torch
from tests.methods.ingredients import changed, small_graph, some_unknown
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch_geometric.data import Data

from fairpass.methods import GCN, FairGB
from fairpass.methods.fairgb import Cells, Mixing, NeighbourSample, Partners, alignment
from fairpass.nn import SparseOperator
from fairpass.training import Task, Training, seeded

BACKBONES = ["gcn", "gin", "gat", "sage"]


def program_of(model: FairGB, task: Task) -> Any:
    program = model.build(task)
    program.configure(model.training)
    return program.train()


# Pairs


@pytest.mark.parametrize(("classes", "groups"), [(2, 2), (3, 2), (2, 3)])
def test_partners_differ_in_the_label_or_in_the_group(classes: int, groups: int) -> None:
    task = Task(small_graph(240, classes=classes, groups=groups))
    y, sens = task.train_labels, task.sens[task.train_nodes]
    for _ in range(5):
        partner = Mixing(task, "gcn", 1.0).draw_partners()
        assert bool(((y[partner] != y) & (sens[partner] == sens)).all())
        partner = Mixing(task, "gcn", 0.0).draw_partners()
        assert bool(((y[partner] == y) & (sens[partner] != sens)).all())
    mixing = Mixing(task, "gcn", 0.3)
    with seeded(0, deterministic=True):
        partners = torch.stack([mixing.draw_partners() for _ in range(200)])
    assert bool(((y[partners] != y) ^ (sens[partners] != sens)).all())
    assert float((y[partners] != y).float().mean()) == pytest.approx(0.3, abs=0.01)


def test_every_possible_partner_is_equally_likely() -> None:
    same, different = torch.tensor([0, 1, 1, 0, 1, 1, 0]), torch.tensor([0, 2, 0, 1, 1, 0, 0])
    pairs = Partners(same, different)
    with seeded(0, deterministic=True):
        drawn = torch.stack([pairs.draw() for _ in range(8000)])
    for node in range(7):
        possible = [k for k in range(7) if same[k] == same[node] and different[k] != different[node]]
        shares = torch.bincount(drawn[:, node], minlength=7) / len(drawn)
        expected = torch.zeros(7)
        expected[possible] = 1 / len(possible)
        torch.testing.assert_close(shares, expected, rtol=0, atol=0.025)


def test_a_node_without_a_partner_of_one_kind_gets_the_other_and_else_itself(data: Data) -> None:
    # Group 1 has one label only, so nobody of it has a partner of another label in the group.
    task = Task(changed(data, train_mask=data.train_mask & ((data.sens == 0) | (data.y == 1))))
    y, sens = task.train_labels, task.sens[task.train_nodes]
    partner = Mixing(task, "gcn", 1.0).draw_partners()
    lonely = sens == 1
    assert bool((y[partner] != y)[~lonely].all())
    assert bool(((sens[partner] == 0) & (y[partner] == 1))[lonely].all())
    task = Task(changed(data, train_mask=data.train_mask & (data.sens == data.y)))
    assert torch.equal(Mixing(task, "gcn", 0.5).draw_partners(), torch.arange(len(task.train_nodes)))


def test_nodes_of_unknown_group_are_in_no_pair(data: Data) -> None:
    task = Task(some_unknown(data))
    unknown = task.sens[task.train_nodes] < 0
    assert 0 < int(unknown.sum()) < len(unknown)
    for _ in range(20):
        partner = Mixing(task, "gcn", 0.5).draw_partners()
        assert torch.equal(partner[unknown], torch.nonzero(unknown).flatten())
        assert not bool(unknown[partner[~unknown]].any())


# New nodes


def test_features_are_mixed(task: Task) -> None:
    mixing = Mixing(task, "gcn", 0.5)
    with seeded(0, deterministic=True):
        draws = [mixing.draw() for _ in range(100)]
    mixed = draws[0]
    assert torch.equal(mixed.x[:150], task.x)
    assert len(mixed.x) == 150 + len(task.train_nodes)
    for k, node in enumerate(task.train_nodes.tolist()):
        share, other = float(mixed.own_share[k]), int(task.train_nodes[mixed.partner[k]])
        torch.testing.assert_close(mixed.x[150 + k], share * task.x[node] + (1 - share) * task.x[other])
    shares = torch.cat([each.own_share for each in draws])
    assert float(shares.mean()) == pytest.approx(0.5, abs=0.01)  # the moments of Beta(2, 2)
    assert float(shares.var()) == pytest.approx(0.05, abs=0.003)
    assert float((shares - 0.5).pow(4).mean()) == pytest.approx(3 / 560, abs=5e-4)


def test_a_new_node_samples_neighbours_of_its_source(task: Task) -> None:
    sample = NeighbourSample(task.operator("sage"), task.train_nodes)
    neighbours = [set(task.edge_index[0, task.edge_index[1] == v].tolist()) for v in range(150)]
    degrees = torch.tensor([len(each) for each in neighbours])
    count, picked = torch.zeros(len(task.train_nodes)), torch.zeros(len(task.train_nodes), 150)
    draws = 500
    with seeded(0, deterministic=True):
        for _ in range(draws):
            source, number = sample.draw()
            pairs = set(zip(source.tolist(), number.tolist(), strict=True))
            assert len(pairs) == len(source)  # without replacement
            assert all(v in neighbours[int(task.train_nodes[k])] for v, k in pairs)
            count += torch.bincount(number, minlength=len(count))
            picked[number, source] += 1
    own = degrees[task.train_nodes]
    expected = torch.minimum(degrees[None, :], own[:, None]).float().mean(1)
    torch.testing.assert_close(count / draws, expected, rtol=0, atol=0.6)
    assert float((count / draws).mean()) == pytest.approx(float(expected.mean()), abs=0.05)
    # All neighbours of a node are equally likely.
    for k, node in enumerate(task.train_nodes.tolist()):
        shares = picked[k, list(neighbours[node])] / draws
        torch.testing.assert_close(shares, (expected[k] / own[k]).expand_as(shares), rtol=0, atol=0.12)


def test_nodes_without_neighbours_are_mixed_too(data: Data) -> None:
    task = Task(changed(data, edge_index=torch.empty(2, 0, dtype=torch.long)))
    mixed = Mixing(task, "gcn", 0.5).draw()
    assert torch.equal(mixed.operator.matrix.to_dense(), torch.eye(len(mixed.x)))


@pytest.mark.parametrize("backbone", BACKBONES)
def test_new_nodes_receive_messages_and_send_none(task: Task, backbone: Any) -> None:
    mixed = Mixing(task, backbone, 0.5).draw()
    matrix, whole = mixed.operator.matrix.to_dense(), task.operator(backbone).matrix.to_dense()
    torch.testing.assert_close(matrix[:150, :150], whole)
    assert not bool(matrix[:150, 150:].any())
    among = matrix[150:, 150:]
    assert torch.equal(among, among.diagonal().diag())  # at most a node's own loop
    assert bool(matrix[150:, :150].any())
    with seeded(0, deterministic=True):
        network = FairGB(backbone=backbone, num_layers=1).build(task).get_submodule("network").eval()
    if backbone != "gin":  # which is normalised over all nodes
        torch.testing.assert_close(
            network(mixed.x, mixed.operator)[:150], network(task.x, task.operator(backbone)), rtol=1e-4, atol=1e-5
        )


class LargestTensor(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's own
    """Notes the size of the largest dense tensor that is made."""

    numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        dense = [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor) and leaf.layout == torch.strided]
        self.numel = max([self.numel, *(leaf.numel() for leaf in dense)])
        return out


def test_nothing_has_the_size_of_all_pairs_of_nodes() -> None:
    data = small_graph(3000)
    task = Task(data)
    program = program_of(FairGB(warmup=0), task)
    with LargestTensor() as largest:  # type: ignore[no-untyped-call] # torch's own
        program.epoch(task)
    assert 3000 * 16 < largest.numel < 3000 * 50


# Weights


def slow_weights(losses: Tensor, shares: Tensor, cell: Tensor) -> Tensor:
    contribution: dict[int, float] = {}
    terms = [(a, b) for a in range(losses.shape[0]) for b in range(losses.shape[1])]
    for at in terms:
        number = int(cell[at])
        if number >= 0:
            part = (1 - float(torch.exp(-losses[at]))) * float(shares[at])
            contribution[number] = contribution.get(number, 0.0) + part
    least = min(contribution.values())
    weights, known = torch.zeros_like(losses), [at for at in terms if int(cell[at]) >= 0]
    for at in known:
        weights[at] = least / contribution[int(cell[at])]
    mean = sum(float(weights[at] * shares[at]) for at in known) / sum(float(shares[at]) for at in known)
    for at in terms:
        if int(cell[at]) < 0:
            weights[at] = mean
    return weights


def test_weights_are_those_of_the_formula_and_make_contributions_equal() -> None:
    generator = torch.Generator().manual_seed(0)
    losses, own = 3 * torch.rand(2, 40, generator=generator), torch.rand(40, generator=generator)
    shares, cell = torch.stack([own, 1 - own]), torch.randint(4, (2, 40), generator=generator)
    weights = alignment(losses, shares, cell, 4)
    torch.testing.assert_close(weights, slow_weights(losses, shares, cell))
    contributions = (1 - torch.exp(-losses)) * shares
    unweighted = torch.stack([contributions[cell == k].sum() for k in range(4)])
    weighted = torch.stack([(weights * contributions)[cell == k].sum() for k in range(4)])
    torch.testing.assert_close(weighted, unweighted.min().expand(4))
    cell[:, ::5] = -1
    torch.testing.assert_close(alignment(losses, shares, cell, 4), slow_weights(losses, shares, cell))


def test_weights_are_finite_when_everything_is_learnt() -> None:
    cell = torch.tensor([[0, 1, 2, 3]])
    assert torch.equal(alignment(torch.zeros(1, 4), torch.ones(1, 4), cell, 4), torch.ones(1, 4))
    weights = alignment(torch.tensor([[0.0, 1.0, 1.0, 1.0]]), torch.ones(1, 4), cell, 4)
    assert bool(weights.isfinite().all())


def test_cells_are_the_labels_of_groups_that_occur(data: Data) -> None:
    task = Task(changed(some_unknown(data), train_mask=data.train_mask & ((data.sens == 0) | (data.y == 1))))
    cells, y, sens = Cells(task), task.train_labels, task.sens[task.train_nodes]
    assert cells.count == 3
    assert torch.equal(cells.of_node < 0, sens < 0)
    known = (sens >= 0).nonzero().flatten().tolist()
    for a in known:
        for b in known:
            assert (cells.of_node[a] == cells.of_node[b]) == bool((y[a] == y[b]) & (sens[a] == sens[b]))


# The loss


@pytest.mark.parametrize("mix", [True, False])
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("unknown", [True, False])
def test_loss_is_that_of_the_formula(data: Data, mix: bool, align: bool, unknown: bool) -> None:
    task = Task(some_unknown(data) if unknown else data)
    nodes, labels = task.train_nodes, task.train_labels
    with seeded(0, deterministic=True):
        program = program_of(FairGB(dropout=0.0, mix=mix, align=align), task)
    with seeded(1, deterministic=True):
        loss = program.rebalanced_loss(task)
    if mix:
        with seeded(1, deterministic=True):
            mixed = Mixing(task, "gcn", 0.5).draw()
        logits, partner, own = program.network(mixed.x, mixed.operator)[150:], mixed.partner, mixed.own_share
    else:
        logits, partner, own = program(task)[nodes], torch.arange(len(nodes)), torch.ones(len(nodes))
    logs, other = logits.log_softmax(1), nodes[partner]
    losses = torch.stack([torch.stack([-logs[k, task.y[v]] for k, v in enumerate(ends)]) for ends in (nodes, other)])
    shares, ends = torch.stack([own, 1 - own]), torch.stack([nodes, other])
    cell = torch.where(task.sens[ends] >= 0, 2 * task.y[ends] + task.sens[ends], -1)
    weights = slow_weights(losses.detach(), shares, cell) if align else torch.ones_like(losses)
    expected = (own * weights[0] * losses[0] + (1 - own) * weights[1] * losses[1]).mean()
    torch.testing.assert_close(loss, expected)
    if not mix and not align:
        torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(logits, labels))


def test_equal_contributions_of_both_labels_leave_the_intercept_alone(task: Task) -> None:
    """The gradient of an output's intercept is the sum of the contributions, with a sign for the label."""
    gradients = {}
    for align in (True, False):
        with seeded(0, deterministic=True):
            program = program_of(FairGB(align=align), task)
            program.rebalanced_loss(task).backward()
        gradients[align] = program.network.layers[-1].bias.grad
    torch.testing.assert_close(gradients[True], torch.zeros(2), rtol=0, atol=1e-7)
    assert bool((gradients[False].abs() > 1e-4).all())


# The training


def test_first_epochs_are_plain(data: Data) -> None:
    training = Training(epochs=6, select="last", track_discrepancy=False)
    model = FairGB(warmup=3, training=training).fit(data)
    control = model.control().fit(data)
    losses, plain = ([record.losses["loss"] for record in each.history_] for each in (model, control))
    assert losses[:3] == plain[:3]
    assert all(one != other for one, other in zip(losses[3:], plain[3:], strict=True))


def test_control_is_the_plain_network_bit_by_bit(data: Data) -> None:
    training = Training(epochs=8)
    control, plain = FairGB(training=training).control().fit(data), GCN(training=training).fit(data)
    assert torch.equal(control.predict_proba(data), plain.predict_proba(data))
    assert control.history_ == plain.history_


@pytest.mark.parametrize("backbone", BACKBONES)
def test_learns_with_every_backbone(data: Data, backbone: Any) -> None:
    model = FairGB(backbone=backbone, warmup=2, training=Training(epochs=60, track_discrepancy=False)).fit(data)
    assert model.evaluate(data, "train").auc > 0.6


def test_graphs_with_one_direction_only(data: Data) -> None:
    directed = changed(data, edge_index=data.edge_index[:, data.edge_index[0] < data.edge_index[1]])
    mixed = Mixing(Task(directed), "gcn", 0.5).draw()
    assert isinstance(mixed.operator, SparseOperator)
    torch.testing.assert_close(mixed.operator.transpose.to_dense(), mixed.operator.matrix.to_dense().T)
    received = {(int(s), int(t)) for s, t in directed.edge_index.T}
    new = mixed.operator.matrix.to_dense()[150:, :150].nonzero()
    nodes = Task(directed).train_nodes
    assert all((int(source), int(nodes[number])) in received for number, source in new)


def test_authors_settings() -> None:
    german = FairGB.authors("german", backbone="sage", seed=3)
    assert (german.eta, german.backbone, german.training.epochs, german.training.seed) == (0.7, "sage", 1500, 3)
    credit = FairGB.authors("credit").training
    assert (credit.epochs, credit.weight_decay) == (2000, 1e-4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"eta": 1.5}, r"'eta' must be between 0 and 1 \(got 1.5\)"),
        ({"warmup": -1}, r"'warmup' must be at least 0 \(got -1\)"),
        ({"backbone": "cheb"}, r"'backbone' must be one of .* \(got 'cheb'\)"),
    ],
)
def test_wrong_parameters_are_errors_before_fit(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FairGB(**parameters)
