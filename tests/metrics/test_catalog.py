"""Every metric of the catalogue: against scikit-learn and fairlearn, and wherever metrics are shown."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fairlearn.metrics as fl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.exceptions import UndefinedMetricWarning
from tests.drawing import examples
from torch import Tensor

from fairpass.metrics import Evaluation, Metric, catalog, evaluate
from fairpass.metrics.counts import Counts

Make = Callable[..., SimpleNamespace]


def _each_class(p: SimpleNamespace) -> list[tuple[Any, Any]]:
    """Return labels and predictions of each class against the rest."""
    classes = [1] if p.scores.ndim == 1 else range(p.scores.shape[1])
    return [((p.y == c).astype(int), (p.pred == c).astype(int)) for c in classes]


def _widest(p: SimpleNamespace, difference: Callable[..., float]) -> float:
    known = p.sens >= 0
    return max(difference(y[known], pred[known], sensitive_features=p.sens[known]) for y, pred in _each_class(p))


def _auc(p: SimpleNamespace) -> float:
    columns = p.scores.reshape(len(p.y), -1).T
    return float(np.mean([sk.roc_auc_score(y, s) for (y, _), s in zip(_each_class(p), columns, strict=True)]))


ORACLES: dict[str, Callable[[SimpleNamespace], float]] = {
    "auc": _auc,
    "f1": lambda p: sk.f1_score(p.y, p.pred, average="binary" if p.scores.ndim == 1 else "macro"),
    "acc": lambda p: sk.accuracy_score(p.y, p.pred),
    "balanced_acc": lambda p: sk.balanced_accuracy_score(p.y, p.pred),
    "delta_dp": lambda p: _widest(p, fl.demographic_parity_difference),
    "delta_eo": lambda p: _widest(p, fl.equal_opportunity_difference),
    "equalized_odds": lambda p: _widest(p, fl.equalized_odds_difference),
}


@examples(10)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 4), st.booleans())
def test_agrees_with_scikit_learn_and_fairlearn(
    make_problem: Make, seed: int, classes: int, groups: int, unknown: bool
) -> None:
    p = make_problem(seed, n=90, classes=classes, groups=groups, unknown=unknown)
    e = evaluate(p.y, p.scores, sens=p.sens)
    assert list(e.metrics) == list(ORACLES)
    for key, oracle in ORACLES.items():
        assert e.metrics[key] == pytest.approx(oracle(p), abs=1e-12), key


@pytest.mark.parametrize("classes", [2, 3])
def test_rates_agree_with_fairlearn(make_problem: Make, classes: int) -> None:
    p = make_problem(8, n=120, classes=classes, groups=3, unknown=True)
    known = p.sens >= 0
    rows = iter(evaluate(p.y, p.scores, sens=p.sens).groups)
    kinds = {
        kind: getattr(fl, kind) for kind in ("selection_rate", "true_positive_rate", "false_positive_rate", "count")
    }
    for y, pred in _each_class(p):
        arguments = {"y_true": y[known], "y_pred": pred[known], "sensitive_features": p.sens[known]}
        frame = fl.MetricFrame(metrics=kinds, **arguments).by_group
        for group in range(3):
            row = next(rows)
            for kind in kinds:
                assert getattr(row, kind) == pytest.approx(frame.loc[group, kind], abs=1e-12)
            inside = p.sens == group
            assert row.accuracy == pytest.approx(sk.accuracy_score(p.y[inside], p.pred[inside]), abs=1e-12)
    assert next(rows, None) is None


def test_names_are_unique() -> None:
    for names in ([m.key for m in catalog.METRICS], [m.label for m in catalog.METRICS]):
        assert len(set(names)) == len(names)
    assert (*catalog.UTILITY, *catalog.UNFAIRNESS) == catalog.SELECTION
    assert [m.label for m in catalog.SELECTION] == ["AUC", "F1", "ACC", "DP", "EO"]


def test_the_documentation_lists_every_metric() -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    for metric in catalog.METRICS:
        better = metric.direction.split()[0]
        assert f"| `{metric.key}` | {metric.title} | {better} |" in page


def _accuracy_difference(counts: Counts) -> Tensor:
    accuracy = counts.correct()[..., :-1] / counts.total[0, :-1].sum(-1)
    return accuracy.amax(-1) - accuracy.amin(-1)


def test_a_metric_is_a_function_and_an_entry(make_problem: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    p = make_problem(3, n=120)
    before = evaluate(p.y, p.scores, sens=p.sens, bootstrap=20)
    added = Metric("delta_acc", "DACC", "accuracy difference", _accuracy_difference, higher_is_better=False)
    monkeypatch.setattr(catalog, "METRICS", (*catalog.METRICS, added))
    e = evaluate(p.y, p.scores, sens=p.sens, bootstrap=20)
    right = p.y == p.pred
    assert e.delta_acc == pytest.approx(abs(right[p.sens == 0].mean() - right[p.sens == 1].mean()))
    assert e.intervals["delta_acc"].low <= e.delta_acc <= e.intervals["delta_acc"].high
    stored = json.loads(json.dumps(e.to_dict()))
    assert stored["delta_acc"] == e.delta_acc
    assert Evaluation.from_dict(stored) == e
    assert f"DACC={100 * e.delta_acc:.2f}" in repr(e)
    assert f"ΔDACC {100 * e.delta_acc:.2f}" in str(e)
    # Files from before it was added can be read.
    assert np.isnan(Evaluation.from_dict(before.to_dict()).delta_acc)


def test_unknown_keys_are_refused(make_problem: Make) -> None:
    p = make_problem(3)
    e = evaluate(p.y, p.scores, sens=p.sens)
    with pytest.raises(ValueError, match=r"'values' must hold exactly .* 'delta_acc'"):
        Evaluation.from_dict({**e.to_dict(), "delta_acc": 0.1})
    with pytest.raises(AttributeError, match="no attribute or metric 'delta_acc'"):
        _ = e.delta_acc


def test_undefined_metrics_have_no_interval(make_problem: Make) -> None:
    p = make_problem(3)
    with pytest.warns(UndefinedMetricWarning, match="no node has label '0'"):
        e = evaluate(np.ones_like(p.y), p.scores, sens=p.sens, undefined="nan", bootstrap=5)
    for key in ("auc", "f1", "balanced_acc", "equalized_odds"):
        assert np.isnan([e.metrics[key], e.intervals[key].low, e.intervals[key].high]).all(), key
    assert not np.isnan(e.intervals["delta_eo"].low)
