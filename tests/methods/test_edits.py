"""EDITS: its sparse debiasing against a dense one, what comes out of it, and what predictions are made with."""

import resource
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected, to_dense_adj, to_undirected

from fairpass.datasets import synthetic
from fairpass.errors import DataError, FairpassError
from fairpass.methods import EDITS, edits_debias
from fairpass.methods.edits import _contrast, _Debiased
from fairpass.methods.edits_debias import Debiased, LowRank, WeightedGraph, debias, strongest_pairs
from fairpass.methods.header import KIND
from fairpass.training import Task, Training
from fairpass.training.tensors import read_tensors, write_tensors

EVERYTHING = 1e9
HOW = EDITS(alpha=0.3, beta=0.8, gamma=15.0, tau=0.3, debias_epochs=40, budget=0.25)


def biased_graph(nodes: int = 60, seed: int = 0) -> Data:
    return synthetic(nodes, avg_degree=6, num_features=5, feature_leakage=2.0, sens_homophily=0.9, seed=seed)


@pytest.fixture(scope="module")
def data() -> Data:
    return biased_graph(200)


def dense_debias(task: Task, how: EDITS) -> tuple[Tensor, Tensor, list[float]]:
    """Return the learnt adjacency, the scales and the distances, as the paper's equations say: all is dense."""
    torch.manual_seed(0)
    x = task.x / task.x.norm(dim=0)
    adjacency = to_dense_adj(task.edge_index, max_num_nodes=len(x))[0] + torch.eye(len(x))
    learnt = adjacency.clone().requires_grad_()
    scales = torch.ones(x.shape[1], requires_grad=True)
    critic = nn.Parameter(torch.empty(3, x.shape[1]).uniform_(-0.02, 0.02))

    def distance() -> Tensor:
        hops = [x * scales]
        for _ in range(2):
            hops.append(learnt @ hops[-1])
        scores = torch.cat(hops, 1) @ critic.flatten()
        return scores[task.sens == 0].mean() - scores[task.sens == 1].mean()

    of_critic = torch.optim.RMSprop([critic], lr=0.003, eps=1e-4)
    of_scales = torch.optim.RMSprop([scales], lr=0.003, eps=1e-4)
    of_edges = torch.optim.SGD([learnt], lr=0.003, momentum=0.9)
    distances = []

    def step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()

    for _ in range(how.debias_epochs):
        for _ in range(8):
            step(of_critic, -distance())
            critic.data.clamp_(-0.02, 0.02)
        distances.append(distance().item())
        step(of_scales, how.alpha * (x * scales - x).norm() + how.beta * distance())
        scales.data.copy_(nn.functional.softshrink(scales.data, 0.003 * 5e-6).clamp(0, 1))
        step(of_edges, (learnt - adjacency).square().sum() + how.gamma * distance())
        learnt.data.copy_(nn.functional.softshrink(learnt.data, 0.003 * 5e-4).clamp(0, 1))
        learnt.data.copy_((learnt.data + learnt.data.T) / 2)
    return learnt.detach(), scales.detach(), distances


class Kept:
    """Keeps the graph that `debias` learns on, for a look at what it stored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(edits_debias, "WeightedGraph", self)

    def __call__(self, *arguments: Any) -> WeightedGraph:
        self.graph = WeightedGraph(*arguments)
        return self.graph


def sparse_debias(task: Task, how: EDITS) -> Debiased:
    torch.manual_seed(0)
    return debias(task.x, task.edge_index, _contrast(task), how)


def codes(edge_index: Tensor, nodes: int) -> set[int]:
    return set((edge_index[0] * nodes + edge_index[1]).tolist())


# Against the dense algorithm


def test_with_every_pair_stored_it_is_the_dense_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    task, kept = Task(biased_graph()), Kept(monkeypatch)
    adjacency, scales, distances = dense_debias(task, HOW)
    result = sparse_debias(task, HOW.with_params(budget=EVERYTHING))
    torch.testing.assert_close(result.wasserstein, torch.tensor(distances), rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(result.scales, scales, rtol=1e-3, atol=1e-4)
    weights = kept.graph.structure.with_values(kept.graph.weights).to_dense()
    torch.testing.assert_close(weights, adjacency, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("tau", "budget"), [(0.6, 1.0), (0.8, 0.25)])
@pytest.mark.parametrize("seed", range(3))
def test_candidates_contain_what_the_dense_algorithm_joins(
    seed: int, tau: float, budget: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, kept = Task(biased_graph(seed=seed)), Kept(monkeypatch)
    adjacency, _, _ = dense_debias(task, HOW)
    change = adjacency - to_dense_adj(task.edge_index, max_num_nodes=60)[0] - torch.eye(60)
    joined = codes(torch.nonzero(change > tau * change.max()).T, 60)
    result = sparse_debias(task, HOW.with_params(tau=tau, budget=budget))
    stored = torch.stack([kept.graph.structure.row, kept.graph.structure.col])
    assert 0 < len(joined) <= budget * task.edge_index.shape[1]
    assert joined <= codes(stored, 60)
    # It joins them all; others close to the threshold can be on its other side.
    chosen = codes(result.edge_index, 60) - codes(task.edge_index, 60)
    assert joined <= chosen
    assert len(chosen) <= 1.3 * len(joined)


def test_gradient_is_the_derivative_of_the_distance() -> None:
    torch.manual_seed(0)
    adjacency = torch.rand(7, 7, dtype=torch.float64, requires_grad=True)
    x, contrast, weights = (torch.randn(*shape, dtype=torch.float64) for shape in ((7, 3), (7,), (3, 3)))
    hops = [x, adjacency @ x, adjacency @ adjacency @ x]
    distance = sum(contrast @ hop @ weight for hop, weight in zip(hops, weights, strict=True))
    (expected,) = torch.autograd.grad(distance, adjacency)
    near, far = x @ weights[1], x @ weights[2]
    fixed = adjacency.detach()
    gradient = LowRank(torch.stack([contrast, fixed.T @ contrast], 1), torch.stack([near + fixed @ far, far], 1))
    row, col = torch.cartesian_prod(torch.arange(7), torch.arange(7)).T
    torch.testing.assert_close(gradient.entries(row, col).view(7, 7), expected)


# The search for candidates


@examples(60)
@given(
    nodes=st.integers(2, 90),
    rank=st.integers(1, 3),
    count=st.integers(0, 400),
    seed=st.integers(0, 2**16),
    tail=st.sampled_from([0.0, 1.0, 3.0]),
)
def test_strongest_pairs_are_those_of_the_whole_matrix(
    nodes: int, rank: int, count: int, seed: int, tail: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    left, right = (
        torch.randn(nodes, rank, generator=generator) * (tail * torch.randn(nodes, 1, generator=generator)).exp()
        for _ in range(2)
    )
    edges = to_undirected(torch.randint(nodes, (2, nodes), generator=generator), num_nodes=nodes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edits_debias, "_CELL", 5)
        patch.setattr(edits_debias, "_ENTRIES_AT_ONCE", 100)
        pairs = strongest_pairs(LowRank(left, right), count, edges)
    whole = (left @ right.T + right @ left.T) / 2
    allowed = torch.ones(nodes, nodes, dtype=torch.bool).triu(1)
    allowed[edges[0], edges[1]] = False
    expected = whole[allowed].sort(descending=True).values[:count]
    assert pairs.shape == (2, len(expected))
    assert len({frozenset(pair) for pair in pairs.T.tolist()}) == len(expected)
    low, high = pairs.sort(0).values
    assert bool(allowed[low, high].all())
    scale = float(whole.abs().max())
    torch.testing.assert_close(whole[low, high].sort(descending=True).values, expected, rtol=1e-4, atol=1e-5 * scale)


# What comes out


def farthest(x: Tensor, edge_index: Tensor, contrast: Tensor) -> float:
    """Return the distance that the best critic within its bounds finds on a graph."""
    graph = WeightedGraph(edge_index, len(x), 0.0)
    columns = x / x.norm(dim=0).clamp(min=1e-12)
    hops = [contrast, graph @ contrast, graph @ (graph @ contrast)]
    return 0.02 * float((torch.stack(hops) @ columns).abs().sum())


def test_lowers_the_wasserstein_distance(data: Data) -> None:
    model = EDITS(tau=0.05, training=Training(epochs=100)).fit(data)
    program, task = model.program_, Task(data)
    assert isinstance(program, _Debiased)
    assert float(program.wasserstein[-1]) < 0.8 * float(program.wasserstein[0])
    contrast = _contrast(task)
    before = farthest(task.x, task.edge_index, contrast)
    assert float(program.wasserstein[0]) == pytest.approx(before, rel=1e-3)
    # Also of what is handed on: edges that are there or not, columns that are kept or not.
    assert farthest(task.x, program.edges, contrast) < before
    assert farthest(task.x * program.kept, program.edges, contrast) < farthest(
        task.x * program.kept, task.edge_index, contrast
    )


@pytest.mark.parametrize("budget", [0.0, 0.1, 0.25])
def test_output_is_symmetric_binary_and_close_in_size(data: Data, budget: float) -> None:
    result = sparse_debias(Task(data), HOW.with_params(tau=0.01, budget=budget))
    edges = result.edge_index
    before, after = codes(data.edge_index, 200), codes(edges, 200)
    assert len(after) == edges.shape[1]
    assert is_undirected(edges, num_nodes=200)
    assert bool((edges[0] != edges[1]).all())
    assert torch.equal((edges[0] * 200 + edges[1]).sort().values, edges[0] * 200 + edges[1])
    assert len(after - before) <= budget * len(before) + 1
    assert len(before - after) <= budget * len(before) + 1
    assert (after != before) == (budget > 0)
    assert bool(((result.scales >= 0) & (result.scales <= 1)).all())


def test_without_a_difference_between_the_groups_nothing_changes(data: Data) -> None:
    result = debias(data.x, data.edge_index, torch.zeros(200), HOW)
    assert torch.equal(result.edge_index, data.edge_index)
    # Sparsity alone: the proximal steps of 40 epochs.
    torch.testing.assert_close(result.scales, torch.full((5,), 1.0), atol=1e-4, rtol=0)


def test_directions_loops_and_repetitions_do_not_matter(data: Data) -> None:
    one_way = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    loops = torch.arange(50).repeat(2, 1)
    untidy = torch.cat([one_way, loops, one_way[:, :30]], 1)
    contrast = _contrast(Task(data))
    results = []
    for edge_index in (data.edge_index, untidy):
        torch.manual_seed(0)
        results.append(debias(data.x, edge_index, contrast, HOW))
    assert torch.equal(results[0].edge_index, results[1].edge_index)
    assert torch.equal(results[0].scales, results[1].scales)


def test_large_graph_needs_no_dense_matrix() -> None:
    nodes = 40_000  # a dense adjacency in single precision would take 6.4 GB
    data = synthetic(nodes, avg_degree=4, num_features=4, seed=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = sparse_debias(Task(data), HOW.with_params(debias_epochs=2))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    assert grown < 1.0
    assert 0.75 <= result.edge_index.shape[1] / data.edge_index.shape[1] <= 1.25


# What predictions are made with


@pytest.fixture(scope="module")
def fitted(data: Data) -> EDITS:
    return EDITS(tau=0.05, drop=2, debias_epochs=30, training=Training(epochs=20, track_discrepancy=False)).fit(data)


def program_of(model: EDITS) -> _Debiased:
    assert isinstance(model.program_, _Debiased)
    return model.program_


def test_fitted_graph_has_debiased_edges_and_another_its_own(data: Data, fitted: EDITS) -> None:
    program = program_of(fitted)
    assert codes(program.edges, 200) != codes(data.edge_index, 200)
    with torch.no_grad():
        for edge_index, used in (
            (data.edge_index, program.edges),
            (data.edge_index[:, 2:-2], data.edge_index[:, 2:-2]),
        ):
            graph = Data(x=data.x, edge_index=edge_index)
            plain = Task(Data(x=data.x * program.kept, edge_index=used), need_masks=False)
            expected = program.network(plain.x, plain.operator("gcn")).softmax(-1)
            assert torch.equal(fitted.predict_proba(graph), expected)


def test_dropped_columns_have_no_influence(data: Data, fitted: EDITS) -> None:
    program = program_of(fitted)
    assert int((program.kept == 0).sum()) == 2
    assert float(program.scales[program.kept == 0].max()) <= float(program.scales[program.kept == 1].min())
    noisy = Data(x=data.x + 10 * (1 - program.kept) * torch.randn(200, 5), edge_index=data.edge_index)
    assert torch.equal(fitted.predict_proba(noisy), fitted.predict_proba(data))


def test_of_equal_columns_those_that_differ_most_are_dropped_first(data: Data) -> None:
    group = data.sens[:, None] * torch.tensor([1.0, 0.5, 0.25, 0.1]) + torch.tensor([0.0, 0.25, 0.4, 0.45])
    told = Data(**{**data.to_dict(), "x": torch.cat([data.x[:, :1], group.flip(1)], 1), "feature_names": None})
    model = EDITS(drop=2, debias_epochs=400, alpha=0.0, training=Training(epochs=400, track_discrepancy=False))
    program = program_of(model.fit(told))
    assert float(program.scales[1:].max()) == 0.0
    assert program.kept.tolist() == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat", "sage"])
def test_every_backbone(data: Data, backbone: Any) -> None:
    training = Training(epochs=30, learning_rate=0.02, track_discrepancy=False)
    model = EDITS(backbone=backbone, drop=1, debias_epochs=10, training=training).fit(data)
    assert model.history_[-1].losses["loss"] < 0.9 * model.history_[0].losses["loss"]
    assert torch.equal(model.predict_proba(data), model.predict_proba(data))


def test_unknown_groups_take_no_part(data: Data) -> None:
    partly = Data(**{**data.to_dict(), "sens": torch.where(torch.arange(200) % 3 > 0, data.sens, -1)})
    contrast = _contrast(Task(partly))
    assert bool((contrast[partly.sens < 0] == 0).all())
    gap = data.x[partly.sens == 0].mean(0) - data.x[partly.sens == 1].mean(0)
    torch.testing.assert_close(contrast @ data.x, gap, rtol=1e-4, atol=1e-5)


def test_authors_settings() -> None:
    found = {name: EDITS.authors(name) for name in ("german", "bail", "credit")}
    assert {name: (m.alpha, m.beta, m.tau) for name, m in found.items()} == {
        "german": (0.3, 0.8, 0.29),
        "bail": (0.03, 1.0, 0.015),
        "credit": (0.05, 0.1, 0.02),
    }
    assert EDITS.authors("bail", seed=2).training == EDITS.default_training().but(seed=2)
    with pytest.raises(ValueError, match=r"'data_set' must be one of .* \(got 'nba'\)"):
        EDITS.authors("nba")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, "'alpha' must be at least 0"),
        ({"tau": 1.5}, "'tau' must be between 0 and 1"),
        ({"drop": -1}, "'drop' must be at least 0"),
        ({"budget": -0.5}, "'budget' must be at least 0"),
        ({"debias_epochs": 0}, "'debias_epochs' must be at least 1"),
        ({"backbone": "cheb"}, "'backbone' must be one of"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EDITS(**parameters)


def test_unsuitable_graphs(data: Data) -> None:
    for name, what in (("y", "labels"), ("sens", "groups")):
        other = Data(**{**data.to_dict(), name: torch.arange(200) % 3, "label_names": None, "group_names": None})
        with pytest.raises(DataError, match=f"must have 2 {what} for EDITS .got 3"):
            EDITS().fit(other)
    with pytest.raises(ValueError, match=r"EDITS must keep some of the 5 features \(its parameter drop is 5\)"):
        EDITS(drop=5).build(Task(data))


@pytest.mark.parametrize(
    ("number", "message"), [(2**62, "nodes of its own graph only"), (-1, "'edges' must be numbers")]
)
def test_stored_edges_that_lead_nowhere(data: Data, fitted: EDITS, number: int, message: str, tmp_path: Path) -> None:
    file = fitted.save(tmp_path / "model.safetensors")
    tensors, header = read_tensors(file, KIND)
    name = next(each for each in tensors if each.endswith("edges") and not each.endswith("fitted_edges"))
    write_tensors(file, KIND, {**tensors, name: torch.full_like(tensors[name], number)}, header)
    with pytest.raises(FairpassError, match=message):
        EDITS.load(file).predict_proba(data)
