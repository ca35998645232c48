"""Logistic regression: scikit-learn's probabilities, without scikit-learn in the model."""

import logging
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from tests.methods.ingredients import changed, small_graph

from fairpass.methods import Logistic
from fairpass.training import Training


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_probabilities_are_scikit_learns(classes: int, C: float) -> None:
    data = small_graph(240, classes=classes)
    model = Logistic(C=C).fit(data)
    theirs = LogisticRegression(C=C, max_iter=1000).fit(data.x[data.train_mask].double(), data.y[data.train_mask])
    expected = torch.from_numpy(theirs.predict_proba(data.x.double()))
    torch.testing.assert_close(model.predict_proba(data).double(), expected, rtol=0, atol=1e-5)
    assert set(model.program_.state_dict()) == {"coefficients", "intercepts"}


def test_one_epoch_and_no_graph() -> None:
    data = small_graph()
    model = Logistic().fit(data)
    assert len(model.history_) == 1
    without = changed(data, edge_index=data.edge_index[:, :0])
    assert torch.equal(Logistic().fit(without).predict_proba(data), model.predict_proba(data))
    probability = model.predict_proba(data)[data.train_mask]
    of_label = probability.gather(1, data.y[data.train_mask][:, None])
    assert model.history_[0].loss == pytest.approx(-float(of_label.log().mean()), rel=1e-4)


def test_more_epochs_change_nothing() -> None:
    data = small_graph()
    several = Logistic(training=Training(epochs=3)).fit(data)
    assert len(several.history_) == 3
    assert torch.equal(several.predict_proba(data), Logistic().fit(data).predict_proba(data))


def test_no_convergence_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    data = small_graph()
    monkeypatch.setattr("fairpass.methods.closed_form._MAX_ITERATIONS", 2)
    with caplog.at_level(logging.WARNING):
        Logistic().fit(data)
    assert "logistic regression did not converge within 2 iterations" in caplog.text


@pytest.mark.parametrize("C", [0.0, -1.0, np.nan, np.inf])
def test_wrong_parameter(C: Any) -> None:
    with pytest.raises(ValueError, match=rf"'C' must be positive and finite \(got {C}\)"):
        Logistic(C=C)
