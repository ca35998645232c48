from typing import Any, Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from tests.methods.ingredients import changed, small_graph, some_unknown
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import APPNP

from fairpass.errors import DataError
from fairpass.kernels import Groups
from fairpass.methods import FMP
from fairpass.methods.fmp import FMPPropagation, GroupGaps
from fairpass.training import Task, Training


def draw(seed: int, nodes: int = 60, groups: int = 2, classes: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Return two representations, the second of them biased, and groups, the first of them unknown."""
    generator = torch.Generator().manual_seed(seed)
    sens = torch.cat([torch.arange(-1, groups), torch.randint(groups, (nodes - groups - 1,), generator=generator)])
    F = torch.randn((nodes, classes), generator=generator, dtype=torch.float64)
    Y = torch.randn((nodes, classes), generator=generator, dtype=torch.float64)
    Y[:, 1] += 2 * sens
    return F, Y, sens


def gaps_of(sens: Tensor) -> GroupGaps:
    return GroupGaps(Groups.of(sens, torch.float64))


def differences(values: Tensor, sens: Tensor) -> Tensor:
    means = [values[sens == group].mean(0) for group in range(int(sens.max()) + 1)]
    return torch.stack([means[b] - means[a] for a in range(len(means)) for b in range(a + 1, len(means))])


@pytest.mark.parametrize("groups", [2, 3, 4])
def test_rows_of_d_are_differences_of_group_means(groups: int) -> None:
    F, _, sens = draw(0, groups=groups)
    gaps = gaps_of(sens)
    torch.testing.assert_close(gaps(F), differences(F, sens))
    gram = gaps.transposed.mT @ gaps.transposed
    torch.testing.assert_close(gram @ gaps.inverse @ gram, gram)
    assert not gaps.transposed[sens < 0].any()


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("classes", [2, 4])
def test_gradient_is_autograds(groups: int, classes: int) -> None:
    F, _, sens = draw(1, groups=groups, classes=classes)
    gaps = gaps_of(sens)
    u = torch.randn(groups * (groups - 1) // 2, classes, dtype=torch.float64)
    F.requires_grad_()
    (expected,) = torch.autograd.grad((u * differences(F.softmax(-1), sens)).sum(), F)
    torch.testing.assert_close(gaps.gradient(u, F.detach().softmax(-1)), expected)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_layers_are_the_stated_iteration(data: Data, penalty: Literal["l2", "l1"]) -> None:
    l1, l2, gamma, beta = 3.0, 2.0, 1 / 3, 1.5
    task = Task(data)
    adjacency, H = task.operator("gcn"), torch.randn(150, 2)
    D = torch.where(data.sens == 1, 1 / (data.sens == 1).sum(), -1 / (data.sens == 0).sum())[None]

    def g(u: Tensor, at: Tensor) -> Tensor:
        point = at.clone().requires_grad_()
        return torch.autograd.grad((u * (D @ point.softmax(1))).sum(), point)[0]

    x = H
    for _ in range(3):
        y = gamma * H + (1 - gamma) * (adjacency @ x)
        u = D @ y.softmax(1) / (gamma * D @ D.T)
        u_bar = u + beta * D @ (y - gamma * g(u, x)).softmax(1)
        u = u_bar * 2 * l1 / (2 * l1 + beta) if penalty == "l2" else u_bar.clamp(-l1, l1)
        x = y - gamma * g(u, x)
    propagation = FMPPropagation(3, l1, l2, penalty)
    torch.testing.assert_close(propagation(H, adjacency, GroupGaps(task.groups))[0], x)


def fair_step(propagation: FMPPropagation, F: Tensor, Y: Tensor, gaps: GroupGaps) -> Tensor:
    return Y - propagation.gamma * gaps.gradient(propagation.dual(F, Y, gaps), F.softmax(-1))


@examples(40)
@given(st.integers(0, 1000), st.sampled_from([2, 3]), st.sampled_from(["l2", "l1"]), st.floats(0.1, 30))
def test_fairness_step_lowers_the_differences(
    seed: int, groups: int, penalty: Literal["l2", "l1"], weight: float
) -> None:
    F, Y, sens = draw(seed, groups=groups)
    moved = fair_step(FMPPropagation(1, weight, 3.0, penalty), F, Y, gaps_of(sens))
    before, after = (differences(x.softmax(-1), sens).norm() for x in (Y, moved))
    assert after < before
    assert torch.equal(moved[sens < 0], Y[sens < 0])


def test_more_weight_lowers_the_differences_more() -> None:
    F, Y, sens = draw(2)

    def left(weight: float) -> float:
        moved = fair_step(FMPPropagation(1, weight, 3.0), F, Y, gaps_of(sens))
        return float(differences(moved.softmax(-1), sens).norm())

    assert left(100.0) < left(1.0) < left(0.1)


def test_without_weight_it_is_personalised_smoothing(data: Data) -> None:
    task, H = Task(data), torch.randn(150, 2)
    expected = APPNP(K=4, alpha=0.25)(H, data.edge_index)
    got, _ = FMPPropagation(4, 0.0, 3.0)(H, task.operator("gcn"), GroupGaps(task.groups))
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("graph", [small_graph(), some_unknown(small_graph()), small_graph(240, groups=3)])
def test_same_network_predicts_more_alike_with_fairness_than_without(graph: Data) -> None:
    program = FMP(training=Training(epochs=40, select="last")).fit(graph).program_
    assert isinstance(program.propagation, FMPPropagation)

    def gap(weight: float) -> float:
        program.propagation = FMPPropagation(5, weight, 3.0)
        with torch.no_grad():
            return float(differences(program(Task(graph)).softmax(-1), graph.sens).norm())

    assert gap(10.0) < 0.95 * gap(0.0)


def test_nodes_scored_among_each_other_need_groups(data: Data) -> None:
    model = FMP(training=Training(epochs=1)).fit(data)
    with pytest.raises(DataError, match="at least two groups"):
        model.predict(changed(data, sens=torch.zeros_like(data.sens)), reference="batch")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"K": 0}, r"'K' must be at least 1 \(got 0\)"),
        ({"lambda_f": -1.0}, r"'lambda_f' must be at least 0 \(got -1.0\)"),
        ({"lambda_s": -1.0}, r"'lambda_s' must be at least 0 \(got -1.0\)"),
        ({"penalty": "l3"}, r"'penalty' must be one of .* \(got 'l3'\)"),
        ({"num_layers": 0}, r"'num_layers' must be at least 1 \(got 0\)"),
        ({"dropout": -1.0}, r"'dropout' must be at least 0 and below 1 \(got -1.0\)"),
    ],
)
def test_wrong_parameters_are_errors_before_fit(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FMP(**parameters)
