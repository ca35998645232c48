import json
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import UndefinedMetricWarning

from fairpass.errors import DataError
from fairpass.metrics import (
    Evaluation,
    Pair,
    accuracy,
    auc,
    balanced_accuracy,
    best_threshold,
    delta_dp,
    delta_eo,
    equalized_odds_difference,
    evaluate,
    f1,
    rates,
)

Make = Callable[..., SimpleNamespace]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("groups", [2, 4])
def test_record_holds_what_the_functions_say(make_problem: Make, classes: int, groups: int) -> None:
    p = make_problem(7, n=120, classes=classes, groups=groups, unknown=True)
    e = evaluate(p.y, p.scores, sens=p.sens)
    assert e.auc == auc(p.y, p.scores)
    assert e.f1 == f1(p.y, p.pred)
    assert e.acc == accuracy(p.y, p.pred)
    assert e.balanced_acc == balanced_accuracy(p.y, p.pred)
    assert e.delta_dp == delta_dp(p.y, p.pred, sens=p.sens)
    assert e.delta_eo == delta_eo(p.y, p.pred, sens=p.sens)
    assert e.equalized_odds == equalized_odds_difference(p.y, p.pred, sens=p.sens)
    assert e.groups == rates(p.y, p.pred, sens=p.sens)
    assert e.n == 120  # of unknown group or not
    assert set(e.worst_pair) == {"delta_dp", "delta_eo", "equalized_odds"}
    assert e.selection == pytest.approx(e.auc + e.f1 + e.acc - e.delta_dp - e.delta_eo)
    assert e.percent() == {
        "AUC": 100 * e.auc,
        "F1": 100 * e.f1,
        "ACC": 100 * e.acc,
        "DP": 100 * e.delta_dp,
        "EO": 100 * e.delta_eo,
    }
    if classes == 2:
        assert (e.threshold, e.positive_rate) == (0.5, p.pred.mean())
    else:
        assert e.threshold is e.positive_rate is None


def test_tensors_arrays_and_two_columns_are_one_thing(make_problem: Make) -> None:
    p = make_problem(2)
    y, scores, sens = torch.tensor(p.y), torch.tensor(p.scores, requires_grad=True), torch.tensor(p.sens)
    expected = evaluate(p.y, p.scores, sens=p.sens)
    assert evaluate(y, scores, sens=sens) == expected
    both = np.stack((1 - p.scores, p.scores), axis=1)
    assert evaluate(p.y, both, sens=p.sens) == expected
    assert (y.numpy() == p.y).all()
    assert (sens.numpy() == p.sens).all()
    assert (scores.detach().numpy() == p.scores).all()


def test_read_only_and_reversed_arrays(make_problem: Make) -> None:
    p = make_problem(2)
    expected = evaluate(p.y, p.scores, sens=p.sens, bootstrap=5)
    for array in (p.y, p.scores, p.sens):
        array.flags.writeable = False
    assert evaluate(p.y, p.scores, sens=p.sens, bootstrap=5) == expected
    backwards = evaluate(p.y[::-1], p.scores[::-1], sens=p.sens[::-1], bootstrap=5)
    assert backwards.auc == expected.auc
    for objective in ("accuracy", "selection"):
        assert best_threshold(p.y[::-1], p.scores[::-1], sens=p.sens[::-1], objective=objective) == best_threshold(
            p.y, p.scores, sens=p.sens, objective=objective
        )


def test_threshold_is_exclusive_and_kept(make_problem: Make) -> None:
    p = make_problem(3)
    cut = float(np.sort(p.scores)[20])
    e = evaluate(p.y, p.scores, sens=p.sens, threshold=cut)
    assert e.threshold == cut
    assert e.positive_rate == (p.scores > cut).mean()
    with pytest.raises(DataError, match=r"'threshold' must be a finite number \(got nan\)"):
        evaluate(p.y, p.scores, sens=p.sens, threshold=math.nan)


# Test nodes of the published splits: their size and their positives, and what the literature prints.
@pytest.mark.parametrize(("n", "positives", "acc", "f_one"), [(250, 175, 70.00, 82.35), (7500, 5841, 77.88, 87.56)])
def test_constant_classifier_looks_good_and_is_flagged(n: int, positives: int, acc: float, f_one: float) -> None:
    y = (np.arange(n) < positives).astype(int)
    sens = np.arange(n) % 2
    e = evaluate(y, np.full(n, 0.9), sens=sens)
    assert e.percent() == pytest.approx({"AUC": 50, "F1": f_one, "ACC": acc, "DP": 0, "EO": 0}, abs=5e-3)
    assert e.balanced_acc == 0.5
    assert e.near_constant
    assert "near constant" in repr(e)
    assert "near constant" in str(e)


def _with_negatives(n: int, negatives: int) -> np.ndarray:
    return np.where(np.arange(n) < negatives, 0.1, 0.9)


@pytest.mark.parametrize(
    ("label_zero", "predicted_zero", "flagged"),
    [
        (300, 0, True),
        (300, 25, True),  # exactly 97.5 % in one class
        (300, 26, False),
        (300, 300, False),
        (20, 20, False),  # 98 % in one class because they are: every label is right
        (20, 0, True),
    ],
)
def test_near_constant_rule(label_zero: int, predicted_zero: int, flagged: bool) -> None:
    y = np.where(np.arange(1000) < label_zero, 0, 1)
    sens = np.arange(1000) % 2
    assert evaluate(y, _with_negatives(1000, predicted_zero), sens=sens).near_constant is flagged


def test_near_constant_multiclass() -> None:
    y, sens = np.arange(90) % 3, np.arange(90) // 3 % 2
    always_two = np.tile([0.1, 0.2, 0.7], (90, 1))
    assert evaluate(y, always_two, sens=sens).near_constant
    assert not evaluate(y, np.eye(3)[y], sens=sens).near_constant


def test_perfect_and_unfair() -> None:
    y = np.array([0, 1, 0, 1])
    e = evaluate(y, np.array([0.0, 0.0, 1.0, 1.0]), sens=np.array([0, 0, 1, 1]), group_names=["old", "young"])
    assert (e.delta_dp, e.delta_eo, e.equalized_odds) == (1, 1, 1)
    assert e.worst_pair["delta_dp"] == Pair(high="young", low="old", label="1")
    assert "group 'young' above 'old'" in str(e)


@pytest.mark.parametrize("classes", [2, 3])
def test_round_trip_through_json(make_problem: Make, classes: int) -> None:
    p = make_problem(5, classes=classes)
    e = evaluate(p.y, p.scores, sens=p.sens, bootstrap=20)
    again = Evaluation.from_dict(json.loads(json.dumps(e.to_dict(), allow_nan=False)))
    assert again == e
    assert hash(again) == hash(e)
    assert pickle.loads(pickle.dumps(e)) == e
    with pytest.raises(DataError, match="'values' must hold exactly"):
        Evaluation.from_dict({"auc": 1.0})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"positives": 10**6}, "no more positives than that"),
        ({"count": 10**6}, "must have the same count"),
        ({"label": "1"}, "one row for each group and label"),
    ],
)
def test_stored_rows_agree(make_problem: Make, changed: dict[str, object], reason: str) -> None:
    p = make_problem(5, classes=3)
    stored = evaluate(p.y, p.scores, sens=p.sens).to_dict()
    stored["groups"] = [{**stored["groups"][0], **changed}, *stored["groups"][1:]]
    with pytest.raises(DataError, match=reason):
        Evaluation.from_dict(stored)


def test_frozen_and_readable(make_problem: Make) -> None:
    p = make_problem(4)
    e = evaluate(p.y, p.scores, sens=p.sens, bootstrap=20)
    with pytest.raises(FrozenInstanceError):
        e.auc = 1.0  # type: ignore[attr-defined]  # wrong on purpose
    assert repr(e).startswith(f"Evaluation(AUC={100 * e.auc:.2f}, F1=")
    assert "\n" not in repr(e)
    assert f"auc 95 % interval: {100 * e.intervals['auc'].low:.2f}" in str(e)


class TestUndefined:
    def test_error_names_group(self, make_problem: Make) -> None:
        p = make_problem(0)
        with pytest.raises(DataError, match="group 'other' has no nodes"):
            evaluate(p.y, p.scores, sens=p.sens, group_names=["f", "m", "other"])

    def test_error_names_label(self, make_problem: Make) -> None:
        p = make_problem(0)
        with pytest.raises(DataError, match="no node has label 'paid'"):
            evaluate(0 * p.y, p.scores, sens=p.sens, label_names=["late", "paid"])

    def test_nan_keeps_what_exists(self, make_problem: Make) -> None:
        p = make_problem(0)
        with pytest.warns(UndefinedMetricWarning, match="part of the evaluation is undefined: group '2' has no nodes"):
            e = evaluate(p.y, p.scores, sens=p.sens, group_names=["0", "1", "2"], undefined="nan", bootstrap=10)
        assert math.isnan(e.delta_dp)
        assert math.isnan(e.selection)
        assert e.auc == auc(p.y, p.scores)
        assert e.worst_pair == {}
        assert math.isnan(e.intervals["delta_dp"].low)
        assert not math.isnan(e.intervals["auc"].low)
        again = Evaluation.from_dict(json.loads(json.dumps(e.to_dict(), allow_nan=False)))
        assert math.isnan(again.delta_dp)
        assert math.isnan(again.groups[2].accuracy)
        assert again.to_dict() == e.to_dict()

    def test_constant_on_one_label_is_flagged(self) -> None:
        with pytest.warns(UndefinedMetricWarning, match="undefined: no node has label '0'"):
            e = evaluate([1, 1, 1, 1], np.full(4, 0.9), sens=[0, 1, 0, 1], undefined="nan")
        assert math.isnan(e.balanced_acc)
        assert e.near_constant

    def test_all_groups_unknown(self, make_problem: Make) -> None:
        p = make_problem(0)
        with pytest.warns(UndefinedMetricWarning, match="two groups or more"):
            e = evaluate(p.y, p.scores, sens=np.full_like(p.sens, -1), undefined="nan", bootstrap=10)
        assert e.groups == ()
        assert e.acc == accuracy(p.y, p.pred)
        assert math.isnan(e.intervals["delta_eo"].high)


def test_unlabelled_nodes_are_refused(make_problem: Make) -> None:
    p = make_problem(0)
    p.y[3] = -1
    with pytest.raises(DataError, match="'y' must not hold unlabelled nodes"):
        evaluate(p.y, p.scores, sens=p.sens)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("bootstrap", -1, r"must be at least 0 \(got -1\)"),
        ("bootstrap", 1.5, r"must be a whole number \(got 1.5\)"),
        ("bootstrap", "5", r"must be a whole number \(got '5'\)"),
        ("bootstrap", True, r"must be a whole number \(got True\)"),
        ("seed", -1, r"must be at least 0 \(got -1\)"),
        ("seed", 2**70, rf"must be at most 4,294,967,295 \(got {2**70}\)"),
        ("seed", None, r"must be a whole number \(got None\)"),
        ("threshold", "50%", r"must be a finite number \(got '50%'\)"),
        ("threshold", None, r"must be a finite number \(got None\)"),
        ("threshold", [0.5, 0.5], r"must be a finite number \(got \[0.5, 0.5\]\)"),
        ("sens", np.arange(60) % 2 * 10**9, rf"must be below 1,000 \(got {10**9}\)"),
        ("y", np.arange(60) % 2 * 2**62, rf"must be below 1,000 \(got {2**62}\)"),
        (
            "y",
            (np.arange(60) % 2).astype(np.uint64) * np.uint64(2**63 + 1),
            rf"must be below 1,000 \(got {2**63 + 1}\)",
        ),
        ("y", [[1], [2, 3]], r"must be a dense array \(got list: "),
        ("y", torch.arange(60).to_sparse(), r"must be a dense array \(got Tensor: .*to_dense"),
        ("scores", torch.rand(60).to_sparse(), r"must be a dense array \(got Tensor: .*to_dense"),
        ("scores", torch.rand(60, device="meta"), r"must be a dense array \(got Tensor: .*no data"),
        ("scores", None, r"or 'pred' must be given \(got None\)"),
    ],
)
def test_wrong_arguments_are_named(make_problem: Make, argument: str, value: object, message: str) -> None:
    p = make_problem(0)
    arguments: Any = {"y": p.y, "scores": p.scores, "sens": p.sens, argument: value}
    with pytest.raises(DataError, match=f"^'{argument}' {message}"):
        evaluate(arguments.pop("y"), arguments.pop("scores"), **arguments)


@pytest.mark.parametrize("kind", [np.longdouble, ">f8", ">f4"])
def test_scores_of_every_width_and_byte_order(make_problem: Make, kind: Any) -> None:
    p = make_problem(0)
    wanted = evaluate(p.y, p.scores.astype(np.float32), sens=p.sens)
    assert evaluate(p.y, p.scores.astype(np.float32).astype(kind), sens=p.sens) == wanted


def test_a_long_list_of_reasons_is_cut(make_problem: Make) -> None:
    p = make_problem(0)
    with pytest.raises(DataError, match=r"group '10' has no nodes; and 889 more \(pass") as caught:
        evaluate(p.y, p.scores, sens=p.sens * 900)
    assert "'11'" not in str(caught.value)


@pytest.mark.parametrize("classes", [2, 3])
def test_decisions_may_be_given(make_problem: Make, classes: int) -> None:
    p = make_problem(5, n=120, classes=classes, groups=3)
    decisions = np.random.default_rng(1).integers(classes, size=120)
    e = evaluate(p.y, p.scores, sens=p.sens, decisions=torch.tensor(decisions), bootstrap=30)
    assert e.auc == auc(p.y, p.scores)
    assert e.acc == accuracy(p.y, decisions)
    assert e.delta_dp == delta_dp(p.y, decisions, sens=p.sens)
    assert e.groups == rates(p.y, decisions, sens=p.sens)
    assert e.threshold is None
    assert e.intervals["acc"].low <= e.acc <= e.intervals["acc"].high
    assert Evaluation.from_dict(json.loads(json.dumps(e.to_dict()))) == e
    same = evaluate(p.y, p.scores, sens=p.sens, decisions=p.pred, bootstrap=30)
    assert same.percent() == evaluate(p.y, p.scores, sens=p.sens).percent()
    assert same.intervals == evaluate(p.y, p.scores, sens=p.sens, bootstrap=30).intervals


def test_wrong_decisions(make_problem: Make) -> None:
    p = make_problem(5)
    for decisions, message in (
        (p.pred[:-1], r"'decisions' must have shape \[60\], one for each node \(got \[59\]\)"),
        (p.pred + 1, r"'decisions' must be below 2, the number of classes \(got 2\)"),
        (p.pred - 1, r"'decisions' must not hold unlabelled nodes"),
        (p.scores, r"'decisions' must hold integers"),
    ):
        with pytest.raises(DataError, match=message):
            evaluate(p.y, p.scores, sens=p.sens, decisions=decisions)


@pytest.mark.parametrize("wrong", [1.9, -0.2])
@pytest.mark.parametrize("columns", [1, 3])
def test_scores_that_are_no_probabilities_are_refused(wrong: float, columns: int) -> None:
    y, sens, scores = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1]), torch.full((4, columns), 0.3)
    scores[2, 0] = wrong
    with pytest.raises(DataError, match=r"'scores' must be probabilities, between 0 and 1 \(got 1 others, from"):
        evaluate(y, scores, sens=sens, undefined="nan")
