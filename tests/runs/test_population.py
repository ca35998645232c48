"""Many classifiers at once are what each would have been alone."""

import copy

import pytest
import torch
from tests.methods.ingredients import small_graph
from torch_geometric.data import Data

from fairpass.errors import FairpassError
from fairpass.methods import FMP, GCN, GIN, GMMD, GMMDS, MMD, SAGE, MLPClassifier, NodeClassifier, Thresholds
from fairpass.runs import fit_all
from fairpass.training import DivergedError, EpochRecord, Training

EPOCHS = 12


@pytest.fixture(scope="module")
def graph() -> Data:
    return small_graph(300)


def settings(seed: int, **changes: object) -> Training:
    return Training(epochs=EPOCHS, weight_decay=0.003, seed=seed).but(**changes)


def pairs(make: str) -> list[NodeClassifier]:
    """Return classifiers of one shape that differ in all they may differ in."""
    first, second, third = settings(0), settings(1, learning_rate=0.03), settings(2, weight_decay=0.0, epochs=7)
    kinds: dict[str, list[NodeClassifier]] = {
        "gmmd": [
            GMMD(training=first),
            GMMD(weight=3.0, alpha=1.0, training=second),
            GMMD(lambda_s=0.2, training=third),
        ],
        "gmmd-paper-step": [
            GMMD(step="paper", lambda_f=2.0, bandwidth="fixed", training=first),
            GMMD(step="paper", lambda_f=5.0, bandwidth="fixed", alpha=0.7, training=second),
        ],
        "gmmd-gin": [GMMD(backbone="gin", training=first), GMMD(backbone="gin", weight=1.0, training=second)],
        "gmmd-dropout": [GMMD(dropout=0.3, training=first), GMMD(dropout=0.3, weight=5.0, training=second)],
        "gmmd-s": [GMMDS(training=first), GMMDS(weight=3.0, lambda_s=3.0, training=second)],
        "gcn": [GCN(training=first), GCN(training=second), GCN(training=third)],
        "gin": [GIN(training=first), GIN(training=second)],
        "sage": [SAGE(training=first), SAGE(training=second), SAGE(training=third)],
        "mmd-sage": [MMD(backbone="sage", training=first), MMD(backbone="sage", weight=2.0, training=second)],
        "mlp": [MLPClassifier(training=first), MLPClassifier(training=second), MLPClassifier(training=third)],
        "thresholds": [Thresholds(base="sage", training=first), Thresholds(base="sage", training=second)],
        "mmd": [MMD(weight=0.0, training=first), MMD(weight=2.0, alpha=3.0, training=second)],
        "fmp": [FMP(lambda_f=1.0, training=first), FMP(lambda_s=1.0, training=second)],
        "fmp-l1": [FMP(lambda_f=1.0, penalty="l1", training=first), FMP(lambda_f=0.1, penalty="l1", training=second)],
        "threshold": [GCN(training=first.but(threshold="selection")), GCN(training=second.but(threshold="selection"))],
        "patience": [GMMD(training=first.but(patience=2)), GMMD(training=second.but(patience=5))],
        "last": [GMMD(training=first.but(select="last")), GMMD(training=second)],
    }
    return kinds[make]


@pytest.mark.parametrize(
    "name",
    [
        "gmmd",
        "gmmd-paper-step",
        "gmmd-gin",
        "gmmd-dropout",
        "gmmd-s",
        "gcn",
        "gin",
        "sage",
        "mmd-sage",
        "mlp",
        "thresholds",
        "mmd",
        "fmp",
        "fmp-l1",
        "threshold",
        "patience",
        "last",
    ],
)
def test_population_is_the_single_loop(name: str, graph: Data) -> None:
    together, alone = pairs(name), pairs(name)
    assert not any(classifier.trains_alone for classifier in together)
    assert fit_all(together, graph) == [None] * len(together)
    for one, other in zip(together, alone, strict=True):
        other.fit(graph)
        assert len(one.history_) == len(other.history_)
        assert one.epoch_ == other.epoch_
        for column in ("loss", "AUC", "DP", "mmd2", "bound"):
            found, wanted = (torch.tensor(c.history_.column(column), dtype=torch.float64) for c in (one, other))
            torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(one.predict_proba(graph), other.predict_proba(graph), rtol=0, atol=1e-4)


def test_different_shapes_and_lone_methods_may_be_mixed(graph: Data) -> None:
    mixed = [
        GMMD(training=settings(0)),
        GMMD(K=3, training=settings(0)),
        GCN(training=settings(0)),
        GMMD.paper(sample=20, training=settings(0)),
        GMMD(weight=1.0, training=settings(1)),
    ]
    alone = [copy.deepcopy(classifier).fit(graph) for classifier in mixed]
    assert fit_all(mixed, graph) == [None] * 5
    for one, other in zip(mixed, alone, strict=True):
        torch.testing.assert_close(one.predict_proba(graph), other.predict_proba(graph), rtol=0, atol=1e-4)


@pytest.mark.usefixtures("forked_jobs")
def test_processes_give_the_same(graph: Data) -> None:
    here, there = (
        [GMMD(training=settings(seed)) for seed in range(4)] + [GMMD.paper(sample=20, training=settings(0))]
        for _ in range(2)
    )
    fit_all(here, graph)
    assert fit_all(there, graph, jobs=2) == [None] * 5
    for one, other in zip(here, there, strict=True):
        torch.testing.assert_close(one.predict_proba(graph), other.predict_proba(graph), rtol=0, atol=1e-4)


def test_size_of_a_batch_changes_nothing(graph: Data) -> None:
    few, many = ([GCN(training=settings(seed)) for seed in range(5)] for _ in range(2))
    fit_all(few, graph, batch_rows=2 * graph.num_nodes)
    fit_all(many, graph)
    for one, other in zip(few, many, strict=True):
        torch.testing.assert_close(one.predict_proba(graph), other.predict_proba(graph), rtol=0, atol=1e-4)


def test_a_member_that_diverges_spoils_no_other(graph: Data) -> None:
    good, bad = GCN(training=settings(0)), GCN(training=settings(1, learning_rate=1e30, select="last"))
    errors: list[FairpassError | None] = fit_all([good, bad, GCN(training=settings(2))], graph)
    assert errors[0] is None
    assert errors[2] is None
    assert isinstance(errors[1], DivergedError)
    expected = GCN(training=settings(0)).fit(graph).predict_proba(graph)
    torch.testing.assert_close(good.predict_proba(graph), expected, rtol=0, atol=1e-4)


def test_every_epoch_is_reported(graph: Data) -> None:
    seen: dict[int, list[EpochRecord]] = {}
    classifiers = [GCN(training=settings(0)), GCN(training=settings(1, epochs=4)), GMMD(training=settings(0))]
    fit_all(classifiers, graph, callback=lambda i, record: seen.setdefault(i, []).append(record))
    assert [len(seen[i]) for i in range(3)] == [EPOCHS, 4, EPOCHS]
    assert list(classifiers[1].history_) == seen[1]


def test_graph_and_random_state_are_left_alone(graph: Data) -> None:
    before, state = graph.clone(), torch.get_rng_state()
    fit_all([GCN(training=settings(seed)) for seed in range(2)], graph)
    assert all(torch.equal(graph[name], before[name]) for name in ("x", "edge_index", "y", "sens"))
    assert torch.equal(torch.get_rng_state(), state)


def test_jobs_must_be_positive(graph: Data) -> None:
    with pytest.raises(ValueError, match="'jobs' must be at least 1"):
        fit_all([], graph, jobs=0)
