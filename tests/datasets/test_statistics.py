import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from tests.drawing import examples
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph, homophily

from fairpass.datasets.registry import load
from fairpass.datasets.statistics import describe
from fairpass.errors import DataError


def small_graph(**changes: Any) -> Data:
    """A path 0-1-2-3, an edge 4-5 and a lone node 6; node 3 is unlabelled, node 5 of unknown group."""
    edges = torch.tensor([[0, 1], [1, 2], [2, 3], [4, 5]]).T
    attributes = {
        "x": torch.tensor([[0.0, 5, 1], [0, 5, 3], [0, 5, 1], [1, 5, 3], [1, 5, 1], [0, 5, 3], [1, 5, 1]]),
        "edge_index": torch.cat([edges, edges.flip(0)], dim=1),
        "y": torch.tensor([0, 0, 1, -1, 1, 1, 1]),
        "sens": torch.tensor([0, 0, 0, 1, 1, -1, 1]),
        "feature_names": ["sex", "same", "shoe"],
        "sens_column": 0,
        "label_names": ["no", "yes"],
        "group_names": ["m", "f"],
    }
    return Data(**{name: value for name, value in (attributes | changes).items() if value is not None})


def test_small_graph() -> None:
    found = describe(small_graph())
    assert (found.nodes, found.edges, found.features) == (7, 4, 3)
    assert found.label_counts == {"no": 2, "yes": 4}
    assert (found.unlabelled, found.unknown_group) == (1, 1)
    assert (found.isolated, found.components, found.largest_component) == (1, 3, 4)
    assert found.label_mixing.edges == 3  # 0-1 equal, 1-2 not, 4-5 equal; 2-3 is not known
    assert found.label_homophily == pytest.approx(2 / 3)
    assert found.label_mixing.expected == pytest.approx(0.5)
    assert found.label_mixing.assortativity == pytest.approx(1 / 3)
    assert found.sensitive_homophily == pytest.approx(2 / 3)  # 4-5 is not known
    men, women = found.groups
    assert (men.name, men.size, men.labelled) == ("m", 3, 3)
    assert men.label_rates == {"no": pytest.approx(2 / 3), "yes": pytest.approx(1 / 3)}
    assert [men.degree_mean, men.degree_median, men.degree_max] == pytest.approx([5 / 3, 2, 2])
    assert (women.name, women.size, women.labelled) == ("f", 3, 2)
    assert women.label_rates == {"no": 0, "yes": 1}
    assert [women.degree_mean, women.degree_median, women.degree_max] == pytest.approx([2 / 3, 1, 1])
    assert found.base_rate_gap == pytest.approx(2 / 3)
    assert found.leakage.sensitive_feature == "sex"
    assert found.leakage.correlations == {"same": 0, "shoe": 0}
    assert found.leakage.auc is None


def test_repr_is_readable() -> None:
    lines = repr(describe(small_graph(), leakage_auc=True)).splitlines()
    assert lines[0] == "GraphStatistics"
    text = {line[2:16].strip(): line[16:] for line in lines[1:]}
    assert text["nodes"] == "7, 1 unlabelled, 1 of unknown group"
    assert text["edges"] == "4 undirected, 1 isolated nodes"
    assert text["H (labels)"] == "0.667 (at random 0.500, assortativity 0.333)"
    assert text["group m"] == "3 nodes, P(y = yes) = 0.333, degree mean 1.7, median 2, max 2"
    assert text["leakage"].startswith("sex is itself a feature, same 0.00, shoe 0.00, linear AUC 0.")


def test_to_dict_is_json() -> None:
    plain = describe(small_graph(sens=torch.zeros(7, dtype=torch.long)), leakage_auc=True).to_dict()
    assert plain["sensitive_mixing"] == {"edges": 4, "homophily": 1, "expected": 1, "assortativity": None}
    assert plain["groups"][1]["degree_mean"] is None  # group "f" is empty
    assert plain["leakage"]["auc"] is None
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_names_are_optional() -> None:
    found = describe(small_graph(feature_names=None, sens_column=None, label_names=None, group_names=None))
    assert list(found.label_counts) == ["0", "1"]
    assert [group.name for group in found.groups] == ["0", "1"]
    assert found.leakage.sensitive_feature is None
    # Without node 5, whose group is not known, x_0 is the group.
    assert found.leakage.correlations == {"0": pytest.approx(1), "1": 0, "2": 0}
    assert list(describe(small_graph(), top=1).leakage.correlations) == ["same"]


def test_direction_duplicates_and_loops_do_not_count() -> None:
    whole = small_graph()
    one_way = small_graph(edge_index=torch.tensor([[0, 2, 2, 4, 4, 6], [1, 1, 3, 5, 5, 6]]))
    assert describe(one_way) == describe(whole)


def test_data_is_not_changed() -> None:
    data = small_graph()
    describe(data, leakage_auc=True)
    for name, value in small_graph().items():
        assert torch.equal(data[name], value) if isinstance(value, torch.Tensor) else data[name] == value


def test_nothing_known() -> None:
    found = describe(
        small_graph(
            y=torch.full((7,), -1),
            sens=torch.full((7,), -1),
            edge_index=torch.empty((2, 0), dtype=torch.long),
            label_names=None,
            group_names=None,
        ),
        leakage_auc=True,
    )
    assert found.label_counts == {}
    assert found.groups == ()
    assert (found.unlabelled, found.unknown_group, found.isolated, found.components) == (7, 7, 7, 7)
    assert math.isnan(found.label_homophily)
    assert math.isnan(found.base_rate_gap)
    assert found.leakage.auc is not None
    assert math.isnan(found.leakage.auc)
    assert "nan" in repr(found)


def random_graph(seed: int, nodes: int = 60, classes: int = 3, groups: int = 4) -> Data:
    torch.manual_seed(seed)
    return Data(
        x=torch.randn(nodes, 5),
        edge_index=erdos_renyi_graph(nodes, 6 / nodes),
        y=torch.randint(classes, (nodes,)),
        sens=torch.randint(groups, (nodes,)),
    )


@examples(40)
@given(st.integers(0, 2**31), st.integers(2, 5), st.integers(2, 5))
def test_agrees_with_independent_implementations(seed: int, classes: int, groups: int) -> None:
    data = random_graph(seed, classes=classes, groups=groups)
    found = describe(data, top=5)
    row, column = data.edge_index
    for mixing, values in ((found.label_mixing, data.y), (found.sensitive_mixing, data.sens)):
        assert mixing.homophily == pytest.approx(homophily(data.edge_index, values, method="edge"))
        # Over both directions, Newman's assortativity of the ends is their Cohen's kappa.
        assert mixing.assortativity == pytest.approx(cohen_kappa_score(values[row], values[column]))
    x, sens = data.x.double().numpy(), data.sens.numpy()
    for name, correlation in found.leakage.correlations.items():
        present = [group for group in range(groups) if (sens == group).any()]
        expected = [abs(np.corrcoef(x[:, int(name)], sens == group)[0, 1]) for group in present]
        assert correlation == pytest.approx(max(expected), abs=1e-6)
    for index, group in enumerate(found.groups):
        assert group.size == (sens == index).sum()
        assert sum(group.label_rates.values()) == pytest.approx(1)
    assert sum(found.label_counts.values()) == found.nodes


@pytest.mark.parametrize("groups", [2, 3])
def test_leakage_auc(groups: int) -> None:
    data = random_graph(0, nodes=6_000, groups=groups)
    blind = describe(data, leakage_auc=True).leakage.auc
    assert blind == pytest.approx(0.5, abs=0.05)
    assert describe(data, leakage_auc=True).leakage.auc == blind
    assert describe(data, leakage_auc=True, seed=1).leakage.auc != blind
    # Neither a linear combination of features nor the scale of one hides the group.
    data.x[:, 0] += 3 * (data.sens == 0)
    data.x[:, 1] = 1e4 * data.x[:, 1] + 3e4 * (data.sens == 1)
    data.feature_names = ["a", "b", "c", "d", "e"]
    open_ = describe(data, leakage_auc=True, top=2).leakage
    assert open_.auc is not None
    assert open_.auc > 0.95
    assert set(open_.correlations) == {"a", "b"}
    # The sensitive column itself does not count.
    data.x[:, :2] = torch.randn(6_000, 2)
    data.x[:, 2] = data.sens
    data.sens_column = 2
    assert describe(data, leakage_auc=True).leakage.auc == pytest.approx(0.5, abs=0.05)


def test_leakage_auc_with_a_group_of_one() -> None:
    data = random_graph(0, groups=2)
    data.sens[0] = 2
    auc = describe(data, leakage_auc=True).leakage.auc
    assert auc is not None
    assert 0 <= auc <= 1


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "H", "H_f", "max_degree"),
    [
        ("german", 1_000, 21_742, 27, 0.587, 0.805, 286),
        ("credit", 30_000, 137_377, 13, 0.642, 0.879, 536),
        ("bail", 18_876, 311_870, 18, 0.775, 0.522, 5_391),
    ],
)
def test_benchmarks(
    name: str,
    nodes: int,
    edges: int,
    features: int,
    H: float,
    H_f: float,
    max_degree: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name == "bail" and not (Path(os.environ.get("FAIRPASS_DATA", "")) / "bail.csv").exists():
        pytest.skip("bail.csv is not in FAIRPASS_DATA; `fairpass datasets fetch bail` downloads it")
    monkeypatch.setenv("FAIRPASS_CACHE", str(tmp_path))
    data = load(name)
    found = describe(data)
    assert (found.nodes, found.edges, found.features) == (nodes, edges, features)
    assert (round(found.label_homophily, 3), round(found.sensitive_homophily, 3)) == (H, H_f)
    assert max(group.degree_max for group in found.groups) == max_degree
    assert found.isolated == 0


@pytest.mark.parametrize("name", ["x", "edge_index", "y", "sens"])
def test_missing_attribute(name: str) -> None:
    with pytest.raises(DataError, match=rf"'data' must have x, edge_index, y, sens \(missing: {name}\)"):
        describe(small_graph(**{name: None}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.full((7, 3), math.nan)}, "'x' must be a finite matrix"),
        ({"x": torch.zeros(0, 3)}, "'x' must be a finite matrix"),
        ({"y": torch.zeros(6, dtype=torch.long)}, "'y' must have one integer per node, 7 in all"),
        ({"sens": torch.zeros(7)}, "'sens' must have one integer per node, 7 in all .got float32"),
        ({"edge_index": torch.zeros((3, 2), dtype=torch.long)}, r"'edge_index' must have shape \[2, edges\]"),
        ({"edge_index": torch.tensor([[0], [7]])}, r"'edge_index' must have node numbers from 0 to 6 .got 0 to 7"),
        ({"feature_names": ["a"] * 4}, "'feature_names' must name 3 features .got 4"),
        ({"sens_column": 3}, "'sens_column' must be None or one of the 3 columns of 'x' .got 3"),
    ],
)
def test_inconsistent_data(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        describe(small_graph(**changes))


def test_negative_top() -> None:
    with pytest.raises(DataError, match=r"'top' must not be negative \(got -1\)"):
        describe(small_graph(), top=-1)
