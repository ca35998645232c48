"""The method `thresholds`: a base method's scores, and decisions with a threshold for each group."""

from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch_geometric.data import Data

from fairpass.datasets import synthetic
from fairpass.methods import GCN, Logistic, Thresholds, load_model, method
from fairpass.methods.plain import Base
from fairpass.runs import Configuration
from fairpass.training import Training


@pytest.fixture(scope="module")
def data() -> Data:
    return synthetic(600, avg_degree=6, num_features=6, feature_leakage=2.0, label_bias=0.3, seed=0)


@pytest.mark.parametrize("base", get_args(Base))
def test_scores_are_the_bases_and_decisions_are_fair_on_validation(base: Any, data: Data, tmp_path: Path) -> None:
    training = Training(epochs=10)
    model, plain = Thresholds(base=base, training=training).fit(data), method(base)(training=training).fit(data)
    assert torch.equal(model.predict_proba(data), plain.predict_proba(data))
    assert plain.evaluate(data, "val").delta_dp > 0.1
    assert model.evaluate(data, "val").delta_dp < 0.06  # some decisions are drawn
    assert model.trains_alone == plain.trains_alone
    loaded = load_model(model.save(tmp_path / "model"))
    assert torch.equal(loaded.predict(data), model.predict(data))


def test_constraint_is_a_training_setting(data: Data) -> None:
    model = Thresholds(training=Training(epochs=1, constraint="equalized_odds")).fit(data)
    assert model.group_thresholds_ is not None
    assert model.group_thresholds_.constraint == "equalized_odds"


def test_training_is_the_bases_unless_given() -> None:
    assert Thresholds().training == Logistic.default_training()
    assert Thresholds(base="gcn").training == GCN.default_training()
    assert Configuration("thresholds", {"base": "gcn"}).classifier(3).training == Training(seed=3)
    assert Configuration("thresholds").classifier(0).training == Training(epochs=1)


def test_only_plain_methods_are_bases() -> None:
    with pytest.raises(ValueError, match=r"'base' must be one of \('logistic', .* \(got 'gmmd'\)"):
        Thresholds(base="gmmd")  # type: ignore[arg-type] # the mistake under test


def test_docstring_says_what_it_does_to_people() -> None:
    assert "disparate treatment" in (Thresholds.__doc__ or "")
    assert "must be known at" in (Thresholds.__doc__ or "")
