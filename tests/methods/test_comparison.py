"""A comparison grows run by run, survives the disk, and does not mix what does not belong together."""

import json
from pathlib import Path

import pytest
from tests.methods.ingredients import small_graph
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import GCN, Constant, NodeClassifier
from fairpass.methods.comparison import Comparison
from fairpass.methods.runs import Run, run_all, trials
from fairpass.training import Training


@pytest.fixture(scope="module")
def data() -> Data:
    return small_graph()


def methods(epochs: int = 3) -> dict[str, NodeClassifier]:
    return {"gcn": GCN(hidden=4, training=Training(epochs=epochs)), "constant": Constant()}


@pytest.fixture(scope="module")
def complete(data: Data) -> Comparison:
    comparison = Comparison.of(methods(), data)
    for run in run_all(trials(methods(), [0, 1]), data):
        comparison = comparison.plus(run)
    return comparison


def test_grows_without_changing(data: Data, complete: Comparison) -> None:
    start = Comparison.of(methods(), data)
    grown = start.plus(complete.runs[0])
    assert (start.runs, grown.runs, start.rows) == ((), complete.runs[:1], ())
    assert all(complete.has(trial) for trial in trials(methods(), [0, 1]))
    assert not any(complete.has(trial) for trial in trials(methods(), [2]))


def test_rows_keep_the_order_of_the_methods(complete: Comparison) -> None:
    assert [row.method for row in complete.rows] == ["gcn", "constant"]
    assert complete.row("gcn").rank == 1
    assert complete.row("constant").rank is None
    with pytest.raises(ValueError, match=r"'method' must be one of gcn, constant \(got 'gat'\)"):
        complete.row("gat")


def test_a_failed_run_can_be_repeated(data: Data) -> None:
    trial = trials(methods(), [0])[0]
    failed = Comparison.of(methods(), data).plus(Run("gcn", 0, 1.0, None, "no luck"))
    assert not failed.has(trial)
    (made,) = run_all([trial], data)
    mended = failed.plus(made)
    assert mended.has(trial)
    assert mended.runs == (made,)


def test_save_and_load(complete: Comparison, tmp_path: Path) -> None:
    path = complete.save(tmp_path / "results.json")
    assert Comparison.load(path) == complete
    assert Comparison.load(path).rows == complete.rows
    stored = json.loads(path.read_text())
    assert stored["rows"][0]["mean"] == complete.rows[0].mean


def test_join_goes_on_from_earlier_runs(data: Data, complete: Comparison) -> None:
    more = {**methods(), "wide": GCN(hidden=5, training=Training(epochs=3))}
    joined = Comparison.of(more, data).join(complete)
    assert list(joined.methods) == ["gcn", "constant", "wide"]
    assert joined.runs == complete.runs
    assert complete.join(joined).runs == complete.runs


def test_join_refuses_what_does_not_belong_together(data: Data, complete: Comparison) -> None:
    other = data.clone()
    other.x = data.x + 1
    with pytest.raises(DataError, match="must be of the same graph, split and features"):
        Comparison.of(methods(), other).join(complete)
    with pytest.raises(DataError, match=r"must be of 'gcn' as it is now \(it had epochs=3, now 4\)"):
        Comparison.of(methods(epochs=4), data).join(complete)
    old = Comparison(complete.graph, None, complete.methods, complete.runs, version="0.0.1")
    with pytest.raises(DataError, match=r"must be of version .* \(got 0.0.1\)"):
        complete.join(old)


@pytest.mark.parametrize(
    "content", ["", "[1, 2", "[]", "{}", '{"kind": "shopping list"}', '{"kind": "fairpass comparison"}']
)
def test_load_refuses_other_files(content: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"results.json' must be a fairpass comparison \(damaged or not one"):
        Comparison.load(path)
