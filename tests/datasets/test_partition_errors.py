"""What is wrong with tables is said in the words of `from_tables`, before parts are written."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.datasets.test_partition import FRIENDS, PEOPLE, ROLES, friends, people, write

from fairpass.datasets import from_tables_arrays, load_arrays
from fairpass.datasets.out_of_core.engine import bytes_of
from fairpass.datasets.out_of_core.partition import partition, partition_graph
from fairpass.errors import DataError

SIMPLE = {**ROLES, "features": ["age", "job"]}
WEIGHTS = np.linspace(1, 2, FRIENDS)


def edges_with(column: str, row: int, value: Any, **columns: Any) -> pd.DataFrame:
    edges = friends(**columns)
    edges[column] = edges[column].astype(object)
    edges.loc[[row, row + 2], column] = value
    return edges


# The nodes, the edges, and the options.
WRONG: dict[str, tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]] = {
    "an unknown end": (people(), edges_with("target", 7, "nobody"), {}),
    "a missing end": (people(), edges_with("source", 7, None), {}),
    "a missing weight": (people(), friends(w=[*WEIGHTS[1:], None]), {"edge_weight": "w"}),
    "a negative weight": (people(), friends(w=[*WEIGHTS[1:], -1.0]), {"edge_weight": "w"}),
    "an infinite weight": (people(), friends(w=[*WEIGHTS[1:], np.inf]), {"edge_weight": "w"}),
    "a weight that is too small": (people(), friends(w=[*WEIGHTS[1:], 1e-60]), {"edge_weight": "w"}),
    "a weight that is text": (people(), friends(w=["much"] * FRIENDS), {"edge_weight": "w"}),
    "a weight that is not mentioned": (people(), friends(weight=WEIGHTS), {}),
    "no column of weights": (people(), friends(), {"edge_weight": "w"}),
    "no column of ends": (people(), friends(), {"source": "from"}),
    "one column of edges": (people(), friends()[["source"]], {}),
    "repeated ids": (people(name=["p001", "p001"] * (PEOPLE // 2)), friends(), {}),
    "no label": (people().drop(columns="hired"), friends(), {}),
    "an id without a role": (people(id=range(PEOPLE)), friends(), {"id": None}),
    "ids of another type": (people(name=np.arange(PEOPLE)), friends(), {}),
    "ids that are lists": (people(name=[[f"p{i}"] for i in range(PEOPLE)]), friends(), {}),
    "ids that are bytes": (people(name=[f"p{i}".encode() for i in range(PEOPLE)]), friends(), {}),
    "groups that are records": (people(sex=[None, *[{"a": 1}] * (PEOPLE - 1)]), friends(), {}),
    "features that are lists": (people(age=[[i] for i in range(PEOPLE)]), friends(), {}),
    "ends that are lists": (people(), friends(target=[["p001"]] * FRIENDS), {}),
    "weights that are lists": (people(), friends(w=[[1.0]] * FRIENDS), {"edge_weight": "w"}),
    "row numbers beyond the rows": (people(), pd.DataFrame({"a": [0, 500], "b": [1, 2]}), {"id": None}),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_message_is_that_of_from_tables(tmp_path: Path, case: str) -> None:
    nodes, edges, options = WRONG[case]
    for ending in ("csv", "parquet") if case in ("an unknown end", "a weight that is text") else ("parquet",):
        tables = write(nodes, tmp_path / f"n.{ending}"), write(edges, tmp_path / f"e.{ending}")
        arguments = {**SIMPLE, **options}
        with pytest.raises(DataError) as expected:
            from_tables_arrays(*tables, **arguments)
        with pytest.raises(DataError) as found:
            partition(*tables, tmp_path / ending, parts=2, **arguments)
        assert str(found.value) == str(expected.value)
        assert not (tmp_path / ending).exists()


@pytest.mark.parametrize(
    ("nodes", "edges", "options"),
    [
        (people(age=[1e300] * PEOPLE), friends(), {}),
        (people(), friends(w=[*WEIGHTS[1:], np.nan]), {"edge_weight": "w"}),
        (people(), friends(w=[1e308] * FRIENDS), {"edge_weight": "w"}),
        (people(), friends(), {"parts": PEOPLE + 1}),
    ],
)
@pytest.mark.parametrize("there", ["", "a", "a/b"])
def test_refused_input_leaves_nothing(
    tmp_path: Path, nodes: pd.DataFrame, edges: pd.DataFrame, options: dict[str, Any], there: str
) -> None:
    tables = write(nodes, tmp_path / "n.parquet"), write(edges, tmp_path / "e.parquet")
    (tmp_path / there).mkdir(parents=True, exist_ok=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError):
        partition(*tables, tmp_path / "a" / "b", **{"parts": 2, **SIMPLE, **options})
    assert sorted(tmp_path.rglob("*")) == before


def test_a_refused_graph_leaves_nothing(tmp_path: Path) -> None:
    graph = load_arrays("german")
    with pytest.raises(DataError, match="'parts' must be between 1 and the number of nodes"):
        partition_graph(graph, tmp_path / "a" / "b", parts=10_000, made_from={"name": "german"})
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_stays(tmp_path: Path) -> None:
    """Other people's files may be named like ours."""
    tables = write(people(), tmp_path / "n.parquet"), write(friends(), tmp_path / "e.parquet")
    (tmp_path / "parts" / "part-time").mkdir(parents=True)
    with pytest.raises(DataError, match="'out' must be a new or empty directory"):
        partition(*tables, tmp_path / "parts", parts=2, **SIMPLE)
    assert (tmp_path / "parts" / "part-time").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"similarity": 0.5}, "'similarity' cannot be used with tables that do not fit in memory"),
        ({"encoding": {}}, "'encoding' cannot be used with tables that do not fit in memory"),
        ({"parts": 0}, r"'parts' must be at least 1 \(got 0\)"),
        ({"parts": 121}, r"'parts' must be between 1 and the number of nodes, 120 \(got 121\)"),
        ({"memory": "much"}, r"'memory' must be a number with a unit, such as 500MB or 8GB \(got 'much'\)"),
        ({"memory": "1MB"}, r"'memory' must be at least 416MB for 120 nodes \(got 1MB\)"),
        ({"label": ""}, "'label' must be a text that is not empty"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    tables = write(people(), tmp_path / "n.parquet"), write(friends(), tmp_path / "e.parquet")
    with pytest.raises(DataError, match=message):
        partition(*tables, tmp_path / "parts", **{"parts": 2, **SIMPLE, **wrong})


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    nodes, edges = write(people(), tmp_path / "n.parquet"), write(friends(), tmp_path / "e.parquet")
    (tmp_path / "rows.jsonl").write_text("{}\n")
    (tmp_path / "text.parquet").write_text("a,b\n")
    (tmp_path / "ragged.csv").write_text("source,target\np000,p001\np000,p001\np002\n")
    (tmp_path / "open.csv").write_text('source,target\np000,"p001\n')
    for wrong, message in {
        "rows.jsonl": "'edges' must be a CSV, TSV or Parquet file to be partitioned",
        "text.parquet": "'edges': .* is not a Parquet file, despite its ending",
        "ragged.csv": "'edges': .* cannot be parsed",
        "open.csv": "'edges': .* has a quote that does not end",
        "none.csv": "'edges': there is no file",
    }.items():
        with pytest.raises(DataError, match=message):
            partition(nodes, tmp_path / wrong, tmp_path / f"parts of {wrong}", parts=2, **SIMPLE)
    assert edges.exists()


@pytest.mark.parametrize("encoding", ["", "hex", "base64", "zip", "rot13"])
def test_codecs_that_are_no_encodings_are_refused(tmp_path: Path, encoding: str) -> None:
    tables = write(people(), tmp_path / "n.csv"), write(friends(), tmp_path / "e.csv")
    with pytest.raises(DataError, match=rf"^'text_encoding' must be .* that Python knows \(got '{encoding}'\)$"):
        partition(*tables, tmp_path / "parts", parts=2, **SIMPLE, text_encoding=encoding)


def test_paths_of_the_engine_are_utf_8(tmp_path: Path) -> None:
    odd = os.fsdecode(b"\xff")
    texts = write(people(), tmp_path / f"n{odd}.csv"), write(friends(), tmp_path / f"e{odd}.csv")
    nodes, edges = write(people(), tmp_path / "n.parquet"), write(friends(), tmp_path / "e.parquet")
    other = edges.rename(tmp_path / f"e{odd}.parquet")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DataError, match=r"'edges' must be a path in UTF-8, which DuckDB needs \(got '.*e\\udcff"):
        partition(nodes, other, tmp_path / "parts", parts=2, **SIMPLE)
    with pytest.raises(DataError, match=r"'out' must be a path in UTF-8, which DuckDB needs \(got '.*parts\\udcff"):
        partition(*texts, tmp_path / f"parts{odd}", parts=2, **SIMPLE)
    assert sorted(tmp_path.iterdir()) == before
    assert partition(*texts, tmp_path / "parts", parts=2, **SIMPLE).num_nodes == PEOPLE


def test_memory_has_a_unit() -> None:
    assert bytes_of("8GB") == 8 * 10**9
    assert bytes_of("1.5 GiB") == 3 * 2**29
    assert bytes_of("500mb") == 5 * 10**8


@pytest.mark.parametrize("memory", ["1" + "0" * 20, "2" + "0" * 400 + "GB", "1000001TB"])
def test_memory_has_a_limit(memory: str) -> None:
    with pytest.raises(DataError, match=r"'memory' must be at most 1,000,000TB \(got '[12]0{5}"):
        bytes_of(memory)
