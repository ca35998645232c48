"""Predictions as a table and as a file."""

import os
from pathlib import Path

import pandas as pd
import pytest
import torch
from tests.methods.ingredients import make, small_graph, some_unknown
from torch_geometric.data import Data

from fairpass.datasets import join
from fairpass.errors import DataError
from fairpass.methods import GCN, GMMD, Constant
from fairpass.projects.predictions import prediction_table, read_table, write_table


def test_two_labels_have_one_score() -> None:
    data = small_graph()
    data.label_names, data.group_names = ["no", "yes"], ["a", "b"]
    data.sens = data.sens.clone()
    data.sens[0] = -1
    model = Constant().fit(data)
    table = prediction_table(model, data)
    assert list(table) == ["node", "score", "label", "group", "split"]
    assert table["node"].tolist() == list(range(data.num_nodes))
    assert table["score"].tolist() == model.predict_proba(data)[:, 1].tolist()
    assert table["group"].isna().tolist() == [True] + [False] * (data.num_nodes - 1)
    assert (table["split"] == "test").tolist() == data.test_mask.tolist()


def test_nodes_of_no_split_have_no_split() -> None:
    data = small_graph()
    data.label_names, data.group_names = ["no", "yes"], ["a", "b"]
    model = Constant().fit(data)
    for part in ("train", "val", "test"):
        data[f"{part}_mask"] = torch.zeros(data.num_nodes, dtype=torch.bool)
    assert list(prediction_table(model, data)) == ["node", "score", "label", "group"]


def test_of_a_joined_graph_only_new_nodes_have_a_row() -> None:
    data = small_graph()
    data.label_names, data.group_names = ["no", "yes"], ["a", "b"]
    model = make(GCN).fit(data)
    joined = join(data, Data(x=data.x[:2], sens=torch.tensor([1, -1])), torch.tensor([[0, 0], [3, 5]]))
    table = prediction_table(model, joined)
    assert list(table) == ["node", "score", "label", "group"]
    assert table["node"].tolist() == [data.num_nodes, data.num_nodes + 1]
    assert table.index.tolist() == [0, 1]
    assert table["group"].fillna("unknown").tolist() == ["b", "unknown"]
    assert table["score"].tolist() == model.predict_proba(joined)[joined.new_mask][:, 1].tolist()
    assert table["label"].tolist() == [data.label_names[i] for i in model.predict(joined)[joined.new_mask].tolist()]


def test_groups_of_known_nodes_may_be_unknown() -> None:
    """Thresholds per group, and the policy "error", ask for the groups of new nodes only."""
    data = small_graph()
    data.label_names, data.group_names = ["no", "yes"], ["a", "b"]
    models = [make(GCN, postprocess="thresholds").fit(data), make(GMMD).fit(data)]
    hidden = some_unknown(data)
    links = torch.tensor([[0, 0], [3, 5]])
    joined = join(hidden, Data(x=data.x[:1], sens=torch.tensor([1])), links)
    without = join(hidden, Data(x=data.x[:1]), links)
    for model in models:
        assert len(prediction_table(model, joined, unknown_group="error")) == 1
        with pytest.raises(DataError, match=r"the group of every new node must be known .*\(got 1 unknown\)"):
            prediction_table(model, without, unknown_group="error")
    with pytest.raises(DataError, match=r"'data.sens' must be known for thresholds per group \(got 1 nodes"):
        prediction_table(models[0], without)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_formats(tmp_path: Path, ending: str) -> None:
    table = pd.DataFrame({"node": ["a", "b"], "score": [0.25, 0.5], "group": ["x", None]})
    path = write_table(table, tmp_path / f"found{ending}")
    read = pd.read_csv(path) if ending == ".csv" else pd.read_parquet(path)
    pd.testing.assert_frame_equal(read, table)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_path_need_not_be_utf_8(tmp_path: Path, ending: str) -> None:
    table = pd.DataFrame({"node": ["a"], "score": [0.5]})
    path = write_table(table, tmp_path / os.fsdecode(b"x\xff") / f"found{ending}")
    pd.testing.assert_frame_equal(read_table(path), table)


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'path' must end in .csv or .parquet"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "found.xlsx")
    assert not list(tmp_path.iterdir())
