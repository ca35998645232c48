"""The fair steps of a layer: plain ones lower their objective each time, longer ones with momentum go farther."""

import pytest
import torch
from torch import Tensor

from fairpass.kernels import Discrepancy, Groups
from fairpass.nn.fairness import FairnessTerm, descend


def problem(
    seed: int, nodes: int = 60, alpha: float = 0.4, weight: float = 50.0
) -> tuple[Tensor, Tensor, FairnessTerm]:
    """Return points of two groups that lie apart, the nodes' step sizes, and the fairness term."""
    generator = torch.Generator().manual_seed(seed)
    sens = (torch.arange(nodes) < nodes // 3).long()
    points = torch.randn(nodes, 1, generator=generator, dtype=torch.float64) + sens[:, None]
    discrepancy = Discrepancy(Groups.of(sens, torch.float64))
    lambda_f = weight / discrepancy.stiffness(alpha)
    term = FairnessTerm(discrepancy, torch.tensor(alpha, dtype=torch.float64), lambda_f.reshape(1, 1))
    return points, 1 / (1 + term.curvature(points)), term


def value_of(term: FairnessTerm, F: Tensor) -> Tensor:
    return term.lambda_f[0, 0] * term.discrepancy.value(F, term.alpha)


def phi(F: Tensor, Y: Tensor, term: FairnessTerm) -> float:
    return float((F - Y).square().sum() / 2 + value_of(term, F))


@pytest.mark.parametrize("seed", range(5))
def test_every_plain_step_lowers_the_objective_and_the_bound_holds(seed: int) -> None:
    Y, size, term = problem(seed)
    values = [phi(Y, Y, term)]
    for steps in range(1, 8):
        moved, bound, _ = descend(Y, size, 1.0, term, steps, momentum=False)
        values.append(phi(moved, Y, term))
        assert float(value_of(term, moved)) <= float(bound) + 1e-9
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("seed", range(5))
def test_four_steps_with_momentum_go_farther_than_eight_plain_ones(seed: int) -> None:
    Y, size, term = problem(seed)
    moved, value, is_exact = descend(Y, size, 1.0, term, 4, momentum=True)
    assert is_exact
    torch.testing.assert_close(value, value_of(term, moved), rtol=1e-5, atol=1e-9)
    assert phi(moved, Y, term) < phi(descend(Y, size, 1.0, term, 8, momentum=False)[0], Y, term)


def test_where_momentum_overshoots_one_plain_step_is_taken() -> None:
    Y, size, term = problem(0)
    # Steps a hundred times as long as the bound allows throw the nodes apart.
    moved, bound, is_exact = descend(Y, 100 * size, 1.0, term, 4, momentum=True)
    assert not is_exact
    plain, _, _ = descend(Y, 100 * size, 1.0, term, 1, momentum=False)
    torch.testing.assert_close(moved, plain)
    assert bound.isfinite()


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_momentum_has_gradients(steps: int) -> None:
    Y, size, term = problem(1, nodes=12)
    Y = Y.requires_grad_()
    torch.autograd.gradcheck(lambda x: descend(x, size, 1.0, term, steps, momentum=True)[0], (Y,), atol=1e-4)
