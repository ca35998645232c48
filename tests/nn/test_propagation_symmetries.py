"""What must not change the layer's output: order, names, units, company; and who takes part in a sample."""

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fairpass.nn import GMMDPropagation, GMMDSPropagation

MakeGraph = Callable[..., SimpleNamespace]
every_variant = pytest.mark.parametrize("variant", [GMMDPropagation, GMMDSPropagation])
every_step = pytest.mark.parametrize("step", ["paper", "stable"])
every_backbone = pytest.mark.parametrize("backbone", ["gcn", "gin", "gat"])


@every_variant
@every_step
@every_backbone
def test_permuting_the_nodes_permutes_the_output(
    make_graph: MakeGraph, variant: type[GMMDPropagation], step: Any, backbone: Any
) -> None:
    graph, order = make_graph(groups=3), torch.randperm(10)
    layer = variant(step=step, backbone=backbone, channels=2).double()
    permuted = layer(graph.x[order], order.argsort()[graph.edge_index], graph.sens[order])
    torch.testing.assert_close(permuted, layer(*graph.inputs)[order], rtol=1e-9, atol=1e-9)


@every_variant
@every_step
@pytest.mark.parametrize("groups", [2, 3])
def test_names_of_the_groups_do_not_matter(
    make_graph: MakeGraph, variant: type[GMMDPropagation], step: Any, groups: int
) -> None:
    graph, layer = make_graph(groups=groups), variant(step=step)
    renamed = layer(graph.x, graph.edge_index, groups - 1 - graph.sens)
    torch.testing.assert_close(renamed, layer(*graph.inputs), rtol=1e-9, atol=1e-9)


@every_variant
@every_step
def test_unknown_nodes_neither_exert_nor_feel_a_force(
    make_graph: MakeGraph, variant: type[GMMDPropagation], step: Any
) -> None:
    graph = make_graph(unknown=3)
    layer = variant(K=1, step=step, bandwidth="fixed", lambda_f=2.0)
    plain = variant(K=1, lambda_f=0.0)
    out = layer(*graph.inputs)
    torch.testing.assert_close(out[-3:], plain(*graph.inputs)[-3:])
    assert not torch.allclose(out[:-3], plain(*graph.inputs)[:-3])
    # The last node has no neighbours either: wherever it is, the others do not notice.
    moved = graph.x.clone()
    moved[-1] += 1.0
    torch.testing.assert_close(layer(moved, graph.edge_index, graph.sens)[:-1], out[:-1])


@pytest.mark.parametrize("bandwidth", ["fixed", "adaptive"])
@every_variant
@every_step
def test_a_sample_of_all_nodes_is_exact(
    make_graph: MakeGraph, variant: type[GMMDPropagation], step: Any, bandwidth: Any
) -> None:
    graph = make_graph(unknown=2, groups=3, n=14)
    options: Any = {"step": step, "bandwidth": bandwidth}
    exact = variant(**options)(*graph.inputs)
    torch.testing.assert_close(variant(sample=14, **options)(*graph.inputs), exact)


def test_a_sample_moves_only_the_nodes_drawn(make_graph: MakeGraph) -> None:
    graph = make_graph(n=20)
    moved = GMMDPropagation(K=1, sample=3)(*graph.inputs) - GMMDPropagation(K=1, weight=0.0)(*graph.inputs)
    touched = moved.abs().amax(1) > 1e-9
    assert torch.bincount(graph.sens[touched]).tolist() == [3, 3]


def test_another_sample_is_drawn_in_training_and_fixed_in_evaluation(make_graph: MakeGraph) -> None:
    graph, layer = make_graph(n=20), GMMDPropagation(sample=3)
    torch.manual_seed(0)
    first, second = layer(*graph.inputs), layer(*graph.inputs)
    assert not torch.equal(first, second)
    torch.manual_seed(0)
    assert torch.equal(layer(*graph.inputs), first)
    layer.eval()
    assert torch.equal(layer(*graph.inputs), layer(*graph.inputs))
    assert torch.equal(layer(*graph.inputs), copy.deepcopy(layer)(*graph.inputs))
    other = GMMDPropagation(sample=3, sample_seed=1).eval()
    assert not torch.equal(layer(*graph.inputs), other(*graph.inputs))


@every_variant
@every_step
def test_adaptive_bandwidth_scales_with_the_features(
    make_graph: MakeGraph, variant: type[GMMDPropagation], step: Any
) -> None:
    graph = make_graph()
    adaptive, fixed = variant(step=step), variant(step=step, bandwidth="fixed")
    scaled = (1000 * graph.x, graph.edge_index, graph.sens)
    torch.testing.assert_close(adaptive(*scaled), 1000 * adaptive(*graph.inputs), rtol=1e-9, atol=1e-9)
    assert not torch.allclose(fixed(*scaled), 1000 * fixed(*graph.inputs))


@every_variant
@every_step
@pytest.mark.parametrize("bandwidth", ["fixed", "adaptive"])
def test_a_batch_is_its_members_one_by_one(
    make_graph: MakeGraph, variant: type[GMMDPropagation], step: Any, bandwidth: Any
) -> None:
    graph = make_graph()
    x = torch.randn(2, 2, 10, 3, dtype=torch.float64) * torch.tensor([1.0, 10.0])[:, None, None]
    layer = variant(step=step, bandwidth=bandwidth)
    batch = layer(x, graph.edge_index, graph.sens)
    for i in range(2):
        for j in range(2):
            torch.testing.assert_close(batch[i, j], layer(x[i, j], graph.edge_index, graph.sens))
