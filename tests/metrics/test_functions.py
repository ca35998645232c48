import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.exceptions import UndefinedMetricWarning
from tests.drawing import examples

from fairpass.errors import DataError
from fairpass.metrics import accuracy, auc, balanced_accuracy, f1

Make = Callable[..., SimpleNamespace]
SEEDS = st.integers(0, 10_000)


@examples(30)
@given(SEEDS)
def test_binary_agrees_with_definitions(make_problem: Make, seed: int) -> None:
    p = make_problem(seed)
    positive, negative = p.scores[p.y == 1], p.scores[p.y == 0]
    wins = (positive[:, None] > negative).mean() + (positive[:, None] == negative).mean() / 2
    assert auc(p.y, p.scores) == pytest.approx(wins)
    tp, fp, fn = (int(((p.y == a) & (p.pred == b)).sum()) for a, b in ((1, 1), (0, 1), (1, 0)))
    assert f1(p.y, p.pred) == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert accuracy(p.y, p.pred) == pytest.approx((p.y == p.pred).mean())
    recalls = [(p.pred[p.y == c] == c).mean() for c in (0, 1)]
    assert balanced_accuracy(p.y, p.pred) == pytest.approx(np.mean(recalls))


@examples(15)
@given(SEEDS)
def test_multiclass_is_macro_one_against_the_rest(make_problem: Make, seed: int) -> None:
    p = make_problem(seed, classes=4)
    assert auc(p.y, p.scores) == pytest.approx(sk.roc_auc_score(p.y, p.scores, multi_class="ovr"))
    assert f1(p.y, p.pred) == pytest.approx(np.mean([f1(p.y == c, p.pred == c) for c in range(4)]))
    assert balanced_accuracy(p.y, p.pred) == pytest.approx(sk.recall_score(p.y, p.pred, average="macro"))


def test_scores_may_come_in_any_form(make_problem: Make) -> None:
    p = make_problem(1)
    expected = auc(p.y, p.scores)
    both = np.stack((1 - p.scores, p.scores), axis=1)
    assert auc(p.y, both) == auc(p.y, p.scores[:, None]) == expected
    assert auc(torch.tensor(p.y), torch.tensor(p.scores, requires_grad=True)) == expected
    assert auc(p.y.tolist(), p.scores.tolist()) == expected
    half = torch.tensor(p.scores).bfloat16()
    assert auc(p.y, half) == auc(p.y, half.double())
    assert auc(p.y, 30 * p.scores - 12) == pytest.approx(expected)  # logits rank alike


def test_auc_refuses_hard_predictions(make_problem: Make) -> None:
    p = make_problem(0)
    with pytest.raises(DataError, match="'scores' must hold floating-point numbers, not hard predictions"):
        auc(p.y, p.pred)


@pytest.mark.parametrize("metric", [f1, balanced_accuracy])
def test_missing_label(metric: Callable[..., float]) -> None:
    y, pred = np.zeros(5, dtype=int), np.array([0, 1, 0, 1, 0])
    with pytest.raises(DataError, match="undefined: no node has label 'yes'"):
        metric(y, pred, label_names=["no", "yes"])
    with pytest.warns(UndefinedMetricWarning, match="no node has label '1'"):
        assert math.isnan(metric(y, pred, undefined="nan"))


def test_auc_of_one_label_is_undefined() -> None:
    y, scores = np.ones(4, dtype=int), np.linspace(0, 1, 4)
    with pytest.raises(DataError, match="area under the ROC curve is undefined: no node has label '0'"):
        auc(y, scores)
    with pytest.warns(UndefinedMetricWarning):
        assert math.isnan(auc(y, scores, undefined="nan"))


@pytest.mark.parametrize(
    ("y", "scores", "message"),
    [
        ([0, 1, -1], [0.1, 0.2, 0.3], r"'y' must not hold unlabelled nodes.*got 1 below 0"),
        ([0.0, 1.0], [0.1, 0.2], r"'y' must hold integers \(got float64\)"),
        ([[0, 1]], [0.1, 0.2], r"'y' must have shape \[N\]"),
        (np.zeros(0, dtype=int), np.zeros(0), r"'y' must have shape \[N\] with N > 0 \(got \[0\]\)"),
        ([0, 1], [0.1, 0.2, 0.3], r"'scores' must have shape \[2\] or \[2, C\] \(got \[3\]\)"),
        ([0, 1], [0.1, float("nan")], r"'scores' must be finite \(got 1 NaN or infinite\)"),
        ([0, 1], [[2.0, 1.0], [3.0, 0.0]], r"'scores' of shape \[N, 2\] must be probabilities"),
        ([0, 10**9], [0.1, 0.2], r"'y' must be below 1,000 \(got 1000000000\)"),
        ([0, 2], [0.1, 0.2], r"'y' must be below 2, the number of classes \(got 2\)"),
    ],
)
def test_wrong_inputs(y: object, scores: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        auc(y, scores)  # type: ignore[arg-type]  # wrong on purpose


def test_wrong_arguments() -> None:
    with pytest.raises(DataError, match=r"'pred' must have shape \[2\], one for each node \(got \[3\]\)"):
        accuracy([0, 1], [0, 1, 1])
    with pytest.raises(DataError, match=r"'label_names' must name the 2 classes of 'scores' \(got 3 names\)"):
        auc([0, 1], [0.1, 0.2], label_names=["a", "b", "c"])
    with pytest.raises(DataError, match=r"'label_names' must name every index up to 2 \(got 2 names\)"):
        f1([0, 1, 2], [0, 1, 2], label_names=["a", "b"])
    with pytest.raises(DataError, match=r"'label_names' must be distinct \(got \['a', 'a'\]\)"):
        f1([0, 1], [0, 1], label_names=["a", "a"])
    with pytest.raises(DataError, match="'undefined' must be 'error' or 'nan'"):
        f1([0, 1], [0, 1], undefined="skip")  # type: ignore[arg-type]  # wrong on purpose
