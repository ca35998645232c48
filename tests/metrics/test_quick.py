import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples

from fairpass.errors import DataError
from fairpass.metrics import Quick, evaluate, five, selection

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
    quick = Quick(torch.tensor(p.y), torch.tensor(p.sens), num_classes=classes, threshold=threshold)
    numbers = quick(torch.tensor(scores))
    assert numbers.tolist() == pytest.approx(_expected(p, scores, threshold), abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_decisions_may_be_given(make_problem: Make, classes: int) -> None:
    p = make_problem(4, n=90, classes=classes)
    decisions = np.random.default_rng(0).integers(classes, size=90)
    e = evaluate(p.y, p.scores, sens=p.sens, decisions=decisions)
    quick = Quick(torch.tensor(p.y), torch.tensor(p.sens), num_classes=classes)
    numbers = quick(torch.tensor(p.scores), torch.tensor(decisions))
    assert numbers.tolist() == pytest.approx([e.auc, e.f1, e.acc, e.delta_dp, e.delta_eo], abs=1e-6)
    assert torch.equal(quick(torch.tensor(p.scores), torch.tensor(p.pred)), quick(torch.tensor(p.scores)))


@pytest.mark.parametrize("classes", [2, 3])
def test_population_is_its_members(make_problem: Make, classes: int) -> None:
    p = make_problem(1, classes=classes, groups=3)
    y, sens = torch.tensor(p.y), torch.tensor(p.sens)
    quick = Quick(y, sens, num_classes=classes)
    population = torch.rand(4, 3, *p.scores.shape, generator=torch.Generator().manual_seed(0))
    population = (10 * population).round() / 10
    kept = population.clone()
    numbers = quick(population)
    assert numbers.shape == (4, 3, 5)
    for i, j in np.ndindex(4, 3):
        assert torch.equal(numbers[i, j], quick(population[i, j]))
    assert torch.equal(population, kept)
    assert (y.numpy() == p.y).all()
    assert (sens.numpy() == p.sens).all()
    # a view that is not contiguous in memory
    swapped = population.transpose(0, 1)
    assert torch.equal(quick(swapped), numbers.transpose(0, 1))


def test_five_and_selection(make_problem: Make) -> None:
    p = make_problem(4)
    y, sens, scores = torch.tensor(p.y), torch.tensor(p.sens), torch.tensor(p.scores)
    numbers = five(scores.expand(2, -1), y, sens, threshold=0.4)
    assert numbers[1].tolist() == pytest.approx(_expected(p, p.scores, 0.4), abs=1e-6)
    e = evaluate(p.y, p.scores, sens=p.sens, threshold=0.4)
    assert selection(numbers).tolist() == pytest.approx([e.selection] * 2, abs=1e-6)


def test_needs_no_grad_and_takes_half_precision(make_problem: Make) -> None:
    p = make_problem(2)
    quick = Quick(torch.tensor(p.y), torch.tensor(p.sens))
    scores = torch.tensor(p.scores, requires_grad=True)
    assert not quick(scores).requires_grad
    half = scores.detach().bfloat16()
    assert quick(half).tolist() == pytest.approx(_expected(p, half.float().numpy()), abs=1e-6)


def test_nan_stays_with_its_member(make_problem: Make) -> None:
    p = make_problem(2)
    quick = Quick(torch.tensor(p.y), torch.tensor(p.sens))
    scores = torch.tensor(p.scores).repeat(3, 1)
    scores[1, 5] = torch.nan
    numbers = quick(scores)
    assert numbers[1].isnan().all()
    assert torch.equal(numbers[0], quick(scores[0]))
    assert torch.equal(numbers[2], numbers[0])


def test_saturated_scores_all_tie() -> None:
    y, sens = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    assert five(torch.ones(4), y, sens).tolist() == pytest.approx([0.5, 2 / 3, 0.5, 0, 0])


def test_takes_about_a_millisecond() -> None:
    generator = torch.Generator().manual_seed(0)
    y, sens = torch.randint(2, (2, 5000), generator=generator)
    quick, scores = Quick(y, sens), torch.rand(5000, generator=generator)
    quick(scores)
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        quick(scores)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 5e-3  # measured 0.6 ms; the libraries take sixty


@pytest.mark.parametrize(
    ("y", "sens", "classes", "message"),
    [
        ([0, 1], [0], 2, r"'y' and 'sens' must have one shape \[N\] \(got \[2\], \[1\]\)"),
        ([0, -1], [0, 1], 2, r"'y' must lie in 0..1, unlabelled nodes left out \(got -1..0\)"),
        ([0, 2], [0, 1], 2, r"'y' must lie in 0..1.*\(got 0..2\)"),
        ([0, 1], [0, 0], 2, r"'sens' must hold two groups or more \(got 1\)"),
        ([0, 1], [-1, -1], 2, r"'sens' must hold two groups or more \(got 0\)"),
        ([1, 1], [0, 1], 2, r"'y' must hold label 1 and another one \(got 2 and 0 nodes\)"),
        ([0, 1, 0, 1], [0, 0, 1, 0], 2, r"every group in 'sens' must have a node of label 1.*\[1\]"),
        ([0, 1, 0, 1], [0, 0, 1, 1], 3, r"'y' must hold label 2 and another one \(got 0 and 4 nodes\)"),
    ],
)
def test_wrong_nodes(y: list[int], sens: list[int], classes: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Quick(torch.tensor(y), torch.tensor(sens), num_classes=classes)


def test_wrong_scores() -> None:
    quick = Quick(torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1]))
    with pytest.raises(DataError, match=r"'scores' must have shape \[..., 4\] \(got \[3\]\)"):
        quick(torch.rand(3))
    with pytest.raises(DataError, match="'scores' must hold floating-point numbers"):
        quick(torch.tensor([0, 1, 0, 1]))
