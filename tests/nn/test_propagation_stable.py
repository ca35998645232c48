"""The stable step: its formula, its limit, and that no layer ever raises the objective."""

from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from torch import Tensor

from fairpass.kernels import Discrepancy, Groups
from fairpass.kernels.dispatch import Backend
from fairpass.nn import GMMDPropagation, GMMDSPropagation, SparseOperator

MakeGraph = Callable[..., SimpleNamespace]
every_variant = pytest.mark.parametrize("variant", [GMMDPropagation, GMMDSPropagation])
magnitudes = st.floats(-3, 5).map(lambda exponent: 10.0**exponent)


def one_layer(layer: GMMDPropagation, F: Tensor, x_in: Tensor, graph: SparseOperator, sens: Tensor) -> Tensor:
    """Return what one layer makes of any `F`, not just of `x_in`."""
    return layer._layer(F, None, x_in, graph, layer._terms(Groups.of(sens, F.dtype)))[0]


def split_step(layer: GMMDPropagation, F: Tensor, x_in: Tensor, graph: SparseOperator, sens: Tensor) -> Tensor:
    """Return the layer by its formula: smooth, then step by `1/(1/gamma + 16 lambda_f alpha / N_a)`."""
    assert layer.lambda_f is not None
    gamma, sizes = 1 / (1 + layer.lambda_s), torch.bincount(sens)[sens, None].double()
    Y = (1 - gamma) * (graph @ F) + gamma * x_in
    bound = (8 if layer.simplified else 16) * layer.lambda_f * layer.alpha / sizes
    discrepancy = Discrepancy(Groups.of(sens, F.dtype), simplified=layer.simplified)
    moved = Y
    for _ in range(layer.fair_steps):
        slope = (moved - Y) / gamma + layer.lambda_f * discrepancy.gradient(moved, layer.alpha)[0]
        moved = moved - slope / (1 / gamma + bound)
    return moved


def h(layer: GMMDPropagation, F: Tensor, x_in: Tensor, graph: SparseOperator, sens: Tensor) -> float:
    assert layer.lambda_f is not None
    return float(layer.objective(F, x_in, graph, sens, float(layer.alpha), float(layer.lambda_f)))


@every_variant
@pytest.mark.parametrize(("columns", "backend"), [(2, "auto"), (4, "sliced"), (9, "sliced")])
@examples(60)
@given(
    seed=st.integers(0, 2**20),
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 12)),
    density=st.floats(0, 1),
    scale=st.floats(-2, 2).map(lambda exponent: 10.0**exponent),
    lambda_s=st.just(0.0) | magnitudes,
    lambda_f=magnitudes,
    alpha=st.floats(-2, 2).map(lambda exponent: 10.0**exponent),
    fair_steps=st.integers(1, 6),
)
def test_no_layer_raises_the_objective(
    variant: type[GMMDPropagation],
    columns: int,
    backend: Backend,
    seed: int,
    sizes: tuple[int, int],
    density: float,
    scale: float,
    lambda_s: float,
    lambda_f: float,
    alpha: float,
    fair_steps: int,
) -> None:
    random = torch.Generator().manual_seed(seed)
    n = sum(sizes)
    sens = torch.arange(2).repeat_interleave(torch.tensor(sizes))[torch.randperm(n, generator=random)]
    joined = (torch.rand(n, n, generator=random) < density).triu(1)
    graph = SparseOperator.from_edge_index((joined | joined.T).nonzero().T, n, dtype=torch.float64)
    x_in = scale * torch.randn(n, columns, generator=random, dtype=torch.float64)
    F = scale * torch.randn(n, columns, generator=random, dtype=torch.float64)
    options: Any = {"bandwidth": "fixed", "fair_steps": fair_steps, "backend": backend}
    layer = variant(lambda_s=lambda_s, lambda_f=lambda_f, alpha=alpha, **options)
    for _ in range(2):
        moved = one_layer(layer, F, x_in, graph, sens)
        before, after = h(layer, F, x_in, graph, sens), h(layer, moved, x_in, graph, sens)
        # Its terms may be large and of opposite sign.
        assert after <= before + 1e-10 * (abs(before) + 2 * lambda_f)
        F = moved


@every_variant
def test_deeper_is_lower(make_graph: MakeGraph, variant: type[GMMDPropagation]) -> None:
    graph = make_graph(n=16)
    adjacency = SparseOperator.from_edge_index(graph.edge_index, graph.n, dtype=torch.float64)
    options: Any = {"lambda_s": 3.0, "lambda_f": 40.0, "alpha": 0.5, "bandwidth": "fixed"}
    values = [h(variant(**options), graph.x, graph.x, adjacency, graph.sens)]
    for K in range(1, 8):
        layer = variant(K=K, **options)
        values.append(h(layer, layer(*graph.inputs), graph.x, adjacency, graph.sens))
    assert all(deeper < shallower for shallower, deeper in pairwise(values))


@every_variant
@pytest.mark.parametrize("fair_steps", [1, 2, 5])
@pytest.mark.parametrize("backbone", ["gcn", "gin"])
def test_steps_are_those_of_the_formula(
    make_graph: MakeGraph, variant: type[GMMDPropagation], fair_steps: int, backbone: Any
) -> None:
    graph = make_graph()
    layer = variant(
        K=1,
        lambda_s=2.0,
        lambda_f=1.5,
        alpha=0.6,
        bandwidth="fixed",
        fair_steps=fair_steps,
        momentum=False,
        backbone=backbone,
    )
    adjacency = SparseOperator.from_edge_index(graph.edge_index, graph.n, layer.operator_kind, dtype=torch.float64)
    torch.testing.assert_close(
        layer(*graph.inputs), split_step(layer, graph.x, graph.x, adjacency, graph.sens), rtol=1e-9, atol=1e-9
    )


@every_variant
def test_many_steps_reach_the_proximal_point(make_graph: MakeGraph, variant: type[GMMDPropagation]) -> None:
    graph = make_graph()
    layer = variant(K=1, lambda_s=1.0, lambda_f=5.0, alpha=0.6, bandwidth="fixed", fair_steps=300, momentum=False)
    F = layer(*graph.inputs)
    Y = variant(K=1, lambda_s=1.0, lambda_f=0.0)(*graph.inputs)
    discrepancy = Discrepancy(Groups.of(graph.sens, F.dtype), simplified=variant.simplified)
    pull = 2 * (F - Y) + 5.0 * discrepancy.gradient(F, 0.6)[0]
    assert float(pull.abs().max()) < 1e-6


def two_clusters() -> tuple[Tensor, Tensor, SparseOperator, Tensor]:
    """Return `F`, `X_in`, graph and groups for which smoothing parts what `F` had brought together."""
    sens = torch.tensor([0, 0, 1, 1])
    x_in = torch.tensor([[0.0], [0.0], [1.0], [1.0]], dtype=torch.float64)
    F = torch.full((4, 1), 0.5, dtype=torch.float64)
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    return F, x_in, SparseOperator.from_edge_index(edge_index, 4, dtype=torch.float64), sens


def test_where_smoothing_would_raise_the_objective_the_layer_takes_another_step() -> None:
    F, x_in, graph, sens = two_clusters()
    layer = GMMDPropagation(lambda_s=0.5, lambda_f=100.0, alpha=1.0, bandwidth="fixed", fair_steps=1)
    plain = split_step(layer, F, x_in, graph, sens)
    moved = one_layer(layer, F, x_in, graph, sens)
    before = h(layer, F, x_in, graph, sens)
    assert h(layer, plain, x_in, graph, sens) > before
    assert h(layer, moved, x_in, graph, sens) <= before


def test_a_member_of_a_batch_takes_its_own_step() -> None:
    F, x_in, graph, sens = two_clusters()
    layer = GMMDPropagation(lambda_s=0.5, lambda_f=100.0, alpha=1.0, bandwidth="fixed", fair_steps=1)
    # For the first, smoothing raises the objective; the second is far from where it leads.
    Fs = torch.stack([F, x_in + torch.tensor([[0.3], [-0.2], [0.1], [0.4]])])
    x_ins = torch.stack([x_in, x_in])
    batch = one_layer(layer, Fs, x_ins, graph, sens)
    for i in range(2):
        torch.testing.assert_close(batch[i], one_layer(layer, Fs[i], x_ins[i], graph, sens))


def test_unequal_groups_each_move_at_their_own_pace(make_graph: MakeGraph) -> None:
    graph = make_graph(n=30)
    sens = (torch.arange(30) < 27).long()
    x = graph.x + 2 * sens[:, None]
    layer = GMMDPropagation(K=1, lambda_s=0.0, weight=1e6, fair_steps=1)
    moved = (layer(x, graph.edge_index, sens) - x).norm(dim=1)
    # One step for all, as short as the small group needs it, would leave the large one standing.
    small, large = float(moved[sens == 0].mean()), float(moved[sens == 1].mean())
    assert 0.2 < large / small < 5
