"""The dials of the generator do what they say, and a measurement shows it."""

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from tests.datasets.dials import accepted_dials
from tests.drawing import examples
from tests.effort import calls
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, is_undirected

from fairpass.datasets.splits import stratified_split
from fairpass.datasets.synthetic_graphs import synthetic
from fairpass.errors import DataError


def homophily(data: Data, attribute: str) -> float:
    row, column = data.edge_index
    return float((data[attribute][row] == data[attribute][column]).double().mean())


def rates(data: Data) -> list[float]:
    return [float(data.y[data.sens == group].double().mean()) for group in range(len(data.group_names))]


def group_auc(data: Data, label: int) -> float:
    """How well the best linear guess tells two groups apart among nodes of one label."""
    nodes = data.y == label
    x, sens = data.x[nodes].numpy(), data.sens[nodes].numpy()
    half = len(x) // 2
    model = LogisticRegression().fit(x[:half], sens[:half])
    return float(roc_auc_score(sens[half:], model.decision_function(x[half:])))


def same(one: Data, other: Data) -> bool:
    return all(torch.equal(one[key], other[key]) for key in ("x", "edge_index", "y", "sens", "train_mask"))


def test_contract() -> None:
    data = synthetic(500, num_features=5)
    assert data.x.dtype == torch.float32
    assert data.x.shape == (500, 5)
    assert data.edge_index.dtype == data.y.dtype == data.sens.dtype == torch.int64
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)
    keys = data.edge_index[0] * 500 + data.edge_index[1]
    assert bool((keys[1:] > keys[:-1]).all())  # sorted, no duplicates
    assert data.edge_index.shape[1] == 500 * 20
    split = stratified_split(data.y, data.sens, seed=0)
    assert data.train_mask.tolist() == split.train.tolist()
    assert data.val_mask.tolist() == split.val.tolist()
    assert data.test_mask.tolist() == split.test.tolist()
    assert data.feature_names == [f"feature_{i}" for i in range(5)]
    assert data.label_names == data.group_names == ["0", "1"]
    assert data.get("sens_column") is None
    data.validate(raise_on_error=True)


def test_provenance_makes_the_graph_again() -> None:
    data = synthetic(200, avg_degree=6, class_homophily=0.4, num_groups=3, seed=5)
    options = json.loads(json.dumps(data.provenance))["options"]
    assert same(synthetic(**options), data)


def test_seed() -> None:
    assert same(synthetic(300, seed=1), synthetic(300, seed=1))
    one, other = synthetic(300, seed=1), synthetic(300, seed=2)
    for key in ("x", "edge_index", "y", "sens"):
        assert not torch.equal(one[key], other[key])


@examples(40)
@given(
    class_homophily=st.floats(0, 1),
    sens_homophily=st.floats(0, 1),
    avg_degree=st.floats(2, 30),
    num_groups=st.integers(2, 4),
    seed=st.integers(0, 2**32),
)
def test_homophily_and_degree_are_the_dials(
    class_homophily: float, sens_homophily: float, avg_degree: float, num_groups: int, seed: int
) -> None:
    data = synthetic(
        600,
        avg_degree=avg_degree,
        class_homophily=class_homophily,
        sens_homophily=sens_homophily,
        num_groups=num_groups,
        seed=seed,
    )
    edges = data.edge_index.shape[1] // 2
    assert edges == round(600 * avg_degree / 2)
    # Counts are rounded, nothing else is between the dial and the graph.
    assert homophily(data, "y") == pytest.approx(class_homophily, abs=2 / edges)
    assert homophily(data, "sens") == pytest.approx(sens_homophily, abs=2 / edges)


def test_kinds_of_edges_are_independent() -> None:
    data = synthetic(2000, class_homophily=0.6, sens_homophily=0.9)
    row, column = data.edge_index
    both = (data.y[row] == data.y[column]) & (data.sens[row] == data.sens[column])
    assert float(both.double().mean()) == pytest.approx(0.6 * 0.9, abs=1e-3)


def test_pairs_of_a_kind_are_equally_likely() -> None:
    """With the homophily that chance gives, the graph is uniform: all nodes have the same expected degree."""
    group, rate = 0.3, 0.4  # no label bias: shares are products
    data = synthetic(
        4000,
        avg_degree=40,
        class_homophily=rate**2 + (1 - rate) ** 2,
        sens_homophily=group**2 + (1 - group) ** 2,
        group_fraction=group,
        base_rate=rate,
        label_bias=0,
    )
    degree = torch.bincount(data.edge_index[0], minlength=4000).double()
    for attribute in ("y", "sens"):
        for value in (0, 1):
            assert float(degree[data[attribute] == value].mean()) == pytest.approx(40, rel=0.02)
    assert float(degree.var()) == pytest.approx(40, rel=0.1)  # nearly Poisson


@pytest.mark.parametrize("size", [6, 7, 10, 11])
def test_dense_cells_have_every_pair(size: int) -> None:
    """All edges within a label and group, as many as there are: each cell is a clique."""
    data = synthetic(
        4 * size, avg_degree=size - 1, class_homophily=1, sens_homophily=1, group_fraction=0.5, label_bias=0
    )
    cells = data.y * 2 + data.sens
    same_cell = (cells[:, None] == cells[None, :]) & ~torch.eye(4 * size, dtype=torch.bool)
    assert torch.equal(data.edge_index, same_cell.nonzero().T)


@examples(40)
@given(dials=accepted_dials(1000))
def test_base_rates_and_group_sizes_are_the_dials(dials: dict[str, Any]) -> None:
    data = synthetic(**dials, avg_degree=1)
    sizes = torch.bincount(data.sens)
    assert int(sizes[0]) == pytest.approx(1000 * (1 - dials["group_fraction"]), abs=1)
    assert int(sizes[1:].max() - sizes[1:].min()) <= 1
    found = rates(data)
    smallest = int(sizes.min())
    assert found[0] - found[-1] == pytest.approx(dials["label_bias"], abs=1 / smallest + 1e-9)
    assert float(data.y.double().mean()) == pytest.approx(dials["base_rate"], abs=(dials["num_groups"] + 1) / 1000)


def test_groups_between_the_first_and_the_last() -> None:
    found = rates(synthetic(3000, num_groups=3, label_bias=0.4, group_fraction=2 / 3))
    assert found == pytest.approx([0.7, 0.5, 0.3], abs=1e-3)


@pytest.mark.parametrize("leakage", [0.0, 0.5, 1.0, 2.0])
def test_leakage_is_what_a_linear_guess_finds(leakage: float) -> None:
    data = synthetic(20_000, avg_degree=1, feature_leakage=leakage, group_fraction=0.5, label_bias=0.3)
    for label in (0, 1):
        assert group_auc(data, label) == pytest.approx(norm.cdf(leakage / math.sqrt(2)), abs=0.03)


def test_correlation_with_the_group_grows_with_leakage() -> None:
    def strongest(leakage: float) -> float:
        data = synthetic(20_000, avg_degree=1, feature_leakage=leakage, label_bias=0)
        table = np.column_stack([data.x.numpy(), data.sens.numpy()])
        return float(np.abs(np.corrcoef(table, rowvar=False)[-1, :-1]).max())

    found = [strongest(leakage) for leakage in (0.0, 0.5, 1.0, 2.0)]
    assert found[0] < 0.03
    assert found == sorted(found)
    assert found[-1] > 0.2


def test_distance_of_means_is_the_signal() -> None:
    data = synthetic(50_000, avg_degree=1, feature_signal=1.5, feature_leakage=0, num_groups=3)
    means = [data.x[data.y == label].double().mean(dim=0) for label in (0, 1)]
    assert float((means[1] - means[0]).norm()) == pytest.approx(1.5, abs=0.05)
    within = [data.x[data.y == label].double().std(dim=0) for label in (0, 1)]
    assert torch.stack(within).sub(1).abs().max() < 0.03


@pytest.mark.parametrize(
    ("dials", "message"),
    [
        ({"num_nodes": 0}, "'num_nodes' must be finite and at least 1 .got 0"),
        ({"num_nodes": 10}, "must give every pair of label and group at least 3 nodes"),
        ({"avg_degree": -1}, "'avg_degree' must be finite and at least 0 .got -1"),
        ({"avg_degree": math.inf}, "'avg_degree' must be finite"),
        ({"class_homophily": 1.1}, "'class_homophily' must be between 0 and 1 .got 1.1"),
        ({"sens_homophily": -0.1}, "'sens_homophily' must be between 0 and 1"),
        ({"sens_homophily": math.nan}, "'sens_homophily' must be between 0 and 1"),
        ({"group_fraction": 2}, "'group_fraction' must be between 0 and 1"),
        ({"group_fraction": 0}, "must give every pair of label and group at least 3 nodes .got 0"),
        ({"base_rate": -0.5}, "'base_rate' must be between 0 and 1"),
        ({"base_rate": 1}, "'label_bias' must leave every group's rate of label 1 between 0 and 1"),
        ({"label_bias": 1.5}, "'label_bias' must be between -1 and 1"),
        ({"label_bias": 0.9}, "'label_bias' must leave every .* .got 0.9, which makes them 0.77, -0.13"),
        ({"feature_signal": -1}, "'feature_signal' must be finite and at least 0"),
        ({"feature_leakage": -1}, "'feature_leakage' must be finite and at least 0"),
        ({"num_features": 1}, "'num_features' must be finite and at least 2"),
        ({"num_groups": 1}, "'num_groups' must be finite and at least 2"),
        ({"seed": -1}, "'seed' must be finite and at least 0"),
        ({"fractions": (1, 1, 1)}, "'fractions' must be three or four positive numbers"),
        (
            {"num_nodes": 100, "avg_degree": 90},
            "'avg_degree' must be smaller: the dials ask for .* between nodes of the same label and group",
        ),
    ],
)
def test_dials_out_of_range(dials: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        synthetic(**dials)


def test_large_graphs_are_no_more_work_but_in_arrays() -> None:
    large = synthetic(100_000)
    assert large.edge_index.shape[1] == 2_000_000
    assert homophily(large, "y") == pytest.approx(0.7, abs=1e-6)
    assert calls(lambda: synthetic(100_000)) < 1.5 * calls(lambda: synthetic(10_000))
