"""A comparison grows run by run, survives the disk, and does not mix what does not belong together."""

import json
from pathlib import Path

import pytest
from tests.methods.ingredients import small_graph
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import GCN, Constant, NodeClassifier
from fairpass.runs import Comparison, RunRecord, run
from fairpass.training import Training


@pytest.fixture(scope="module")
def data() -> Data:
    return small_graph()


def methods(epochs: int = 3) -> dict[str, NodeClassifier]:
    return {"gcn": GCN(hidden=4, training=Training(epochs=epochs)), "constant": Constant()}


@pytest.fixture(scope="module")
def complete(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    comparison = Comparison.of(methods(), data, tmp_path_factory.mktemp("comparison") / "results.json")
    run(comparison.specs(methods(), [0, 1]), comparison, graphs={comparison.graph: data}, together=False)
    return comparison


def test_specs_go_seed_by_seed(complete: Comparison) -> None:
    planned = complete.specs(methods(), [4, 7])
    assert [(spec.label, spec.seed) for spec in planned] == [("gcn", 4), ("constant", 4), ("gcn", 7), ("constant", 7)]
    expected = {**methods()["gcn"].get_params(deep=False), "training": Training(epochs=3, seed=7)}
    assert planned[2].classifier().get_params(deep=False) == expected


def test_knows_what_it_has(data: Data, complete: Comparison) -> None:
    start = Comparison.of(methods(), data)
    assert (start.runs, start.rows) == ([], ())
    start.add(complete.runs[0])
    assert start.runs == complete.runs[:1]
    assert complete.missing(complete.specs(methods(), [0, 1])) == []
    new = complete.specs(methods(), [2])
    assert complete.missing(new) == new


def test_every_run_is_written_at_once(data: Data, complete: Comparison, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    comparison = Comparison.of(methods(), data, path)
    for number, made in enumerate(complete.runs, 1):
        comparison.add(made)
        assert Comparison.load(path).runs == complete.runs[:number]


def test_rows_keep_the_order_of_the_methods(complete: Comparison) -> None:
    assert [row.method for row in complete.rows] == ["gcn", "constant"]
    assert complete.row("gcn").rank == 1
    assert complete.row("constant").rank is None
    with pytest.raises(ValueError, match=r"'method' must be one of gcn, constant \(got 'gat'\)"):
        complete.row("gat")


def test_a_failed_run_can_be_repeated(data: Data) -> None:
    comparison = Comparison.of(methods(), data)
    specs = comparison.specs(["gcn"], [0])
    comparison.add(RunRecord("gcn", 0, 1.0, None, "no luck"))
    assert comparison.missing(specs) == specs
    assert run(specs, comparison, graphs={comparison.graph: data}) == 1
    assert comparison.missing(specs) == []
    (made,) = comparison.runs
    assert made.error is None


def test_save_and_load(complete: Comparison, tmp_path: Path) -> None:
    path = complete.save(tmp_path / "results.json")
    assert Comparison.load(path) == complete
    assert Comparison.load(path).rows == complete.rows
    stored = json.loads(path.read_text())
    assert stored["rows"][0]["mean"] == complete.rows[0].mean


def test_a_file_of_version_0_2_is_read() -> None:
    path = Path(__file__).with_name("comparison_0_2.json")
    stored, comparison = json.loads(path.read_text()), Comparison.load(path)
    for part in ("kind", "version", "graph", "provenance", "methods", "runs"):
        assert comparison.to_dict()[part] == stored[part]
    for row in stored["rows"]:
        assert comparison.row(row["method"]).mean == pytest.approx(row["mean"])
        assert comparison.row(row["method"]).flags == tuple(row["flags"])


def test_goes_on_from_earlier_runs(data: Data, complete: Comparison) -> None:
    more = {**methods(), "wide": GCN(hidden=5, training=Training(epochs=3))}
    joined = Comparison.of(more, data, complete.path)
    assert list(joined.methods) == ["gcn", "constant", "wide"]
    assert joined.runs == complete.runs


def test_refuses_what_does_not_belong_together(data: Data, complete: Comparison, tmp_path: Path) -> None:
    other = data.clone()
    other.x = data.x + 1
    with pytest.raises(DataError, match="must be of the same graph, split and features"):
        Comparison.of(methods(), other, complete.path)
    with pytest.raises(DataError, match=r"must be of 'gcn' as it is now \(it had epochs=3, now 4\)"):
        Comparison.of(methods(epochs=4), data, complete.path)
    old = Comparison(complete.graph, None, complete.methods, complete.runs, version="0.0.1")
    with pytest.raises(DataError, match=r"must be of version .* \(got 0.0.1\)"):
        Comparison.of(methods(), data, old.save(tmp_path / "old.json"))


@pytest.mark.parametrize(
    "content", ["", "[1, 2", "[]", "{}", '{"kind": "shopping list"}', '{"kind": "fairpass comparison"}']
)
def test_load_refuses_other_files(content: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"results.json' must be a fairpass comparison file \(damaged or not one"):
        Comparison.load(path)
