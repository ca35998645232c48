"""Whether the edges help: the two regressions, their paired difference, and what is said about it."""

import json
import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data

import fairpass
from fairpass.datasets import load, synthetic
from fairpass.datasets.graph_gain import Gain, GraphGain, LinearScores, _dp, _fit, _gains, _neighbour_means, graph_gain
from fairpass.datasets.linear import auc_contributions, standardised
from fairpass.errors import DataError
from fairpass.metrics import delta_dp

SCORES = LinearScores(0.8, 0.8, 0.1)


def found(acc: tuple[float, float, float], auc: tuple[float, float, float] = (0.0, -0.02, 0.02)) -> GraphGain:
    return GraphGain(1_193, SCORES, SCORES, Gain(*acc), Gain(*auc))


def three_labels(data: Data) -> Data:
    """Split the second label of a graph with two by the sign of a new feature."""
    data = data.clone()
    sign = torch.from_numpy(np.random.default_rng(0).normal(size=data.num_nodes)).float()
    data.y = torch.where((data.y == 1) & (sign > 0), 2, data.y)
    data.x = torch.cat([data.x, sign[:, None]], dim=1)
    return data


def test_edges_between_equal_labels_help() -> None:
    gain = graph_gain(synthetic(2_000, class_homophily=0.9, feature_signal=1.0))
    assert gain.verdict == "help"
    assert gain.acc is not None
    assert gain.auc is not None
    assert 0.1 < gain.acc.low < gain.acc.estimate < gain.acc.high < 0.5
    assert 0.1 < gain.auc.low < gain.auc.estimate < gain.auc.high < 0.5
    assert gain.nodes == 500


@pytest.mark.parametrize("seed", range(3))
def test_edges_drawn_at_random_do_not_help(seed: int) -> None:
    gain = graph_gain(synthetic(3_000, class_homophily=0.5, sens_homophily=0.5, feature_signal=2.0, seed=seed))
    assert gain.verdict != "help"
    assert gain.acc is not None
    assert abs(gain.acc.estimate) < 0.03


def test_edges_between_different_labels_help_too() -> None:
    assert graph_gain(synthetic(2_000, class_homophily=0.1, feature_signal=1.0)).verdict == "help"


def test_only_neighbours_two_hops_away_are_informative() -> None:
    """A node's neighbour has no features: only the neighbour's other neighbour tells the label."""
    n = 900
    y = torch.arange(n) % 2
    ends = torch.arange(n)
    middle = n + torch.arange(n)
    partner = (ends + 2) % n  # of the same label
    edge_index = torch.cat([torch.stack([ends, middle]), torch.stack([middle, partner])], dim=1)
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([(2 * y - 1)[:, None] + torch.randn(n, 1, generator=generator), torch.zeros(n, 1)])
    nodes = torch.cat([torch.rand(n, generator=generator), torch.full((n,), 2.0)])
    data = Data(x=x, edge_index=edge_index, y=torch.cat([y, torch.full((n,), -1)]))
    data.train_mask, data.val_mask = nodes < 0.5, (nodes >= 0.5) & (nodes < 1)
    gain = graph_gain(data)
    assert gain.verdict == "help"
    assert gain.with_edges is not None
    assert math.isnan(gain.with_edges.dp)  # there are no groups
    assert gain.to_dict()["with_edges"]["dp"] is None


def test_more_than_two_labels() -> None:
    gain = graph_gain(three_labels(synthetic(2_000, class_homophily=0.9, feature_signal=1.0)))
    assert gain.verdict == "help"
    assert gain.without is not None
    assert 0.5 < gain.without.auc < 1


def test_german_in_numbers() -> None:
    data = load("german")
    gain = graph_gain(data)
    assert gain.nodes == int(data.val_mask.sum()) == 250
    assert gain.verdict == "unknown"
    assert gain.without is not None
    assert gain.with_edges is not None
    assert gain.acc is not None
    assert gain.acc.estimate == pytest.approx(gain.with_edges.acc - gain.without.acc)
    # Features alone hardly tell the groups apart at this threshold; with the edges the difference is large.
    assert gain.without.dp < 0.05 < 0.1 < gain.with_edges.dp


def test_same_seed_same_answer_and_data_untouched() -> None:
    data = synthetic(600)
    before = data.clone()
    first = graph_gain(data, seed=3)
    assert graph_gain(data, seed=3) == first
    assert graph_gain(data, seed=4).acc != first.acc
    for name, value in before.to_dict().items():
        assert torch.equal(value, data[name]) if isinstance(value, torch.Tensor) else value == data[name]
    assert fairpass.graph_gain is graph_gain


def test_order_and_direction_of_edges_do_not_matter() -> None:
    data = synthetic(400)
    other = data.clone()
    loops = torch.arange(400).repeat(2, 1)
    other.edge_index = torch.cat([data.edge_index.flip(0), data.edge_index[:, :50], loops], dim=1)
    assert graph_gain(other) == graph_gain(data)


def test_neighbour_means_are_those_of_the_dense_matrix() -> None:
    data = synthetic(60, avg_degree=2)
    x = data.x.double().numpy()
    dense = np.zeros((60, 60))
    dense[data.edge_index[0], data.edge_index[1]] = dense[data.edge_index[1], data.edge_index[0]] = 1
    degree = dense.sum(axis=1, keepdims=True)
    assert (degree == 0).any()  # a node without neighbours has zeros
    mean = dense / np.maximum(degree, 1)
    near, far = _neighbour_means(x, data.edge_index.numpy(), None)
    np.testing.assert_allclose(near, mean @ x, atol=1e-12)
    np.testing.assert_allclose(far, mean @ mean @ x, atol=1e-12)
    weight = data.edge_index.sum(0).double() + 1
    dense[data.edge_index[0], data.edge_index[1]] = weight
    mean = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1)
    near, far = _neighbour_means(x, data.edge_index.numpy(), weight.numpy())
    np.testing.assert_allclose(near, mean @ x, atol=1e-12)
    np.testing.assert_allclose(far, mean @ mean @ x, atol=1e-12)


def test_weights_of_edges_are_used() -> None:
    data = synthetic(400, seed=2)
    plain = graph_gain(data)
    data.edge_weight = torch.ones(data.num_edges)
    assert graph_gain(data) == plain
    data.edge_weight = (data.edge_index.sum(0) % 9 + 1.0) ** 2
    assert graph_gain(data).with_edges != plain.with_edges


def test_standardised_columns() -> None:
    columns = np.random.default_rng(0).normal(5, 3, (50, 3))
    columns[:, 1] = 0.1  # its standard deviation is not exactly 0
    (made,) = standardised(columns)
    np.testing.assert_allclose(made.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(made.std(axis=0), [1, 0, 1], atol=1e-12)


def test_more_columns_than_training_nodes_are_only_rotated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rotation gives the probabilities that scikit-learn finds on all columns."""
    monkeypatch.setattr("fairpass.datasets.graph_gain._PENALTIES", (0.01,))
    generator = np.random.default_rng(0)
    columns = generator.normal(size=(90, 70))
    y = (columns[:, 0] + generator.normal(size=90) > 0).astype(np.int64)
    train, val = np.arange(40), np.arange(40, 90)
    shares = (np.bincount(y[val]) + 1) / (len(val) + 2) / np.bincount(y[train]) * len(train)
    model = LogisticRegression(C=0.01, tol=1e-8, class_weight=dict(enumerate(shares)))
    expected = model.fit(columns[train], y[train]).predict_proba(columns[val])
    np.testing.assert_allclose(_fit(columns, y, train, val, seed=0), expected, atol=1e-3)


@pytest.mark.parametrize("labels", [2, 3])
def test_metrics_are_those_of_scikit_learn_and_fairlearn(labels: int) -> None:
    generator = np.random.default_rng(labels)
    y = generator.integers(labels, size=200)
    sens = generator.integers(-1, 3, size=200)
    scores = generator.dirichlet(np.ones(labels), size=200).round(1)  # with ties
    scores /= scores.sum(axis=1, keepdims=True)
    auc = auc_contributions(scores, y).mean()
    predicted = scores.argmax(axis=1)
    expected = roc_auc_score(y, scores[:, 1] if labels == 2 else scores, multi_class="ovr")
    assert auc == pytest.approx(expected)
    assert _dp(predicted, sens) == pytest.approx(delta_dp(y, predicted, sens=sens))


def test_interval_is_that_of_resampled_nodes() -> None:
    """The AUC over all pairs, for resampled nodes one by one, has the same interval."""
    generator = np.random.default_rng(0)
    y = generator.integers(2, size=400)
    weak, strong = y + generator.normal(0, 2, 400), y + generator.normal(0, 1, 400)
    contributions = [auc_contributions(np.stack([-scores, scores], axis=1), y) for scores in (strong, weak)]
    differences = contributions[0] - contributions[1]
    made, auc = _gains(np.stack([differences] * 2, axis=1), np.random.default_rng(1))
    assert made == auc
    assert made.estimate == pytest.approx(roc_auc_score(y, strong) - roc_auc_score(y, weak))
    right = [scores[y == 1][:, None] > scores[y == 0] for scores in (strong, weak)]
    better = right[0].astype(float) - right[1]
    resampled = []
    for _ in range(1_000):
        times = np.bincount(generator.integers(400, size=400), minlength=400)
        positive, negative = times[y == 1], times[y == 0]
        resampled.append(positive @ better @ negative / (positive.sum() * negative.sum()))
    low, high = np.quantile(resampled, [0.025, 0.975])
    assert (made.low, made.high) == pytest.approx((low, high), abs=0.01)


def test_interval_narrows_with_the_number_of_nodes() -> None:
    widths = []
    for nodes in (100, 400, 1_600):
        values = np.tile([1.0, 0.0, -1.0, 0.0], nodes // 4)
        gain, _ = _gains(np.stack([values] * 2, axis=1), np.random.default_rng(0))
        widths.append(gain.high - gain.low)
    for wide, narrow in pairwise(widths):
        assert wide / narrow == pytest.approx(2, rel=0.2)


def test_large_graphs_are_measured_on_some_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairpass.datasets.graph_gain._VALIDATION_NODES", 100)
    monkeypatch.setattr("fairpass.datasets.graph_gain._TRAINING_NODES", 200)
    monkeypatch.setattr("fairpass.datasets.graph_gain._CHUNK", 1_000)
    gain = graph_gain(synthetic(1_000, class_homophily=0.9))
    assert gain.nodes == 100
    assert gain.verdict == "help"


@pytest.mark.parametrize(
    ("gain", "verdict", "sentence"),
    [
        (
            found((0.098, 0.081, 0.115)),
            "help",
            "The edges help: with them accuracy on 1,193 validation nodes rises by 9.8 points "
            "(95 % interval 8.1 to 11.5).",
        ),
        (
            found((-0.019, -0.025, -0.011)),
            "harm",
            "The edges do not help: with them accuracy on 1,193 validation nodes falls by 1.9 points "
            "(95 % interval 1.1 to 2.5).",
        ),
        (
            found((0.001, -0.004, 0.006)),
            "no difference",
            "The edges do not help: with them accuracy on 1,193 validation nodes changes by 0.1 points "
            "(95 % interval -0.4 to 0.6).",
        ),
        (
            found((0.01, -0.031, 0.052)),
            "unknown",
            "It cannot be told from 1,193 validation nodes whether the edges help: with them accuracy changes by "
            "-3.1 to 5.2 points (95 % interval).",
        ),
        (
            found((0.0, 0.0, 0.0), (0.08, 0.05, 0.11)),
            "help",
            "The edges help: with them AUC on 1,193 validation nodes rises by 8.0 points (95 % interval 5.0 to 11.0).",
        ),
        (found((0.0, -0.001, 0.001), (0.008, 0.005, 0.011)), "no difference", None),
        (found((0.0, -0.05, 0.05), (-0.08, -0.11, -0.05)), "harm", None),
        (GraphGain(reason="the graph has no edges"), "not measured", None),
    ],
)
def test_verdicts_and_sentences(gain: GraphGain, verdict: str, sentence: str | None) -> None:
    assert gain.verdict == verdict
    assert sentence in (None, gain.sentence)
    document = gain.to_dict()
    assert (document["verdict"], document["sentence"]) == (verdict, gain.sentence)
    json.dumps(document, allow_nan=False)
    assert GraphGain.from_dict(document).to_dict() == document


def test_half_an_answer_is_not_read() -> None:
    whole = found((0.1, 0.0, 0.2)).to_dict()
    for name in ("without", "with_edges", "acc"):
        with pytest.raises(ValueError, match="it must have both regressions"):
            GraphGain.from_dict(whole | {name: None})
    with pytest.raises(ValueError, match=r"'without\.acc' is wrong: it must be between -1 and 1 \(got 3\)"):
        GraphGain.from_dict(whole | {"without": {"acc": 3.0, "auc": 0.5, "dp": None}})


def _without_labels(data: Data, part: str) -> None:
    data.y = torch.where(data[f"{part}_mask"], -1, data.y)


def test_no_answer_has_a_reason() -> None:
    cases: dict[str, Callable[[Data], object]] = {
        "the graph has no labels": lambda data: data.update({"y": None}),
        "the graph has no training nodes": lambda data: data.update({"train_mask": None}),
        "the graph has no validation nodes": lambda data: data.update({"val_mask": None}),
        "the graph has no features": lambda data: data.update({"x": torch.zeros(200, 0)}),
        "the graph has no edges": lambda data: data.update({"edge_index": torch.zeros(2, 0, dtype=torch.long)}),
        "some features are missing or infinite": lambda data: data.update({"x": data.x / 0}),
        "no validation node has a label": lambda data: _without_labels(data, "val"),
        "fewer than two labels have 3 training nodes": lambda data: _without_labels(data, "train"),
    }
    for reason, spoil in cases.items():
        data = synthetic(200).clone()
        spoil(data)
        gain = graph_gain(data)
        assert (gain.reason, gain.verdict) == (reason, "not measured")
        assert gain.sentence == f"Whether the edges help was not measured: {reason}."
    one = synthetic(200).clone()
    one.y = torch.zeros_like(one.y)
    assert graph_gain(one).reason == "fewer than two labels have 3 training nodes"


def test_one_label_among_the_validation_nodes() -> None:
    data = synthetic(400).clone()
    data.y = torch.where(data.val_mask, 1, data.y)
    gain = graph_gain(data)
    assert gain.auc is None
    assert gain.acc is not None
    assert gain.to_dict()["without"]["auc"] is None


def test_a_rare_label_is_not_learnt() -> None:
    data = synthetic(400).clone()
    data.y[data.train_mask.nonzero()[:2]] = 2
    data.y[data.val_mask.nonzero()[:2]] = 2
    gain = graph_gain(data)
    assert gain.without is not None
    assert gain.without.acc < 1
    assert gain.nodes == 100


def test_seed_error() -> None:
    with pytest.raises(DataError, match=r"^'seed' must not be negative \(got -1\)$"):
        graph_gain(synthetic(50), seed=-1)
