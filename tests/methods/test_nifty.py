import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.methods.ingredients import changed, small_graph, some_unknown
from torch import Tensor
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.methods import NIFTY
from fairpass.methods.edge_dropout import EdgeDropout
from fairpass.methods.nifty import Views
from fairpass.nn import SparseOperator
from fairpass.training import Program, Task, Training, seeded

BACKBONES = ["gcn", "gin", "gat", "sage"]


def entries(operator: SparseOperator) -> Tensor:
    """Return the operator as a dense matrix; for attention, where it has entries."""
    return operator.matrix.to_dense()


# The views


def test_flipped_view_changes_only_the_sensitive_column(task: Task, data: Data) -> None:
    views = Views(task, NIFTY(drop_edges=0.1, noise=0.0))
    (first, _), (second, _) = views.draw()
    assert torch.equal(first, data.x)
    assert torch.equal(second[:, 6], 1 - data.x[:, 6])
    assert torch.equal(second[:, :6], data.x[:, :6])


def test_noise_adds_one_number_to_picked_columns_but_never_to_the_sensitive_one(task: Task, data: Data) -> None:
    (first, _), (second, _) = Views(task, NIFTY(drop_edges=0.0, noise=1.0)).draw()
    for x in (first, second):
        added = (x - data.x)[:, :6]
        torch.testing.assert_close(added, added[:1, :1].expand(150, 6))
        assert added[0, 0] != 0
    assert torch.equal(first[:, 6], data.x[:, 6])
    assert torch.equal(second[:, 6], 1 - data.x[:, 6])
    assert not torch.allclose(first[:, 0], second[:, 0])
    views = Views(task, NIFTY(drop_edges=0.0, noise=0.1))
    with seeded(0, deterministic=True):
        picked = torch.stack([(views.draw()[0][0] != data.x)[0, :6].float() for _ in range(300)])
    assert abs(float(picked.mean()) - 0.1) < 0.03


def test_two_other_values_are_swapped_and_unknown_nodes_keep_theirs(data: Data) -> None:
    x = data.x.clone()
    x[:, 6] = 3 * x[:, 6] - 1
    x[data.sens == 1, 6] = 2.0
    partly = some_unknown(changed(data, x=x))
    unknown = partly.sens < 0
    (_, _), (second, _) = Views(Task(partly), NIFTY(drop_edges=0.0, noise=0.0)).draw()
    assert torch.equal(second[unknown], x[unknown])
    assert torch.equal(second[~unknown, 6], torch.where(data.sens == 1, -1.0, 2.0)[~unknown])


@pytest.mark.parametrize("backbone", BACKBONES)
def test_nothing_dropped_is_the_whole_graph(task: Task, backbone: Any) -> None:
    whole = entries(task.operator(backbone))
    assert torch.equal(entries(EdgeDropout(task, backbone, 0.0).draw()), whole)
    torch.testing.assert_close(entries(EdgeDropout(task, backbone, 1e-12).draw()), whole)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_dropped_edges_leave_the_operator_of_the_subgraph(task: Task, backbone: Any) -> None:
    with seeded(0, deterministic=True):
        operator = EdgeDropout(task, backbone, 0.4).draw()
    dense = entries(operator)
    # A mean weighs the two directions differently, but an edge is dropped as a whole there, too.
    torch.testing.assert_close(dense != 0, dense.T != 0)
    if backbone != "sage":
        torch.testing.assert_close(dense, dense.T)
    left = (dense != 0).float().fill_diagonal_(0).nonzero().T
    assert 0.5 < left.shape[1] / task.edge_index.shape[1] < 0.7
    known = set(map(tuple, task.edge_index.T.tolist()))
    assert set(map(tuple, left.T.tolist())) <= known
    subgraph = Task(Data(x=task.x, edge_index=left), need_masks=False)
    torch.testing.assert_close(dense, entries(subgraph.operator(backbone)))


def test_mean_over_neighbours_counts_loops_of_the_graph_only(data: Data) -> None:
    looped = Task(changed(data, edge_index=torch.cat([data.edge_index, torch.tensor([[3, 8], [3, 8]])], 1)))
    drawn = entries(EdgeDropout(looped, "sage", 1e-12).draw())
    torch.testing.assert_close(drawn, entries(looped.operator("sage")))
    assert torch.nonzero(drawn.diagonal()).flatten().tolist() == [3, 8]


@pytest.mark.parametrize("backbone", ["gcn", "gin", "sage"])
def test_directed_graphs_keep_their_transpose(data: Data, backbone: Any) -> None:
    directed = Task(changed(data, edge_index=data.edge_index[:, data.edge_index[0] < data.edge_index[1]]))
    operator = EdgeDropout(directed, backbone, 0.3).draw()
    assert not operator.is_symmetric
    torch.testing.assert_close(operator.transpose.to_dense(), operator.matrix.to_dense().T)


# The training


def prepared(model: NIFTY, task: Task) -> Program:
    program = model.build(task)
    program.prepare(task, model.training)
    program.configure(model.training)
    return program.train()


@pytest.mark.parametrize("backbone", BACKBONES)
def test_both_losses_fall(data: Data, backbone: Any) -> None:
    training = Training(epochs=80, learning_rate=5e-3)
    model = NIFTY(backbone=backbone, training=training).fit(data)
    for name in ("similarity", "label"):
        values = torch.tensor([record.losses[name] for record in model.history_])
        assert values[-10:].mean() < values[:10].mean() - 0.1


def test_flipping_the_sensitive_attribute_changes_predictions_less(data: Data) -> None:
    flipped = changed(data, x=data.x.clone())
    flipped.x[:, 6] = 1 - flipped.x[:, 6]

    def change(similarity: float) -> float:
        training = Training(epochs=100, learning_rate=5e-3, select="last")
        model = NIFTY(similarity=similarity, training=training).fit(data)
        return float((model.predict_proba(flipped) - model.predict_proba(data)).abs().mean())

    assert change(0.8) < change(0.0)


def test_each_step_moves_its_own_networks(task: Task) -> None:
    """With all the weight on similarity, the step on labels gets no gradient: none is left over from the first."""
    with seeded(0, deterministic=True):
        program = prepared(NIFTY(similarity=1.0, training=Training(weight_decay=0.0)), task)
        start = {name: value.clone() for name, value in program.named_parameters()}
        program.epoch(task)
        moved = {
            name.split(".")[0] for name, value in program.named_parameters() if not torch.equal(value, start[name])
        }
        assert moved == {"encoder", "projector", "predictor"}
        assert all(not p.grad.any() for p in program.parameters() if p.grad is not None)
        program = prepared(NIFTY(similarity=0.0, training=Training(weight_decay=0.0)), task)
        start = {name: value.clone() for name, value in program.named_parameters()}
        program.epoch(task)
        moved = {
            name.split(".")[0] for name, value in program.named_parameters() if not torch.equal(value, start[name])
        }
        assert moved == {"encoder", "classifier"}


@pytest.mark.parametrize("backbone", BACKBONES)
def test_every_weight_has_spectral_norm_one(data: Data, backbone: Any) -> None:
    program = NIFTY(backbone=backbone, training=Training(epochs=40, select="last")).fit(data).program_
    weights: list[Any] = [part.weight for part in program.modules() if hasattr(part, "parametrizations")]
    assert len(weights) == (7 if backbone in ("gin", "sage") else 6)
    for weight in weights:
        assert float(torch.linalg.matrix_norm(weight.detach(), 2)) == pytest.approx(1, abs=0.05)


def test_a_fitted_model_does_not_hold_on_to_the_graph(data: Data) -> None:
    graph = Task(data)
    program = prepared(NIFTY(), graph)
    program.epoch(graph)
    alive = weakref.ref(graph)
    del graph
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("backbone", BACKBONES)
def test_every_backbone_is_kept_in_a_file(data: Data, tmp_path: Path, backbone: Any) -> None:
    model = NIFTY(backbone=backbone, training=Training(epochs=2)).fit(data)
    loaded = NIFTY.load(model.save(tmp_path / "model"))
    assert torch.equal(loaded.predict_proba(data), model.predict_proba(data))


# What it does not take


def test_authors_settings() -> None:
    german = NIFTY.authors("german", seed=3)
    assert (german.similarity, german.drop_edges) == (0.6, 0.001)
    assert (german.training.epochs, german.training.seed) == (1000, 3)
    assert repr(NIFTY.authors("bail")) == "NIFTY()"
    with pytest.raises(ValueError, match=r"'data_set' must be one of .* \(got 'pokec'\)"):
        NIFTY.authors("pokec")


def test_unsuitable_data_is_refused(data: Data) -> None:
    model = NIFTY(training=Training(epochs=1))
    for graph, message in (
        (changed(data, sens_column=None), r"'data.sens_column' must be the column .* \(got None"),
        (small_graph(240, classes=3), r"'data.y' must have 2 labels for NIFTY \(got 3\)"),
        (small_graph(240, groups=3), r"'data.sens' must have 2 groups for NIFTY \(got 3\)"),
        (changed(data, sens_column=0), r"two values in its sensitive column 0 for NIFTY to flip \(got 150\)"),
    ):
        with pytest.raises(DataError, match=message):
            model.fit(graph)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"similarity": 1.5}, r"'similarity' must be between 0 and 1 \(got 1.5\)"),
        ({"drop_edges": -0.1}, r"'drop_edges' must be between 0 and 1 \(got -0.1\)"),
        ({"noise": 2}, r"'noise' must be between 0 and 1 \(got 2\)"),
        ({"backbone": "cheb"}, r"'backbone' must be one of .* \(got 'cheb'\)"),
        ({"hidden": 0}, r"'hidden' must be at least 1 \(got 0\)"),
    ],
)
def test_wrong_parameters_are_errors_before_fit(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NIFTY(**parameters)
