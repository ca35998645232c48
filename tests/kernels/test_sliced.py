"""The sliced kernel: its rule, how near it is to the Gaussian, and what it shares with it exactly."""

import math
from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, jv
from tests.drawing import examples
from torch import Tensor
from torch.autograd.functional import hessian

from fairpass.kernels import Discrepancy, Groups, gauss_slope, gauss_sum, series
from fairpass.kernels.directions import MOST_DIRECTIONS, default_directions, draw
from fairpass.kernels.sliced import Frequencies, SlicedExpansion

Make = Callable[..., Tensor]
variants = pytest.mark.parametrize("simplified", [False, True])


def clusters(seed: int, n: int, d: int) -> tuple[Tensor, Tensor]:
    """Return logits of `d + 1` classes: a cluster for each, of which the groups have different shares."""
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    sens = (torch.arange(n) < 0.3 * n).long()
    shares = torch.rand(2, d + 1, generator=random, dtype=torch.float64) + 0.2
    labels = torch.multinomial(shares[sens], 1, generator=random).flatten()
    return 2 * normal(d + 1, d)[labels] + normal(n, d) + 0.3 * sens[:, None] * normal(d), sens


def adaptive(points: Tensor) -> float:
    """Return the `alpha` that a layer with the default bandwidth takes."""
    return 0.3 / float(2 * (points - points.mean(0)).square().sum(-1).mean())


@pytest.mark.parametrize("d", [1, 2, 3, 4, 9, 19])
def test_the_rule_has_the_moments_of_a_normal_distribution(d: int) -> None:
    rule = draw(d, default_directions(d))
    frequencies, weights = rule.frequencies, rule.weights
    assert len(frequencies) == len(weights) >= default_directions(d)
    assert len(frequencies) % d == 0
    assert bool((weights > 0).all())
    assert rule.constant > 0
    assert weights.sum() + rule.constant == pytest.approx(1)
    np.testing.assert_allclose((frequencies.T * weights) @ frequencies, np.eye(d), atol=1e-12)
    squared = (frequencies**2).sum(1)
    assert weights @ squared**2 == pytest.approx(d * (d + 2))  # the node at 0 makes one radius do


def test_more_directions_have_more_radii() -> None:
    counts = [len(np.unique((draw(4, count).frequencies ** 2).sum(1).round(6))) for count in (4, 60, 160)]
    assert counts == [1, 2, 3]
    assert default_directions(500) == MOST_DIRECTIONS


def test_the_same_seed_draws_the_same() -> None:
    first = draw(5, 60)
    draw.cache_clear()
    np.testing.assert_array_equal(first.frequencies, draw(5, 60).frequencies)
    assert not np.allclose(first.frequencies, draw(5, 60, seed=1).frequencies)


def radial_kernel(r: float, d: int, directions: int) -> float:
    """Return the mean of the rule over all rotations: of each radius the Fourier transform of a sphere."""
    rule = draw(d, directions)
    z = r * np.sqrt((rule.frequencies**2).sum(1))
    order = d / 2 - 1
    sphere = np.exp(gammaln(d / 2) + order * np.log(2 / z)) * jv(order, z)
    return float(rule.constant + rule.weights @ sphere)


@pytest.mark.parametrize(("d", "directions"), [(4, 8), (9, 18)])
def test_over_seeds_only_the_error_of_the_radii_remains(d: int, directions: int) -> None:
    """Few directions, so that each draw is far off."""
    for r in (0.5, 1.5):
        at = np.zeros(d)
        at[:2] = 0.6 * r, 0.8 * r
        rules = [draw(d, directions, seed) for seed in range(400)]
        values = np.array([rule.constant + rule.weights @ np.cos(rule.frequencies @ at) for rule in rules])
        error = values.mean() - radial_kernel(r, d, directions)
        assert abs(error) < 4 * values.std() / math.sqrt(len(values)) + 1e-12


@pytest.mark.parametrize("d", [4, 9, 19])
def test_the_radii_are_nearly_exact_for_points_that_are_near(d: int) -> None:
    # alpha |r|^2 = r^2 / 2 in the units of the rule: 0.3 is the mean with an adaptive bandwidth.
    for squared, bound in ((0.3, 1e-4), (0.9, 3e-3)):
        error = radial_kernel(math.sqrt(2 * squared), d, default_directions(d)) - math.exp(-squared)
        assert abs(error) < bound


@pytest.mark.parametrize("d", [4, 9])
@pytest.mark.parametrize("steps", [0, 3])
def test_the_message_is_within_five_percent_and_nearer_with_more_directions(d: int, steps: int) -> None:
    points, sens = clusters(d, 800, d)
    groups = Groups.of(sens, torch.float64)
    exact = Discrepancy(groups, backend="dense")
    for _ in range(steps):
        alpha = adaptive(points)
        points = points - 2 * exact.gradient(points, alpha)[0] / exact.curvature(alpha)
    alpha = adaptive(points)
    wanted, value = exact.gradient(points, alpha)
    errors = []
    for factor in (1, 2, 4):
        sliced = Discrepancy(groups, backend="sliced", directions=factor * default_directions(d))
        found, near = sliced.gradient(points, alpha)
        errors.append(float((found - wanted).norm() / wanted.norm()))
        assert float(near) == pytest.approx(float(value), rel=0.02)
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 0.05
    assert errors[2] < errors[0] / 2
    found, _ = Discrepancy(groups, backend="sliced").gradient(points, alpha)
    assert float((found - wanted).norm() / wanted.norm()) == errors[0]


@pytest.mark.parametrize("d", [2, 4, 9])
def test_the_kernel_is_positive_definite_and_at_most_one(oracle: Make, d: int) -> None:
    points, _ = clusters(d, 60, d)
    kernel = gauss_sum(points, points, torch.eye(60, dtype=torch.float64), 0.7, backend="sliced")
    torch.testing.assert_close(kernel, oracle(points, points, torch.eye(60), 0.7, "sliced"))
    torch.testing.assert_close(kernel.diagonal(), torch.ones(60, dtype=torch.float64))
    assert float(kernel.abs().max()) <= 1 + 1e-12
    assert float(torch.linalg.eigvalsh(kernel).min()) > -1e-12


@variants
@examples(20)
@given(
    seed=st.integers(0, 10_000),
    groups=st.sampled_from([2, 3]),
    d=st.sampled_from([2, 4, 5]),
    alpha=st.sampled_from([0.1, 1.0, 10.0]),
    scale=st.sampled_from([0.01, 0.3, 3.0]),
)
def test_curvature_is_above_the_hessian(
    simplified: bool, seed: int, groups: int, d: int, alpha: float, scale: float
) -> None:
    random = torch.Generator().manual_seed(seed)
    points = scale * torch.randn(8, d, generator=random, dtype=torch.float64)
    sens = torch.arange(8) % groups
    term = Discrepancy(Groups.of(sens, torch.float64), simplified=simplified, backend="sliced")

    def of(x: Tensor) -> Tensor:
        return term.value(x.reshape(8, d), alpha)

    second: Tensor = hessian(of, points.reshape(-1))  # type: ignore[no-untyped-call] # torch's own
    root = term.curvature(alpha).expand(8, d).reshape(-1).rsqrt()
    assert float(torch.linalg.matrix_norm(root[:, None] * second * root, 2)) <= 1 + 1e-12


@variants
@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("groups", [2, 3])
def test_value_gradient_and_bound_belong_together(simplified: bool, blocks: int, groups: int) -> None:
    random = torch.Generator().manual_seed(groups)
    stack = torch.randn(2, 90, 5, generator=random, dtype=torch.float64).requires_grad_()
    alpha = torch.tensor([0.05, 0.4], dtype=torch.float64)
    members = Groups.of(torch.arange(90) % groups, torch.float64)
    if blocks > 1:
        members = members.among(torch.rand(90, blocks, generator=random, dtype=torch.float64))
    term = Discrepancy(members, simplified=simplified, backend="sliced")
    value = term.value(stack, alpha)
    (wanted,) = torch.autograd.grad(value.sum(), stack)
    gradient, same = term.gradient(stack, alpha)
    torch.testing.assert_close(gradient.detach(), wanted)
    torch.testing.assert_close((same, term.constant_value(stack, alpha)), (value.detach(),) * 2)
    assert bool((term.at_least(stack.detach(), alpha) <= value.detach() + 1e-12).all())
    for k in range(2):
        torch.testing.assert_close(term.gradient(stack[k], float(alpha[k]))[0], gradient[k])


def test_equal_groups_do_not_differ() -> None:
    points, _ = clusters(0, 50, 6)
    both, sens = points.repeat(2, 1), torch.arange(2).repeat_interleave(50)
    gradient, value = Discrepancy(Groups.of(sens, torch.float64), backend="sliced").gradient(both, 0.6)
    assert abs(float(value)) < 1e-12
    assert float(gradient.abs().max()) < 1e-12


def test_moments_of_two_halves_add_up() -> None:
    points, _ = clusters(1, 100, 4)
    strengths = torch.randn(1, 3, 100, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    last = points.mT[None].contiguous()
    slices = Frequencies(4, torch.tensor([0.2], dtype=torch.float64), None)
    whole = SlicedExpansion(slices, last).moments(strengths)
    first, second = (
        SlicedExpansion(slices, last[..., part]).moments(strengths[..., part]) for part in (slice(37), slice(37, None))
    )
    torch.testing.assert_close(first + second, whole)
    out = SlicedExpansion(slices, last).evaluate(first + second)
    torch.testing.assert_close(out[0].mT, gauss_sum(points, points, strengths[0].mT, 0.2, backend="sliced"))


@pytest.mark.parametrize("keep", [0, 1 << 24])
def test_chunks_change_nothing(keep: int) -> None:
    points, _ = clusters(2, 500, 5)
    points.requires_grad_()
    w = torch.randn(500, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_()

    def everything() -> list[Tensor]:
        slopes, gram = gauss_slope(points, w, 0.1, backend="sliced")
        return [slopes, gram, *torch.autograd.grad(slopes.square().sum(), (points, w))]

    whole = everything()
    with mock.patch.object(series, "CHUNK_NUMBERS", 1), mock.patch.object(series, "KEEP_NUMBERS", keep):
        torch.testing.assert_close(everything(), whole)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_single_precision_loses_nothing_but_rounding(scale: float) -> None:
    """Small angles are computed in float32, large ones in float64."""
    points = scale * clusters(3, 300, 5)[0].float()
    w = torch.rand(300, 1, generator=torch.Generator().manual_seed(3))
    (single, _), (double, _) = (
        gauss_slope(x, v, 0.1, backend="sliced") for x, v in ((points, w), (points.double(), w.double()))
    )
    assert float((single - double).abs().max()) < 1e-5 * float(w.sum())


def test_directions_must_be_positive() -> None:
    points, _ = clusters(4, 5, 4)
    for function in (gauss_slope, lambda x, w, a, **options: gauss_sum(x, x, w, a, **options)):
        with pytest.raises(ValueError, match=r"'directions' must be at least 1 \(got 0\)"):
            function(points, points, 1.0, directions=0)
