"""The discrepancy between groups: against the paper's printed message, autograd, and its own symmetries."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from torch import Tensor
from torch.autograd import gradcheck
from torch.autograd.functional import hessian

from fairpass.kernels import Discrepancy, Groups, intergroup_similarity, mmd2, witness
from fairpass.kernels.mmd import KernelName
from fairpass.parameters import MOST_CLASSES

SEEDS = st.integers(0, 10_000)
TIGHT = 1e-12  # so that only rounding is left of the error
variants = pytest.mark.parametrize("simplified", [False, True])
kernels = pytest.mark.parametrize("kernel", ["gaussian", "laplace"])


def problem(seed: int, n: int = 30, *, groups: int = 2, d: int = 2, unknown: bool = False) -> tuple[Tensor, Tensor]:
    """Return points of `n` nodes in float64 and their groups, each group with two nodes or more."""
    random = torch.Generator().manual_seed(seed)
    points = torch.randn((n, d), generator=random, dtype=torch.float64)
    sens = torch.randint(-int(unknown), groups, (n,), generator=random)
    sens[: 2 * groups] = torch.arange(2 * groups) % groups
    return points, sens


def kernel_matrix(points: Tensor, alpha: float, kernel: KernelName = "gaussian") -> Tensor:
    difference = points[:, None] - points[None]
    if kernel == "laplace":
        return torch.exp(-alpha * difference.abs().sum(-1))
    return torch.exp(-alpha * difference.square().sum(-1))


def objective(
    points: Tensor, sens: Tensor, alpha: float, *, simplified: bool, kernel: KernelName = "gaussian"
) -> Tensor:
    """Return the paper's `h_f` over all pairs of groups from means of blocks of the kernel matrix."""
    matrix = kernel_matrix(points, alpha, kernel)
    total = points.new_zeros(())
    for a, b in itertools.combinations(range(int(sens.max()) + 1), 2):
        first, second = sens == a, sens == b
        total = total - 2 * matrix[first][:, second].mean()
        if not simplified:
            total = total + matrix[first][:, first].mean() + matrix[second][:, second].mean()
    return total


def printed_message(points: Tensor, sens: Tensor, alpha: float, *, simplified: bool) -> Tensor:
    """Return the paper's `P`, entry by entry as it is printed, for two groups."""
    matrix, n = kernel_matrix(points, alpha), len(points)
    sizes = [int((sens == group).sum()) for group in (0, 1)]
    P = torch.zeros((n, n), dtype=points.dtype)
    for i, j in itertools.permutations(range(n), 2):
        if sens[i] != sens[j]:
            P[i, j] = matrix[i, j] / (sizes[0] * sizes[1])
        elif not simplified:
            P[i, j] = -matrix[i, j] / sizes[int(sens[i])] ** 2
    for i in range(n):
        P[i, i] = -sum(P[i, m] for m in range(n) if m != i)
    return P


@variants
@examples(10)
@given(seed=SEEDS, alpha=st.sampled_from([0.05, 1.0, 20.0]), d=st.integers(1, 3))
def test_the_papers_message_is_minus_the_gradient(simplified: bool, seed: int, alpha: float, d: int) -> None:
    points, sens = problem(seed, 12, d=d)
    points.requires_grad_()
    value = objective(points, sens, alpha, simplified=simplified)
    (gradient,) = torch.autograd.grad(value, points)
    P = printed_message(points.detach(), sens, alpha, simplified=simplified)
    torch.testing.assert_close(4 * alpha * P @ points.detach(), -gradient)

    discrepancy = Discrepancy(Groups.of(sens, torch.float64), simplified=simplified, eps=TIGHT)
    found, at = discrepancy.gradient(points, alpha)
    torch.testing.assert_close(found.detach(), gradient)
    torch.testing.assert_close((at, discrepancy.value(points, alpha).detach()), (value.detach(),) * 2)


@kernels
@variants
@pytest.mark.parametrize("groups", [2, 3, 4])
def test_value_and_gradient_are_sums_over_pairs_of_groups(groups: int, simplified: bool, kernel: KernelName) -> None:
    points, sens = problem(groups, groups=groups, unknown=True)
    points.requires_grad_()
    discrepancy = Discrepancy(Groups.of(sens, torch.float64), simplified=simplified, kernel=kernel, eps=TIGHT)
    value = objective(points, sens, 0.6, simplified=simplified, kernel=kernel)
    (wanted,) = torch.autograd.grad(value, points)
    gradient, at = discrepancy.gradient(points, 0.6)
    torch.testing.assert_close(gradient.detach(), wanted)
    torch.testing.assert_close((at, discrepancy.value(points, 0.6).detach()), (value.detach(),) * 2)
    if not simplified:
        torch.testing.assert_close(mmd2(points, sens, 0.6, kernel=kernel, eps=TIGHT), value)


@variants
@pytest.mark.parametrize("groups", [2, 3])
def test_many_nodes_take_the_fast_way_to_the_same(simplified: bool, groups: int) -> None:
    points, sens = problem(1, 700, groups=groups)
    points.requires_grad_()
    value = objective(points, sens, 0.6, simplified=simplified)
    (wanted,) = torch.autograd.grad(value, points)
    discrepancy = Discrepancy(Groups.of(sens, torch.float64), simplified=simplified)
    gradient, at = discrepancy.gradient(points, 0.6)
    torch.testing.assert_close(gradient.detach(), wanted, rtol=0, atol=1e-8)
    torch.testing.assert_close(at, value.detach(), rtol=0, atol=1e-6)


@variants
@kernels
def test_the_gradient_can_be_differentiated(simplified: bool, kernel: KernelName) -> None:
    points, sens = problem(2, 6)
    discrepancy = Discrepancy(Groups.of(sens, torch.float64), simplified=simplified, kernel=kernel, eps=TIGHT)
    assert gradcheck(lambda x: discrepancy.gradient(x, 0.6)[0], [points.requires_grad_()])
    with torch.no_grad():
        assert not discrepancy.gradient(points, 0.6)[0].requires_grad


@variants
@examples(25)
@given(
    seed=SEEDS,
    groups=st.sampled_from([2, 3]),
    d=st.integers(1, 3),
    alpha=st.sampled_from([0.1, 1.0, 10.0]),
    scale=st.sampled_from([0.01, 0.3, 3.0]),
)
def test_curvature_is_above_the_hessian(
    simplified: bool, seed: int, groups: int, d: int, alpha: float, scale: float
) -> None:
    points, sens = problem(seed, 10, groups=groups, d=d)
    bound = Discrepancy(Groups.of(sens, torch.float64), simplified=simplified).curvature(alpha)

    def of(x: Tensor) -> Tensor:
        return objective(x.reshape(10, d), sens, alpha, simplified=simplified)

    root = bound.expand(10, d).reshape(-1).rsqrt()
    # torch's own lacks type hints
    second: Tensor = hessian(of, (scale * points).reshape(-1))  # type: ignore[no-untyped-call] # torch's own
    norm = torch.linalg.matrix_norm(root[:, None] * second * root, 2)
    assert float(norm) <= 1 + 1e-12


def test_curvature_of_two_groups_is_the_published_bound() -> None:
    sens = torch.tensor([0, 0, 0, 1, -1])
    groups = Groups.of(sens, torch.float64)
    wanted = torch.tensor([[16 * 0.3 / 3]] * 3 + [[16 * 0.3], [0.0]], dtype=torch.float64)
    torch.testing.assert_close(Discrepancy(groups).curvature(0.3), wanted)
    torch.testing.assert_close(Discrepancy(groups, simplified=True).curvature(0.3), wanted / 2)
    batch = Discrepancy(groups).curvature(torch.tensor([0.3, 0.6], dtype=torch.float64)[:, None, None])
    torch.testing.assert_close(batch, torch.stack([wanted, 2 * wanted]))


@variants
@kernels
def test_unknown_nodes_take_no_part(simplified: bool, kernel: KernelName) -> None:
    points, sens = problem(3, unknown=True)
    known = sens >= 0
    assert not known.all()

    def term(sens: Tensor) -> Discrepancy:
        return Discrepancy(Groups.of(sens, torch.float64), simplified=simplified, kernel=kernel, eps=TIGHT)

    gradient, value = term(sens).gradient(points, 0.6)
    alone, same = term(sens[known]).gradient(points[known], 0.6)
    torch.testing.assert_close((gradient[known], value), (alone, same))
    assert not gradient[~known].any()
    assert not term(sens).curvature(0.6)[~known].any()


@variants
@kernels
@examples(10)
@given(seed=SEEDS, groups=st.integers(2, 4))
def test_symmetries(kernel: KernelName, simplified: bool, seed: int, groups: int) -> None:
    points, sens = problem(seed, groups=groups, unknown=True)
    random = torch.Generator().manual_seed(seed)

    def term(points: Tensor, sens: Tensor) -> tuple[Tensor, Tensor]:
        chosen = Discrepancy(Groups.of(sens, torch.float64), simplified=simplified, kernel=kernel, eps=TIGHT)
        return chosen.gradient(points, 0.6)

    gradient, value = term(points, sens)
    # Group names mean nothing.
    names = torch.randperm(groups, generator=random)
    torch.testing.assert_close(term(points, torch.where(sens < 0, sens, names[sens])), (gradient, value))
    # Nor does the order of the nodes,
    order = torch.randperm(len(points), generator=random)
    torch.testing.assert_close(term(points[order], sens[order]), (gradient[order], value))
    # nor the origin,
    torch.testing.assert_close(term(points + 3.7, sens), (gradient, value))
    # nor, for the Gaussian, the axes.
    if kernel == "gaussian":
        turn: Tensor = torch.linalg.qr(torch.randn((2, 2), generator=random, dtype=torch.float64)).Q
        torch.testing.assert_close(term(points @ turn, sens), (gradient @ turn, value))


@kernels
def test_equal_groups_do_not_differ(kernel: KernelName) -> None:
    points, _ = problem(4)
    both, sens = points.repeat(2, 1), torch.arange(2).repeat_interleave(len(points))
    gradient, value = Discrepancy(Groups.of(sens, torch.float64), kernel=kernel).gradient(both, 0.6)
    assert abs(float(value)) < 1e-12
    assert float(gradient.abs().max()) < 1e-12


@examples(20)
@given(seed=SEEDS, groups=st.integers(2, 4), alpha=st.sampled_from([0.01, 1.0, 100.0]))
def test_the_value_stays_in_its_range(seed: int, groups: int, alpha: float) -> None:
    points, sens = problem(seed, groups=groups)
    pairs = groups * (groups - 1) / 2
    assert -1e-12 <= float(mmd2(points, sens, alpha, eps=TIGHT)) <= 2 * pairs
    assert 0 <= float(intergroup_similarity(points, sens, alpha, eps=TIGHT)) <= 1
    simplified = Discrepancy(Groups.of(sens, torch.float64), simplified=True)
    assert simplified.least == -2 * pairs
    assert float(simplified.value(points, alpha)) >= simplified.least


@variants
def test_a_step_along_the_message_lowers_the_discrepancy(simplified: bool) -> None:
    points, sens = problem(5, 200)
    term = Discrepancy(Groups.of(sens, torch.float64), simplified=simplified)
    gradient, value = term.gradient(points, 0.6)
    assert float(term.value(points - gradient / term.curvature(0.6), 0.6)) < float(value)


@variants
@kernels
@pytest.mark.parametrize("n", [30, 700])
def test_the_value_as_a_constant_is_the_value(n: int, kernel: KernelName, simplified: bool) -> None:
    points, sens = problem(12, n, groups=3)
    term = Discrepancy(Groups.of(sens, torch.float64), simplified=simplified, kernel=kernel, eps=TIGHT)
    constant = term.constant_value(points.requires_grad_(), 0.6)
    assert not constant.requires_grad
    torch.testing.assert_close(constant, term.value(points.detach(), 0.6), rtol=0, atol=12 * TIGHT)


@variants
@kernels
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("shift", [0.0, 1e-3, 0.5, 4.0])
def test_it_is_at_least_its_bound(kernel: KernelName, simplified: bool, groups: int, shift: float) -> None:
    points, sens = problem(13, 300, groups=groups)
    points = points + shift * sens[:, None]
    term = Discrepancy(Groups.of(sens, torch.float64), simplified=simplified, kernel=kernel, eps=TIGHT)
    stack, alpha = torch.stack([points, 3 * points]), torch.tensor([0.2, 5.0], dtype=torch.float64)
    assert bool((term.at_least(stack, alpha) <= term.value(stack, alpha) + 1e-12).all())


def test_the_bound_is_near_if_the_groups_are_apart() -> None:
    points, sens = problem(14, 300)
    points = points + sens[:, None]
    term = Discrepancy(Groups.of(sens, torch.float64))
    alpha = torch.tensor(0.1, dtype=torch.float64)
    assert float(term.at_least(points, alpha)) > 0.8 * float(term.value(points, alpha))


def test_batch_equals_one_by_one() -> None:
    points, sens = problem(6)
    stack, alpha = torch.stack([points, 3 * points]), torch.tensor([0.2, 5.0], dtype=torch.float64)
    term = Discrepancy(Groups.of(sens, torch.float64), eps=TIGHT)
    gradient, value = term.gradient(stack, alpha)
    assert value.shape == (2,)
    for k in range(2):
        one = term.gradient(stack[k], float(alpha[k]))
        torch.testing.assert_close((gradient[k], value[k]), one)


def test_witness_is_positive_where_the_first_group_is_denser() -> None:
    points = torch.tensor([[-1.0], [-1.2], [1.0], [1.3]])
    sens = torch.tensor([0, 0, 1, 1])
    at = torch.tensor([[-1.0], [0.0], [1.0]])
    found = witness(at, points, sens, 2.0)
    kernel = torch.exp(-2.0 * (at - points.mT).square())
    torch.testing.assert_close(found, kernel[:, :2].mean(1) - kernel[:, 2:].mean(1))
    assert found[0] > 0 > found[2]


@examples(10)
@given(seed=SEEDS)
def test_mean_witness_difference_is_the_discrepancy(seed: int) -> None:
    points, sens = problem(seed)
    values = witness(points, points, sens, 0.6, eps=TIGHT)
    difference = values[sens == 0].mean() - values[sens == 1].mean()
    torch.testing.assert_close(difference, mmd2(points, sens, 0.6, eps=TIGHT))


@pytest.mark.parametrize("groups", [2, 3])
def test_similarities_are_means_of_blocks(groups: int) -> None:
    points, sens = problem(7, groups=groups, unknown=True)
    matrix = kernel_matrix(points, 0.6)
    blocks = torch.stack(
        [torch.stack([matrix[sens == a][:, sens == b].mean() for b in range(groups)]) for a in range(groups)]
    )
    found = Groups.of(sens, torch.float64).similarities(points, 0.6, eps=TIGHT)
    torch.testing.assert_close(found, blocks)
    between = blocks[~torch.eye(groups, dtype=torch.bool)].mean()
    torch.testing.assert_close(intergroup_similarity(points, sens, 0.6, eps=TIGHT), between)


def test_groups_know_their_members() -> None:
    groups = Groups.of(torch.tensor([1, 0, -1, 1, 1]))
    assert groups.sizes.tolist() == [1, 3]
    third = 1 / 3
    wanted = torch.tensor([[0, third], [1, 0], [0, 0], [0, third], [0, third]])
    torch.testing.assert_close(groups.membership, wanted)
    some = groups.rows(torch.tensor([3, 1, 4]))
    assert some.sizes.tolist() == [1, 3]
    torch.testing.assert_close(some.membership, torch.tensor([[0, third], [1, 0], [0, third]]))
    assert groups.to(torch.zeros(1, dtype=torch.float64)).membership.dtype == torch.float64


@pytest.mark.parametrize(
    ("sens", "message"),
    [
        (torch.tensor([[0, 1]]), "'sens' must be a vector of integers"),
        (torch.tensor([0.0, 1.0]), "'sens' must be a vector of integers"),
        (None, r"'sens' must be a vector of integers \(got NoneType\)"),
        (torch.tensor([0, 1]).to_sparse(), r"'sens' must be a vector of integers \(got .* torch.sparse_coo\)"),
        (torch.tensor([0, 1]).to(torch.uint64), r"'sens' must be a vector of integers \(got .* torch.uint64\)"),
        (torch.tensor([0, 0, -1]), r"'sens' must name at least two groups \(got 1\)"),
        (torch.tensor([-1, -1]), "'sens' must name at least two groups"),
        (torch.tensor([], dtype=torch.int64), "'sens' must name at least two groups"),
        (torch.tensor([0, 2, 2]), r"'sens' must number .* without gaps \(got no node of group 1, but of group 2\)"),
        (torch.tensor([0, 900, 3]), r"'sens' must number .* \(got no node of group 1, but of group 900\)"),
        (torch.tensor([0, MOST_CLASSES]), r"'sens' must be below 1,000 \(got 1000\)"),
        (torch.tensor([0, 2**62]), rf"'sens' must be below 1,000 \(got {2**62}\)"),
    ],
)
def test_groups_must_be_two_or_more(sens: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Groups.of(sens)


def test_chosen_rows_must_have_every_group() -> None:
    with pytest.raises(ValueError, match=r"'index' must choose nodes of every group .* \[0, 2\]"):
        Groups.of(torch.tensor([0, 1, 1])).rows(torch.tensor([1, 2]))


@pytest.mark.parametrize("function", [mmd2, intergroup_similarity, lambda x, *rest: witness(x, x, *rest)])
def test_each_point_must_have_a_group(function: Any) -> None:
    points, sens = problem(8)
    with pytest.raises(ValueError, match=r"'sens' must have one entry for each of the points \(got shapes"):
        function(points, sens[1:], 1.0)
    with pytest.raises(ValueError, match=r"'sens' must be a vector of integers \(got NoneType\)"):
        function(points, None, 1.0)
    with pytest.raises(ValueError, match=r"'points' must be a tensor \(\.\.\., N, d\) \(got list\)"):
        function([[0.0], [1.0]], sens, 1.0)
    with pytest.raises(ValueError, match="'alpha' must be positive and finite"):
        function(points, sens, -1.0)


def test_witness_is_of_two_groups() -> None:
    points, sens = problem(9, groups=3)
    with pytest.raises(ValueError, match=r"'sens' must name exactly two groups \(got 3\)"):
        witness(points, points, sens, 1.0)


def test_kernel_must_exist() -> None:
    with pytest.raises(ValueError, match=r"'kernel' must be one of .* \(got 'cosine'\)"):
        mmd2(*problem(10), 1.0, kernel="cosine")  # type: ignore[arg-type] # that is the point


def test_inputs_are_not_changed() -> None:
    points, sens = problem(11, unknown=True)
    before = points.clone(), sens.clone()
    mmd2(points, sens, 1.0)
    intergroup_similarity(points, sens, 1.0)
    assert torch.equal(points, before[0])
    assert torch.equal(sens, before[1])
