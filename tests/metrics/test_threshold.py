from collections.abc import Callable
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples

from fairpass.errors import DataError
from fairpass.metrics import SplitMetrics, accuracy, balanced_accuracy, best_threshold, f1, selection
from fairpass.metrics.split_metrics import Objective

Make = Callable[..., SimpleNamespace]
OBJECTIVES = get_args(Objective)


def _quality(p: SimpleNamespace, threshold: float, objective: str) -> float:
    if objective == "selection":
        measure = SplitMetrics(torch.tensor(p.y), torch.tensor(p.sens), threshold=threshold)
        return float(selection(measure(torch.tensor(p.scores))))
    metric = {"accuracy": accuracy, "f1": f1, "balanced_accuracy": balanced_accuracy}[objective]
    return metric(p.y, (p.scores > threshold).astype(int))


@pytest.mark.parametrize("objective", OBJECTIVES)
@examples(10)
@given(seed=st.integers(0, 10_000), groups=st.integers(2, 4))
def test_best_of_all_cuts(make_problem: Make, objective: Objective, seed: int, groups: int) -> None:
    p = make_problem(seed, n=25, groups=groups, unknown=True)
    chosen = best_threshold(p.y, p.scores, sens=p.sens, objective=objective)
    best = max(_quality(p, cut, objective) for cut in (-1.0, 0.5, *p.scores))
    assert _quality(p, chosen, objective) == pytest.approx(best, abs=1e-6)
    if _quality(p, 0.5, objective) >= best - 1e-9:
        assert chosen == 0.5


@pytest.mark.parametrize(
    ("scores", "y", "expected"),
    [
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], 0.5),  # 0.5 parts them already
        ([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1], 0.25),  # midway
        ([0.6, 0.7, 0.8, 0.9], [0, 0, 1, 1], 0.75),
        ([0.5, 0.5, 0.8, 0.9], [0, 0, 1, 1], 0.5),  # a score at the threshold is not above it
        ([0.1, 0.2, 0.9, 0.9], [1, 0, 1, 0], 0.5),  # 0.05, 0.5 and "none" are equally good
        ([0.2, 0.2, 0.2, 0.1], [1, 1, 1, 0], 0.15),
    ],
)
def test_known_answers(scores: list[float], y: list[int], expected: float) -> None:
    assert best_threshold(y, np.array(scores)) == pytest.approx(expected)


def test_all_positive_and_none() -> None:
    low = np.array([0.1, 0.2, 0.3, 0.4])
    assert best_threshold([1, 1, 1, 0], low) < 0.1
    assert best_threshold([0, 0, 0, 1], low[::-1]) == 0.5  # none is above 0.5
    assert best_threshold([0, 0, 0, 1], low[::-1] + 0.5) >= 0.9
    assert best_threshold([1, 1, 1, 0], low + 0.5) == 0.5


def test_neighbouring_floats_are_told_apart() -> None:
    lower = np.float32(0.3)
    upper = np.nextafter(lower, np.float32(1))
    scores = torch.tensor([lower, lower, upper, upper])
    threshold = best_threshold([0, 0, 1, 1], scores)
    assert (scores > threshold).tolist() == [False, False, True, True]


def test_groups_change_the_choice_and_inputs_stay() -> None:
    # cutting at 0.7 is most accurate, but selects one group only
    scores = np.array([0.9, 0.9, 0.8, 0.1, 0.6, 0.6, 0.6, 0.1])
    y = np.array([1, 1, 1, 0, 1, 0, 0, 0])
    sens = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    kept = scores.copy(), y.copy(), sens.copy()
    assert best_threshold(y, scores, sens=sens) == pytest.approx(0.7)
    assert best_threshold(y, scores, sens=sens, objective="selection") == 0.5
    assert all((a == b).all() for a, b in zip(kept, (scores, y, sens), strict=True))


def test_wrong_arguments(make_problem: Make) -> None:
    p = make_problem(0)
    with pytest.raises(DataError, match=r"'objective' must be one of .*accuracy.*got 'auc'"):
        best_threshold(p.y, p.scores, objective="auc")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(DataError, match="'sens' must be given for objective 'selection'"):
        best_threshold(p.y, p.scores, objective="selection")
    with pytest.raises(DataError, match="'scores' must be binary, 3 classes have no threshold"):
        best_threshold([0, 1], np.ones((2, 3)))
    with pytest.raises(DataError, match=r"probabilities, between 0 and 1 \(got 2 others, from -1 to 2\)"):
        best_threshold([0, 1, 1], np.array([-1.0, 0.5, 2.0]))
    with pytest.raises(DataError, match="accuracy is undefined: no node has label '1'"):
        best_threshold(0 * p.y, p.scores)
    with pytest.raises(DataError, match="group '1' has no node of label '1'"):
        best_threshold(np.where(p.sens == 1, 0, p.y), p.scores, sens=p.sens, objective="selection")
    with pytest.raises(DataError, match="two groups or more"):
        best_threshold(p.y, p.scores, sens=0 * p.sens, objective="selection")
