"""What can be chosen when a benchmark graph is loaded, and what a damaged installation says."""

import gzip
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from fairpass.datasets.registry import Scale, load
from fairpass.errors import DataError


@pytest.fixture(scope="module")
def german_graph() -> Data:
    return load("german")


def test_published_scale() -> None:
    raw = load("german", scale="published")
    assert raw.provenance["options"]["scale"] == "none"
    assert raw.x[0, raw.feature_names.index("LoanAmount")] == 1169
    assert raw.x[0, raw.feature_names.index("Age")] == 67
    assert torch.equal(load("credit", scale="published").x, load("credit", scale="minmax").x)
    assert torch.equal(load("adult", scale="published").x, load("adult").x)


def test_minmax_brings_features_to_minus_one_to_one() -> None:
    graph = load("german", scale="minmax")
    others = [i for i in range(graph.num_features) if i != graph.sens_column]
    assert torch.equal(graph.x[:, others].amin(dim=0), -torch.ones(len(others)))
    assert torch.allclose(graph.x[:, others].amax(dim=0), torch.ones(len(others)))


def test_none_leaves_the_values() -> None:
    graph = load("credit", scale="none")
    assert graph.x[0].tolist() == [1, 1, 2, 120, 20, 0, 6, 0, 120, 0, 1, 4, 1]


def test_the_scale_leaves_the_sensitive_column_and_the_edges_alone(german_graph: Data) -> None:
    for scale in ("standard", "minmax", "none", "published"):
        graph = load("german", scale=scale)
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
    monkeypatch.setattr("fairpass.datasets.download.resources.files", lambda package: tmp_path)
    with pytest.raises(DataError, match=message):
        load("german")
