"""Groups compared among the nodes of each label: values, gradients, and the bound on the curvature."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from torch import Tensor
from torch.autograd.functional import hessian

from fairpass.kernels import Discrepancy, Groups

TIGHT = 1e-12  # so that only rounding is left of the error
variants = pytest.mark.parametrize("simplified", [False, True])


def problem(seed: int, n: int, groups: int, labels: int, *, unknown: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Return points, groups and labels; every label occurs in every group."""
    random = torch.Generator().manual_seed(seed)
    points = torch.randn((n, 2), generator=random, dtype=torch.float64)
    sens = torch.randint(-int(unknown), groups, (n,), generator=random)
    y = torch.randint(labels, (n,), generator=random)
    cells = torch.tensor(list(itertools.product(range(groups), range(labels))))
    sens[: len(cells)], y[: len(cells)] = cells.T
    return points, sens, y


def weights_of(seed: int, n: int, labels: int) -> Tensor:
    """Return a probability of each label for each node, some of them 0 or 1."""
    random = torch.Generator().manual_seed(seed)
    drawn = torch.rand((n, labels), generator=random, dtype=torch.float64)
    return ((1.4 * drawn - 0.2).clamp(0, 1) + 1e-3 * (drawn > 0.5)).clamp(max=1)


def dense(points: Tensor, columns: list[list[Tensor]], alpha: float, *, simplified: bool) -> Tensor:
    """Return the discrepancy summed over labels and pairs of groups, by the whole kernel matrix.

    `columns[y][a]` weights the nodes of label `y` in group `a`; its sum is 1.
    """
    kernel = torch.exp(-alpha * (points[:, None] - points).square().sum(-1))
    total = points.new_zeros(())
    for of_label in columns:
        for first, second in itertools.combinations(of_label, 2):
            difference = first - second
            total = total + (-2 * first @ kernel @ second if simplified else difference @ kernel @ difference)
    return total


def normalised(probabilities: Tensor, sens: Tensor, groups: int) -> list[list[Tensor]]:
    weighted = [[p * (sens == a) for a in range(groups)] for p in probabilities.unbind(-1)]
    return [[w / w.sum() for w in of_label] for of_label in weighted]


@variants
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("labels", [2, 3])
def test_with_known_labels_it_is_the_discrepancy_restricted_to_each_label(
    simplified: bool, groups: int, labels: int
) -> None:
    points, sens, y = problem(groups + labels, 40, groups, labels, unknown=True)
    known = torch.nn.functional.one_hot(y, labels).double()
    compared = Discrepancy(Groups.of(sens, torch.float64).among(known), simplified=simplified, eps=TIGHT)
    gradient, value = compared.gradient(points, 0.6)
    wanted, total = torch.zeros_like(points), 0.0
    for label in range(labels):
        chosen = y == label
        alone = Discrepancy(Groups.of(sens[chosen], torch.float64), simplified=simplified, eps=TIGHT)
        wanted[chosen], part = alone.gradient(points[chosen], 0.6)
        total += float(part)
    torch.testing.assert_close(gradient, wanted)
    assert float(value) == pytest.approx(total, rel=1e-9)
    assert float(compared.value(points, 0.6)) == pytest.approx(total, rel=1e-9)
    assert float(compared.constant_value(points, 0.6)) == pytest.approx(total, rel=1e-9)


@variants
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("labels", [1, 2, 3])
@pytest.mark.parametrize("n", [30, 700])
def test_value_and_gradient_of_weighted_nodes(simplified: bool, groups: int, labels: int, n: int) -> None:
    points, sens, _ = problem(n + labels, n, groups, labels, unknown=True)
    probabilities = weights_of(1, n, labels)
    points.requires_grad_()
    value = dense(points, normalised(probabilities, sens, groups), 0.6, simplified=simplified)
    (wanted,) = torch.autograd.grad(value, points)
    compared = Discrepancy(Groups.of(sens, torch.float64).among(probabilities), simplified=simplified, eps=TIGHT)
    gradient, at = compared.gradient(points, 0.6)
    torch.testing.assert_close(gradient.detach(), wanted)
    torch.testing.assert_close((at, compared.value(points, 0.6).detach()), (value.detach(),) * 2)
    alpha = torch.tensor(0.6, dtype=torch.float64)
    assert compared.least <= float(compared.at_least(points, alpha)) <= float(value.detach()) + 1e-12


@variants
@examples(60)
@given(
    seed=st.integers(0, 10_000),
    groups=st.sampled_from([2, 3]),
    labels=st.sampled_from([1, 2, 3]),
    alpha=st.sampled_from([0.1, 1.0, 10.0]),
    scale=st.sampled_from([0.01, 0.3, 3.0]),
)
def test_the_bound_is_above_the_hessian(
    simplified: bool, seed: int, groups: int, labels: int, alpha: float, scale: float
) -> None:
    points, sens, _ = problem(seed, 10, groups, labels, unknown=True)
    probabilities = weights_of(seed, 10, labels)
    columns = normalised(probabilities.clamp(min=1e-6), sens, groups)
    among = Groups.of(sens, torch.float64).among(probabilities.clamp(min=1e-6))
    bound = Discrepancy(among, simplified=simplified).curvature(alpha).expand(10, 2).reshape(-1)

    def of(x: Tensor) -> Tensor:
        return dense(x.reshape(10, 2), columns, alpha, simplified=simplified)

    second: Tensor = hessian(of, (scale * points).reshape(-1))  # type: ignore[no-untyped-call] # torch's own
    taking_part = bound > 0
    assert not bool(second[~taking_part].any())
    root = bound[taking_part].rsqrt()
    # The generalised eigenvalues of the Hessian with respect to the bound.
    within = root[:, None] * second[taking_part][:, taking_part] * root
    assert float(torch.linalg.eigvalsh(within).abs().max()) <= 1 + 1e-12


def test_equal_probabilities_change_nothing() -> None:
    _, sens, _ = problem(0, 30, 3, 2, unknown=True)
    groups = Groups.of(sens, torch.float64)
    same = groups.among(torch.full((30, 2), 0.3, dtype=torch.float64))
    assert same.blocks == 2
    torch.testing.assert_close(same.membership, groups.membership.repeat(1, 2))
    assert torch.equal(same.sizes, groups.sizes)


def test_a_batch_of_probabilities_is_one_by_one() -> None:
    points, sens, _ = problem(1, 30, 2, 2)
    groups = Groups.of(sens, torch.float64)
    probabilities = torch.stack([weights_of(seed, 30, 2) for seed in range(3)])
    stack, alpha = torch.stack([points, 2 * points, 3 * points]), torch.tensor([0.2, 1.0, 5.0], dtype=torch.float64)
    together = Discrepancy(groups.among(probabilities), eps=TIGHT)
    gradient, value = together.gradient(stack, alpha)
    bounds, stiffness = together.curvature(alpha[:, None, None]), together.stiffness(alpha[:, None, None])
    for k in range(3):
        alone = Discrepancy(groups.among(probabilities[k]), eps=TIGHT)
        torch.testing.assert_close((gradient[k], value[k]), alone.gradient(stack[k], float(alpha[k])))
        torch.testing.assert_close(bounds[k], alone.curvature(float(alpha[k])))
        assert float(stiffness[k]) == pytest.approx(float(alone.stiffness(float(alpha[k]))))


@pytest.mark.parametrize("labels", [1, 2])
def test_weights_survive_a_change_of_precision(labels: int) -> None:
    _, sens, _ = problem(2, 30, 2, 2)
    among = Groups.of(sens, torch.float64).among(weights_of(2, 30, labels))
    single = among.to(torch.zeros(1))
    assert single.membership.dtype == torch.float32
    assert single.blocks == labels
    torch.testing.assert_close(single.membership.double(), among.membership)
    assert among.to(torch.zeros(1, dtype=torch.float64)) is among


@pytest.mark.parametrize("nothing", [0.0, torch.nan])
def test_among_the_nodes_of_a_label_that_a_group_lacks_nothing_is_compared(nothing: float) -> None:
    points, sens, _ = problem(3, 30, 2, 2, unknown=True)
    probabilities = weights_of(3, 30, 2)
    probabilities[sens == 1, 0] = nothing
    groups = Groups.of(sens, torch.float64)
    both, second = groups.among(probabilities), groups.among(probabilities[:, 1:])
    assert not bool(both.membership[:, :2].any())
    known = torch.nonzero(sens >= 0).flatten()
    some = both.rows(known)  # the groups that were left out before are not missed
    for one, other in zip(
        Discrepancy(some, eps=TIGHT).gradient(points[known], 0.6),
        Discrepancy(second.rows(known), eps=TIGHT).gradient(points[known], 0.6),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
    only = Discrepancy(groups.among(probabilities[:, :1]))
    assert float(only.value(points, 0.6)) == float(only.stiffness(0.6)) == 0


def test_rows_that_lose_a_group_are_refused() -> None:
    _, sens, y = problem(4, 30, 2, 2)
    among = Groups.of(sens).among(torch.nn.functional.one_hot(y, 2).float())
    with pytest.raises(ValueError, match=r"'index' must choose nodes of every group \(got group sizes \[\d+, \d+, 0, "):
        among.rows(torch.nonzero(~((sens == 0) & (y == 1))).flatten())
