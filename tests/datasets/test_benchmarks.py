"""The benchmark graphs are the published ones: every figure, every option."""

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from fairpass.datasets import bail, credit, german, registry
from fairpass.datasets.registry import Scale, load, names, table_spec
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
        "sha256": "49cc549b1ca3f1650e3bdcd8cfce62313c763abfbcbf785d32b07fb76ae078ca",
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
        "sha256": "5d7a93f25a09dd1648c78b5e0c6a883ca832ee88259d89dfe1062e8c848bfe5d",
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
        "sha256": "11a7c62be2b7aed7cb069624789755d5f57acc8b69580564e2401b084e2d5faf",
        "dropped": {"RECID"},
        "sensitive": "WHITE",
        "groups": (9_317, 9_559),
        "labels": (11_772, 7_104),
        "split": (100, 4_719, 4_719),
        "first_train": [17486, 531, 14714, 2340, 3259],
        "first_test": [15776, 12910, 8167],
    },
}


@pytest.fixture(scope="module", autouse=True)
def graph_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("graphs")
        patch.setenv("FAIRPASS_CACHE", str(cache))
        yield cache


def load_or_skip(name: str, **options: Any) -> Data:
    if not registry.is_available(name):
        pytest.skip(f"the {name} table is not here: set FAIRPASS_DATA or run `fairpass datasets fetch {name}`")
    return load(name, **options)


@pytest.fixture(scope="module", params=FIGURES)
def graph(request: pytest.FixtureRequest, graph_cache: Path) -> Data:
    return load_or_skip(request.param)


@pytest.fixture(scope="module")
def figures(graph: Data) -> dict[str, Any]:
    return FIGURES[graph.provenance["name"]]


@pytest.fixture(scope="module")
def german_graph(graph_cache: Path) -> Data:
    return load("german")


def test_the_table(graph: Data, figures: dict[str, Any]) -> None:
    assert graph.x.shape == (figures["rows"], figures["features"])
    assert graph.provenance["sha256"] == figures["sha256"]
    assert len(graph.feature_names) == figures["features"]
    assert figures["dropped"].isdisjoint(graph.feature_names)
    assert tuple(graph.y.bincount().tolist()) == figures["labels"]
    assert tuple(graph.sens.bincount().tolist()) == figures["groups"]


def test_the_graph(graph: Data, figures: dict[str, Any]) -> None:
    row, col = graph.edge_index
    degree = row.bincount(minlength=graph.num_nodes)
    assert graph.edge_index.shape == (2, 2 * figures["edges"])
    assert (graph.y[row] == graph.y[col]).double().mean().item() == pytest.approx(figures["label_homophily"], abs=5e-4)
    assert (graph.sens[row] == graph.sens[col]).double().mean().item() == pytest.approx(
        figures["sensitive_homophily"], abs=5e-4
    )
    assert degree.max() == figures["max_degree"]
    assert degree.min() >= 1


def test_the_published_split(graph: Data, figures: dict[str, Any]) -> None:
    labels_for_training = table_spec(graph.provenance["name"]).labels_for_training
    train, val, test = label_balanced_ids(graph.y, labels_for_training)
    assert train[:5] == figures["first_train"]
    assert test[:3] == figures["first_test"]
    for mask, ids, size in zip(
        (graph.train_mask, graph.val_mask, graph.test_mask), (train, val, test), figures["split"], strict=True
    ):
        assert mask.nonzero().flatten().tolist() == sorted(ids)
        assert len(ids) == size
    assert not (graph.train_mask & graph.val_mask).any()
    assert not ((graph.train_mask | graph.val_mask) & graph.test_mask).any()
    assert graph.y[graph.train_mask].double().mean() == 0.5


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
    assert graph.feature_names[graph.sens_column] == figures["sensitive"]
    assert torch.equal(graph.x[:, graph.sens_column], graph.sens.float())
    assert len(graph.label_names) == len(graph.group_names) == 2


def test_by_default_features_are_in_minus_one_to_one(graph: Data) -> None:
    others = [i for i in range(graph.num_features) if i != graph.sens_column]
    assert torch.equal(graph.x[:, others].amin(dim=0), -torch.ones(len(others)))
    assert torch.allclose(graph.x[:, others].amax(dim=0), torch.ones(len(others)))


def test_the_docstring_and_the_description_have_the_figures(graph: Data, figures: dict[str, Any]) -> None:
    name = graph.provenance["name"]
    statistics = table_spec(name).statistics
    assert statistics.nodes == figures["rows"]
    assert statistics.features == figures["features"]
    assert statistics.undirected_edges == figures["edges"]
    assert statistics.label_homophily == figures["label_homophily"]
    assert statistics.sensitive_homophily == figures["sensitive_homophily"]
    assert statistics.max_degree == figures["max_degree"]
    documentation = {"german": german, "credit": credit, "bail": bail}[name].__doc__ or ""
    cells = [cell.strip() for cell in documentation.splitlines()[4].strip("|").split("|")]
    assert cells == [
        f"{statistics.nodes:,}",
        str(statistics.features),
        f"{statistics.undirected_edges:,}",
        str(statistics.label_homophily),
        str(statistics.sensitive_homophily),
        f"{statistics.max_degree:,}",
    ]
    assert f"{100 * graph.y.double().mean().item():.0f} % " in documentation
    assert f"{100 * graph.sens.double().mean().item():.0f} % " in documentation


def test_provenance_is_json_and_says_what_was_done(graph: Data, figures: dict[str, Any]) -> None:
    provenance = json.loads(json.dumps(graph.provenance))
    assert provenance == graph.provenance
    assert provenance["options"] == {"scale": "minmax", "keep_sensitive": True, "split_seed": 20}
    assert provenance["caveats"]
    assert provenance["licence"]
    assert (provenance["url"] is None) == (provenance["name"] != "bail")


def test_published_scale() -> None:
    raw = load("german", scale="published")
    assert raw.provenance["options"]["scale"] == "none"
    assert raw.x[0, raw.feature_names.index("LoanAmount")] == 1169
    assert raw.x[0, raw.feature_names.index("Age")] == 67
    assert torch.equal(load("credit", scale="published").x, load("credit").x)


def test_none_leaves_the_values() -> None:
    graph = load("credit", scale="none")
    assert graph.x[0].tolist() == [1, 1, 2, 120, 20, 0, 6, 0, 120, 0, 1, 4, 1]


def test_standard_scale(german_graph: Data) -> None:
    graph = load("german", scale="standard")
    others = [i for i in range(graph.num_features) if i != graph.sens_column]
    assert torch.allclose(graph.x[:, others].mean(dim=0), torch.zeros(len(others)), atol=1e-5)
    assert torch.allclose(graph.x[:, others].std(dim=0, correction=0), torch.ones(len(others)), atol=1e-5)
    assert torch.equal(graph.x[:, graph.sens_column], graph.sens.float())
    assert torch.equal(graph.edge_index, german_graph.edge_index)


def test_without_the_sensitive_column(german_graph: Data) -> None:
    blind = load("german", keep_sensitive=False)
    assert blind.get("sens_column") is None
    assert blind.feature_names == [name for name in german_graph.feature_names if name != "Gender"]
    kept = [i for i in range(german_graph.num_features) if i != german_graph.sens_column]
    assert torch.equal(blind.x, german_graph.x[:, kept])
    assert torch.equal(blind.sens, german_graph.sens)
    assert torch.equal(blind.edge_index, german_graph.edge_index)


def test_another_split(german_graph: Data) -> None:
    other, again = load("german", split_seed=21), load("german", split_seed=21)
    assert not torch.equal(other.train_mask, german_graph.train_mask)
    assert torch.equal(other.train_mask, again.train_mask)
    assert other.provenance["options"]["split_seed"] == 21
    assert torch.equal(other.edge_index, german_graph.edge_index)


def test_what_is_done_to_one_graph_does_not_reach_the_next() -> None:
    first = load("german")
    first.sens.fill_(0)
    first.x.zero_()
    first.provenance["caveats"].clear()
    first.group_names.clear()
    second = load("german")
    assert second.sens.sum() == 310
    assert second.x.abs().sum() > 0
    assert second.provenance["caveats"]
    assert second.group_names == ["male", "female"]


def test_german_is_quick(german_graph: Data) -> None:
    start = time.perf_counter()
    load("german")
    assert time.perf_counter() - start < 1


def test_bail_gives_its_label_away_in_a_feature() -> None:
    graph = load_or_skip("bail", scale="none")
    returned_after = graph.x[:, graph.feature_names.index("TIME")]
    assert ((returned_after > 0) == graph.y.bool()).double().mean().item() == pytest.approx(0.994, abs=5e-4)
    no_priors = graph.x[:, graph.feature_names.index("PRIORS")] == -9
    assert no_priors.sum() == 1_347
    assert (graph.x[no_priors, graph.feature_names.index("FILE")] == 3).all()


def test_names() -> None:
    assert names() == ["german", "credit", "bail"]
    with pytest.raises(DataError, match=r"'name' must be one of 'german', 'credit', 'bail' \(got 'cora'\)"):
        load("cora")


def test_unknown_scale() -> None:
    scale: Scale = "max"  # type: ignore[assignment]  # the mistake is the test
    with pytest.raises(DataError, match=r"'scale' must be one of 'minmax', .*'published' \(got 'max'\)"):
        load("german", scale=scale)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"GoodCustomer,Gender\r\n1,Male"), r"is damaged \(expected SHA-256 49cc.*reinstall"),
        (gzip.compress(b"GoodCustomer" * 100)[:20], "cannot be read .*reinstall"),
        (b"no archive", "cannot be read .*reinstall"),
        (None, "cannot be read .*reinstall"),
    ],
    ids=["other table", "truncated", "no archive", "missing"],
)
def test_a_damaged_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, message: str
) -> None:
    (tmp_path / "embedded").mkdir()
    if content is not None:
        (tmp_path / "embedded/german.csv.gz").write_bytes(content)
    monkeypatch.setattr("fairpass.datasets.registry.resources.files", lambda package: tmp_path)
    with pytest.raises(DataError, match=message):
        load("german")
