from pathlib import Path
from typing import Any

import pytest
import torch
from tests.methods.ingredients import changed, small_graph, some_unknown
from torch import Tensor
from torch_geometric.data import Data

from fairpass.methods import BeMap
from fairpass.methods.bemap import NeighbourSampler, draws_per_group
from fairpass.nn import SparseOperator
from fairpass.nn.convolution import Backbone
from fairpass.training import Task, Training, seeded

GRAPHS = [small_graph(), some_unknown(small_graph()), small_graph(120, groups=3)]


def neighbourhoods(sampler: NeighbourSampler, drawn: Tensor) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(sampler.pattern.num_nodes)]
    for node, neighbour in zip(sampler.pattern.row[drawn].tolist(), sampler.pattern.col[drawn].tolist(), strict=True):
        found[node].append(neighbour)
    return found


def all_neighbours(graph: Data) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(graph.num_nodes)]
    for source, target in graph.edge_index.T.tolist():
        if source != target:
            found[target].add(source)
    return found


def uneven(graph: Data) -> Data:
    """Return the graph with directed edges, double ones and a loop; one node has many neighbours, another none."""
    nodes = torch.arange(40, 80)
    hub = torch.stack([nodes, torch.full_like(nodes, 3)])
    edges = torch.cat([graph.edge_index[:, 9:], graph.edge_index[:, -5:], torch.tensor([[3], [3]]), hub], 1)
    edges = edges[:, (edges != 5).all(0)]
    return changed(graph, edge_index=edges)


def star(groups: list[list[int]]) -> Data:
    """Return node 0 with a neighbour for each list; the list has the groups of the neighbour and its own neighbours.

    Node 0 is of group 0. Edges go towards node 0 only.
    """
    sens, edges = [0], []
    for own, *others in groups:
        neighbour = len(sens)
        sens.append(own)
        edges.append((neighbour, 0))
        for other in others:
            edges.append((len(sens), neighbour))
            sens.append(other)
    y = torch.arange(len(sens)) % 2
    mask = torch.ones(len(sens), dtype=torch.bool)
    x, edge_index = torch.ones(len(sens), 1), torch.tensor(edges).T
    return Data(x=x, edge_index=edge_index, y=y, sens=torch.tensor(sens), train_mask=mask, val_mask=~mask)


def frequencies(graph: Data, model: BeMap, draws: int = 4000) -> tuple[list[int], Tensor]:
    """Return the neighbours of node 0 and how often each was drawn."""
    sampler = NeighbourSampler(Task(graph), model)
    at_centre = (sampler.pattern.row == 0) & ~sampler.loop
    with seeded(0, deterministic=True):
        counts = torch.stack([sampler.draw_neighbours()[at_centre] for _ in range(draws)]).double().mean(0)
    return sampler.pattern.col[at_centre].tolist(), counts


# How many are drawn


@pytest.mark.parametrize("graph", GRAPHS)
def test_groups_are_balanced_where_there_is_more_than_one(graph: Data) -> None:
    graph = uneven(graph)
    sampler, whole, sens = NeighbourSampler(Task(graph), BeMap()), all_neighbours(graph), graph.sens.tolist()
    seen, balanced, alone = set(), 0, 0
    for _ in range(5):
        drawn = neighbourhoods(sampler, sampler.draw_neighbours())
        seen.add(str(drawn))
        for node, neighbours in enumerate(drawn):
            assert len(set(neighbours)) == len(neighbours)
            assert set(neighbours) <= whole[node]
            unknown = {other for other in whole[node] if sens[other] < 0}
            assert unknown <= set(neighbours)
            group = [sens[other] for other in whole[node] | {node} if sens[other] >= 0]
            got = [sens[other] for other in [*neighbours, node] if sens[other] >= 0]
            present = set(group)
            if len(present) > 1:
                balanced += 1
                assert all(got.count(each) == min(map(group.count, present)) for each in present)
            elif present:
                alone += 1
                known = len(whole[node]) - len(unknown)
                assert len(neighbours) - len(unknown) == min(max(4, -(-known // 4)), known)
    assert len(seen) == 5
    assert balanced > 200
    assert alone > 4


@pytest.mark.parametrize(
    ("beta", "minimum", "neighbours", "expected"),
    [
        (0.25, 4, 3, 3),
        (0.25, 4, 4, 4),
        (0.25, 4, 16, 4),
        (0.25, 4, 17, 5),
        (0.25, 4, 100, 25),
        (0.1, 2, 30, 3),
        (0.0, 0, 30, 0),
        (1.0, 4, 30, 30),
    ],
)
def test_a_node_among_its_own_group_keeps_a_share(beta: float, minimum: int, neighbours: int, expected: int) -> None:
    own = torch.tensor([[1, 0]])
    assert draws_per_group(torch.tensor([[neighbours, 0]]), own, beta, minimum).tolist() == [[expected, 0]]
    assert draws_per_group(torch.tensor([[neighbours, 0]]), 0 * own, beta, minimum).tolist() == [[expected, 0]]
    sampler = NeighbourSampler(Task(star([[0]] * neighbours + [[1, 0]])), BeMap(beta=beta, minimum=minimum))
    centre = sampler.pattern.row == 0
    assert int(sampler.draw_neighbours()[centre].sum()) == 1  # with one of the other group: it, and node 0 itself


@pytest.mark.parametrize(
    ("neighbours", "own", "expected"),
    [
        ([5, 3], [1, 0], [2, 3]),
        ([5, 3], [0, 1], [4, 3]),
        ([2, 9], [1, 0], [2, 3]),
        ([0, 9], [1, 0], [0, 1]),
        ([5, 3], [0, 0], [3, 3]),
        ([0, 0], [1, 0], [0, 0]),
        ([7, 2, 4], [0, 0, 1], [2, 2, 1]),
        ([7, 0, 4], [1, 0, 0], [3, 0, 4]),
    ],
)
def test_numbers_that_are_drawn(neighbours: list[int], own: list[int], expected: list[int]) -> None:
    found = draws_per_group(torch.tensor([neighbours]), torch.tensor([own]), 0.25, 4)
    assert found.tolist() == [expected]


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_control_draws_as_many(graph: Data) -> None:
    task = Task(uneven(graph))
    numbers = []
    for model in (BeMap(), BeMap().control()):
        sampler = NeighbourSampler(task, model)
        numbers.append(torch.bincount(sampler.pattern.row[sampler.draw_neighbours()], minlength=task.num_nodes))
    assert torch.equal(*numbers)


# Who is drawn


def test_balanced_neighbours_are_drawn_more_often() -> None:
    """Node 0 draws one of five neighbours of the other group, in proportion to their weights."""
    # Imbalances with the neighbour itself: 1, 0, 3, 4 and 0.
    graph = star([[1], [1, 0], [1, 1, 1], [1, 1, 1, 1], [1, 0, 1, 0]])
    _, found = frequencies(graph, BeMap())
    weights = 1 / (1 + torch.tensor([1, 0, 3, 4, 0], dtype=torch.float64))
    torch.testing.assert_close(found, weights / weights.sum(), rtol=0, atol=0.025)


def test_several_are_drawn_without_replacement_one_after_the_other() -> None:
    """Two of three: a neighbour is drawn first, or second after one of the others."""
    graph = star([[0], [1], [1, 0], [1, 1, 1, 1]])  # node 0 and a neighbour of its own group: two of the other
    _, found = frequencies(graph, BeMap())
    w = (1 / (1 + torch.tensor([1, 0, 4], dtype=torch.float64))).tolist()
    total = sum(w)
    expected = [w[i] / total + sum(w[j] / total * w[i] / (total - w[j]) for j in range(3) if j != i) for i in range(3)]
    torch.testing.assert_close(found, torch.tensor([1.0, *expected]).double(), rtol=0, atol=0.025)


def test_in_the_control_all_neighbours_are_equally_likely_whatever_their_group() -> None:
    graph = star([[0], [0, 0], [0], [1], [1, 0], [1, 1, 1, 1], [-1], [0, 1, 1, 1, 1], [0]])
    neighbours, found = frequencies(graph, BeMap(balanced=False))
    # Three of each group, node 0 among them, and the one of unknown group.
    torch.testing.assert_close(found, torch.full((9,), 6 / 9).double(), rtol=0, atol=0.03)
    assert {int(graph.sens[node]) for node in neighbours} == {0, 1, -1}
    _, biased = frequencies(graph, BeMap())
    assert float((biased - 6 / 9).abs().max()) > 0.2  # so this test can fail


def test_control_and_method_draw_the_same_random_numbers(data: Data) -> None:
    states = []
    for model in (BeMap(), BeMap().control()):
        sampler = NeighbourSampler(Task(data), model)
        with seeded(0, deterministic=True):
            sampler.draw()
            states.append(torch.get_rng_state())
    assert torch.equal(*states)


# The sampled graph in training


@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat", "sage"])
@pytest.mark.parametrize("kind", ["undirected", "uneven"])
def test_operator_is_that_of_the_sampled_graph(data: Data, backbone: Backbone, kind: str) -> None:
    graph = data if kind == "undirected" else uneven(data)
    sampler = NeighbourSampler(Task(graph), BeMap(backbone=backbone))
    drawn = sampler.draw_neighbours()
    mine = sampler.subgraphs.operator(drawn, both_ways=False)
    edges = torch.stack([sampler.pattern.col, sampler.pattern.row])[:, drawn]
    if kind == "uneven" and backbone in ("sage", "gin"):  # node 3 is its own neighbour
        edges = torch.cat([edges, torch.tensor([[3], [3]])], 1)
    expected = SparseOperator.from_edge_index(edges, graph.num_nodes, backbone)
    torch.testing.assert_close(mine.matrix.to_dense(), expected.matrix.to_dense())
    torch.testing.assert_close(mine.transpose.to_dense(), expected.matrix.to_dense().T)


def test_training_uses_a_new_sample_each_time_and_prediction_the_whole_graph(data: Data) -> None:
    task = Task(data)
    program = BeMap(dropout=0.0).build(task)
    seen: list[Any] = []
    program.network.register_forward_pre_hook(lambda _, args: seen.append(args[1]))  # type: ignore[union-attr] # a module
    program.train()
    first, second = program(task), program(task)
    assert not torch.equal(first, second)
    program.eval()
    assert torch.equal(program(task), program(task))
    assert seen[2] is seen[3] is task.operator("gcn")
    assert (seen[0].matrix.to_dense() > 0).sum() < (seen[2].matrix.to_dense() > 0).sum()


def test_prediction_needs_no_groups(data: Data) -> None:
    model = BeMap(training=Training(epochs=3)).fit(data)
    nobody = changed(data, sens=torch.full_like(data.sens, -1))
    assert torch.equal(model.predict_proba(nobody), model.predict_proba(data))


@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat", "sage"])
def test_every_backbone_learns_and_is_kept_in_a_file(data: Data, tmp_path: Path, backbone: Any) -> None:
    model = BeMap(backbone=backbone, training=Training(epochs=30)).fit(data)
    losses = [record.losses["loss"] for record in model.history_]
    assert sum(losses[-5:]) < sum(losses[:5])
    loaded = BeMap.load(model.save(tmp_path / "model"))
    assert torch.equal(loaded.predict_proba(data), model.predict_proba(data))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"beta": 1.5}, r"'beta' must be between 0 and 1 \(got 1.5\)"),
        ({"minimum": -1}, r"'minimum' must be at least 0 \(got -1\)"),
        ({"balanced": "yes"}, r"'balanced' must be"),
    ],
)
def test_wrong_parameters_are_errors_before_fit(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        BeMap(**parameters)
