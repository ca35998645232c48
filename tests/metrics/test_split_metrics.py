from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples
from tests.effort import calls

from fairpass.errors import DataError
from fairpass.metrics import SplitMetrics, evaluate, selection

Make = Callable[..., SimpleNamespace]


def _expected(p: SimpleNamespace, scores: np.ndarray, threshold: float = 0.5) -> list[float]:
    e = evaluate(p.y, scores, sens=p.sens, threshold=threshold)
    return [e.auc, e.f1, e.acc, e.delta_dp, e.delta_eo]


@examples(25)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 4), st.booleans(), st.sampled_from([0.5, 0.3]))
def test_equals_evaluate(
    make_problem: Make, seed: int, classes: int, groups: int, unknown: bool, threshold: float
) -> None:
    p = make_problem(seed, classes=classes, groups=groups, unknown=unknown)
    scores = p.scores.astype(np.float32 if seed % 3 else np.float64)
    measure = SplitMetrics(torch.tensor(p.y), torch.tensor(p.sens), num_classes=classes, threshold=threshold)
    numbers = measure(torch.tensor(scores))
    assert numbers.tolist() == pytest.approx(_expected(p, scores, threshold), abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_decisions_may_be_given(make_problem: Make, classes: int) -> None:
    p = make_problem(4, n=90, classes=classes)
    decisions = np.random.default_rng(0).integers(classes, size=90)
    e = evaluate(p.y, p.scores, sens=p.sens, decisions=decisions)
    measure = SplitMetrics(torch.tensor(p.y), torch.tensor(p.sens), num_classes=classes)
    numbers = measure(torch.tensor(p.scores), torch.tensor(decisions))
    assert numbers.tolist() == pytest.approx([e.auc, e.f1, e.acc, e.delta_dp, e.delta_eo], abs=1e-6)
    assert torch.equal(measure(torch.tensor(p.scores), torch.tensor(p.pred)), measure(torch.tensor(p.scores)))


@pytest.mark.parametrize("classes", [2, 3])
def test_population_is_its_members(make_problem: Make, classes: int) -> None:
    p = make_problem(1, classes=classes, groups=3)
    y, sens = torch.tensor(p.y), torch.tensor(p.sens)
    measure = SplitMetrics(y, sens, num_classes=classes)
    population = torch.rand(4, 3, *p.scores.shape, generator=torch.Generator().manual_seed(0))
    population = (10 * population).round() / 10
    kept = population.clone()
    numbers = measure(population)
    assert numbers.shape == (4, 3, 5)
    for i, j in np.ndindex(4, 3):
        assert torch.equal(numbers[i, j], measure(population[i, j]))
    assert torch.equal(population, kept)
    assert (y.numpy() == p.y).all()
    assert (sens.numpy() == p.sens).all()
    # a view that is not contiguous in memory
    swapped = population.transpose(0, 1)
    assert torch.equal(measure(swapped), numbers.transpose(0, 1))


def test_selection(make_problem: Make) -> None:
    p = make_problem(4)
    y, sens, scores = torch.tensor(p.y), torch.tensor(p.sens), torch.tensor(p.scores)
    numbers = SplitMetrics(y, sens, threshold=0.4)(scores.expand(2, -1))
    assert numbers[1].tolist() == pytest.approx(_expected(p, p.scores, 0.4), abs=1e-6)
    e = evaluate(p.y, p.scores, sens=p.sens, threshold=0.4)
    assert selection(numbers).tolist() == pytest.approx([e.selection] * 2, abs=1e-6)


def test_needs_no_grad_and_takes_half_precision(make_problem: Make) -> None:
    p = make_problem(2)
    measure = SplitMetrics(torch.tensor(p.y), torch.tensor(p.sens))
    scores = torch.tensor(p.scores, requires_grad=True)
    assert not measure(scores).requires_grad
    half = scores.detach().bfloat16()
    assert measure(half).tolist() == pytest.approx(_expected(p, half.float().numpy()), abs=1e-6)


def test_nan_stays_with_its_member(make_problem: Make) -> None:
    p = make_problem(2)
    measure = SplitMetrics(torch.tensor(p.y), torch.tensor(p.sens))
    scores = torch.tensor(p.scores).repeat(3, 1)
    scores[1, 5] = torch.nan
    numbers = measure(scores)
    assert numbers[1].isnan().all()
    assert torch.equal(numbers[0], measure(scores[0]))
    assert torch.equal(numbers[2], numbers[0])


def test_saturated_scores_all_tie() -> None:
    y, sens = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    assert SplitMetrics(y, sens)(torch.ones(4)).tolist() == pytest.approx([0.5, 2 / 3, 0.5, 0, 0])


def test_the_work_does_not_grow_with_the_nodes_but_in_tensors() -> None:
    generator = torch.Generator().manual_seed(0)

    def measure(nodes: int) -> int:
        y, sens = torch.randint(2, (2, nodes), generator=generator)
        scores, found = torch.rand(nodes, generator=generator), SplitMetrics(y, sens)
        found(scores)
        return calls(lambda: found(scores))

    assert measure(5000) == measure(50) < 500  # about a hundred functions, a millisecond: the libraries take sixty


@pytest.mark.parametrize(
    ("y", "sens", "classes", "message"),
    [
        ([0, 1], [0], 2, r"'y' and 'sens' must have one shape \[N\] \(got \[2\], \[1\]\)"),
        ([0, -1], [0, 1], 2, r"'y' must lie in 0..1, without unlabelled nodes \(got -1..0\)"),
        ([0, 2], [0, 1], 2, r"'y' must lie in 0..1.*\(got 0..2\)"),
        ([0, 1], [0, 10**9], 2, r"'sens' must be below 1,000 \(got 1000000000\)"),
        ([0, 1], [0, 1], 10**9, r"'num_classes' must be at most 1,000 \(got 1000000000\)"),
        ([0, 1], [0, 0], 2, r"two groups or more \(got 1 in 'sens'\)"),
        ([0, 1], [-1, -1], 2, r"two groups or more \(got 0 in 'sens'\)"),
        ([1, 1], [0, 1], 2, r"no node has label '0'"),
        ([0, 1, 0, 1], [0, 0, 1, 0], 2, r"group '1' has no node of label '1'"),
        ([0, 1, 0, 1], [0, 0, 1, 1], 3, r"no node has label '2'"),
    ],
)
def test_wrong_nodes(y: list[int], sens: list[int], classes: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        SplitMetrics(torch.tensor(y), torch.tensor(sens), num_classes=classes)


def test_wrong_scores() -> None:
    measure = SplitMetrics(torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1]))
    with pytest.raises(DataError, match=r"'scores' must have shape \[..., 4\] \(got \[3\]\)"):
        measure(torch.rand(3))
    with pytest.raises(DataError, match="'scores' must hold floating-point numbers"):
        measure(torch.tensor([0, 1, 0, 1]))
