"""What is kept: all of it plain, whole or absent, and true."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from fairpass.errors import DataError, NotFittedError
from fairpass.files import sha256
from fairpass.methods import GCN, GMMD, Constant, NodeClassifier, Thresholds
from fairpass.metrics import GroupThresholds, evaluate
from fairpass.report import Evidence, collect, find_evidence, write_report
from fairpass.report.figures import figure_tables
from fairpass.report.page import render
from fairpass.training import fingerprint
from fairpass.tuning import Point

Models = dict[str, list[NodeClassifier]]


def test_it_is_stored_and_read_again(evidence: Evidence, tmp_path: Path) -> None:
    file = evidence.save(tmp_path / "run")
    assert file == tmp_path / "run" / "evidence.json"
    assert Evidence.load(tmp_path / "run") == Evidence.load(file) == evidence
    assert evidence.save(tmp_path / "other.json") == tmp_path / "other.json"
    assert json.loads(file.read_text())["kind"] == "fairpass evidence"


def test_several_are_found_below_a_directory(evidence: Evidence, tmp_path: Path) -> None:
    for name in ("b", "a"):
        evidence.save(tmp_path / name)
    assert find_evidence([tmp_path]) == [evidence, evidence]
    assert find_evidence([tmp_path / "a", tmp_path / "b" / "evidence.json"]) == [evidence, evidence]


def test_what_is_named_twice_counts_once(evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    evidence.save(tmp_path / "a")
    (tmp_path / "link").symlink_to("a")
    assert find_evidence([tmp_path, "a", "./a/evidence.json", "link"]) == [evidence]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Dear all", "damaged or not one: Expecting value"),
        ('{"kind": "fairpass comparison"}', "its kind is 'fairpass comparison'"),
        ('{"kind": "fairpass evidence", "format": 99}', "it has format 99, and this version reads 1"),
        ('{"kind": "fairpass evidence", "format": 1, "title": "x"}', "damaged or not one: 'question'"),
        ("[1, 2]", "damaged or not one"),
    ],
)
def test_what_is_not_evidence_is_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "evidence.json").write_text(content)
    with pytest.raises(DataError, match=message):
        Evidence.load(tmp_path)


def test_evidence_of_the_version_before_is_read(evidence: Evidence, tmp_path: Path) -> None:
    file = evidence.save(tmp_path)
    stored = json.loads(file.read_text())
    new = ("breakdowns", "differences", "promise", "identity", "model_file", "favourable", "min_group")
    kept = {key: value for key, value in stored.items() if key not in (*new, "sha256")}
    file.write_text(json.dumps(kept | {"version": "0.2.0"}))
    old = Evidence.load(tmp_path)
    assert (old.breakdowns, old.promise, old.min_group) == ([], None, 10)
    text = render([old])
    assert "No limit was asked for." in text
    # What needs no scores follows from the counts it has.
    expected, found = (figure_tables(each)[0].rows for each in (evidence, old))
    assert found == expected


def test_a_truncated_file_is_refused(evidence: Evidence, tmp_path: Path) -> None:
    file = evidence.save(tmp_path)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"evidence\.json' must be a fairpass evidence file \(damaged or not one"):
        Evidence.load(tmp_path)


@pytest.mark.parametrize("name", ["report.json", "model.safetensors", "predictions.csv"])
def test_the_page_is_not_written_over_other_files(evidence: Evidence, tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"'out' must end in \.html \(got"):
        write_report([evidence], tmp_path / name)


def test_nothing_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"must be evidence, or a directory with evidence\.json \(there is none\)"):
        find_evidence([tmp_path])


def test_the_data_are_told_apart(evidence: Evidence, german: Data) -> None:
    assert evidence.data["fingerprint"] == fingerprint(german)
    assert dict(evidence.data["provenance"])["licence"] == "CC BY 4.0"
    assert (evidence.data["nodes"], evidence.data["edges"]) == (1000, 21742)
    assert [(split["name"], split["nodes"]) for split in evidence.data["splits"]] == [
        ("training", 100),
        ("validation", 250),
        ("test", 250),
    ]
    for split in evidence.data["splits"]:
        assert sum(sum(cells or ()) for cells in split["cells"]) == split["labelled"]
    assert any(finding["kind"] == "base_rates" for finding in evidence.bias["findings"])


def test_the_graph_is_not_changed(german: Data, models: Models) -> None:
    before = fingerprint(german)
    collect(german, {"gcn": models["gcn"]}, title="x")
    assert fingerprint(german) == before


def test_evaluations_are_the_models_own(evidence: Evidence, german: Data, models: Models) -> None:
    for name, fitted in models.items():
        for run, model in zip(evidence.method(name)["runs"], fitted, strict=True):
            expected = model.evaluate(german).to_dict()
            assert {**run["evaluation"], "intervals": {}} == expected
            assert run["evaluation"]["intervals"]["delta_dp"]["level"] == 0.95


def test_confusion_adds_up(evidence: Evidence) -> None:
    run = evidence.method("gmmd")["runs"][0]
    for confusion, rates in zip(run["confusion"], run["evaluation"]["groups"], strict=True):
        (tn, fp), (fn, tp) = confusion["counts"]
        assert confusion["group"] == rates["group"]
        assert tn + fp + fn + tp == rates["count"]
        assert (tp + fp) / rates["count"] == pytest.approx(rates["selection_rate"])
        assert tp / (tp + fn) == pytest.approx(rates["true_positive_rate"])
    for histogram, confusion in zip(run["histograms"], run["confusion"], strict=True):
        assert sum(histogram["counts"]) == np.sum(confusion["counts"])


@pytest.mark.parametrize("name", ["gcn", "gmmd"])
def test_counts_give_the_metrics_at_every_threshold(
    name: str, evidence: Evidence, german: Data, models: Models
) -> None:
    kept = evidence.method(name)["thresholds"]
    assert kept is not None
    thresholds = kept["thresholds"]
    assert kept["own"] in thresholds
    nodes = german.test_mask & (german.y >= 0)
    scores = models[name][0].predict_proba(german)[nodes, 1]
    for position in [thresholds.index(kept["own"]), *range(0, len(thresholds), 125)]:
        for cell in kept["cells"]:
            group = german.group_names.index(cell["group"])
            inside = (german.sens[nodes] == group) & (german.y[nodes] == cell["label"])
            assert sum(cell["counts"]) == int(inside.sum())
            selected = int((scores[inside] > thresholds[position]).sum())
            assert sum(cell["counts"][position + 1 :]) == selected
    assert len(kept["cells"]) == 4


def test_history_is_thinned(german: Data) -> None:
    model = GCN(training=GCN.default_training().but(epochs=150, track_discrepancy=False)).fit(german)
    (run,) = collect(german, {"gcn": [model]}, title="x").methods[0]["runs"]
    epochs = run["history"]["epoch"]
    assert len(epochs) <= 100
    assert (epochs[0], epochs[-1]) == (0, 149)
    assert model.epoch_ in epochs
    assert run["epochs"] == 150


def test_flags_are_plain_words(evidence: Evidence, german: Data, models: Models) -> None:
    (flag,) = evidence.method("constant")["flags"]
    assert flag.startswith("predicts the same for every node")
    model = GCN(training=GCN.default_training().but(epochs=2, threshold=0.01)).fit(german)
    flags = collect(german, {"gcn": [model]}, title="x").methods[0]["flags"]
    assert flags[0] == "predicts 'good customer' for 100 % of the nodes: its fairness is not informative"
    wide = [flag for flag in evidence.method("gmmd")["flags"] if flag.startswith("is measured on few nodes")]
    assert len(wide) == 1
    assert flags[1] == "is not more accurate than giving 'good customer' to every node, which is right for 70.0 %"


def test_nobody_is_in_it_unless_asked_for(evidence: Evidence, hiring_evidence: Evidence, tmp_path: Path) -> None:
    assert evidence.neighbourhoods == hiring_evidence.neighbourhoods == {}
    assert "PERSON-" not in hiring_evidence.save(tmp_path).read_text()


def test_neighbours_are_of_the_graph(with_people: Evidence, german: Data) -> None:
    edges = set(zip(*german.edge_index.tolist(), strict=True))
    cases = with_people.neighbourhoods["cases"]
    assert 1 <= len(cases) <= 8
    for case in cases:
        centre = int(case["centre"]["id"])
        assert german.test_mask[centre]
        assert case["degree"] == int((german.edge_index[0] == centre).sum())
        assert len(case["neighbours"]) == min(case["degree"], 25)
        for neighbour in case["neighbours"]:
            assert (centre, int(neighbour["id"])) in edges
            assert neighbour["group"] == int(german.sens[int(neighbour["id"])])
            assert all(0 <= value <= 1 for value in neighbour["similarity"].values())
            assert neighbour["similarity"]["constant"] == 1
    outcomes = {case["centre"]["predicted"]["gmmd"] == case["centre"]["label"] for case in cases}
    assert outcomes == {True, False}


def test_theorems_hold_on_german(evidence: Evidence) -> None:
    assert [found["theorem"] for found in evidence.theory["theorems"]] == ["4.1", "4.2"]
    for found in evidence.theory["theorems"]:
        assert found["holds"]
        assert 0 < (found["measured"] or 0) < (found["bound"] or 0)
    apart = {found["name"]: found for found in evidence.theory["methods"]}
    assert apart["constant"]["mmd2"] == 0
    assert 0 <= apart["gmmd"]["mmd2"] < apart["gcn"]["mmd2"]


def test_more_groups_labels_and_unknowns(hard_evidence: Evidence, hard_graph: Data) -> None:
    assert hard_evidence.theory["theorems"] == []
    assert hard_evidence.theory["note"] == "The theorems are about two groups; this graph has 3."
    for method in hard_evidence.methods:
        assert method["thresholds"] is None
        (run,) = method["runs"]
        tested = int((hard_graph.test_mask & (hard_graph.y >= 0)).sum())
        assert sum(np.sum(confusion["counts"]) for confusion in run["confusion"]) == tested
        assert [confusion["group"] for confusion in run["confusion"]][-1] == "of unknown group"
        assert len(run["histograms"]) == 3 * 4


def test_a_missing_group_is_said(german: Data, models: Models) -> None:
    poor = german.clone()
    poor.test_mask = german.test_mask & ~((german.sens == 1) & (german.y == 1))
    found = collect(poor, {"gmmd": models["gmmd"]}, title="x")
    assert found.methods[0]["runs"][0]["evaluation"]["delta_eo"] is None
    assert any(flag.startswith("has no ΔEO here") for flag in found.methods[0]["flags"])


def test_points_of_tuning(german: Data, models: Models) -> None:
    model = models["gmmd"][0]
    training = {name: value for name, value in model.training.to_dict().items() if name != "seed"}
    parameters = model.hyperparameters

    def point(weight: float, utility: float, unfairness: float) -> Point:
        metrics = dict.fromkeys(("AUC", "F1", "ACC"), utility) | dict.fromkeys(("DP", "EO"), unfairness)
        return Point("gmmd", {**parameters, "weight": weight}, training, validation=metrics)

    points = [point(1, 0.8, 0.3), point(parameters["weight"], 0.75, 0.1), point(7, 0.7, 0.2)]
    found = collect(german, {"gmmd": models["gmmd"]}, title="x", points=points).points
    assert [each["front"] for each in found] == [True, True, False]
    assert [each["chosen"] for each in found] == [False, True, False]
    assert found[1]["utility"] == pytest.approx(0.75)


def test_counts_put_together_give_the_difference(evidence: Evidence, german: Data, models: Models) -> None:
    kept = evidence.method("gmmd")["thresholds"]
    assert kept is not None
    position = 333
    nodes = german.test_mask & (german.y >= 0)
    expected = evaluate(
        german.y[nodes],
        models["gmmd"][0].predict_proba(german)[nodes, 1],
        sens=german.sens[nodes],
        threshold=kept["thresholds"][position],
    )
    selected = torch.tensor([[sum(c["counts"][position + 1 :]) for c in kept["cells"]]]).reshape(2, 2)
    total = torch.tensor([[sum(c["counts"]) for c in kept["cells"]]]).reshape(2, 2)
    rates = selected.sum(1) / total.sum(1)
    assert float((rates[0] - rates[1]).abs()) == pytest.approx(expected.delta_dp, abs=1e-6)


@pytest.mark.parametrize("wrong", [{}, {"gcn": []}])
def test_models_are_needed(wrong: Models, german: Data) -> None:
    with pytest.raises(ValueError, match="'models' must have a fitted classifier for each name"):
        collect(german, wrong, title="x")


def test_models_must_be_fitted(german: Data) -> None:
    with pytest.raises(NotFittedError, match="'models' must be fitted \\('gcn' has one that is not\\)"):
        collect(german, {"constant": [Constant().fit(german)], "gcn": [GCN()]}, title="x")


def test_the_chosen_one_must_be_there(german: Data, models: Models) -> None:
    with pytest.raises(ValueError, match=r"'chosen' must be one of constant, gcn, gmmd \(got 'gat'\)"):
        collect(german, models, title="x", chosen="gat")


def test_by_default_the_last_one_is_chosen(evidence: Evidence) -> None:
    assert evidence.chosen == "gmmd"
    assert evidence.method("gmmd")["method"] == GMMD.name
    with pytest.raises(ValueError, match="'name' must be one of constant, gcn, gmmd"):
        evidence.method("gat")


def test_thresholds_for_each_group_are_told(german: Data) -> None:
    model = Thresholds().fit(german)
    evidence = collect(german, {"constant": [Constant().fit(german)], "thresholds": [model]}, title="Two thresholds")
    kept = evidence.method("thresholds")
    assert kept["thresholds"] is None
    (run,) = kept["runs"]
    assert run["threshold"] is None
    assert model.group_thresholds_ is not None
    assert GroupThresholds.from_dict(run["group_thresholds"] or {}) == model.group_thresholds_
    predicted = model.predict(german)[german.test_mask]
    assert run["predicted"] == predicted.bincount(minlength=2).tolist()
    page = render([evidence])
    assert "one threshold per group (demographic parity)" in page
    alone = render([collect(german, {"thresholds": [model]}, title="Alone")])
    assert "there is no single one to move" in alone


def test_what_is_delivered_is_told(german: Data, models: Models, tmp_path: Path) -> None:
    file = models["gmmd"][0].save(tmp_path / "model.safetensors")
    identity = {"organisation": "The bank", "limits": ["few people"]}
    found = collect(german, {"gmmd": models["gmmd"]}, title="x", model_file=file, identity=identity)
    assert found.model_file == {"name": "model.safetensors", "sha256": sha256(file)}
    assert found.identity == identity
    assert found.delivered["seed"] == 0
    text = render([found])
    for wanted in (sha256(file), "The bank", "few people", "not stated", "gmmd, seed 0, file model.safetensors"):
        assert wanted in text


def test_differences_between_models_are_paired(evidence: Evidence) -> None:
    (only,) = evidence.differences  # a constant has no differences to compare with
    assert only["against"] == "gcn"
    value, low, high = only["metrics"]["acc"]
    own, other = (evidence.method(name)["runs"][0]["evaluation"]["acc"] for name in ("gmmd", "gcn"))
    assert value == pytest.approx(own - other)
    assert None not in (low, high)
    assert (low or 0) <= own - other <= (high or 0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"min_group": 0}, r"'min_group' must be positive \(got 0\)"),
        ({"min_group": 1000}, r"'min_group' must leave some test nodes \(got 1000: every group has fewer\)"),
        ({"favourable": "rich"}, r"'favourable' must be one of bad customer, good customer \(got 'rich'\)"),
    ],
)
def test_what_cannot_be_asked_for(wrong: dict[str, Any], message: str, german: Data, models: Models) -> None:
    with pytest.raises(DataError, match=message):
        collect(german, {"gmmd": models["gmmd"]}, title="x", **wrong)
