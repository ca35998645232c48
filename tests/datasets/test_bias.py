"""The checks say what the statistics say, in the right order of severity."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.datasets.dials import accepted_dials
from tests.drawing import examples
from torch_geometric.data import Data

from fairpass.datasets.bias import BiasCheck, find_bias
from fairpass.datasets.statistics import GraphStatistics, Leakage, Mixing, describe
from fairpass.datasets.synthetic_graphs import synthetic

KINDS = {
    "sensitive_feature",
    "group_predictable",
    "leaking_features",
    "sensitive_homophily",
    "base_rates",
    "degrees",
    "group_sizes",
    "small_cells",
    "labelling",
    "unknown_groups",
}


def statistics_of(**dials: Any) -> GraphStatistics:
    fair = {"sens_homophily": 0.5, "group_fraction": 0.5, "label_bias": 0.0, "feature_leakage": 0.0}
    return describe(synthetic(2_000, **(fair | dials)), leakage_auc=True)


def by_kind(statistics: GraphStatistics) -> dict[str, BiasCheck]:
    found = {finding.kind: finding for finding in find_bias(statistics)}
    assert found.keys() <= KINDS
    return found


@pytest.fixture(scope="module")
def fair() -> GraphStatistics:
    return statistics_of()


def test_a_fair_graph_has_nothing_severe(fair: GraphStatistics) -> None:
    assert {finding.severity for finding in find_bias(fair)} == {"low"}


@pytest.mark.parametrize(
    ("dials", "kind", "words"),
    [
        ({"sens_homophily": 0.9}, "sensitive_homophily", "90.0% of the edges"),
        ({"label_bias": 0.3}, "base_rates", "parity gap of 30.0 percentage points"),
        ({"feature_leakage": 3.0}, "group_predictable", "does not hide it"),
        ({"group_fraction": 0.05}, "group_sizes", "'1', has 5.0% of the nodes (100)"),
        ({"group_fraction": 0.01}, "small_cells", "has 10 of the labelled nodes"),
    ],
)
def test_each_dial_is_found(dials: dict[str, float], kind: str, words: str) -> None:
    finding = by_kind(statistics_of(**dials))[kind]
    assert finding.severity == "high"
    assert words in finding.sentence


def test_values_are_the_statistics(fair: GraphStatistics) -> None:
    values = {kind: finding.value for kind, finding in by_kind(fair).items()}
    assert values["group_predictable"] == fair.leakage.auc
    assert values["leaking_features"] == max(fair.leakage.correlations.values())
    assert values["sensitive_homophily"] == fair.sensitive_mixing.assortativity
    assert values["base_rates"] == pytest.approx(fair.base_rate_gap)
    assert values["group_sizes"] == 1
    assert values["small_cells"] == 500


@examples(25)
@given(dials=accepted_dials(300), known=st.floats(0.1, 1), seed=st.integers(0, 9))
def test_always_sentences_with_numbers_worst_first(dials: dict[str, Any], known: float, seed: int) -> None:
    data = synthetic(**dials, seed=seed)
    hidden = torch.rand(2, 300, generator=torch.Generator().manual_seed(seed)) > known
    data.y, data.sens = data.y.masked_fill(hidden[0], -1), data.sens.masked_fill(hidden[1], -1)
    statistics = describe(data)
    findings = find_bias(statistics)
    severities = [finding.severity for finding in findings]
    assert severities == sorted(severities, key=["high", "medium", "low"].index)
    assert len({finding.kind for finding in findings}) == len(findings)
    for finding in findings:
        assert math.isfinite(finding.value)
        assert finding.sentence.endswith(".")
        assert not {"nan", "inf", "None"} & set(finding.sentence.split())
        assert json.loads(json.dumps(finding.to_dict(), allow_nan=False)) == finding.to_dict()
        if finding.kind == "base_rates":
            assert finding.value == pytest.approx(statistics.base_rate_gap)


def test_sensitive_feature(fair: GraphStatistics) -> None:
    assert by_kind(fair)["sensitive_feature"].severity == "low"
    itself = replace(fair, leakage=replace(fair.leakage, sensitive_feature="sex"))
    finding = by_kind(itself)["sensitive_feature"]
    assert (finding.severity, finding.value) == ("high", 1)
    assert "'sex'" in finding.sentence
    assert "the other features" in by_kind(itself)["group_predictable"].sentence


@pytest.mark.parametrize(("auc", "severity"), [(0.4, "low"), (0.6, "medium"), (0.7, "high"), (1.0, "high")])
def test_limits_are_included(fair: GraphStatistics, auc: float, severity: str) -> None:
    found = by_kind(replace(fair, leakage=replace(fair.leakage, auc=auc)))
    assert found["group_predictable"].severity == severity


@pytest.mark.parametrize("auc", [None, math.nan])
def test_no_auc_no_finding(fair: GraphStatistics, auc: float | None) -> None:
    assert "group_predictable" not in by_kind(replace(fair, leakage=Leakage(None, {}, auc)))


def test_leaking_features_are_named(fair: GraphStatistics) -> None:
    strong = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6, "e": 0.1}
    sentence = by_kind(replace(fair, leakage=Leakage(None, strong, None)))["leaking_features"].sentence
    assert sentence.endswith(": 'a' (0.90), 'b' (0.80), 'c' (0.70) and 1 more.")
    weak = by_kind(replace(fair, leakage=Leakage(None, {"e": 0.1}, None)))["leaking_features"]
    assert weak.severity == "low"
    assert "'e', has a correlation of 0.10" in weak.sentence


@pytest.mark.parametrize(
    ("homophily", "words"), [(0.8, "drives the groups apart"), (0.52, "hardly"), (0.2, "mixes the groups")]
)
def test_homophily_is_judged_against_chance(fair: GraphStatistics, homophily: float, words: str) -> None:
    mixing = Mixing(100, homophily, 0.5, (homophily - 0.5) / 0.5)
    assert words in by_kind(replace(fair, sensitive_mixing=mixing))["sensitive_homophily"].sentence


def star() -> Data:
    """A hub of group a with three neighbours, one of group a, and a lone labelled node of group b."""
    edges = torch.tensor([[0, 0, 0], [1, 2, 3]])
    return Data(
        x=torch.zeros(5, 1),
        edge_index=torch.cat([edges, edges.flip(0)], dim=1),
        y=torch.tensor([0, -1, 1, 0, 1]),
        sens=torch.tensor([0, 0, 1, 1, 1]),
        group_names=["a", "b"],
        label_names=["no", "yes"],
    )


def test_by_hand() -> None:
    found = by_kind(describe(star()))
    degrees = found["degrees"]  # group a: 3 and 1; group b: 1, 1 and 0
    assert degrees.value == pytest.approx(2 / 3)
    assert degrees.severity == "high"
    assert "'b' have 0.7 neighbours on average, those of 'a' 2.0: 67% fewer" in degrees.sentence
    assert found["base_rates"].sentence.startswith("66.7% of group 'b' but 0.0% of 'a' have label 'yes'")
    assert found["labelling"].value == pytest.approx(1 / 2)
    assert "50.0% of group 'a' and 100.0% of 'b' are labelled" in found["labelling"].sentence
    cells = found["small_cells"]
    assert (cells.value, cells.severity) == (0, "high")
    assert "'a' with 'yes'" in cells.sentence
    assert "unknown_groups" not in found


@pytest.mark.parametrize("change", [{"sens": torch.zeros(5, dtype=torch.long)}, {"sens": torch.full((5,), -1)}])
def test_without_groups_to_compare(change: dict[str, Any]) -> None:
    data = star()
    data.sens = change["sens"]
    data.group_names = None
    found = by_kind(describe(data, leakage_auc=True))
    assert not {"base_rates", "degrees", "labelling", "group_predictable"} & set(found)
    if change["sens"][0] < 0:
        assert found["unknown_groups"].severity == "high"
        assert "5 of the nodes (100.0%)" in found["unknown_groups"].sentence


def test_without_edges_or_labels() -> None:
    data = star()
    data.edge_index, data.y = torch.empty((2, 0), dtype=torch.long), torch.full((5,), -1)
    assert not {"degrees", "sensitive_homophily", "base_rates", "small_cells"} & set(by_kind(describe(data)))
