"""The graph as numpy arrays: the same as the public graph, and enough for an audit without torch."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from fairpass.datasets import GraphArrays, describe, from_tables, from_tables_arrays, load, load_arrays
from fairpass.datasets.graph_gain import graph_gain

AUDIT = """
import sys
from fairpass.datasets import describe, find_bias, load_arrays
from fairpass.datasets.graph_gain import graph_gain

graph = load_arrays("german")
assert find_bias(describe(graph, leakage_auc=True))
assert graph_gain(graph).acc is not None
print(*[name for name in ("torch", "torch_geometric", "sklearn", "scipy.stats", "requests") if name in sys.modules])
"""


def test_an_audit_does_not_import_torch_or_scikit_learn() -> None:
    done = subprocess.run([sys.executable, "-c", AUDIT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_arrays_are_those_of_the_graph() -> None:
    arrays, data = load_arrays("german", scale="minmax"), load("german", scale="minmax")
    assert isinstance(arrays, GraphArrays)
    for name, value in data.to_dict().items():
        own = getattr(arrays, name)
        assert torch.equal(torch.tensor(own), value) if isinstance(own, np.ndarray) else own == value
    assert describe(arrays, leakage_auc=True) == describe(data, leakage_auc=True)
    assert graph_gain(arrays) == graph_gain(data)


def test_tables_as_arrays(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(
        "age,sex,paid\n" + "".join(f"{i % 9},{i % 2},{i // 2 % 2}\n" for i in range(40))
    )
    (tmp_path / "edges.csv").write_text("a,b\n0,1\n2,3\n")
    tables = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    arrays = from_tables_arrays(*tables, label="paid", sensitive="sex")
    data = from_tables(*tables, label="paid", sensitive="sex")
    assert arrays.x.tolist() == data.x.tolist()
    assert arrays.edge_index.tolist() == data.edge_index.tolist()
    assert arrays.provenance == data.provenance
    assert arrays.node_ids == data.node_ids
