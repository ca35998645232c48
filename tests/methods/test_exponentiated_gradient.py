"""Exponentiated gradient: fairlearn's mixture, kept as tensors."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from fairlearn import reductions
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from tests.methods.ingredients import changed, small_graph, some_unknown
from torch_geometric.data import Data

from fairpass.datasets import synthetic
from fairpass.errors import DataError
from fairpass.methods import ExponentiatedGradient, Logistic, load_model
from fairpass.methods.closed_form import _line
from fairpass.metrics.group_thresholds import Constraint
from fairpass.training import Training

MOMENTS = {
    "demographic_parity": reductions.DemographicParity,
    "true_positive_rate_parity": reductions.TruePositiveRateParity,
    "equalized_odds": reductions.EqualizedOdds,
}


@pytest.fixture(scope="module")
def data() -> Data:
    return synthetic(500, avg_degree=6, num_features=5, feature_leakage=2.0, label_bias=0.3, seed=0)


@pytest.mark.filterwarnings("ignore:Setting a")  # fairlearn's use of pandas
@pytest.mark.parametrize("constraint", get_args(Constraint))
def test_score_is_the_probability_of_fairlearns_decision(constraint: Constraint, data: Data, tmp_path: Path) -> None:
    model = ExponentiatedGradient(constraint=constraint, eps=0.02, C=0.5, max_iter=10).fit(data)
    train = data.train_mask.numpy()
    theirs = reductions.ExponentiatedGradient(
        LogisticRegression(C=0.5, max_iter=1000), MOMENTS[constraint](difference_bound=0.02), eps=0.02, max_iter=10
    )
    x = data.x.double().numpy()
    theirs.fit(x[train], data.y.numpy()[train], sensitive_features=data.sens.numpy()[train])
    expected = theirs._pmf_predict(x)[:, 1]
    np.testing.assert_allclose(model.predict_proba(data)[:, 1], expected, rtol=0, atol=1e-6)
    assert len(np.unique(expected.round(6))) > 2  # a mixture, not one regression
    loaded = load_model(model.save(tmp_path / "model"))
    assert torch.equal(loaded.predict_proba(data), model.predict_proba(data))
    assert set(model.program_.state_dict()) == {"coefficients", "intercepts", "weights"}


def test_expected_decisions_are_fairer_than_a_regressions(data: Data) -> None:
    model, plain = ExponentiatedGradient().fit(data), Logistic().fit(data)

    def gap(score: Any) -> float:
        means = [float(score[data.train_mask & (data.sens == group)].mean()) for group in (0, 1)]
        return abs(means[0] - means[1])

    assert gap(plain.predict(data).float()) > 0.2
    assert gap(model.predict_proba(data)[:, 1]) < 0.03  # twice eps, and the gap of the game
    assert torch.equal(model.predict(data), (model.predict_proba(data)[:, 1] > 0.5).long())


def test_more_groups_and_unknown_ones() -> None:
    groups = small_graph(400, groups=3)
    assert ExponentiatedGradient(max_iter=3).fit(groups).evaluate(groups).n == int(groups.test_mask.sum())
    whole = small_graph(200)
    partly = some_unknown(whole)
    known = changed(partly, train_mask=partly.train_mask & (partly.sens >= 0))
    one, other = (ExponentiatedGradient(max_iter=3).fit(each) for each in (partly, known))
    assert torch.equal(one.predict_proba(whole), other.predict_proba(whole))


def test_a_constant_in_the_mixture() -> None:
    for label in (0, 1):
        constant = DummyClassifier(strategy="constant", constant=label).fit([[0.0], [0.0]], [0, label or 1])
        coefficients, intercept = _line(constant, 4)
        assert torch.equal(coefficients, torch.zeros(4, dtype=torch.float64))
        assert bool(intercept > 0) == bool(label)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"constraint": "fairness"}, r"'constraint' must be one of \('demographic_parity', .* \(got 'fairness'\)"),
        ({"eps": 0.0}, r"'eps' must be positive and finite \(got 0.0\)"),
        ({"C": -1.0}, r"'C' must be positive and finite \(got -1.0\)"),
        ({"max_iter": -1}, r"'max_iter' must be at least 0 \(got -1\)"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ExponentiatedGradient(**parameters)


def test_unsuitable_graphs(data: Data) -> None:
    with pytest.raises(DataError, match=r"'data.y' must have 2 labels for ExponentiatedGradient \(got 3\)"):
        ExponentiatedGradient().fit(small_graph(240, classes=3))
    lacking = changed(data, train_mask=data.train_mask & ~((data.sens == 0) & (data.y == 1)))
    with pytest.raises(DataError, match=r"both labels .* \(got none of label 1 in group '0'\)"):
        ExponentiatedGradient(training=Training(epochs=1)).fit(lacking)
