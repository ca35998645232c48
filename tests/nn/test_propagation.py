"""The layer against the paper's equations and their limits; its derivatives; its errors."""

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from fairpass.kernels import Groups, mmd2
from fairpass.nn import GMMDPropagation, GMMDSPropagation, SparseOperator
from fairpass.nn.operators import OperatorKind

MakeGraph = Callable[..., SimpleNamespace]
every_variant = pytest.mark.parametrize("variant", [GMMDPropagation, GMMDSPropagation])
every_step = pytest.mark.parametrize("step", ["paper", "stable"])
every_backbone = pytest.mark.parametrize("backbone", ["gcn", "gin", "gat", "sage"])


def smoothing(graph: SimpleNamespace) -> Tensor:
    """Return `I - L~`, entry by entry."""
    degree = [1 + int((graph.edge_index[0] == i).sum()) for i in range(graph.n)]
    out = torch.zeros(graph.n, graph.n, dtype=torch.float64)
    pairs = [*graph.edge_index.T.tolist(), *([i, i] for i in range(graph.n))]
    for i, j in pairs:
        out[i, j] = (degree[i] * degree[j]) ** -0.5
    return out


def literal(graph: SimpleNamespace, K: int, lambda_s: float, lambda_f: float, alpha: float, plus: bool) -> Tensor:
    """Return Eq. (fairmess), or with `plus` Eq. (mess2) with its sign mended, `P` built entry by entry."""
    gamma, A, sens, F = 1 / (1 + lambda_s), smoothing(graph), graph.sens.tolist(), graph.x
    size = {t: sens.count(t) for t in (0, 1)}
    for _ in range(K):
        P = torch.zeros(graph.n, graph.n, dtype=torch.float64)
        for i in range(graph.n):
            for j in range(graph.n):
                if i != j:
                    k = torch.exp(-alpha * (F[i] - F[j]).square().sum())
                    within = 0 * k if plus else -k / size[sens[i]] ** 2
                    P[i, j] = within if sens[i] == sens[j] else k / (size[0] * size[1])
            P[i, i] = -sum(P[i, m] for m in range(graph.n) if m != i)
        F = ((1 - gamma) * A + 4 * gamma * lambda_f * alpha * P) @ F + gamma * graph.x
    return torch.as_tensor(F)


@every_variant
@pytest.mark.parametrize("K", [1, 2, 3])
def test_paper_step_is_the_papers_equation(make_graph: MakeGraph, variant: type[GMMDPropagation], K: int) -> None:
    for seed, (lambda_s, lambda_f, alpha) in enumerate([(1.0, 0.7, 0.3), (0.0, 5.0, 2.0), (4.0, 30.0, 0.05)]):
        graph = make_graph(seed)
        layer = variant.paper(lambda_f, K=K, lambda_s=lambda_s, alpha=alpha)
        expected = literal(graph, K, lambda_s, lambda_f, alpha, plus=variant.simplified)
        torch.testing.assert_close(layer(*graph.inputs), expected, rtol=1e-9, atol=1e-9)


@every_variant
@pytest.mark.parametrize("groups", [2, 3])
def test_message_is_minus_the_gradient_of_the_discrepancy(
    make_graph: MakeGraph, variant: type[GMMDPropagation], groups: int
) -> None:
    graph = make_graph(groups=groups)
    F = graph.x.clone().requires_grad_()
    K = torch.exp(-0.4 * (F[:, None] - F).square().sum(-1))
    means = [[K[graph.sens == a][:, graph.sens == b].mean() for b in range(groups)] for a in range(groups)]
    pairs = [(a, b) for a in range(groups) for b in range(a)]
    h_f = sum(-2 * means[a][b] + (0 if variant.simplified else means[a][a] + means[b][b]) for a, b in pairs)
    (gradient,) = torch.autograd.grad(torch.as_tensor(h_f), F)
    with_fairness = variant.paper(3.0, K=1, lambda_s=1.0, alpha=0.4)
    without = variant.paper(0.0, K=1, lambda_s=1.0, alpha=0.4)
    moved = with_fairness(*graph.inputs) - without(*graph.inputs)
    torch.testing.assert_close(moved, -0.5 * 3.0 * gradient, rtol=1e-9, atol=1e-12)


@every_variant
@pytest.mark.parametrize(
    "off", [{"step": "paper", "lambda_f": 0.0}, {"lambda_f": 0.0}, {"weight": 0.0}, {"fair_steps": 0}]
)
def test_without_fairness_it_is_plain_smoothing(
    make_graph: MakeGraph, variant: type[GMMDPropagation], off: dict[str, Any]
) -> None:
    graph = make_graph()
    A, expected, gamma = smoothing(graph), graph.x, 1 / 3.5
    for _ in range(3):
        expected = (1 - gamma) * A @ expected + gamma * graph.x
    torch.testing.assert_close(variant(K=3, lambda_s=2.5, **off)(*graph.inputs), expected)


@every_variant
def test_without_smoothness_edges_do_not_matter(make_graph: MakeGraph, variant: type[GMMDPropagation]) -> None:
    graph, other = make_graph(0), make_graph(1)
    layer = variant(K=2, lambda_s=0.0, lambda_f=2.0, bandwidth="fixed")
    torch.testing.assert_close(
        layer(*graph.inputs), layer(graph.x, other.edge_index, graph.sens), rtol=1e-12, atol=1e-12
    )
    torch.testing.assert_close(variant(K=2, lambda_s=0.0, lambda_f=0.0)(*graph.inputs), graph.x)


@every_backbone
def test_weight_is_lambda_f_without_units(make_graph: MakeGraph, backbone: Any) -> None:
    graph = make_graph()
    options: Any = {"alpha": 0.8, "bandwidth": "fixed", "backbone": backbone, "channels": 2}
    smaller = int(torch.bincount(graph.sens).min())
    by_weight = GMMDPropagation(weight=5.0, **options).double()
    by_lambda = GMMDPropagation(lambda_f=5.0 * smaller / (16 * 0.8), **options).double()
    by_lambda.load_state_dict(by_weight.state_dict())
    torch.testing.assert_close(by_weight(*graph.inputs), by_lambda(*graph.inputs))


@every_step
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_equal_features_stay_finite(make_graph: MakeGraph, step: Any, value: float) -> None:
    graph = make_graph()
    x = torch.full((graph.n, 2), value, requires_grad=True)
    out = GMMDPropagation(step=step)(x, graph.edge_index, graph.sens)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert bool(torch.isfinite(out).all() & torch.isfinite(gradient).all())


@every_variant
@every_step
@pytest.mark.parametrize("backbone", ["gin", "gat", "sage"])
def test_other_backbones_smooth_with_their_operator_and_have_gradients(
    make_graph: MakeGraph, variant: type[GMMDPropagation], step: Any, backbone: Any
) -> None:
    graph = make_graph()
    layer = variant(K=2, step=step, backbone=backbone, channels=2, epsilon=0.5).double()
    plain = variant(K=1, lambda_s=3.0, lambda_f=0.0, step=step, backbone=backbone, channels=2, epsilon=0.5).double()
    plain.load_state_dict(layer.state_dict())
    if layer.attention is None:
        kind: OperatorKind = "sage" if backbone == "sage" else "gin" if step == "paper" else "gin_mean"
        smoothed = (
            SparseOperator.from_edge_index(graph.edge_index, 10, kind, epsilon=0.5, dtype=torch.float64) @ graph.x
        )
    else:
        smoothed = layer.attention(graph.x, SparseOperator.from_edge_index(graph.edge_index, 10, "gat"))
    torch.testing.assert_close(plain(*graph.inputs), 0.75 * smoothed + 0.25 * graph.x)
    x = graph.x.requires_grad_()
    for gradient in torch.autograd.grad(layer(*graph.inputs).square().sum(), [x, *layer.parameters()]):
        assert bool(torch.isfinite(gradient).all())
        assert bool((gradient != 0).any())


@every_variant
@every_step
@every_backbone
def test_derivatives(make_graph: MakeGraph, variant: type[GMMDPropagation], step: Any, backbone: Any) -> None:
    graph = make_graph(n=6)
    layer = variant(
        K=2, lambda_f=0.8, alpha=0.5, step=step, bandwidth="fixed", fair_steps=2, backbone=backbone, channels=2
    ).double()
    prepared = layer.prepare(graph.edge_index, graph.n, torch.float64)

    def propagate(x: Tensor) -> Tensor:
        out: Tensor = layer(x, prepared, graph.sens)
        return out

    assert gradcheck(propagate, graph.x.requires_grad_())
    if backbone == "gcn":
        assert gradgradcheck(propagate, graph.x, fast_mode=True)


@every_variant
@every_step
def test_adaptive_bandwidth_is_a_constant_to_the_gradient(
    make_graph: MakeGraph, variant: type[GMMDPropagation], step: Any
) -> None:
    graph = make_graph()
    x = graph.x.requires_grad_()
    # The paper's step takes the discrepancy before smoothing, the stable one after.
    F = x if step == "paper" else variant(K=1, lambda_f=0.0)(*graph.inputs)
    alpha = 0.3 / (2 * (F - F.mean(0)).square().sum(1).mean().item())
    adaptive = variant(K=1, lambda_f=2.0, alpha=0.3, step=step)
    fixed = variant(K=1, lambda_f=2.0, alpha=alpha, step=step, bandwidth="fixed")
    torch.testing.assert_close(adaptive(*graph.inputs), fixed(*graph.inputs))
    gradients = [torch.autograd.grad(layer(*graph.inputs).square().sum(), x)[0] for layer in (adaptive, fixed)]
    torch.testing.assert_close(*gradients)


@every_variant
def test_many_nodes_go_the_fast_way_to_the_same_place(make_graph: MakeGraph, variant: type[GMMDPropagation]) -> None:
    graph = make_graph(n=400)
    layer = variant(K=1, lambda_f=2.0, lambda_s=0.0, bandwidth="fixed", fair_steps=1)
    sizes = torch.bincount(graph.sens)[graph.sens].double()
    weights = torch.where(graph.sens == 0, 1, -1) / sizes
    coupling = weights[:, None] * weights
    if variant.simplified:
        coupling = coupling * (graph.sens[:, None] != graph.sens)
    kernel = coupling * torch.exp(-0.3 * torch.cdist(graph.x, graph.x).square())
    gradient = 4 * 0.3 * (kernel @ graph.x - kernel.sum(1, keepdim=True) * graph.x)
    row_sums = (1 if variant.simplified else 2) / sizes
    expected = graph.x - 2.0 * gradient / (1 + 2.0 * 8 * 0.3 * row_sums[:, None])
    torch.testing.assert_close(layer(*graph.inputs), expected, rtol=1e-6, atol=1e-6)


def test_prepared_graph_and_groups_are_the_same_as_raw_ones(make_graph: MakeGraph) -> None:
    graph, layer = make_graph(), GMMDPropagation()
    prepared = layer.prepare(graph.edge_index, graph.n, torch.float64)
    assert torch.equal(layer(graph.x, prepared, Groups.of(graph.sens)), layer(*graph.inputs))


def test_single_precision_agrees_with_double(make_graph: MakeGraph) -> None:
    graph, layer = make_graph(), GMMDPropagation()
    out = layer(graph.x.float(), graph.edge_index, graph.sens)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.double(), layer(*graph.inputs), rtol=1e-4, atol=1e-4)


@every_variant
def test_the_papers_preset(make_graph: MakeGraph, variant: type[GMMDPropagation]) -> None:
    layer = variant.paper(2.0, sample=3, alpha=0.7)
    assert type(layer) is variant
    assert (layer.step, layer.bandwidth, layer.lambda_f) == ("paper", "fixed", 2.0)
    assert (layer.sample, layer.alpha, layer.K) == (3, 0.7, 2)


@every_variant
def test_laplace_kernel_lowers_the_discrepancy(make_graph: MakeGraph, variant: type[GMMDPropagation]) -> None:
    graph = make_graph(n=30)
    graph.x += graph.sens[:, None]

    def discrepancy(lambda_f: float) -> Tensor:
        layer = variant(lambda_f=lambda_f, alpha=0.3, bandwidth="fixed", kernel="laplace")
        return mmd2(layer(*graph.inputs), graph.sens, 0.3, kernel="laplace")

    assert 0 <= discrepancy(30.0) < 0.5 * discrepancy(0.0)


@every_step
@every_backbone
def test_inputs_are_left_alone(make_graph: MakeGraph, step: Any, backbone: Any) -> None:
    graph = make_graph(unknown=1)
    before = copy.deepcopy(graph)
    GMMDPropagation(step=step, backbone=backbone, channels=2, sample=2).double()(*graph.inputs)
    for name in ("x", "edge_index", "sens"):
        assert torch.equal(getattr(graph, name), getattr(before, name))


def test_reset_and_repr() -> None:
    layer = GMMDPropagation(backbone="gat", channels=2, weight=10.0)
    before = copy.deepcopy(layer.state_dict())
    layer.reset_parameters()
    assert not any(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    GMMDPropagation().reset_parameters()
    assert "K=2, lambda_s=1.0, alpha=0.3, weight=10.0, backbone='gat'" in repr(layer)
    assert repr(GMMDSPropagation.paper(3.0)).startswith("GMMDSPropagation(K=2, lambda_s=1.0, lambda_f=3.0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"K": 0}, r"'K' must be at least 1 \(got 0\)"),
        ({"lambda_s": -1.0}, r"'lambda_s' must be at least 0 \(got -1.0\)"),
        ({"lambda_s": float("nan")}, r"'lambda_s' must be at least 0 \(got nan\)"),
        ({"lambda_f": -0.1}, r"'lambda_f' must be at least 0 \(got -0.1\)"),
        ({"weight": -2.0}, r"'weight' must be at least 0 \(got -2.0\)"),
        ({"fair_steps": -1}, r"'fair_steps' must be at least 0 \(got -1\)"),
        ({"sample": 0}, r"'sample' must be at least 1 \(got 0\)"),
        ({"alpha": 0.0}, r"'alpha' must be positive \(got 0.0\)"),
        ({"alpha": float("nan")}, r"'alpha' must be positive \(got nan\)"),
        ({"backbone": "mlp"}, r"'backbone' must be one of \('gcn', 'gin', 'gat', 'sage'\) \(got 'mlp'\)"),
        ({"weight": 1.0, "lambda_f": 2.0}, r"'weight' and 'lambda_f' must not be given together \(got 1.0 and 2.0\)"),
        ({"step": "big"}, r"'step' must be one of \('paper', 'stable'\) \(got 'big'\)"),
        ({"bandwidth": "wide"}, r"'bandwidth' must be one of \('fixed', 'adaptive'\) \(got 'wide'\)"),
        ({"kernel": "cubic"}, r"'kernel' must be one of \('gaussian', 'laplace'\) \(got 'cubic'\)"),
        ({"backbone": "gat"}, r"'channels' must be given for backbone 'gat' \(got None\)"),
        ({"channels": 0}, r"'channels' must be at least 1 \(got 0\)"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GMMDPropagation(**options)


def test_wrong_inputs(make_graph: MakeGraph) -> None:
    graph, layer = make_graph(), GMMDPropagation()
    with pytest.raises(ValueError, match=r"'x_in' must be a float32 or float64 tensor \(N, c\) \(got shape \(10,\)"):
        layer(graph.x[:, 0], graph.edge_index, graph.sens)
    with pytest.raises(ValueError, match=r"'x_in' must be a float32 or float64 tensor .* torch.int64\)"):
        layer(graph.x.long(), graph.edge_index, graph.sens)
    with pytest.raises(ValueError, match=r"'x_in' must be a float32 or float64 tensor .* \(got shape \(10, 0\)"):
        layer(graph.x[:, :0], graph.edge_index, graph.sens)
    with pytest.raises(ValueError, match=r"'x_in' must be a float32 or float64 tensor .* torch.sparse_coo"):
        layer(graph.x.to_sparse(), graph.edge_index, graph.sens)
    with pytest.raises(ValueError, match=r"'x_in' must be a float32 or float64 tensor .* \(got NoneType\)"):
        layer(None, graph.edge_index, graph.sens)
    with pytest.raises(ValueError, match=r"'graph' must be an edge_index or what 'prepare' returns \(got NoneType\)"):
        layer(graph.x, None, graph.sens)
    with pytest.raises(ValueError, match=r"'graph' must be an edge_index or what 'prepare' returns \(got str\)"):
        layer.record(graph.x, "x", graph.sens, layer.empty_reference())  # type: ignore[arg-type] # that is the point
    with pytest.raises(ValueError, match=r"'x_in' must have shape \(N, 3\), with 'channels' .* \(got \(\d+, 2\)\)"):
        GMMDPropagation(backbone="gat", channels=3).double()(graph.x, graph.edge_index, graph.sens)
    with pytest.raises(ValueError, match=r"'sens' must be a vector of integers \(got NoneType\)"):
        layer(graph.x, graph.edge_index, None)
    with pytest.raises(ValueError, match=rf"'sens' must be below 1,000 \(got {10**9}\)"):
        layer(graph.x, graph.edge_index, graph.sens * 10**9)
    with pytest.raises(ValueError, match=r"'sens' must have 10 entries \(got 4\)"):
        layer(graph.x, graph.edge_index, graph.sens[:4])
    with pytest.raises(ValueError, match=r"'sens' must name at least two groups \(got 1\)"):
        layer(graph.x, graph.edge_index, 0 * graph.sens)
    with pytest.raises(ValueError, match=r"'sens' must number its groups without gaps"):
        layer(graph.x, graph.edge_index, 2 * graph.sens)
    with pytest.raises(ValueError, match=r"'sens' must be a vector of integers \(got shape \(10,\), torch.float64"):
        layer(graph.x, graph.edge_index, graph.sens.double())
    with pytest.raises(ValueError, match=r"'edge_index' must name nodes from 0 to 9"):
        layer(graph.x, graph.edge_index + 9, graph.sens)
    structure, adjacency = (
        SparseOperator.from_edge_index(graph.edge_index, 10, "gat"),
        layer.prepare(graph.edge_index, 10),
    )
    with pytest.raises(ValueError, match=r"'operator' must have entries of its own \(got kind 'gat'"):
        layer(graph.x, structure, graph.sens)
    with pytest.raises(ValueError, match=r"'operator' must be of kind 'gat' for attention \(got 'gcn'\)"):
        GMMDPropagation(backbone="gat", channels=2).double()(graph.x, adjacency, graph.sens)
