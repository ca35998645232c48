"""The stable layer on groups that are compared among the nodes of each label: no layer raises the objective."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from torch import Tensor

from fairpass.kernels import Groups
from fairpass.nn import GMMDPropagation, GMMDSPropagation, SparseOperator

every_variant = pytest.mark.parametrize("variant", [GMMDPropagation, GMMDSPropagation])
magnitudes = st.floats(-3, 5).map(lambda exponent: 10.0**exponent)


def random_graph(random: torch.Generator, n: int, groups: int) -> tuple[SparseOperator, Tensor]:
    joined = (torch.rand(n, n, generator=random) < 0.3).triu(1)
    sens = torch.randint(groups, (n,), generator=random)
    sens[:groups] = torch.arange(groups)
    return SparseOperator.from_edge_index((joined | joined.T).nonzero().T, n, dtype=torch.float64), sens


def h(layer: GMMDPropagation, F: Tensor, x_in: Tensor, graph: SparseOperator, groups: Groups) -> Tensor:
    """Return the objective with the discrepancy of the weighted groups, by the whole kernel matrix."""
    kernel = torch.exp(-layer.alpha * torch.cdist(F, F).square())
    fairness = F.new_zeros(())
    for block in groups.membership.chunk(groups.blocks, -1):
        means = block.mT @ kernel @ block
        times = 1 if layer.simplified else len(means)
        fairness = fairness + times * means.diagonal().sum() - means.sum()
    assert layer.lambda_f is not None
    smoothness = (layer.lambda_s * F * (F - graph @ F) + (F - x_in).square()).sum() / 2
    return smoothness + layer.lambda_f * fairness


@every_variant
@examples(60)
@given(
    seed=st.integers(0, 2**20),
    groups=st.sampled_from([2, 3]),
    labels=st.sampled_from([1, 2, 3]),
    columns=st.sampled_from([1, 2]),
    known=st.booleans(),
    lambda_s=st.just(0.0) | magnitudes,
    lambda_f=magnitudes,
    alpha=st.floats(-2, 2).map(lambda exponent: 10.0**exponent),
    fair_steps=st.integers(1, 5),
    momentum=st.booleans(),
)
def test_no_layer_raises_the_objective(
    variant: type[GMMDPropagation],
    seed: int,
    groups: int,
    labels: int,
    columns: int,
    known: bool,
    lambda_s: float,
    lambda_f: float,
    alpha: float,
    fair_steps: int,
    momentum: bool,
) -> None:
    random, n = torch.Generator().manual_seed(seed), 14
    graph, sens = random_graph(random, n, groups)
    probabilities = torch.rand(n, labels, generator=random, dtype=torch.float64)
    compared = Groups.of(sens, torch.float64).among(probabilities.round() if known else probabilities)
    x_in = torch.randn(n, columns, generator=random, dtype=torch.float64)
    F = torch.randn(n, columns, generator=random, dtype=torch.float64)
    layer = variant(
        lambda_s=lambda_s, lambda_f=lambda_f, alpha=alpha, bandwidth="fixed", fair_steps=fair_steps, momentum=momentum
    )
    for _ in range(2):
        moved = layer._layer(F, None, x_in, graph, layer._terms(compared))[0]
        before, after = (float(h(layer, at, x_in, graph, compared)) for at in (F, moved))
        # Its terms may be large and of opposite sign.
        assert after <= before + 1e-10 * (abs(before) + 2 * labels * groups * lambda_f)
        F = moved


@every_variant
@pytest.mark.parametrize("lambda_s", [0.0, 2.0])
def test_deeper_is_no_higher_and_fairness_is_lower(variant: type[GMMDPropagation], lambda_s: float) -> None:
    random = torch.Generator().manual_seed(3)
    graph, sens = random_graph(random, 24, 3)
    compared = Groups.of(sens, torch.float64).among(torch.rand(24, 2, generator=random, dtype=torch.float64))
    x_in = torch.randn(24, 1, generator=random, dtype=torch.float64) + sens[:, None]
    values = []
    for K in range(5):
        layer = variant(K=max(K, 1), lambda_s=lambda_s, lambda_f=30.0, alpha=0.5, bandwidth="fixed")
        F = layer(x_in, graph, compared) if K else x_in
        values.append(float(h(layer, F, x_in, graph, compared)))
    assert values[1] < values[0]
    assert all(deeper <= shallower + 1e-12 for shallower, deeper in pairwise(values))


@every_variant
def test_groups_may_come_in_another_precision(variant: type[GMMDPropagation]) -> None:
    random = torch.Generator().manual_seed(4)
    graph, sens = random_graph(random, 20, 2)
    x_in = torch.randn(20, 1, generator=random, dtype=torch.float64) + sens[:, None]
    compared = Groups.of(sens).among(torch.rand(20, 1, generator=random))
    doubled = Groups(compared.membership.double(), compared.sizes, compared.scales.double(), compared.blocks)
    layer = variant()
    torch.testing.assert_close(layer(x_in, graph, compared), layer(x_in, graph, doubled))


@every_variant
@pytest.mark.parametrize("lambda_s", [0.0, 1.0])
def test_members_of_a_batch_have_weights_of_their_own(variant: type[GMMDPropagation], lambda_s: float) -> None:
    random = torch.Generator().manual_seed(5)
    graph, sens = random_graph(random, 20, 2)
    sens[-2:] = -1
    x_in = torch.randn(3, 20, 1, generator=random, dtype=torch.float64)
    probabilities = torch.rand(3, 20, 1, generator=random, dtype=torch.float64)
    groups, layer = Groups.of(sens, torch.float64), variant(lambda_s=lambda_s)
    batch = layer(x_in, graph, groups.among(probabilities))
    for k in range(3):
        torch.testing.assert_close(batch[k], layer(x_in[k], graph, groups.among(probabilities[k])))


@every_variant
@pytest.mark.parametrize("lambda_s", [0.0, 1.0])
def test_with_nothing_to_compare_it_only_smooths(variant: type[GMMDPropagation], lambda_s: float) -> None:
    random = torch.Generator().manual_seed(6)
    graph, sens = random_graph(random, 20, 2)
    x_in = torch.randn(20, 1, generator=random, dtype=torch.float64, requires_grad=True)
    nothing = Groups.of(sens, torch.float64).among((sens == 0).double()[:, None])
    out = variant(lambda_s=lambda_s)(x_in, graph, nothing)
    torch.testing.assert_close(out, variant(lambda_s=lambda_s, fair_steps=0)(x_in, graph, sens))
    (gradient,) = torch.autograd.grad(out.square().sum(), x_in)
    assert bool(torch.isfinite(gradient).all())


@every_variant
def test_without_smoothness_any_number_of_layers_is_one_and_edges_do_not_matter(variant: type[GMMDPropagation]) -> None:
    random = torch.Generator().manual_seed(7)
    graph, sens = random_graph(random, 20, 2)
    other, _ = random_graph(random, 20, 2)
    x_in = torch.randn(20, 2, generator=random, dtype=torch.float64)
    one = variant(K=1, lambda_s=0.0)(x_in, graph, sens)
    for K in (2, 5):
        assert torch.equal(variant(K=K, lambda_s=0.0)(x_in, other, sens), one)
    # It is the limit of ever weaker smoothing.
    torch.testing.assert_close(variant(K=1, lambda_s=1e-9)(x_in, graph, sens), one, rtol=0, atol=1e-6)


@every_variant
def test_members_with_and_without_smoothness_may_be_mixed(variant: type[GMMDPropagation]) -> None:
    random = torch.Generator().manual_seed(8)
    graph, sens = random_graph(random, 20, 2)
    x_in = torch.randn(2, 20, 1, generator=random, dtype=torch.float64)
    mixed = variant(K=3)
    setting: Any = torch.tensor([0.0, 2.0], dtype=torch.float64)[:, None, None]
    mixed.lambda_s = setting  # as in a population
    out = mixed(x_in, graph, sens)
    for k, lambda_s in enumerate((0.0, 2.0)):
        torch.testing.assert_close(out[k], variant(K=3, lambda_s=lambda_s)(x_in[k], graph, sens))
