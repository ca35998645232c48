"""What is delivered under a limit: checked on nodes that had no part in the choice, in an order fixed before."""

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from fairpass.datasets import synthetic
from fairpass.datasets.splits import stratified_split
from fairpass.errors import DataError
from fairpass.methods import NodeClassifier
from fairpass.projects.delivery import checked_on, cross_fitted, deliver, fold_graphs, margins, promise_of
from fairpass.tuning import Point, candidates
from fairpass.tuning.front import risk


def graph(nodes: int = 1500, fractions: tuple[float, ...] = (0.4, 0.2, 0.2, 0.2)) -> Data:
    data = synthetic(nodes, seed=0)
    split = stratified_split(data.y.numpy(), data.sens.numpy(), fractions=fractions, seed=0)
    for name, mask in split.masks().items():
        if mask is not None:
            data[name] = torch.from_numpy(mask)
    return data


def point(utility: float, dp: float, ratio: float = 0.9) -> Point:
    metrics = dict.fromkeys(("AUC", "F1", "ACC"), utility) | {"DP": dp, "EO": dp, "IR": ratio}
    return Point("gcn", {"dropout": dp}, validation=metrics)


class Told:
    """Stands in for a fitted model: predicts positive with a given difference between groups."""

    def __init__(self, gap: float) -> None:
        self.gap = gap

    def predict(self, data: Data) -> torch.Tensor:
        uniform = torch.rand(len(data.y), generator=torch.Generator().manual_seed(0))
        decided: torch.Tensor = uniform < 0.4 + self.gap * data.sens
        return decided.long()


def told(chosen: Point, data: Data) -> Any:
    return Told(chosen.parameters["dropout"])


def no_search(data: Data, number: int) -> list[Point]:
    raise AssertionError("nothing is searched again")


FRONT = [point(0.7 + dp, dp) for dp in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)]


DENSE = [point(0.7 + dp / 100, dp / 100) for dp in range(31)]


def test_candidates_have_less_and_less_room_below_the_limit() -> None:
    limits, margin = {"max_dp": 0.15}, {"max_dp": 0.05}
    assert [each.validation["DP"] for each in candidates(DENSE, limits, margin)] == [0.06, 0.08, 0.1, 0.12]
    assert [each.validation["DP"] for each in candidates(DENSE, limits, margin, rooms=[1.0])] == [0.1]
    assert [each.validation["DP"] for each in candidates(FRONT, limits, margin)] == [0.05, 0.1]
    # The safest comes first if none has enough room.
    assert [each.validation["DP"] for each in candidates(DENSE, {"max_dp": 0.08}, margin)] == [0.0, 0.01, 0.03, 0.05]
    assert candidates(DENSE, {"max_dp": 0.01}, margin) == DENSE[:1]
    beaten = point(0.6, 0.04)
    assert beaten not in candidates([*FRONT, beaten], limits, margin)


def test_risk_is_that_of_the_worst_limit() -> None:
    one = point(0.8, 0.1, ratio=0.7)
    assert risk(one, {"max_dp": 0.15}) == pytest.approx(-0.05)
    assert risk(one, {"max_dp": 0.15, "min_impact_ratio": 0.8}) == pytest.approx(0.1)
    assert risk(one, {"max_dp": 0.15}, {"max_dp": 0.07}) == pytest.approx(0.02)
    unknown = Point("gcn", validation={"DP": 0.1})
    assert risk(unknown, {"min_impact_ratio": 0.8}) == np.inf


def test_the_most_useful_that_is_shown_is_delivered() -> None:
    data = graph(20_000)
    limits = {"max_dp": 0.15}
    order = candidates(DENSE, limits, margins(data, limits, 0.95, "safety"))
    found = deliver(data, DENSE, fit=told, search=no_search, limits=limits)
    assert found.promise is not None
    assert (found.promise.verdict, found.promise.on) == ("shown", "safety")
    assert found.decision.point in order[:-1]  # not the boldest
    assert isinstance(found.model, Told)
    checked = order.index(found.decision.point) + 2
    assert found.promise.candidates == checked  # the one that failed was checked, too
    assert f"Of {checked} configurations, checked in turn" in found.decision.reason
    assert found.promise.people == int(data.safety_mask.sum())


def test_if_none_is_shown_the_safest_is_delivered_and_said_so() -> None:
    found = deliver(graph(400), FRONT, fit=told, search=no_search, limits={"max_dp": 0.01})
    assert found.promise is not None
    assert found.promise.verdict == "not shown"
    assert not found.decision.met
    assert found.decision.point == FRONT[0]
    beyond = deliver(graph(4000), FRONT[-1:], fit=told, search=no_search, limits={"max_dp": 0.01})
    assert beyond.promise is not None
    assert beyond.promise.verdict == "violated"


def test_nothing_is_looked_at_after_a_failure() -> None:
    fitted: list[float] = []

    def fit(chosen: Point, data: Data) -> Any:
        fitted.append(chosen.validation["DP"])
        return Told(0.5)

    found = deliver(graph(4000), FRONT, fit=fit, search=no_search, limits={"max_dp": 0.15})
    assert len(fitted) == 1
    assert found.promise is not None
    assert found.promise.verdict == "violated"


def test_without_limits_nothing_is_checked() -> None:
    found = deliver(graph(), FRONT, fit=told, search=no_search, limits={}, fairness=1.0)
    assert (found.promise, found.model) == (None, None)
    assert found.decision.point == FRONT[0]


def test_which_nodes_check() -> None:
    with_safety, without = graph(1500), graph(1500, (0.5, 0.25, 0.25))
    assert checked_on(with_safety) == "safety"
    assert checked_on(with_safety, "test") == "test"
    assert checked_on(without) == "test"
    assert checked_on(graph(500, (0.5, 0.25, 0.25))) == "cross-fitting"
    assert checked_on(without, "cross-fitting") == "cross-fitting"
    with pytest.raises(DataError, match="'check' must not be 'safety'"):
        checked_on(without, "safety")


def test_more_nodes_need_less_margin() -> None:
    small, large = (margins(graph(n), {"max_dp": 0.1, "min_impact_ratio": 0.8}, 0.95, "safety") for n in (500, 8000))
    assert 0 < large["max_dp"] < small["max_dp"] < 1
    assert large["min_impact_ratio"] > large["max_dp"]


def test_the_labels_of_the_check_have_no_part_in_what_is_checked() -> None:
    data = graph()
    before = margins(data, {"max_dp": 0.1, "max_eo": 0.1, "min_impact_ratio": 0.8}, 0.95, "safety")
    data.y = torch.where(data.safety_mask & (data.y >= 0), 1 - data.y, data.y)
    assert margins(data, {"max_dp": 0.1, "max_eo": 0.1, "min_impact_ratio": 0.8}, 0.95, "safety") == before


def test_a_group_without_safety_nodes_is_not_shown() -> None:
    data = graph(20_000)
    data.safety_mask &= data.sens == 0
    found = promise_of(told(FRONT[0], data), data, {"max_dp": 0.9}, 0.95, "safety")
    assert found.verdict == "not shown"
    assert [count.people > 0 for count in found.checks[0].counts] == [True, False]


def test_a_ratio_that_validation_cannot_measure() -> None:
    """If some label is never predicted, no configuration has a ratio, and the fairest is checked."""
    unknown = [Point(each.method, each.parameters, validation=dict(each.validation)) for each in FRONT]
    for each in unknown:
        del each.validation["IR"]  # type: ignore[attr-defined] # a dict here
    found = deliver(graph(4000), unknown, fit=told, search=no_search, limits={"min_impact_ratio": 0.8})
    assert found.decision.point == unknown[0]
    assert candidates(unknown, {"min_impact_ratio": 0.8}, {}, rooms=[1.8]) == unknown[:1]


def test_folds_cover_all_but_the_test_nodes_once() -> None:
    data = graph(500, (0.5, 0.25, 0.25))
    parts = fold_graphs(data, 5)
    held_out = torch.stack([part.safety_mask for part in parts])
    assert (held_out.sum(0) == (data.train_mask | data.val_mask).long()).all()
    for part in parts:
        assert not (part.safety_mask & (part.train_mask | part.val_mask)).any()
        assert not (part.test_mask & (part.train_mask | part.val_mask | part.safety_mask)).any()
        assert part.val_mask.sum() / part.train_mask.sum() == pytest.approx(0.5, abs=0.1)
    assert data.get("safety_mask") is None


def test_cross_fitting_checks_every_fold_with_a_model_that_has_not_seen_it() -> None:
    data = graph(600, (0.5, 0.25, 0.25))
    searched: list[Data] = []

    def search(part: Data, number: int) -> list[Point]:
        searched.append(part)
        return FRONT

    def fit(chosen: Point, part: Data) -> NodeClassifier:
        assert part is searched[-1]
        return told(chosen, part)  # type: ignore[no-any-return] # stands in for a model

    found = cross_fitted(data, search, fit, {"max_dp": 0.3}, 0.95)
    assert len(searched) == 5
    assert found.on == "cross-fitting"
    assert found.people == int((data.train_mask | data.val_mask).sum())
    assert found.verdict == "shown"
    assert "other folds" in found.assumption
