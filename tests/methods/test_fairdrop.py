from typing import Any

import pytest
import torch
from tests.methods.ingredients import changed, small_graph, some_unknown
from torch import Tensor
from torch_geometric.data import Data

from fairpass.methods import FairDrop
from fairpass.methods.edge_dropout import EdgeDropout
from fairpass.methods.fairdrop import biased_dropout
from fairpass.training import Program, Task, Training, seeded

BACKBONES = ["gcn", "gin", "gat", "sage"]


def kept(dropout: EdgeDropout) -> Tensor:
    """Return where a drawn operator has entries, `(N, N)`."""
    return dropout.draw().matrix.to_dense() != 0


def shares(task: Task, delta: float, draws: int = 200) -> dict[str, float]:
    """Return the shares of kept edges inside groups, between groups, and with an end of unknown group."""
    dropout = biased_dropout(task, "gcn", delta)
    with seeded(0, deterministic=True):
        share = torch.stack([kept(dropout) for _ in range(draws)]).float().mean(0)
    one, other = task.sens[task.edge_index]
    known = (one >= 0) & (other >= 0)
    kinds = {"inside": known & (one == other), "between": known & (one != other), "unknown": ~known}
    on_edges = share[task.edge_index[0], task.edge_index[1]]
    return {kind: float(on_edges[which].mean()) for kind, which in kinds.items()}


# Which edges are kept


@pytest.mark.parametrize("delta", [0.0, 0.1, 0.3, 0.5])
def test_edges_between_groups_are_kept_more_often(task: Task, delta: float) -> None:
    found = shares(task, delta)
    assert found["inside"] == pytest.approx(0.5 - delta, abs=0.01)
    assert found["between"] == pytest.approx(0.5 + delta, abs=0.01)


def test_edges_of_unknown_mixing_are_kept_half_of_the_time(data: Data) -> None:
    found = shares(Task(some_unknown(data)), 0.4)
    assert found["unknown"] == pytest.approx(0.5, abs=0.01)
    assert found["inside"] == pytest.approx(0.1, abs=0.01)
    assert found["between"] == pytest.approx(0.9, abs=0.01)


def test_any_two_different_groups_count_as_different() -> None:
    found = shares(Task(small_graph(groups=3)), 0.3)
    assert found["inside"] == pytest.approx(0.2, abs=0.01)
    assert found["between"] == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_without_preference_it_is_plain_edge_dropout(task: Task, backbone: Any) -> None:
    drawn = []
    for dropout in (biased_dropout(task, backbone, 0.0), EdgeDropout(task, backbone, 0.5)):
        with seeded(3, deterministic=True):
            drawn.append(dropout.draw().matrix.to_dense())
    assert torch.equal(*drawn)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_with_full_preference_only_edges_between_groups_are_left(task: Task, backbone: Any) -> None:
    one, other = task.sens[task.edge_index]
    subgraph = Task(Data(x=task.x, edge_index=task.edge_index[:, one != other]), need_masks=False)
    drawn = biased_dropout(task, backbone, 0.5).draw().matrix.to_dense()
    torch.testing.assert_close(drawn, subgraph.operator(backbone).matrix.to_dense())


@pytest.mark.parametrize("backbone", BACKBONES)
def test_both_directions_go_together_and_loops_stay(task: Task, backbone: Any) -> None:
    pattern = kept(biased_dropout(task, backbone, 0.2))
    assert torch.equal(pattern, pattern.T)
    assert bool(pattern.diagonal().all()) == (backbone != "sage")
    assert 0 < int(pattern.sum()) < int((task.operator(backbone).matrix.to_dense() != 0).sum())


def test_method_and_control_draw_the_same_numbers(task: Task) -> None:
    """With the same draw, a preference only adds edges between groups and only removes those inside."""
    patterns = []
    for delta in (0.0, 0.2):
        with seeded(1, deterministic=True):
            patterns.append(kept(biased_dropout(task, "gcn", delta)))
    plain, biased = patterns
    is_inside = task.sens[:, None] == task.sens
    assert not bool((biased & ~plain & is_inside).any())
    assert not bool((plain & ~biased & ~is_inside).any())
    assert not torch.equal(plain, biased)


# The training


def prepared(model: FairDrop, task: Task) -> Program:
    program = model.build(task)
    program.configure(model.training)
    return program.train()


@pytest.mark.parametrize("backbone", BACKBONES)
def test_trains_on_the_subgraph_and_predicts_on_the_whole_graph(data: Data, task: Task, backbone: Any) -> None:
    one, other = data.sens[data.edge_index]
    subgraph = Task(changed(data, edge_index=data.edge_index[:, one != other]))
    model = FairDrop(delta=0.5, dropout=0.0, backbone=backbone)
    with seeded(0, deterministic=True):
        program = prepared(model, task)
    network = program.get_submodule("network")
    trained = network(task.x, subgraph.operator(backbone))
    torch.testing.assert_close(program(task), trained)
    program.eval()
    whole = network(task.x, task.operator(backbone))
    torch.testing.assert_close(program(task), whole)
    assert not torch.allclose(whole, trained)


def test_every_epoch_has_another_subgraph(task: Task) -> None:
    with seeded(0, deterministic=True):
        program = prepared(FairDrop(dropout=0.0), task)
        first, second = program(task), program(task)
        assert not torch.allclose(first, second)
        program.eval()
        assert torch.equal(program(task), program(task))


def test_the_loss_falls(data: Data) -> None:
    history = FairDrop(training=Training(epochs=80)).fit(data).history_
    losses = torch.tensor([record.losses["loss"] for record in history])
    assert losses[-10:].mean() < losses[:10].mean() - 0.05


@pytest.mark.parametrize("delta", [-0.1, 0.6])
def test_wrong_delta_is_an_error_before_fit(delta: float) -> None:
    with pytest.raises(ValueError, match=rf"'delta' must be at least 0 and at most 0.5 \(got {delta}\)"):
        FairDrop(delta=delta)
