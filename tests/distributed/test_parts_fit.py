"""Training in parts gives what one process gives, however the graph is cut."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.distributed import cases
from tests.distributed.crew import crew

from fairpass.datasets.graph import GraphArrays
from fairpass.datasets.parts import Manifest, write_parts
from fairpass.methods import NodeClassifier
from fairpass.nn.operators import OperatorKind, SparseOperator

GRAPHS: dict[str, dict[str, Any]] = {
    "two groups": {},
    "weighted": {"weighted": True},
    "three labels and groups": {"classes": 3, "groups": 3, "nodes": 480},
    "six labels": {"classes": 6, "nodes": 900},  # with fewer nodes one process would visit all pairs, exactly
}
# Graph, number of processes, and what is fitted.
RUNS = [
    ("two groups", 2, list(cases.classifiers())),
    ("two groups", 4, ["gmmd gcn norm", "gmmd eo", "fmp"]),
    ("weighted", 3, ["gmmd gcn norm", "sage"]),
    ("three labels and groups", 3, ["gmmd", "gmmd eo", "gmmd-s", "mmd", "fmp"]),
    ("six labels", 3, ["gmmd", "gcn"]),
]


@pytest.fixture(scope="module", params=RUNS, ids=lambda run: f"{run[0]}, {run[1]} processes")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    name, size, names = request.param
    folder, graph = tmp_path_factory.mktemp("parts"), cases.awkward_graph(**GRAPHS[name])
    write_parts(graph, folder, size)
    return graph, folder, names, crew(size, cases.fit_all, folder, names, folder)


@pytest.mark.slow
def test_the_result_is_that_of_one_process(run: tuple[GraphArrays, Path, list[str], list[Any]]) -> None:
    graph, folder, names, found = run
    data = graph.to_data()
    for name in names:
        alone = cases.classifiers()[name].fit(data)
        epoch, threshold, history, evaluation = found[0][name]
        assert len(history) == len(alone.history_), name
        for ours, theirs in zip(history, alone.history_.to_list(), strict=True):
            assert ours["losses"] == pytest.approx(theirs["losses"], rel=2e-4, abs=1e-5), name
            assert ours["discrepancy"] == pytest.approx(theirs["discrepancy"], rel=1e-3, abs=1e-4), name
        assert (epoch, threshold) == (alone.epoch_, pytest.approx(alone.threshold_, abs=1e-4)), name
        stored = NodeClassifier.load(folder / f"{name}.safetensors")
        torch.testing.assert_close(stored.predict_proba(data), alone.predict_proba(data), atol=2e-4, rtol=0)
        assert evaluation == stored.evaluate(data, undefined="nan").to_dict(), name


@pytest.mark.slow
def test_every_process_knows_the_same(run: tuple[GraphArrays, Path, list[str], list[Any]]) -> None:
    for each in run[3][1:]:
        assert str(each) == str(run[3][0])  # as text, in which nan is nan


def test_the_parts_differ_in_all_they_can(tmp_path: Path) -> None:
    manifest = write_parts(cases.awkward_graph(), tmp_path, 4)
    sizes = np.diff(manifest.offsets)
    assert max(sizes) > 3 * min(sizes)
    graph = cases.awkward_graph()
    first, last = slice(0, manifest.offsets[1]), slice(manifest.offsets[3], None)
    assert 1 not in graph.sens[first]
    assert not (graph.y[last] >= 0).any()
    assert np.bincount(graph.edge_index[0], minlength=len(graph.x))[-20:].max() == 0
    assert (graph.sens < 0).any()


@pytest.mark.slow
def test_dropout_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    histories = []
    for size in (1, 3):
        write_parts(cases.awkward_graph(), tmp_path / str(size), size)
        histories.append(crew(size, cases.fit_with_dropout, tmp_path / str(size))[0])
    for one, three in zip(*histories, strict=True):
        assert one["losses"] == pytest.approx(three["losses"], rel=1e-4)


@pytest.mark.parametrize("kind", ["gcn", "sage", "gin", "gin_mean"])
def test_products_are_those_of_the_whole_operator(tmp_path: Path, kind: OperatorKind) -> None:
    graph = cases.awkward_graph(weighted=True)
    write_parts(graph, tmp_path, 3)
    x, grad = torch.randn(2, len(graph.x), 3)
    data = graph.to_data()
    whole = SparseOperator.from_edge_index(data.edge_index, len(x), kind, edge_weight=data.edge_weight)
    moved = x.clone().requires_grad_()
    out = whole @ moved
    (back,) = torch.autograd.grad(out, moved, grad)
    found = crew(3, cases.products, tmp_path, kind, x.numpy(), grad.numpy())
    for ours, expected in zip(zip(*found, strict=True), (out.detach(), back), strict=True):
        np.testing.assert_allclose(np.concatenate(ours), expected, rtol=1e-5, atol=1e-6)


def test_a_damaged_part_is_one_error_on_every_process(tmp_path: Path) -> None:
    write_parts(cases.awkward_graph(), tmp_path, 2)
    (tmp_path / "part-0001" / "halo.npy").unlink()
    said = crew(2, cases.read, [tmp_path])
    assert said == [f"DataError: '{tmp_path}' must have all of its parts ('part-0001/halo.npy' is missing)"] * 2


def test_as_many_processes_as_parts(tmp_path: Path) -> None:
    write_parts(cases.awkward_graph(), tmp_path, 3)
    for said in crew(2, cases.read, [tmp_path]):
        assert "'workers' must be the number of parts" in said
        assert "3 (got 2)" in said


def test_parts_of_different_graphs_are_refused(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    write_parts(cases.awkward_graph(), folders[0], 2)
    write_parts(cases.awkward_graph(classes=3), folders[1], 2)
    for said in crew(2, cases.read, folders):
        assert "must be parts of the same graph on every machine" in said


def test_one_way_edges_and_self_loops_are_refused(tmp_path: Path) -> None:
    graph = cases.awkward_graph()
    parts = {"one way": graph.edge_index[:, 1:], "loop": np.concatenate([graph.edge_index, [[3], [3]]], 1)}
    expected = {"one way": "must have every edge in both directions", "loop": "must have no self-loops (got 1)"}
    for name, edges in parts.items():
        changed = GraphArrays(**{**vars(graph), "edge_index": edges})
        write_parts(changed, tmp_path / name, 2)
        assert all(expected[name] in said for said in crew(2, cases.read, [tmp_path / name]))


def test_the_manifest_names_the_graph(tmp_path: Path) -> None:
    one = write_parts(cases.awkward_graph(), tmp_path / "1", 2)
    same, other = (
        write_parts(cases.awkward_graph(), tmp_path / "2", 2),
        write_parts(cases.awkward_graph(3), tmp_path / "3", 2),
    )
    assert one.graph == same.graph == Manifest.read(tmp_path / "1").graph != other.graph
