"""Thresholds for each group: fairlearn's rule in our few lines, and what it is for."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.linear_model import LogisticRegression

from fairpass.errors import DataError
from fairpass.metrics import GroupRule, GroupThresholds
from fairpass.metrics.group_thresholds import Constraint

Make = Callable[..., SimpleNamespace]
CONSTRAINTS: tuple[Constraint, ...] = get_args(Constraint)


def biased(n: int = 600, groups: int = 2, seed: int = 0) -> SimpleNamespace:
    """Return scores that are higher in later groups, whose labels are positive more often, too."""
    random = np.random.default_rng(seed)
    sens = random.integers(groups, size=n)
    x = random.normal(size=(n, 2)) + sens[:, None] * [0.8, 0.0]
    y = (x[:, 0] + random.normal(size=n) > 0.5).astype(np.int64)
    return SimpleNamespace(x=x, y=y, sens=sens, model=LogisticRegression().fit(x, y))


def rate_gaps(probability: Any, y: Any, sens: Any) -> dict[str, float]:
    """Return the largest differences between groups of the expected rates."""
    count = sens.max() + 1
    rates = [[probability[(sens == g) & chosen].mean() for g in range(count)] for chosen in (y >= 0, y == 1, y == 0)]
    positive, true, false = (max(each) - min(each) for each in rates)
    return {"demographic_parity": positive, "true_positive_rate_parity": true, "equalized_odds": max(true, false)}


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_probabilities_are_fairlearns(constraint: Constraint, groups: int) -> None:
    p, new = biased(groups=groups), biased(groups=groups, seed=1)
    theirs = ThresholdOptimizer(
        estimator=p.model, constraints=constraint, prefit=True, predict_method="predict_proba"
    ).fit(p.x, p.y, sensitive_features=p.sens)
    ours = GroupThresholds.fit(p.y, p.model.predict_proba(p.x), sens=p.sens, constraint=constraint)
    for q in (p, new):
        expected = theirs._pmf_predict(q.x, sensitive_features=q.sens)[:, 1]
        found = ours.positive_probability(p.model.predict_proba(q.x), sens=q.sens)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_constraint_is_met_where_it_was_fitted(constraint: Constraint) -> None:
    p = biased()
    scores = p.model.predict_proba(p.x)[:, 1]
    plain = rate_gaps((scores > 0.5).astype(float), p.y, p.sens)
    rule = GroupThresholds.fit(p.y, scores, sens=p.sens, constraint=constraint)
    fair = rate_gaps(rule.positive_probability(scores, sens=p.sens), p.y, p.sens)
    assert plain[constraint] > 0.1
    assert fair[constraint] < 1e-9


def test_draws_follow_the_probabilities_and_the_seed() -> None:
    rule = GroupThresholds(
        "demographic_parity", (GroupRule((0.2, 0.8), (0.3, 0.7)), GroupRule((-1.0, 1.0), (1.0, 0.0)))
    )
    scores, sens = np.full(20_000, 0.5), np.zeros(20_000, dtype=int)
    decided = rule.decide(scores, sens=sens, seed=3)
    assert decided.mean() == pytest.approx(0.3, abs=0.01)
    assert (rule.decide(scores, sens=sens, seed=3) == decided).all()
    assert (rule.decide(scores, sens=sens, seed=4) != decided).any()
    # In the order of the nodes: those at the start get the same, whoever comes after them.
    assert (rule.decide(scores[:50], sens=sens[:50], seed=3) == decided[:50]).all()
    assert (rule.decide(scores, sens=sens + 1, seed=3) == 1).all()


def test_certain_decisions_are_never_drawn() -> None:
    rule = GroupThresholds("demographic_parity", (GroupRule((0.2, 0.8), (0.5, 0.5)), GroupRule((0.5, 0.5), (0.5, 0.5))))
    scores = np.array([0.1, 0.2, 0.9, 0.8, 0.5, 0.51])
    sens = np.array([0, 0, 0, 1, 1, 1])
    for seed in range(20):
        assert rule.decide(scores, sens=sens, seed=seed).tolist() == [0, 0, 1, 1, 0, 1]


def test_score_may_be_ignored() -> None:
    rule = GroupRule((0.5, 0.5), (1.0, 0.0), p_ignore=0.25, prediction_constant=0.4)
    np.testing.assert_allclose(rule.positive_probability(np.array([0.2, 0.7])), [0.1, 0.85])


def test_unknown_groups_have_no_decision(make_problem: Make) -> None:
    p = make_problem(2, n=200, unknown=True)
    rule = GroupThresholds.fit(p.y, p.scores, sens=p.sens, constraint="demographic_parity")
    known = p.sens >= 0
    assert rule == GroupThresholds.fit(p.y[known], p.scores[known], sens=p.sens[known], constraint="demographic_parity")
    decided = rule.decide(p.scores, sens=p.sens, seed=0)
    assert ((decided == -1) == ~known).all()


def test_it_is_plain_json(make_problem: Make) -> None:
    p = make_problem(3)
    for constraint in CONSTRAINTS:
        rule = GroupThresholds.fit(
            torch.tensor(p.y), torch.tensor(p.scores), sens=torch.tensor(p.sens), constraint=constraint
        )
        stored = json.dumps(rule.to_dict(), allow_nan=False)
        assert GroupThresholds.from_dict(json.loads(stored)) == rule


def test_constant_scores() -> None:
    y, sens = np.array([0, 1, 1, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 1])
    rule = GroupThresholds.fit(y, np.full(6, 0.6), sens=sens, constraint="demographic_parity")
    assert rule.decide(np.full(6, 0.6), sens=sens, seed=0).tolist() == [1] * 6


def test_errors(make_problem: Make) -> None:
    p = make_problem(0)
    fit: Any = GroupThresholds.fit
    with pytest.raises(DataError, match=r"'y' must have 2 labels for thresholds per group \(got 3\)"):
        fit(np.where(p.sens == 0, p.y, 2), p.scores, sens=p.sens, constraint="demographic_parity")
    with pytest.raises(DataError, match=r"nodes of both labels .* \(got none of label 0 in group '1'\)"):
        fit(np.where(p.sens == 1, 1, p.y), p.scores, sens=p.sens, constraint="demographic_parity")
    with pytest.raises(DataError, match="'scores' must be probabilities of the positive class"):
        fit(p.y, 2 * p.scores, sens=p.sens, constraint="demographic_parity")
    rule = fit(p.y, p.scores, sens=p.sens, constraint="demographic_parity")
    with pytest.raises(DataError, match=r"'sens' must be below 2, the number of groups \(got 2\)"):
        rule.decide(p.scores, sens=p.sens + 1, seed=0)
    with pytest.raises(DataError, match=r"'seed' must be at least 0 \(got -1\)"):
        rule.decide(p.scores, sens=p.sens, seed=-1)
    with pytest.raises(DataError, match=r"'scores' must hold floating-point numbers"):
        rule.decide(5, sens=p.sens, seed=0)
    with pytest.raises(DataError, match=rf"'sens' must be below 1,000 \(got {10**9}\)"):
        fit(p.y, p.scores, sens=p.sens * 10**9, constraint="demographic_parity")
