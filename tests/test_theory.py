import copy
from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from itertools import product
from math import exp, inf, sqrt

import pytest
import torch
from benchmarks.theorems import random_trials, run
from torch import Tensor

from fairpass import load
from fairpass.kernels import Groups, intergroup_similarity
from fairpass.theory import LIPSCHITZ, Bound, RepresentationBound, theorem_4_1, theorem_4_2, unit_layers

Problem = tuple[Tensor, Tensor, Tensor]


def both_ways(*edges: tuple[int, int]) -> Tensor:
    return torch.tensor([*edges, *((j, i) for i, j in edges)]).T


@pytest.fixture
def problem() -> Problem:
    """Return features, edges (every node has a neighbour) and groups of two and three nodes."""
    x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x, both_ways((0, 1), (1, 2), (2, 3), (3, 4), (1, 4)), torch.tensor([0, 1, 1, 0, 1])


def literal_layers(x: Tensor, edge_index: Tensor, sens: Tensor, alpha: float) -> Sequence[Tensor]:
    """Return `F^(k) = X + D^-1 A F^(k-1) + P F^(k-1)` with every matrix built entry by entry."""
    n, s = len(x), sens.tolist()
    A = torch.zeros(n, n, dtype=torch.float64)
    for source, target in edge_index.T.tolist():
        A[target, source] = 1
    layers = [x]
    for _ in range(2):
        F, P = layers[-1], torch.zeros(n, n, dtype=torch.float64)
        for i, j in product(range(n), repeat=2):
            if i != j:
                k = torch.exp(-alpha * (F[i] - F[j]).square().sum())
                P[i, j] = (k if s[i] != s[j] else -k) / (s.count(s[i]) * s.count(s[j]))
        P -= torch.diag(P.sum(1))
        layers.append(x + A / A.sum(1, keepdim=True) @ F + P @ F)
    return layers


def test_layers_are_those_of_the_proofs(problem: Problem) -> None:
    for ours, expected in zip(unit_layers(*problem, 0.7), literal_layers(*problem, 0.7), strict=True):
        torch.testing.assert_close(ours, expected)


def test_terms_of_theorem_4_1(problem: Problem) -> None:
    x, edge_index, sens = problem
    W = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    result = theorem_4_1(x, edge_index, sens, W, 0.7)
    F = literal_layers(*problem, 0.7)[2]
    means = [F[sens == a].mean(0) for a in (0, 1)]
    probability = torch.sigmoid((F @ W.double()).diff(dim=1)[:, 0])
    s = 1 / 2 + 1 / 3
    assert result.terms["C1"] == pytest.approx((2 + 4 * s) ** 2 + 6 + 8 * s)
    assert result.terms["L"] == LIPSCHITZ == pytest.approx(1 / sqrt(2))
    assert result.terms["W"] == pytest.approx(float(torch.linalg.svdvals(W)[0]))
    assert result.terms["Delta"] == pytest.approx(float((x - x.mean(0)).abs().max(0).values.norm()))
    assert result.terms["Delta_rep"] == pytest.approx(float((means[0] - means[1]).norm()))
    gap = float(probability[sens == 0].mean() - probability[sens == 1].mean())
    assert result.measured == pytest.approx(abs(gap))
    t = result.terms
    expected = t["L"] / 2 * t["W"] * (t["Delta_rep"] + t["C1"] * t["Delta"])
    assert result.bound == pytest.approx(expected)
    twice = theorem_4_1(x, edge_index, sens, W, 0.7, lipschitz=2 * LIPSCHITZ)
    assert twice.bound == pytest.approx(2 * result.bound)


def test_terms_of_theorem_4_2(problem: Problem) -> None:
    x, _, sens = problem
    result = theorem_4_2(*problem, 0.7)
    _, before, F = literal_layers(*problem, 0.7)
    gap = float((x[sens == 0].mean(0) - x[sens == 1].mean(0)).norm())
    deviation = float((x - x.mean(0)).abs().max(0).values.norm())
    s = 1 / 2 + 1 / 3
    similarity = float(torch.exp(-0.7 * torch.cdist(before[sens == 0], before[sens == 1]).square()).mean())
    assert result.terms["similarity"] == pytest.approx(similarity)
    assert result.terms["C2"] == pytest.approx(gap + 8 * (1 + s) ** 2 * deviation + 2 * deviation)
    assert result.terms["C3"] == pytest.approx((3 - s) * gap + (4 + 2 * s) * deviation)
    assert result.bound == pytest.approx((3 - s * similarity) * result.terms["C3"] + result.terms["C2"])
    assert result.measured == pytest.approx(float((F[sens == 0].mean(0) - F[sens == 1].mean(0)).norm()))


def test_representation_bound_falls_as_groups_get_alike(problem: Problem) -> None:
    x, _, sens = problem
    bound = RepresentationBound(x, sens)
    assert float(bound(0.0)) > float(bound(0.5)) > float(bound(1.0))
    assert float(bound(0.0)) == pytest.approx(float(3 * bound.C3 + bound.C2))
    torch.testing.assert_close(bound(0.3), RepresentationBound(x, Groups.of(sens))(0.3))
    batch = RepresentationBound(torch.stack([x, 2 * x]), sens)(torch.tensor([0.3, 0.8]))
    torch.testing.assert_close(batch, torch.stack([bound(0.3), 2 * bound(0.8)]).double())


def test_unknown_nodes_belong_to_no_group(problem: Problem) -> None:
    x, edge_index, sens = problem
    some = torch.where(torch.arange(5) == 4, -1, sens)
    result, bound = theorem_4_2(x, edge_index, some, 0.7), RepresentationBound(x, some)
    assert result.holds
    assert result.bound == pytest.approx(float(bound(result.terms["similarity"])))
    assert bound.inverse_sizes == pytest.approx(1 / 2 + 1 / 2)
    _, before, _ = unit_layers(x, edge_index, some, 0.7)
    assert result.terms["similarity"] == pytest.approx(float(intergroup_similarity(before, some, 0.7)))


def test_names_of_the_groups_do_not_matter(problem: Problem) -> None:
    x, edge_index, sens = problem
    W = torch.eye(2)
    for one, other in [
        (theorem_4_1(x, edge_index, sens, W, 0.7), theorem_4_1(x, edge_index, 1 - sens, W, 0.7)),
        (theorem_4_2(x, edge_index, sens, 0.7), theorem_4_2(x, edge_index, 1 - sens, 0.7)),
    ]:
        assert (one.measured, one.bound) == pytest.approx((other.measured, other.bound))


def test_softmax_constant_is_the_smallest() -> None:
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 10_000, 2, generator=random, dtype=torch.float64)
    slope = (x.softmax(1) - y.softmax(1)).abs().sum(1) / (x - y).norm(dim=1)
    assert float(slope.max()) <= LIPSCHITZ
    tiny = torch.tensor([1e-4, -1e-4], dtype=torch.float64)
    steepest = (tiny.softmax(0) - (-tiny).softmax(0)).abs().sum() / (2 * tiny).norm()
    assert float(steepest) == pytest.approx(LIPSCHITZ, rel=1e-6)


def test_search_finds_no_violation_where_every_node_has_a_neighbour() -> None:
    trials = list(random_trials(150, seed=0))
    assert [trial.theorem for trial in trials[:2]] == ["4.1", "4.2"]
    assert len(trials) == 300
    sizes = [torch.bincount(trial.sens).tolist() for trial in trials]
    assert min(min(pair) for pair in sizes) == 1
    for trial in trials:
        assert torch.bincount(trial.edge_index[1], minlength=len(trial.x)).min() > 0
        assert trial.bound.holds
        if trial.theorem == "4.2":
            # The similarity plays no part: what the page proves is below `C2` alone.
            assert trial.bound.measured <= trial.bound.terms["C2"] + trial.bound.rounding
    assert all(trial.bound.holds for trial in random_trials(10, seed=1))


def test_search_can_be_repeated() -> None:
    first, second, other = (next(random_trials(1, seed)) for seed in (0, 0, 1))
    assert torch.equal(first.x, second.x)
    assert first.bound == second.bound
    assert not torch.equal(first.x, other.x)


def test_search_finds_violations_where_a_node_has_none() -> None:
    found = [trial for trial in random_trials(150, seed=0, isolated=True) if not trial.bound.holds]
    assert found
    for trial in found:
        assert torch.bincount(trial.edge_index[1], minlength=len(trial.x)).min() == 0
        again = theorem_4_2(trial.x, trial.edge_index, trial.sens, trial.alpha)
        assert trial.theorem == "4.2"
        assert again == trial.bound
        assert not again.holds


def test_search_is_tabulated() -> None:
    table = {row.pop(""): [*row.values()] for row in run(quick=True).tables[0].rows}
    assert table["violations of Theorem 4.1"] == [0, 0]
    assert table["violations of Theorem 4.2"][0] == 0
    assert table["violations of Theorem 4.2"][1] != 0
    assert set(table) >= {"largest measured / bound, Theorem 4.1", "largest measured / C2, Theorem 4.2"}


def test_counter_example_to_theorem_4_2() -> None:
    x, sens = torch.ones(3, 1), torch.tensor([0, 1, 1])
    result = theorem_4_2(x, both_ways((1, 2)), sens, alpha=1.0)
    assert result.bound == 0
    assert result.measured == pytest.approx(2 - 1.5 * exp(-1))
    assert not result.holds
    assert result.ratio == inf


def test_counter_example_to_theorem_4_1() -> None:
    x, sens = torch.ones(3, 1), torch.tensor([0, 1, 1])
    result = theorem_4_1(x, both_ways((0, 1)), sens, torch.tensor([[-0.3, 0.3]]), alpha=0.01)
    assert not result.holds
    assert result.terms["Delta"] == 0
    assert result.ratio == pytest.approx(1.06, abs=0.005)


def test_equal_means_are_not_demographic_parity() -> None:
    x, sens = torch.tensor([[1.0], [1.0], [0.0], [2.0]]), torch.tensor([0, 0, 1, 1])
    result = theorem_4_1(x, both_ways((0, 1), (2, 3)), sens, torch.tensor([[0.0, 1.0]]), alpha=1.0)
    assert result.terms["Delta_rep"] == pytest.approx(0, abs=1e-12)
    assert result.measured > 0.02
    assert result.holds


def test_holds_on_german() -> None:
    data = load("german")
    W = torch.randn(data.num_features, 2, generator=torch.Generator().manual_seed(0))
    assert theorem_4_1(data.x, data.edge_index, data.sens, W, 0.3).holds
    assert theorem_4_2(data.x, data.edge_index, data.sens, 0.3).holds


def test_a_bound_knows_rounding() -> None:
    assert Bound(1.0, 2.0, {}).ratio == 0.5
    assert not Bound(2.0, 1.0, {}).holds
    assert Bound(1e-16, 0.0, {}, rounding=1e-12).holds
    assert Bound(1e-16, 0.0, {}, rounding=1e-12).ratio == 0
    # Features all alike, far from 0: both sides vanish.
    everywhere = torch.full((4, 2), 1e6 / 3)
    assert theorem_4_2(everywhere, both_ways((0, 1), (2, 3)), torch.tensor([0, 1, 0, 1]), 1.0).holds


def test_inputs_are_left_alone_and_results_frozen(problem: Problem) -> None:
    before = copy.deepcopy(problem)
    result = theorem_4_1(*problem, torch.eye(2), 0.7)
    theorem_4_2(*problem, 0.7)
    assert all(torch.equal(a, b) for a, b in zip(problem, before, strict=True))
    with pytest.raises(FrozenInstanceError):
        result.bound = 0.0  # type: ignore[misc] # the mistake under test


def test_errors(problem: Problem) -> None:
    x, edge_index, sens = problem
    with pytest.raises(ValueError, match=r"'alpha' must be positive \(got 0.0\)"):
        theorem_4_2(x, edge_index, sens, 0.0)
    with pytest.raises(ValueError, match=r"'weight_matrix' must have shape \(2, 2\) \(got \(3, 2\)\)"):
        theorem_4_1(x, edge_index, sens, torch.ones(3, 2), 1.0)
    with pytest.raises(ValueError, match=r"'lipschitz' must be positive \(got -1\)"):
        theorem_4_1(x, edge_index, sens, torch.eye(2), 1.0, lipschitz=-1)
    with pytest.raises(ValueError, match=r"'sens' must name exactly two groups \(got 3\)"):
        theorem_4_2(x, edge_index, torch.tensor([0, 1, 2, 0, 1]), 1.0)
    with pytest.raises(ValueError, match=r"'sens' must have 5 entries \(got 4\)"):
        RepresentationBound(x, sens[:4])
    with pytest.raises(ValueError, match=r"features must have shape \(N, d\) \(got \(5,\)\)"):
        RepresentationBound(x[:, 0], sens)
    with pytest.raises(ValueError, match=r"'edge_index' must name nodes from 0 to 4"):
        theorem_4_2(x, edge_index + 1, sens, 1.0)
