"""The benchmark graphs are the published ones: every figure, every option."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from fairpass.datasets import describe, registry
from fairpass.datasets.download import data_directory
from fairpass.datasets.registry import graph_spec, load, names
from fairpass.datasets.splits import label_balanced_ids
from fairpass.errors import DataError

# The published figures, written down a second time on purpose.
FIGURES: dict[str, dict[str, Any]] = {
    "german": {
        "rows": 1_000,
        "features": 27,
        "edges": 21_742,
        "label_homophily": 0.587,
        "sensitive_homophily": 0.805,
        "max_degree": 286,
        "sha256": ["49cc549b1ca3f1650e3bdcd8cfce62313c763abfbcbf785d32b07fb76ae078ca"],
        "dropped": {"OtherLoansAtStore", "PurposeOfLoan", "GoodCustomer"},
        "sensitive": "Gender",
        "groups": (690, 310),
        "labels": (300, 700),
        "split": (100, 250, 250),
        "first_train": [953, 963, 642, 918, 611],
        "first_test": [127, 598, 120],
    },
    "credit": {
        "rows": 30_000,
        "features": 13,
        "edges": 137_377,
        "label_homophily": 0.642,
        "sensitive_homophily": 0.879,
        "max_degree": 536,
        "sha256": ["5d7a93f25a09dd1648c78b5e0c6a883ca832ee88259d89dfe1062e8c848bfe5d"],
        "dropped": {"Single", "NoDefaultNextMonth"},
        "sensitive": "Age",
        "groups": (27_315, 2_685),
        "labels": (6_636, 23_364),
        "split": (6_000, 7_500, 7_500),
        "first_train": [27473, 8948, 22699, 21143, 18316],
        "first_test": [19880, 9375, 13861],
    },
    "bail": {
        "rows": 18_876,
        "features": 18,
        "edges": 311_870,
        "label_homophily": 0.775,
        "sensitive_homophily": 0.522,
        "max_degree": 5_391,
        "sha256": ["11a7c62be2b7aed7cb069624789755d5f57acc8b69580564e2401b084e2d5faf"],
        "dropped": {"RECID"},
        "sensitive": "WHITE",
        "groups": (9_317, 9_559),
        "labels": (11_772, 7_104),
        "split": (100, 4_719, 4_719),
        "first_train": [17486, 531, 14714, 2340, 3259],
        "first_test": [15776, 12910, 8167],
    },
    "adult": {
        "rows": 12_000,
        "features": 101,
        "edges": 82_207,
        "label_homophily": 0.769,
        "sensitive_homophily": 0.871,
        "max_degree": 49,
        "sha256": ["e129a176ee9d859147fc8ebc1b18f59f02267318942ddca046c0cdbadefcdb88"],
        "dropped": {"income", "fnlwgt", "workclass"},
        "sensitive": "sex",
        "groups": (3_929, 8_071),
        "labels": (8_963, 3_037),
        "split": (1_000, 3_000, 8_000),
    },
    "income": {
        "rows": 14_821,
        "features": 14,
        "edges": 42_831,
        "label_homophily": 0.731,
        "sensitive_homophily": 0.864,
        "max_degree": 648,
        "sha256": [
            "eba651aa5919a361985a5971f59acdd95ff022254493a505f8b4fe74008deb82",
            "4922cf9b602a0099a89dca6ad9186f39121d0d09859686900cdfaf1f6c8e1a8a",
        ],
        "dropped": {"income"},
        "sensitive": "race",
        "groups": (10_136, 4_685),
        "labels": (11_611, 3_210),
        "split": (1_000, 3_705, 10_116),
    },
    "nba": {
        "rows": 403,
        "features": 96,
        "edges": 10_621,
        "label_homophily": 0.536,
        "sensitive_homophily": 0.724,
        "max_degree": 220,
        "sha256": [
            "fe295195cff01f20b785fe9de1e24062123cb146bdae080ce8b3ea8315d45b80",
            "14c73245e5d6b6457cce7504e2bb0ded6b81155e25bf0e7d23793df7c01b4873",
        ],
        "dropped": {"user_id", "SALARY"},
        "sensitive": "country",
        "groups": (296, 107),
        "labels": (154, 159),
        "split": (100, 78, 135),
    },
    "reed98": {
        "rows": 962,
        "features": 87,
        "edges": 18_812,
        "label_homophily": 0.746,
        "sensitive_homophily": 0.522,
        "max_degree": 313,
        "sha256": ["d12ec74dc8c6e237385975b976c3709555a83629a1260be693fb688e3446070e"],
        "dropped": {"gender", "dorm", "class_year", "high_school", "is_late_class"},
        "sensitive": None,
        "groups": (504, 361),
        "labels": (283, 534),
        "split": (393, 197, 197),
    },
    "amherst41": {
        "rows": 2_235,
        "features": 64,
        "edges": 90_954,
        "label_homophily": 0.784,
        "sensitive_homophily": 0.531,
        "max_degree": 467,
        "sha256": ["3108e4b2edb01be05c5a61147583a40e61012820fff7eebe621dd26018caaf00"],
        "dropped": {"gender", "dorm", "class_year", "high_school", "is_late_class"},
        "sensitive": None,
        "groups": (1_015, 1_017),
        "labels": (896, 1_125),
        "split": (500, 483, 952),
    },
    "johns-hopkins55": {
        "rows": 5_180,
        "features": 194,
        "edges": 186_586,
        "label_homophily": 0.770,
        "sensitive_homophily": 0.549,
        "max_degree": 886,
        "sha256": ["fc7243bf257155df03afbc397ab34b5f8eb8e75f40cd1603398e207a033ef50f"],
        "dropped": {"gender", "dorm", "class_year", "high_school", "is_late_class"},
        "sensitive": None,
        "groups": (2_153, 2_609),
        "labels": (1_848, 2_696),
        "split": (500, 1_100, 2_804),
    },
}

NOT_MEASURED = ("pokec-n", "pokec-z")  # for the most part; see test_pokec.py

PUBLISHED_SPLITS = [name for name, figures in FIGURES.items() if "first_train" in figures]


@pytest.fixture(scope="module", autouse=True)
def graph_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("graphs")
        patch.setenv("FAIRPASS_CACHE", str(cache))
        yield cache


def load_or_skip(name: str, **options: Any) -> Data:
    if not registry.is_available(name):
        pytest.skip(f"the files of {name} are not here: set FAIRPASS_DATA or run `fairpass datasets fetch {name}`")
    return load(name, **options)


@pytest.fixture(scope="module", params=FIGURES)
def graph(request: pytest.FixtureRequest, graph_cache: Path) -> Data:
    return load_or_skip(request.param)


@pytest.fixture(scope="module")
def figures(graph: Data) -> dict[str, Any]:
    return FIGURES[graph.provenance["name"]]


def test_the_table(graph: Data, figures: dict[str, Any]) -> None:
    assert graph.x.shape == (figures["rows"], figures["features"])
    assert [file["sha256"] for file in graph.provenance["files"]] == figures["sha256"]
    assert len(graph.feature_names) == len(set(graph.feature_names)) == figures["features"]
    assert figures["dropped"].isdisjoint(graph.feature_names)
    assert tuple(graph.y[graph.y >= 0].bincount().tolist()) == figures["labels"]
    assert tuple(graph.sens[graph.sens >= 0].bincount().tolist()) == figures["groups"]
    assert min(graph.y.min(), graph.sens.min()) >= -1


def test_the_graph(graph: Data, figures: dict[str, Any]) -> None:
    row, col = graph.edge_index
    assert graph.edge_index.shape == (2, 2 * figures["edges"])
    assert row.bincount(minlength=graph.num_nodes).max() == figures["max_degree"]
    for values, homophily in ((graph.y, "label_homophily"), (graph.sens, "sensitive_homophily")):
        known = (values[row] >= 0) & (values[col] >= 0)
        equal = (values[row] == values[col])[known].double().mean().item()
        assert equal == pytest.approx(figures[homophily], abs=5e-4)
    isolated = {"nba": 3}.get(graph.provenance["name"], 0)
    assert (row.bincount(minlength=graph.num_nodes) == 0).sum() == isolated


def test_the_split(graph: Data, figures: dict[str, Any]) -> None:
    masks = torch.stack([graph.train_mask, graph.val_mask, graph.test_mask])
    assert tuple(masks.sum(dim=1).tolist()) == figures["split"]
    assert masks.sum(dim=0).max() == 1
    assert not masks[:, (graph.y < 0) | (graph.sens < 0)].any()


@pytest.mark.parametrize("name", PUBLISHED_SPLITS)
def test_the_published_split(name: str) -> None:
    graph, figures = load_or_skip(name), FIGURES[name]
    train, val, test = label_balanced_ids(graph.y, graph_spec(name).labels_for_training)
    assert train[:5] == figures["first_train"]
    assert test[:3] == figures["first_test"]
    for mask, ids in zip((graph.train_mask, graph.val_mask, graph.test_mask), (train, val, test), strict=True):
        assert mask.nonzero().flatten().tolist() == sorted(ids)
    assert graph.y[graph.train_mask].double().mean() == 0.5


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in PUBLISHED_SPLITS])
def test_the_stated_split_has_the_base_rate_in_each_part(name: str) -> None:
    for seed in (20, 1):
        graph = load_or_skip(name, split_seed=seed)
        eligible = (graph.y >= 0) & (graph.sens >= 0)
        rate = graph.y[eligible].double().mean().item()
        assert graph.train_mask.sum() <= graph_spec(name).labels_for_training
        for mask in (graph.train_mask, graph.val_mask, graph.test_mask):
            assert abs(graph.y[mask].double().mean().item() - rate) < 1.5 / mask.sum().item()


@pytest.mark.parametrize(("name", "accuracy", "f1"), [("german", 70.00, 82.35), ("credit", 77.88, 87.56)])
def test_what_a_constant_classifier_reaches(name: str, accuracy: float, f1: float) -> None:
    graph = load(name)
    positive = graph.y[graph.test_mask].double().mean().item()
    assert round(100 * positive, 2) == accuracy
    assert round(200 * positive / (1 + positive), 2) == f1


def test_the_data_contract(graph: Data, figures: dict[str, Any]) -> None:
    nodes = figures["rows"]
    assert graph.x.dtype == torch.float32
    assert torch.isfinite(graph.x).all()
    for vector in (graph.y, graph.sens):
        assert vector.dtype == torch.int64
        assert vector.shape == (nodes,)
    for mask in (graph.train_mask, graph.val_mask, graph.test_mask):
        assert mask.dtype == torch.bool
        assert mask.shape == (nodes,)
    row, col = graph.edge_index
    assert graph.edge_index.dtype == torch.int64
    assert (row != col).all()
    assert (row * nodes + col).diff().min() > 0, "sorted by (row, col), none twice"
    assert torch.equal((col * nodes + row).sort().values, row * nodes + col), "both directions"
    if figures["sensitive"] is None:
        assert graph.get("sens_column") is None
    else:
        assert graph.feature_names[graph.sens_column] == figures["sensitive"]
        assert torch.equal(graph.x[:, graph.sens_column], graph.sens.float())
    assert len(graph.label_names) == len(graph.group_names) == 2


def test_by_default_features_have_mean_0_and_variance_1(graph: Data) -> None:
    others = [i for i in range(graph.num_features) if i != graph.get("sens_column")]
    features = graph.x[:, others].double()
    assert features.mean(dim=0).abs().max() < 1e-5
    assert (features.std(dim=0, correction=0) - 1).abs().max() < 1e-5


def test_the_description_has_the_figures(graph: Data, figures: dict[str, Any]) -> None:
    statistics = graph_spec(graph.provenance["name"]).statistics
    assert statistics.nodes == figures["rows"]
    assert statistics.features == figures["features"]
    assert statistics.undirected_edges == figures["edges"]
    assert statistics.label_homophily == figures["label_homophily"]
    assert statistics.sensitive_homophily == figures["sensitive_homophily"]
    assert statistics.max_degree == figures["max_degree"]
    assert statistics.labels == figures["labels"]
    assert statistics.groups == figures["groups"]
    found = describe(graph)
    assert tuple(found.label_counts.values()) == statistics.labels
    assert round(found.label_homophily, 3) == statistics.label_homophily
    assert round(found.sensitive_homophily, 3) == statistics.sensitive_homophily


def documented() -> dict[str, list[str]]:
    """The columns of the tables in the documentation, by the name of the graph."""
    text = (Path(__file__).parents[2] / "docs/data.md").read_text(encoding="utf-8")
    columns: dict[str, list[str]] = {}
    for section in text.split("### With ")[1:]:
        table = [line for line in section.split("\n### ")[0].splitlines() if line.startswith("|")][2:]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
        columns |= {cells[0].strip("`"): list(cells[1:]) for cells in list(zip(*rows, strict=True))[1:]}
    return columns


@pytest.mark.parametrize("name", names())
def test_the_documentation_has_the_figures(name: str) -> None:
    found = graph_spec(name).statistics.model_dump(exclude_none=True)
    shares = {key: f"{found.pop(key):.3f}" for key in ("label_homophily", "sensitive_homophily") if key in found}
    counts = [found[key] for key in ("nodes", "features", "undirected_edges", "max_degree") if key in found]
    several = [found["groups"], FIGURES[name]["split"]] if name in FIGURES else []
    figures = [*shares.values(), *(f"{count:,}" for count in counts)]
    figures += [" / ".join(f"{count:,}" for count in parts) for parts in several]
    assert len(figures) == (8 if name in FIGURES else 3)
    assert set(figures) <= set(documented()[name])


@pytest.mark.parametrize("name", names())
def test_the_documentation_has_a_dash_for_what_was_not_measured(name: str) -> None:
    assert ("–" in documented()[name]) == (name in NOT_MEASURED)


@pytest.mark.parametrize("name", FIGURES)
def test_the_summary_has_the_shares(name: str) -> None:
    spec = graph_spec(name)
    for counts in (FIGURES[name]["labels"], FIGURES[name]["groups"]) if spec.reader == "text" else ():
        assert f"{100 * counts[1] / sum(counts):.0f} % " in spec.summary


def test_provenance_is_json_and_says_what_was_done(graph: Data, figures: dict[str, Any]) -> None:
    provenance = json.loads(json.dumps(graph.provenance))
    assert provenance == graph.provenance
    is_feature = figures["sensitive"] is not None
    assert provenance["options"] == {"scale": "standard", "keep_sensitive": is_feature, "split_seed": 20}
    assert provenance["caveats"]
    assert provenance["licence"]
    embedded = provenance["name"] in {"german", "credit", "adult"}
    for file in provenance["files"]:
        assert (file["url"] is None) == embedded
    published = provenance["name"] in PUBLISHED_SPLITS
    expected = "similarity" if published else "nearest neighbours" if embedded else "edge file"
    assert provenance["graph"]["kind"] == expected


def test_adult_is_joined_by_ten_neighbours_at_least() -> None:
    graph = load("adult")
    assert graph.edge_index[0].bincount().min() == 10
    assert "workclass=Private" in graph.feature_names
    raw = load("adult", scale="none")
    countries = [i for i, name in enumerate(raw.feature_names) if name.startswith("native-country=")]
    assert torch.equal(raw.x[:, countries].sum(dim=1), torch.ones(12_000))
    wife, husband = (raw.x[:, raw.feature_names.index(f"relationship={who}")] == 1 for who in ("Wife", "Husband"))
    assert (graph.sens[wife] == 0).all()
    assert (graph.sens[husband] == 1).all()


def test_edges_by_id_are_those_of_the_file() -> None:
    graph = load_or_skip("nba")
    directory = data_directory()
    ids = pd.read_csv(directory / "nba/nba.csv")["user_id"].tolist()
    lines = (directory / "nba/nba_relationship.txt").read_text().splitlines()
    pairs = {tuple(sorted(map(int, line.split()))) for line in lines}
    row, col = graph.edge_index.tolist()
    assert {tuple(sorted((ids[i], ids[j]))) for i, j in zip(row, col, strict=True)} == pairs
    assert graph.provenance["duplicate_edges_merged"] == len(lines) - len(pairs)


def test_an_unknown_major_has_no_column() -> None:
    graph = load_or_skip("reed98", scale="none")
    starts = {name.split("=")[0] for name in graph.feature_names}
    assert starts == {"status", "major", "second_major"}
    assert not any(name.endswith("=0") for name in graph.feature_names)
    majors = [i for i, name in enumerate(graph.feature_names) if name.startswith("major=")]
    assert set(graph.x[:, majors].sum(dim=1).tolist()) == {0.0, 1.0}
    assert set(graph.x.flatten().tolist()) == {0.0, 1.0}


def test_bail_gives_its_label_away_in_a_feature() -> None:
    graph = load_or_skip("bail", scale="none")
    returned_after = graph.x[:, graph.feature_names.index("TIME")]
    assert ((returned_after > 0) == graph.y.bool()).double().mean().item() == pytest.approx(0.994, abs=5e-4)
    no_priors = graph.x[:, graph.feature_names.index("PRIORS")] == -9
    assert no_priors.sum() == 1_347
    assert (graph.x[no_priors, graph.feature_names.index("FILE")] == 3).all()


def test_names() -> None:
    assert names() == sorted([*FIGURES, *NOT_MEASURED])
    with pytest.raises(DataError, match=r"'name' must be one of 'adult', .*, 'reed98', or a \.mat .* \(got 'cora'\)"):
        load("cora")
