"""Thresholds for each group as a step after any method: the same decisions everywhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from tests.methods.ingredients import changed, small_graph, some_unknown
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets import synthetic
from fairpass.errors import DataError
from fairpass.methods import GCN, FairVGNN, NodeClassifier, load_model
from fairpass.metrics import GroupThresholds
from fairpass.runs import fit_all
from fairpass.training import Training
from fairpass.tuning.search import _outcome

TRAINING = Training(epochs=15, postprocess="thresholds", seed=2)


@pytest.fixture(scope="module")
def data() -> Data:
    """A graph whose labels and features depend on the group."""
    return synthetic(600, avg_degree=6, num_features=6, feature_leakage=2.0, label_bias=0.3, seed=0)


@pytest.fixture(scope="module")
def fitted(data: Data) -> GCN:
    return GCN(training=TRAINING).fit(data)


@pytest.fixture(scope="module")
def plain(data: Data) -> GCN:
    return GCN(training=TRAINING.but(postprocess="none")).fit(data)


def expected_gap(rule: GroupThresholds, model: NodeClassifier, data: Data, chosen: Tensor) -> float:
    """Return how far apart the groups' expected rates of positive decisions are among chosen validation nodes."""
    probability = rule.positive_probability(model.predict_proba(data), sens=data.sens)
    inside = (data.val_mask & chosen).numpy()
    first, second = (probability[inside & (data.sens == group).numpy()].mean() for group in (0, 1))
    return float(np.abs(first - second))


def test_scores_and_history_are_those_without_it(data: Data, fitted: GCN, plain: GCN) -> None:
    assert torch.equal(fitted.predict_proba(data), plain.predict_proba(data))
    assert fitted.history_ == plain.history_
    assert plain.group_thresholds_ is None
    assert plain.selected_ == plain.history_[plain.epoch_]


def test_validation_is_fair_where_the_plain_method_is_not(data: Data, fitted: GCN, plain: GCN) -> None:
    assert plain.evaluate(data, "val").delta_dp > 0.15
    rule = fitted.group_thresholds_
    assert rule is not None
    assert expected_gap(rule, fitted, data, data.y >= 0) < 1e-6
    assert fitted.evaluate(data, "val").delta_dp < 0.05  # some decisions are drawn
    assert fitted.evaluate(data, "test").delta_dp < plain.evaluate(data, "test").delta_dp


def test_rule_is_that_of_the_validation_scores(data: Data, fitted: GCN) -> None:
    scores = fitted.predict_proba(data)[data.val_mask]
    expected = GroupThresholds.fit(
        data.y[data.val_mask], scores, sens=data.sens[data.val_mask], constraint="demographic_parity"
    )
    assert fitted.group_thresholds_ == expected
    assert fitted.threshold_ is None
    drawn = expected.decide(fitted.predict_proba(data), sens=data.sens, seed=2)
    assert fitted.predict(data).tolist() == drawn.tolist()


def test_decisions_are_the_same_everywhere(data: Data, fitted: GCN) -> None:
    predicted = fitted.predict(data)
    probabilities = fitted.predict_proba(data)
    for split in ("train", "val", "test"):
        inside = data[f"{split}_mask"]
        evaluation = fitted.evaluate(data, split)
        assert evaluation.acc == pytest.approx(float((predicted == data.y)[inside].float().mean()))
        assert evaluation.positive_rate == pytest.approx(float(predicted[inside].float().mean()))
        for group in evaluation.groups:
            rate = predicted[inside & (data.sens == int(group.group))].float().mean()
            assert group.selection_rate == pytest.approx(float(rate))
        assert evaluation.threshold is None
        nodes = torch.nonzero(inside).flatten()
        assert torch.equal(fitted.decide(data, probabilities, nodes), predicted[nodes])
    on_validation = {name: 100 * value for name, value in fitted.selected_.metrics.items()}
    assert fitted.evaluate(data, "val").percent() == pytest.approx(on_validation, abs=1e-3)
    measured = _outcome([fitted], data)
    in_percent = {name: 100 * value for name, value in measured["test"].items()}
    assert fitted.evaluate(data).percent() == pytest.approx(in_percent, abs=1e-3)
    assert measured["validation"].items() >= dict(fitted.selected_.metrics).items()


def test_auc_is_of_the_scores(data: Data, fitted: GCN, plain: GCN) -> None:
    assert fitted.evaluate(data).auc == plain.evaluate(data).auc


def test_intervals_are_of_the_decisions(data: Data, fitted: GCN) -> None:
    evaluation = fitted.evaluate(data, bootstrap=50)
    for name, interval in evaluation.intervals.items():
        assert interval.low <= getattr(evaluation, name) + 1e-9
        assert interval.high >= getattr(evaluation, name) - 1e-9


def test_model_file_has_the_rule_as_plain_json(data: Data, fitted: GCN, tmp_path: Path) -> None:
    path = fitted.save(tmp_path / "model")
    with safe_open(str(path), framework="pt") as file:
        header = json.loads(file.metadata()["fairpass"])["header"]
    json.dumps(header["group_thresholds"], allow_nan=False)
    assert GroupThresholds.from_dict(header["group_thresholds"]) == fitted.group_thresholds_
    loaded = load_model(path)
    assert loaded.group_thresholds_ == fitted.group_thresholds_
    assert loaded.selected_ == fitted.selected_
    assert torch.equal(loaded.predict(data), fitted.predict(data))


def test_seed_of_the_fit_counts_not_a_later_one(data: Data) -> None:
    model = GCN(training=TRAINING.but(epochs=2)).fit(data)
    before = model.predict(data)
    model.set_params(training__seed=9, training__postprocess="none")
    assert torch.equal(model.predict(data), before)


@pytest.mark.parametrize("constraint", ["true_positive_rate_parity", "equalized_odds"])
def test_other_constraints(data: Data, plain: GCN, constraint: Any) -> None:
    model = GCN(training=TRAINING.but(constraint=constraint)).fit(data)
    rule = model.group_thresholds_
    assert rule is not None
    assert rule.constraint == constraint
    assert expected_gap(rule, model, data, data.y == 1) < 1e-6
    assert (expected_gap(rule, model, data, data.y == 0) < 1e-6) == (constraint == "equalized_odds")


def test_any_method_and_more_groups() -> None:
    groups = small_graph(400, groups=3)
    model = GCN(training=Training(epochs=3, postprocess="thresholds")).fit(groups)
    assert model.group_thresholds_ is not None
    assert len(model.group_thresholds_.groups) == 3
    binary = small_graph(200)
    fair = FairVGNN(K=2, training=Training(epochs=1, postprocess="thresholds")).fit(binary)
    assert fair.evaluate(binary, "val").delta_dp < 0.06  # a node or two, drawn


def test_populations_have_the_same_rules(data: Data) -> None:
    together = [GCN(training=TRAINING.but(seed=seed)) for seed in range(2)]
    together.append(GCN(training=TRAINING.but(postprocess="none")))
    assert fit_all(together, data) == [None] * 3
    for model in together[:2]:
        alone = GCN(training=model.training).fit(data)
        assert float((alone.predict(data) == model.predict(data)).float().mean()) > 0.99
    assert together[2].group_thresholds_ is None


def test_a_population_takes_those_that_it_can(data: Data) -> None:
    labels = small_graph(240, classes=3)
    training = Training(epochs=2)
    mixed = [
        GCN(training=training),
        GCN(training=training.but(postprocess="thresholds", seed=1)),
        GCN(training=training),
    ]
    errors = fit_all(mixed, labels)
    assert errors[0] is errors[2] is None
    assert isinstance(errors[1], DataError)
    assert "2 labels for thresholds per group (got 3)" in str(errors[1])
    assert torch.equal(mixed[0].predict_proba(labels), mixed[2].predict_proba(labels))
    assert [type(each) for each in fit_all(mixed[1:2], labels)] == [DataError]


def test_what_it_cannot_do_is_said_before_training(data: Data) -> None:
    epochs: list[Any] = []

    def refused(graph: Data, message: str) -> None:
        with pytest.raises(DataError, match=message):
            GCN(training=TRAINING).fit(graph, callbacks=[epochs.append])

    refused(small_graph(240, classes=3), r"'data.y' must have 2 labels for thresholds per group \(got 3\)")
    unknown = torch.where(data.val_mask & (torch.arange(600) % 5 == 0), -1, data.sens)
    count = int((unknown < 0).sum())
    refused(
        changed(data, sens=unknown),
        rf"'data.sens' must be known on validation for thresholds per group \(got {count} unknown\)",
    )
    one_label = data.val_mask & ~((data.sens == 1) & (data.y == 0))
    refused(changed(data, val_mask=one_label), r"nodes of both labels .* \(got none of label 0 in group '1'\)")
    assert not epochs


def test_groups_must_be_known_at_prediction(data: Data, fitted: GCN) -> None:
    partly = some_unknown(data)
    unknown = int((partly.sens < 0).sum())
    message = r"'data.sens' must be known for thresholds per group \(got {} nodes of unknown group\)"
    with pytest.raises(DataError, match=message.format(unknown)):
        fitted.predict(partly)
    with pytest.raises(DataError, match=message.format(int((partly.test_mask & (partly.sens < 0)).sum()))):
        fitted.evaluate(partly)
    with pytest.raises(DataError, match=message.format(600)):
        fitted.predict(changed(data, sens=None))
    # Validation has known groups, and the decisions there do not depend on the others.
    assert fitted.evaluate(partly, "val") == fitted.evaluate(data, "val")
    with pytest.raises(DataError, match=r"'data.group_names' must be those of the fitted graph \(got '1' for '0'"):
        fitted.predict(changed(data, group_names=["1", "0"]))
    torch.testing.assert_close(fitted.predict_proba(partly), fitted.predict_proba(data))
