"""Scores after training: of one person, of any company, of people whose group is not known."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from tests.methods.ingredients import changed, make, small_graph, some_unknown
from torch import Tensor
from torch_geometric.data import Data

from fairpass.errors import DataError, ModelFileError
from fairpass.methods import FMP, GCN, GIN, GMMD, GMMDS, NodeClassifier, load_model, method
from fairpass.methods.header import KIND
from fairpass.training import Task, Training
from fairpass.training.tensors import read_tensors, write_tensors

TRAINING = Training(epochs=8, learning_rate=0.05)
NO_EDGES = torch.empty(2, 0, dtype=torch.long)

MODELS: dict[str, Any] = {
    "gmmd": lambda: GMMD(training=TRAINING),
    "gmmd, fairness only": lambda: GMMD(lambda_s=0.0, encoder="gcn", norm=True, training=TRAINING),
    "gmmd, gin": lambda: GMMD(encoder="gin", lambda_s=0.0, training=TRAINING),
    "gmmd, eo": lambda: GMMD(criterion="eo", training=TRAINING),
    "gmmd, odds": lambda: GMMD(criterion="odds", training=TRAINING),
    "gmmd, both columns": lambda: GMMD(columns="all", step="paper", weight=3.0, training=TRAINING),
    "gmmd-s": lambda: GMMDS(training=TRAINING),
    "fmp": lambda: FMP(training=TRAINING),
    "gin": lambda: GIN(training=TRAINING),
}


@pytest.fixture(scope="module")
def data() -> Data:
    return small_graph(300)


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, data: Data) -> NodeClassifier:
    fitted: NodeClassifier = MODELS[request.param]().fit(data)
    return fitted


def people(data: Data, rows: list[int], **changes: Any) -> Data:
    """Return some nodes as people without edges."""
    index = torch.tensor(rows)
    attributes = {"x": data.x[index], "sens": data.sens[index], "edge_index": NO_EDGES}
    return Data(**{name: value for name, value in {**attributes, **changes}.items() if value is not None})


def test_on_the_fitted_graph_it_is_the_fitted_output(model: NodeClassifier, data: Data) -> None:
    fitted, batch = (model.predict_proba(data, reference=name) for name in ("fitted", "batch"))
    torch.testing.assert_close(fitted, batch, rtol=0, atol=1e-5)
    assert torch.equal(model.predict_proba(data), fitted)
    with torch.no_grad():
        logits: Tensor = model.program_(Task(data))
    torch.testing.assert_close(batch, logits.softmax(-1), rtol=0, atol=1e-6)


def test_one_person_scores_the_same_alone_and_in_any_company(model: NodeClassifier, data: Data) -> None:
    together = model.predict_proba(people(data, list(range(40))))
    of_group_0 = torch.nonzero(data.sens[:40] == 0).flatten().tolist()
    for rows in ([7], [30, 2], of_group_0):
        torch.testing.assert_close(model.predict_proba(people(data, rows)), together[rows], rtol=0, atol=1e-6)


def test_another_part_of_the_graph_changes_nothing_for_a_node_and_its_neighbours(
    model: NodeClassifier, data: Data
) -> None:
    """The graph beside another one: two parts without an edge between them."""
    other = small_graph(80, seed=5)
    both = Data(
        x=torch.cat([data.x, 3 * other.x]),
        edge_index=torch.cat([data.edge_index, other.edge_index + data.num_nodes], 1),
        sens=torch.cat([data.sens, torch.zeros_like(other.sens)]),
    )
    got = model.predict_proba(both)[: data.num_nodes]
    torch.testing.assert_close(got, model.predict_proba(data), rtol=0, atol=1e-6)


def test_five_classes(tmp_path: Path) -> None:
    data = small_graph(300, classes=5, groups=3)
    model = GMMD(training=TRAINING).fit(data)
    loaded = load_model(model.save(tmp_path / "model"))
    fitted, batch = (loaded.predict_proba(data, reference=name) for name in ("fitted", "batch"))
    torch.testing.assert_close(fitted, batch, rtol=0, atol=1e-5)
    together = loaded.predict_proba(people(data, [4, 5, 6]))
    torch.testing.assert_close(loaded.predict_proba(people(data, [5])), together[1:2], rtol=0, atol=1e-6)


def test_stored_scores_are_the_same_to_the_bit(model: NodeClassifier, data: Data, tmp_path: Path) -> None:
    loaded = load_model(model.save(tmp_path / "model"))
    for graph in (data, people(data, [3])):
        assert torch.equal(loaded.predict_proba(graph), model.predict_proba(graph))
    unknown = people(data, [3, 4], sens=None)
    assert torch.equal(
        loaded.predict_proba(unknown, unknown_group="estimate"), model.predict_proba(unknown, unknown_group="estimate")
    )


def test_a_model_is_small_whatever_the_graph(tmp_path: Path) -> None:
    sizes = []
    for nodes in (1_000, 4_000):
        model = GMMD(training=Training(epochs=2)).fit(small_graph(nodes))
        tensors, _ = read_tensors(model.save(tmp_path / "model"), KIND)
        sizes.append(sum(value.numel() for name, value in tensors.items() if name.startswith("reference.")))
    assert max(sizes) < 1_500


@pytest.mark.parametrize("make", [lambda: GMMD(training=TRAINING), lambda: FMP(training=TRAINING)])
def test_policies_for_an_unknown_group(make: Any, data: Data) -> None:
    model = make().fit(data)
    known, unknown = people(data, list(range(60))), people(data, list(range(60)), sens=None)
    scores = {policy: model.predict_proba(unknown, unknown_group=policy)[:, 1] for policy in ("none", "estimate")}
    by_group = [model.predict_proba(people(data, list(range(60)), sens=torch.full((60,), g)))[:, 1] for g in (0, 1)]
    low, high = torch.minimum(*by_group), torch.maximum(*by_group)
    # The mean over the groups lies between what each of them would give.
    assert bool((scores["estimate"] >= low - 1e-4).all())
    assert bool((scores["estimate"] <= high + 1e-4).all())
    assert not torch.allclose(scores["none"], scores["estimate"])
    assert torch.equal(model.predict_proba(unknown)[:, 1], scores["none"])
    with pytest.raises(DataError, match=r"'data.sens' must be known .* \(got 60 unknown\)"):
        model.predict(unknown, unknown_group="error")
    torch.testing.assert_close(
        model.predict_proba(known, unknown_group="error"), model.predict_proba(known, unknown_group="estimate")
    )


def test_without_a_group_gmmd_is_its_encoder(data: Data) -> None:
    model = GMMD(lambda_s=0.0, training=TRAINING).fit(data)
    program: Any = model.program_
    unknown = people(data, [1, 2, 3], sens=None)
    with torch.no_grad():
        expected = program.encode(Task(unknown, need_masks=False)).softmax(-1)
    torch.testing.assert_close(model.predict_proba(unknown), expected)


def test_methods_that_do_not_read_groups_take_any_policy(data: Data) -> None:
    model = GCN(training=TRAINING).fit(data)
    unknown = changed(data, sens=None, group_names=None)
    assert torch.equal(model.predict_proba(unknown, unknown_group="error"), model.predict_proba(data))


def test_groups_that_were_unknown_while_training(data: Data) -> None:
    partly = some_unknown(data)
    model = GMMD(training=TRAINING).fit(partly)
    fitted, batch = (model.predict_proba(partly, reference=name) for name in ("fitted", "batch"))
    torch.testing.assert_close(fitted, batch, rtol=0, atol=1e-5)


def test_a_group_or_names_that_the_model_does_not_know(data: Data) -> None:
    model = GMMD(training=TRAINING).fit(data)
    with pytest.raises(DataError, match=r"'data.sens' must be one of the 2 groups of the fitted graph \(got 2\)"):
        model.predict(people(data, [0], sens=torch.tensor([2])))
    swapped = changed(data, group_names=list(reversed(data.group_names)))
    with pytest.raises(DataError, match=r"'data.group_names' must be those of the fitted graph"):
        model.predict(swapped)


@pytest.mark.parametrize("name", ["gcn", "logistic", "gmmd"])
def test_a_third_group_is_refused_by_every_method(data: Data, name: str) -> None:
    model = make(method(name), epochs=1).fit(data)
    other = changed(data, sens=torch.where(torch.arange(data.num_nodes or 0) < 5, 2, data.sens), group_names=None)
    with pytest.raises(DataError, match=r"'data.sens' must be one of the 2 groups of the fitted graph \(got 2\)"):
        model.predict_proba(other)


def test_a_sampled_model_keeps_no_reference(data: Data) -> None:
    model = GMMD(sample=30, training=TRAINING).fit(data)
    assert torch.equal(model.predict_proba(data), model.predict_proba(data, reference="batch"))
    with pytest.raises(ValueError, match="'reference' must be 'batch' for this model"):
        model.predict(data, reference="fitted")


@pytest.mark.parametrize("argument", ["reference", "unknown_group"])
def test_unknown_choices_are_refused(data: Data, argument: str) -> None:
    model = GMMD(training=TRAINING).fit(data)
    with pytest.raises(ValueError, match=f"'{argument}' must be one of .* \\(got 'other'\\)"):
        model.predict(data, **{argument: "other"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("reference.scales", torch.ones(5), "'scales' must have shape"),
        ("reference.layers.0.alpha", torch.tensor(float("nan")), "'alpha' must be finite"),
        ("reference.layers.0.fields.0.moments", torch.ones(1, 4), "a kernel field must have"),
        ("reference.layers.0.fields.0.moments", torch.ones(1, 3, 3), "a kernel field must have"),
        ("reference.layers.0.fields.0.side", None, "a kernel field must have the tensors"),
        ("reference.layers.0.fields.0.alpha", torch.tensor(-1.0), "a positive alpha"),
        ("reference.layers.9.fields.0.alpha", torch.tensor(1.0), "Unexpected key"),
        ("estimator.weight", torch.ones(2, 1), "'weight' must have shape"),
        ("estimator.bias", None, "'bias' must have shape"),
    ],
)
def test_damaged_and_hostile_files_are_refused(
    data: Data, tmp_path: Path, name: str, value: Tensor | None, message: str
) -> None:
    path = GMMD(training=Training(epochs=2)).fit(data).save(tmp_path / "model.safetensors")
    tensors, header = read_tensors(path, KIND)
    hostile = {**tensors, name: value}
    write_tensors(path, KIND, {key: kept for key, kept in hostile.items() if kept is not None}, header)
    with pytest.raises(ModelFileError, match=message):
        load_model(path)


def test_the_file_says_nothing_of_single_people(data: Data, tmp_path: Path) -> None:
    """Of a graph of usual size the file holds sums over its nodes, not the nodes."""
    path = GMMD(training=Training(epochs=2)).fit(data).save(tmp_path / "model")
    with safe_open(str(path), framework="pt") as file:
        names = list(file.keys())
        header = json.loads(file.metadata()["fairpass"])
    assert not any(name.endswith("points") for name in names)
    assert header["kind"] == KIND
