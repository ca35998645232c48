"""Groups, attributes and intersections: every count is right, and none is about a few people."""

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import fairpass
from fairpass.methods import GCN
from fairpass.report import Evidence, collect
from fairpass.report.breakdown import attributes
from fairpass.report.figures import figure_tables
from fairpass.report.measures import TestNodes
from fairpass.report.page import render
from fairpass.report.schema import Breakdown
from fairpass.training import Task, Training


def by_attribute(evidence: Evidence) -> dict[str, Breakdown]:
    return {each["attribute"]: each for each in evidence.breakdowns}


def test_attributes_come_from_the_columns(hiring: Data, german: Data) -> None:
    found = attributes(hiring, hiring.group_names)
    assert [each.name for each in found] == ["sex × race", "sex", "race"]
    for group, (sex, race) in zip(
        hiring.group_names, product(("female", "male"), ("asian", "black", "white")), strict=True
    ):
        place = hiring.group_names.index(group)
        assert found[1].values[found[1].of_group[place]] == sex
        assert found[2].values[found[2].of_group[place]] == race
    assert [each.name for each in attributes(german, german.group_names)] == ["Gender"]
    plain = Data()
    assert [(each.name, each.values) for each in attributes(plain, ["a", "b"])] == [("group", ["a", "b"])]


def test_merged_groups_have_no_value(hiring: Data) -> None:
    merged = attributes(hiring, ["female × white", "other"])
    assert merged[1].of_group == [merged[1].values.index("female"), -1]


def test_counts_are_those_of_the_model(hiring: Data) -> None:
    model = GCN(training=Training(epochs=10)).fit(hiring)
    found = by_attribute(collect(hiring, {"gcn": [model]}, title="x", min_group=1))
    nodes = hiring.test_mask & (hiring.y >= 0)
    predicted, sens = model.predict(hiring)[nodes], hiring.sens[nodes]
    for sex in ("female", "male"):
        codes = [code for code, name in enumerate(hiring.group_names) if name.startswith(f"{sex} ×")]
        inside = torch.isin(sens, torch.tensor(codes))
        (row,) = [each for each in found["sex"]["groups"] if each["group"] == sex]
        assert np.sum(row["counts"]) == int(inside.sum())
        assert np.sum(row["counts"], axis=0).tolist() == predicted[inside].bincount(minlength=2).tolist()
        scores = model.predict_proba(hiring)[nodes, 1]
        above = int((scores[inside].double() > scores.double().median().item()).sum())
        assert abs(row["scores"][1]["above_median"] - above) <= 1  # of an even number, the median is between two
    assert found["sex"]["unknown"] == int((sens < 0).sum()) > 0


def test_small_groups_are_in_no_count(hiring_evidence: Evidence, hiring: Data) -> None:
    nodes = hiring.test_mask & (hiring.y >= 0) & (hiring.sens >= 0)
    sizes = dict(zip(hiring.group_names, hiring.sens[nodes].bincount(minlength=6).tolist(), strict=True))
    small = [name for name, size in sizes.items() if size < 10]
    assert len(small) == 2
    assert hiring_evidence.data["small"] == small
    whole = by_attribute(hiring_evidence)["sex × race"]
    assert whole["small"] == small
    assert [each["group"] for each in whole["groups"]] == [name for name in sizes if name not in small]
    for method in hiring_evidence.methods:
        for run in method["runs"]:
            assert not {each["group"] for each in run["evaluation"]["groups"]} & set(small)
            assert not {each["group"] for each in run["confusion"]} & set(small)
            assert not {each["group"] for each in run["histograms"]} & set(small)
            assert not {
                pair[end] for pair in run["evaluation"]["worst_pair"].values() for end in ("high", "low")
            } & set(small)
        assert method["thresholds"] is not None
        assert not {cell["group"] for cell in method["thresholds"]["cells"]} & set(small)
    (test,) = [split for split in hiring_evidence.data["splits"] if split["name"] == "test"]
    assert [cells is None for cells in test["cells"]] == [name in small for name in sizes]


@pytest.mark.parametrize("min_group", [5, 10, 20])
def test_subtraction_does_not_show_a_small_group(hiring: Data, min_group: int) -> None:
    model = GCN(training=Training(epochs=2)).fit(hiring)
    found = by_attribute(collect(hiring, {"gcn": [model]}, title="x", min_group=min_group))
    shown = {each["group"]: np.array(each["counts"]) for each in found["sex × race"]["groups"]}
    for name in ("sex", "race"):
        for row in found[name]["groups"]:
            parts = [counts for group, counts in shown.items() if row["group"] in group.split(" × ")]
            rest = int(np.sum(row["counts"]) - np.sum(parts))
            assert rest == 0 or rest >= min_group
    told = sum(np.sum(counts) for counts in shown.values())
    (run,) = collect(hiring, {"gcn": [model]}, title="x", min_group=min_group).methods[0]["runs"]
    assert run["evaluation"]["n"] - told == 0 or run["evaluation"]["n"] - told >= min_group


def test_few_people_without_a_group_are_in_no_figure() -> None:
    data = fairpass.synthetic(400, seed=1)
    sens = data.sens.clone()
    tested = torch.nonzero(data.test_mask).flatten()
    sens[tested[:4]] = -1
    data.sens = sens
    nodes = TestNodes.of(Task(data), 10)
    assert (nodes.left_out, nodes.unknown) == (4, 4)
    assert not set(nodes.index.tolist()) & set(tested[:4].tolist())
    assert len(TestNodes.of(Task(data), 4).index) == len(nodes.index) + 4
    evidence = collect(data, {"gcn": [GCN(training=Training(epochs=2)).fit(data)]}, title="x")
    assert evidence.delivered["evaluation"]["n"] == len(nodes.index)
    assert "Fewer than 10 people of small or unknown groups are in no figure" in render([evidence])


def test_one_group_left_cannot_be_compared() -> None:
    data = fairpass.synthetic(400, group_fraction=0.1, seed=1)
    model = GCN(training=Training(epochs=2)).fit(data)
    evidence = collect(data, {"gcn": [model]}, title="x", min_group=30)
    assert len(evidence.data["small"]) == 1
    text = render([evidence])
    assert "No two groups have enough people among the test nodes to be compared." in text
    assert evidence.delivered["evaluation"]["delta_dp"] is None


def test_rates_of_few_people_are_undefined(hiring_evidence: Evidence) -> None:
    for table in figure_tables(hiring_evidence):
        for row in table.rows:
            assert row.people >= 10
            assert math.isnan(row.false_negative_rate.value) == (row.positives < 10)
            assert math.isnan(row.false_positive_rate.value) == (row.people - row.positives < 10)
            assert math.isnan(row.precision.value) == (row.selected < 10)
        for scores in table.scores:
            assert all(each.people >= 10 for each in scores.bins)


def test_figures_of_each_attribute_and_of_both(hiring_evidence: Evidence, tmp_path: Path) -> None:
    assert [table.attribute for table in figure_tables(hiring_evidence)] == ["sex", "race", "sex × race"]
    text = render([hiring_evidence])
    for caption in ("“invited” by sex", "“invited” by race", "“invited” by sex × race"):
        assert f"<span>{caption}</span>" in text
    assert "with an unknown category are excluded" in text
    assert "Not shown, with fewer than 10 people: female × asian, male × asian." in text
    assert "PERSON-" not in text
    assert "PERSON-" not in json.dumps(hiring_evidence.data)


def test_the_favourable_label_is_reported(german: Data) -> None:
    model = GCN(training=Training(epochs=5)).fit(german)
    good, bad = (
        figure_tables(collect(german, {"gcn": [model]}, title="x", favourable=label))[0]
        for label in (None, "bad customer")
    )
    assert (good.label, bad.label) == ("good customer", "bad customer")
    for one, other in zip(good.rows, bad.rows, strict=True):
        assert one.selected + other.selected == one.people
        assert one.false_positive_rate == pytest.approx(other.false_negative_rate)
