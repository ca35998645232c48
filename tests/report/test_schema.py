"""Evidence whose structure was changed with care, so that its checksum is right: refused where it is read, or shown."""

import copy
import gzip
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.torture.damage import outcome
from tests.torture.mutations import change_structure
from tests.torture.stored import rendered
from torch_geometric.data import Data

from fairpass.documents import CHECKSUM, signed
from fairpass.errors import DataError
from fairpass.methods import GCN, NodeClassifier
from fairpass.metrics.promise import check_promise
from fairpass.report import Evidence, collect, find_evidence, write_model_card, write_report
from fairpass.training import Training
from fairpass.tuning import Point

Models = dict[str, list[NodeClassifier]]
DATA = Path(__file__).parents[1] / "data"
EACH = 30
SITUATIONS = ("all there is", "three labels", "several attributes", "0_1")


@pytest.fixture(scope="module")
def full(german: Data, models: Models, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Two groups with everything that evidence may have."""
    model = models["gmmd"][0]
    nodes = german.test_mask
    limits = {"max_dp": 0.2, "min_impact_ratio": 0.8}
    names = {"group_names": german.group_names, "label_names": german.label_names}
    predicted = model.predict(german)[nodes]
    promise = check_promise(german.y[nodes], predicted, sens=german.sens[nodes], limits=limits, on="test", **names)
    metrics = [dict.fromkeys(("AUC", "F1", "ACC"), each) | dict.fromkeys(("DP", "EO"), each / 4) for each in (0.6, 0.7)]
    points = [Point("gmmd", {**model.hyperparameters, "hidden": 8}, validation=each, test=each) for each in metrics]
    return collect(
        german,
        models,
        title="All there is",
        points=points,
        promise=promise.to_dict(),
        identity={"organisation": "The bank", "limits": ["few people"]},
        model_file=model.save(tmp_path_factory.mktemp("model") / "model.safetensors"),
        include_people=True,
    )


@pytest.fixture(scope="module")
def documents(
    full: Evidence, hard_evidence: Evidence, hiring_evidence: Evidence, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Any]:
    folder = tmp_path_factory.mktemp("documents")
    saved = [each.save(folder / str(i)).read_text() for i, each in enumerate((full, hard_evidence, hiring_evidence))]
    made = dict(zip(SITUATIONS, map(json.loads, [*saved, old("0_1")]), strict=True))
    return {name: {key: value for key, value in each.items() if key != CHECKSUM} for name, each in made.items()}


def old(version: str) -> str:
    return gzip.decompress((DATA / f"evidence_{version}.json.gz").read_bytes()).decode()


@pytest.mark.parametrize("situation", SITUATIONS)
def test_changed_structure_is_refused_or_shown(situation: str, documents: Mapping[str, Any], tmp_path: Path) -> None:
    file, refused = tmp_path / "evidence.json", 0
    for number in range(EACH):
        changed = change_structure(documents[situation], Random(f"{situation} {number}"))
        file.write_text(json.dumps(signed(changed)))
        found, message = outcome(partial(Evidence.load, file))
        if message is None:
            rendered(found)
            assert found.checked() == found
        else:
            assert message.startswith(f"'{file}' must be a fairpass evidence file (damaged or not one: ")
            refused += 1
    assert EACH / 2 < refused < EACH


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("data", {}, "'data.provenance' is missing"),
        ("data.nodes", "many", "'data.nodes' is wrong: Input should be a valid integer"),
        ("data.labels", ["one"], "'data.labels' is wrong"),
        ("data.surprise", 1, "'data.surprise' is wrong: Extra inputs are not permitted"),
        ("data.provenance.files", [{}], "'data.provenance.files.0.path' is missing"),
        ("data.nodes", 100, "'data.nodes' is wrong: it must be at least the number of test nodes"),
        ("data.splits.0.cells", [], "'data.splits.0.cells' is wrong: it must have a row for each group"),
        ("surprise", 1, "'surprise' is wrong"),
        ("chosen", "gat", "'chosen' is wrong: it must be the name of a method"),
        ("favourable", "rich", "'favourable' is wrong: it must be a label"),
        ("min_group", 0, "'min_group' is wrong"),
        ("bias.statistics.groups", 3, "'bias.statistics' is wrong: 'groups' is wrong"),
        ("bias.findings.0.severity", "dire", "'bias.findings.0' is wrong: 'severity' is wrong"),
        ("bias.graph_gain.with_edges", None, "'bias.graph_gain' is wrong: it must have both regressions"),
        ("methods.1.name", "gmmd", "'methods' is wrong: it must have each name once"),
        ("methods.1.runs", [], "'methods.1.runs' is wrong"),
        ("methods.1.runs.0.evaluation.acc", 2.0, "'methods.1.runs.0.evaluation' is wrong: 'values' must be an eval"),
        ("methods.1.runs.0.predicted", [1], "'methods.1.runs.0.predicted' is wrong: it must have a number for each"),
        ("methods.1.runs.0.confusion.0.counts", [[1]], "'methods.1.runs.0.confusion.0.counts' is wrong"),
        ("methods.1.runs.0.confusion.0.counts.0.0", 999, "confusion' is wrong: it must have as many people as the"),
        ("methods.1.runs.0.histograms.0.label", "x", "histograms' is wrong: it must be about labels of the graph"),
        ("methods.1.runs.0.history.epoch", [], "history' is wrong: it must have columns of one length, 'epoch' among"),
        ("methods.1.runs.0.history.loss.0", 1e307, "'methods.1.runs.0.history.loss.0' is wrong"),
        ("methods.1.thresholds.own", 0.12345, "'methods.1.thresholds.own' is wrong: it must be one of the thresholds"),
        ("methods.1.thresholds.cells.0.counts", [], "'methods.1.thresholds.cells.0.counts' is wrong: it must have"),
        ("breakdowns", [{}], "'breakdowns.0.attribute' is missing"),
        ("breakdowns.0.not_told", 7, "'breakdowns.0' is wrong: it must be about all test nodes"),
        ("breakdowns.0.groups.0.counts", [[1, 2]], "'breakdowns.0.groups.0.counts' is wrong: it must have a row"),
        ("breakdowns.0.groups.0.scores", [], "'breakdowns.0.groups.0.scores' is wrong: it must be about each label"),
        ("breakdowns.0.groups.0.scores.0.above_median", 999, "it must be about at most as many people as the group"),
        ("breakdowns.0.groups.0.scores.0.bins.0.positives", 999, "bins with at most as many positives as people"),
        ("differences.0", {"against": "gcn"}, "'differences.0.metrics' is missing"),
        ("differences.0.against", "gat", "'differences.0.against' is wrong: it must be the name of a method"),
        ("differences.0.metrics", {}, "'differences.0.metrics' is wrong: it must have every metric"),
        ("points.0.utility", "high", "'points.0.utility' is wrong"),
        ("promise", {"verdict": "shown"}, "'promise' is wrong: 'checks' is missing"),
        ("promise", "shown", "'promise' is wrong"),
        ("promise.checks", [], "'promise' is wrong: 'checks' must have an answer for a limit"),
        ("identity.purpose", 3, "'identity.purpose"),
        ("identity", [], "'identity' is wrong"),
        ("model_file", {"name": "x"}, "'model_file.sha256' is missing"),
        ("theory.methods.0.name", "gat", "'theory.methods' is wrong: it must have names of methods"),
        ("theory.methods.0.mmd2", None, "'theory.methods.0.mmd2' is wrong"),
        ("neighbourhoods", {"methods": []}, "'neighbourhoods' is wrong: it must have 'methods' and 'cases'"),
        ("neighbourhoods.methods", ["gat"], "'neighbourhoods.methods' is wrong: it must have names of methods"),
        ("neighbourhoods.cases.0.centre.label", 2, "it must have labels and groups of the graph"),
        ("neighbourhoods.cases.0.centre.group", 2, "it must have labels and groups of the graph"),
        ("neighbourhoods.cases.0.centre.predicted", {}, "it must have predictions of each method"),
        ("neighbourhoods.cases.0.neighbours.0.similarity", {}, "it must have similarities by each method"),
    ],
)
def test_the_place_is_named(place: str, value: Any, message: str, documents: Mapping[str, Any], tmp_path: Path) -> None:
    changed = copy.deepcopy(documents[SITUATIONS[0]])
    *parents, last = (int(part) if part.isdigit() else part for part in place.split("."))
    inside = changed
    for part in parents:
        inside = inside[part]
    inside[last] = value
    (tmp_path / "evidence.json").write_text(json.dumps(signed(changed)))
    with pytest.raises(DataError, match=r"evidence\.json' must be a fairpass evidence file") as caught:
        Evidence.load(tmp_path)
    assert message in str(caught.value)


@pytest.mark.parametrize("version", ["0_1", "0_2"])
def test_evidence_of_earlier_versions_is_shown(version: str, tmp_path: Path) -> None:
    """Files that these versions wrote, for a synthetic graph; that of 0.1 has no `graph_gain`."""
    (tmp_path / "evidence.json").write_text(old(version))
    (found,) = find_evidence([tmp_path])
    assert found.versions["fairpass"] == version.replace("_", ".") + ".0"
    page = write_report([found], tmp_path / "report.html", include_people=True)
    assert "Of 100 people of group 0" in page.read_text()
    assert ("Do the edges help?" in page.read_text()) == (version == "0_2")
    assert "No limit was asked for." in write_model_card(found, tmp_path / "card.md").read_text()


def test_a_metric_that_an_older_record_lacks_is_undefined(documents: Mapping[str, Any], tmp_path: Path) -> None:
    changed = copy.deepcopy(documents["0_1"])
    for method in changed["methods"]:
        for run in method["runs"]:
            del run["evaluation"]["equalized_odds"]
    (tmp_path / "evidence.json").write_text(json.dumps(signed(changed)))
    found = Evidence.load(tmp_path)
    assert found.delivered["evaluation"]["equalized_odds"] is None
    rendered(found)


def test_a_promise_is_what_its_checks_say(documents: Mapping[str, Any], full: Evidence, tmp_path: Path) -> None:
    changed = {**documents[SITUATIONS[0]], "promise": {**documents[SITUATIONS[0]]["promise"], "verdict": "perfect"}}
    (tmp_path / "evidence.json").write_text(json.dumps(signed(changed)))
    assert Evidence.load(tmp_path) == full


def test_what_could_not_be_read_is_not_collected(german: Data) -> None:
    data = german.clone()
    data.provenance = {"files": "nodes.csv"}
    model = GCN(training=Training(epochs=2)).fit(data)
    with pytest.raises(DataError, match=r"stored and read again \('data.provenance.files' is wrong"):
        collect(data, {"gcn": [model]}, title="x")
