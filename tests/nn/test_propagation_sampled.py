"""Sampled nodes as in the paper's Eq. (sampled): `P` has the sizes of the whole groups."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from fairpass.kernels import Groups
from fairpass.methods import GMMD, GMMDS
from fairpass.nn import GMMDPropagation, GMMDSPropagation
from fairpass.nn.fairness import draw

MakeGraph = Callable[..., SimpleNamespace]
every_variant = pytest.mark.parametrize("variant", [GMMDPropagation, GMMDSPropagation])
every_step = pytest.mark.parametrize("step", ["paper", "stable"])


def smoothing(graph: SimpleNamespace) -> Tensor:
    """Return `D^-1/2 (A + I) D^-1/2`, dense."""
    joined = torch.eye(graph.n, dtype=torch.float64)
    joined[graph.edge_index[0], graph.edge_index[1]] = 1.0
    root = joined.sum(1).rsqrt()
    return root[:, None] * joined * root


def sampled_step(
    graph: SimpleNamespace, drawn: Tensor, lambda_s: float, lambda_f: float, alpha: float, *, simplified: bool
) -> Tensor:
    """Return one layer of Eq. (sampled), `P` entry by entry over the drawn nodes, with the whole groups' sizes."""
    F, sens, gamma = graph.x, graph.sens.tolist(), 1 / (1 + lambda_s)
    size = [sens.count(a) for a in (0, 1)]
    P = torch.zeros(graph.n, graph.n, dtype=torch.float64)
    for i in drawn.tolist():
        for j in drawn.tolist():
            if i != j:
                k = torch.exp(-alpha * (F[i] - F[j]).square().sum())
                if sens[i] != sens[j]:
                    P[i, j] = k / (size[0] * size[1])
                elif not simplified:
                    P[i, j] = -k / size[sens[i]] ** 2
        P[i, i] = -P[i].sum()
    message = 4 * gamma * lambda_f * alpha * P @ F
    return torch.as_tensor((1 - gamma) * smoothing(graph) @ F + gamma * graph.x + message)


@every_variant
@pytest.mark.parametrize("sample", [2, 5, 11])
def test_the_message_has_the_whole_groups_sizes(
    make_graph: MakeGraph, variant: type[GMMDPropagation], sample: int
) -> None:
    graph = make_graph(n=30)
    layer = variant.paper(20.0, K=1, lambda_s=2.0, alpha=0.4, sample=sample).eval()
    drawn = draw(Groups.of(graph.sens), layer.sample, layer.sample_seed)
    assert drawn is not None
    smaller = torch.bincount(graph.sens).clamp(max=sample)
    assert torch.equal(torch.bincount(graph.sens[drawn]), smaller)
    expected = sampled_step(graph, drawn, 2.0, 20.0, 0.4, simplified=variant.simplified)
    torch.testing.assert_close(layer(*graph.inputs), expected, rtol=1e-9, atol=1e-9)


def task_of(sizes: tuple[int, ...]) -> Any:
    """Return what the classifier looks at to build its layers."""
    return SimpleNamespace(num_classes=2, group_sizes=sizes)


@pytest.mark.parametrize("model", [GMMD, GMMDS])
def test_only_lambda_f_has_the_sampled_sizes(make_graph: MakeGraph, model: type[GMMD]) -> None:
    graph = make_graph(n=30)
    sizes = tuple(torch.bincount(graph.sens).tolist())
    assert min(sizes) >= 8
    task = task_of(sizes)
    paper = model.paper(lambda_f=0.3, sample=6, K=1, lambda_s=1.5, alpha=0.7)
    layer = paper._propagation(task).eval()
    drawn = draw(Groups.of(graph.sens), layer.sample, layer.sample_seed)
    assert drawn is not None
    expected = sampled_step(graph, drawn, 1.5, 0.3 * 6 * 6, 0.7, simplified=layer.simplified)
    torch.testing.assert_close(layer(*graph.inputs), expected, rtol=1e-9, atol=1e-9)
    # With all nodes, P's sizes and the grid's cancel in the messages between groups.
    whole = model.paper(lambda_f=0.3, sample=None, K=1, lambda_s=1.5, alpha=0.7)._propagation(task)
    assert whole.lambda_f == 0.3 * sizes[0] * sizes[1]
    expected = sampled_step(graph, torch.arange(30), 1.5, 0.3 * sizes[0] * sizes[1], 0.7, simplified=layer.simplified)
    torch.testing.assert_close(whole(*graph.inputs), expected, rtol=1e-9, atol=1e-9)


@every_step
@pytest.mark.parametrize("model", [GMMD, GMMDS])
def test_a_sample_of_everything_is_all_nodes(make_graph: MakeGraph, model: type[GMMD], step: Any) -> None:
    graph = make_graph(n=30, unknown=3)
    sizes = tuple(torch.bincount(graph.sens[graph.sens >= 0]).tolist())
    task = task_of(sizes)
    options: Any = {"step": step, "lambda_f": 0.5, "lambda_f_scaling": "product"}
    exact = model(**options)._propagation(task)
    for sample in (max(sizes), 10_000):
        everything = model(sample=sample, **options)._propagation(task)
        assert everything.lambda_f == exact.lambda_f
        for training in (True, False):
            torch.testing.assert_close(everything.train(training)(*graph.inputs), exact(*graph.inputs))


@every_variant
def test_a_stable_step_on_sampled_nodes_never_raises_the_objective(
    make_graph: MakeGraph, variant: type[GMMDPropagation]
) -> None:
    graph = make_graph(n=30)
    for lambda_f in (1.0, 100.0, 1e4):
        layer = variant(K=1, lambda_s=0.0, lambda_f=lambda_f, alpha=0.4, bandwidth="fixed", sample=5).eval()
        drawn = draw(Groups.of(graph.sens), layer.sample, layer.sample_seed)
        assert drawn is not None
        weights = torch.where(graph.sens == 0, 1.0, -1.0).double() / torch.bincount(graph.sens)[graph.sens]

        def h(F: Tensor, lambda_f: float = lambda_f, drawn: Tensor = drawn, weights: Tensor = weights) -> float:
            kernel = torch.exp(-0.4 * torch.cdist(F[drawn], F[drawn]).square())
            pairs = kernel * weights[drawn, None] * weights[drawn]
            if variant.simplified:
                pairs = pairs * (graph.sens[drawn, None] != graph.sens[drawn])
            return float((F - graph.x).square().sum() / 2 + lambda_f * pairs.sum())

        assert h(layer(*graph.inputs)) < h(graph.x)


@pytest.mark.parametrize("model", [GMMD, GMMDS])
def test_the_presets_take_no_weight_beside_lambda_f(model: type[GMMD]) -> None:
    assert model.paper(lambda_f=2.0).weight is None
    with pytest.raises(ValueError, match=r"'weight' and 'lambda_f' must not be given together \(got 3.0 and 2.0\)"):
        model.paper(lambda_f=2.0, weight=3.0)
    with pytest.raises(ValueError, match=r"'weight' and 'lambda_f' must not be given together \(got 3.0 and 2.0\)"):
        model.propagation.paper(2.0, weight=3.0)
