"""The parts that `partition` writes are the graph of `from_tables`, whatever the tables look like."""

import gzip
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairpass.datasets import GraphArrays, from_tables_arrays
from fairpass.datasets.out_of_core import edge_arrays, edge_parts, work
from fairpass.datasets.out_of_core import partition as partition_module
from fairpass.datasets.out_of_core.partition import partition
from fairpass.datasets.parts import Manifest, join_parts
from fairpass.errors import DataError

PEOPLE, FRIENDS = 120, 400
FEW = ["age", "job"]  # features of tests that are about edges
ROLES: Mapping[str, Any] = {"label": "hired", "sensitive": "sex", "id": "name", "missing": "mean"}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handle few rows at once, so that small tables need several blocks."""
    monkeypatch.setattr(work, "ROWS", 50)
    monkeypatch.setattr(partition_module, "_ROWS", 30)
    monkeypatch.setattr(edge_parts, "_ENTRIES", 100)


def people(**columns: Any) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    table = {
        "name": [f"p{number:03d}" for number in range(PEOPLE)],
        "age": generator.integers(18, 80, PEOPLE),
        "score": np.where(generator.random(PEOPLE) < 0.1, np.nan, generator.normal(size=PEOPLE)),
        "income": [f"${value:,.2f}" for value in generator.gamma(2, 20_000, PEOPLE)],
        "joined": pd.Series(pd.Timestamp("2001-02-03") + pd.to_timedelta(generator.integers(0, 5000, PEOPLE), "D"))
        .dt.strftime("%d.%m.%Y")
        .tolist(),
        "job": [
            None if value == 3 else ["nurse", "clerk", "Nurse"][value] for value in generator.integers(0, 4, PEOPLE)
        ],
        "town": [f"town {value}" for value in generator.integers(0, 9, PEOPLE)],
        "member": generator.random(PEOPLE) < 0.5,
        "always": ["same"] * PEOPLE,
        "sex": ["female", "male", "male"] * (PEOPLE // 3),
        "hired": ["no", "yes"] * (PEOPLE // 2),
    }
    return pd.DataFrame(table | columns)


def friends(**columns: Any) -> pd.DataFrame:
    """Edges with duplicates in both directions, and loops."""
    generator = np.random.default_rng(1)
    ends = generator.integers(0, PEOPLE, (2, FRIENDS)) // 3 * generator.integers(1, 4, (2, FRIENDS))
    names = np.array([f"p{number:03d}" for number in range(PEOPLE)])
    return pd.DataFrame({"source": names[ends[0]], "target": names[ends[1]], **columns})


def write(frame: pd.DataFrame, path: Path, **settings: Any) -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, **settings)
    return path


def assert_same(found: GraphArrays, expected: GraphArrays) -> None:
    for field in fields(GraphArrays):
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        if field.name == "edge_weight" and theirs is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)  # the mean is rounded
        elif isinstance(theirs, np.ndarray):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs, err_msg=field.name)
        elif field.name == "provenance" and expected.edge_weight is not None:
            for provenance in (ours, theirs):
                provenance["encoding"]["mean_edge_weight"] = pytest.approx(provenance["encoding"]["mean_edge_weight"])
            assert ours["options"] == theirs["options"]
        else:
            assert ours == theirs, field.name


def check(nodes: Path, edges: Path, directory: Path, parts: int = 3, **options: Any) -> Manifest:
    arguments = {**ROLES, **options}
    manifest = partition(nodes, edges, directory, parts=parts, memory="600MB", **arguments)
    assert_same(join_parts(directory), from_tables_arrays(nodes, edges, **arguments))
    return manifest


@pytest.mark.parametrize("nodes", ["csv", "parquet"])
@pytest.mark.parametrize("edges", ["csv", "parquet"])
def test_the_parts_are_the_graph_of_from_tables(tmp_path: Path, nodes: str, edges: str) -> None:
    tables = write(people(), tmp_path / f"n.{nodes}"), write(friends(), tmp_path / f"e.{edges}")
    manifest = check(*tables, tmp_path / "parts", max_levels=5)  # towns become the share of each label
    assert {path.name for path in (tmp_path / "parts").iterdir()} == {
        *("manifest.json", "partition.json", "part-0000", "part-0001", "part-0002")
    }
    assert manifest.statistics["labels"] == {"no": 60, "yes": 60}
    assert manifest.statistics["groups"] == {"female": 40, "male": 80}
    assert sum(part["nodes"] for part in manifest.statistics["parts"]) == PEOPLE


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no label": ({"hired": [None, "no", "yes", "no", "yes"] * 24}, {}),
    "no group": ({"sex": ["female", "male", None] * 40}, {"missing_sensitive": "unknown"}),
    "two sensitive columns": ({}, {"sensitive": ["sex", "member"], "keep_sensitive": True, "drop": ["joined"]}),
    "a group by age": (
        {},
        {"sensitive": "age", "sens_bins": 2, "keep_sensitive": True, "scale": "minmax", "drop": ["joined"]},
    ),
    "a split": ({"part": ["train", "val", "test", "safety", None] * 24}, {"split": "part", "features": FEW}),
    "safety nodes": ({}, {"fractions": [0.4, 0.2, 0.2, 0.2], "seed": 3, "features": FEW}),
    "rules": (
        {},
        {"columns": {"town": {"kind": "rare", "min_count": 14}, "joined": {"kind": "date", "weekday": True}}},
    ),
    "missing values": ({}, {"missing": "drop", "positive": "no", "features": ["age", "score", "town"]}),
    "an indicator": ({}, {"missing": "indicator", "drop": ["town", "joined", "income"]}),
    "some features": ({}, {"features": ["age", "job"]}),
}


@pytest.mark.parametrize("case", CASES)
def test_options_of_nodes_mean_the_same(tmp_path: Path, case: str) -> None:
    columns, options = CASES[case]
    ending = "csv" if len(case) % 2 else "parquet"
    check(
        write(people(**columns), tmp_path / f"n.{ending}"),
        write(friends(), tmp_path / f"e.{ending}"),
        tmp_path / "parts",
        **options,
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_weights_are_added_and_divided_by_their_mean(tmp_path: Path, ending: str) -> None:
    weights = np.random.default_rng(2).gamma(2.0, size=FRIENDS).round(3)
    edges = write(friends(strength=weights, since=[2001, 2002] * (FRIENDS // 2)), tmp_path / f"e.{ending}")
    check(write(people(), tmp_path / f"n.{ending}"), edges, tmp_path / "parts", edge_weight="strength", features=FEW)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_edges_without_both_nodes_can_be_dropped(tmp_path: Path, ending: str) -> None:
    edges = friends()
    edges.loc[[3, 50], "target"] = ["nobody", None]
    tables = write(people(), tmp_path / f"n.{ending}"), write(edges, tmp_path / f"e.{ending}")
    check(*tables, tmp_path / "parts", dangling="drop", source="target", target="source", features=FEW)
    assert Manifest.read(tmp_path / "parts").provenance["dangling_edges_dropped"] == 2


@pytest.mark.parametrize(("nodes", "edges"), [("csv", "parquet"), ("parquet", "csv"), ("parquet", "parquet")])
def test_ids_may_be_numbers_or_row_numbers(tmp_path: Path, nodes: str, edges: str) -> None:
    numbered = friends().apply(lambda column: column.str[1:].astype(int))
    ids = write(people(name=np.arange(PEOPLE) * 7), tmp_path / f"n.{nodes}")
    check(ids, write(numbered * 7, tmp_path / f"e.{edges}"), tmp_path / "ids", features=FEW)
    rows = write(people().drop(columns="name"), tmp_path / f"rows.{nodes}")
    check(rows, write(numbered, tmp_path / f"numbers.{edges}"), tmp_path / "rows", id=None, features=FEW)


def test_edges_of_a_text_file_may_have_no_header(tmp_path: Path) -> None:
    nodes, edges = write(people(), tmp_path / "n.csv"), write(friends(), tmp_path / "e.csv", header=False)
    check(nodes, edges, tmp_path / "parts", features=FEW)


def test_text_files_may_have_other_marks_and_encodings(tmp_path: Path) -> None:
    table = people(
        town=["Köln", "Århus", 'say "hello"'] * 40,
        score=[f"{number / 8:.3f}".replace(".", ",") for number in range(PEOPLE)],
    )
    nodes = write(table, tmp_path / "n.csv", sep=";", encoding="cp1252")
    edges = tmp_path / "e.tsv.gz"
    edges.write_bytes(gzip.compress(friends().to_csv(index=False, sep="\t").encode()))
    check(nodes, edges, tmp_path / "parts")


def test_a_table_of_edges_may_be_empty(tmp_path: Path) -> None:
    nodes = write(people(), tmp_path / "n.parquet")
    for ending in ("csv", "parquet"):
        edges = write(friends().head(0).astype("str"), tmp_path / f"e.{ending}")
        manifest = check(nodes, edges, tmp_path / ending, parts=2, features=FEW)
        assert manifest.num_edges == 0


def test_names_of_files_are_no_patterns(tmp_path: Path) -> None:
    folder = tmp_path / "what's [new] *?"
    folder.mkdir()
    check(write(people(), folder / "n.csv"), write(friends(), folder / "e.parquet"), folder / "parts", features=FEW)


def test_progress_ends_with_the_last_part(tmp_path: Path) -> None:
    seen: list[tuple[float, str]] = []
    tables = write(people(), tmp_path / "n.parquet"), write(friends(), tmp_path / "e.parquet")
    partition(*tables, tmp_path / "parts", parts=2, progress=lambda share, what: seen.append((share, what)), **ROLES)
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert seen[-1][1] == "Writing the nodes of part 1"


@pytest.mark.parametrize("case", ["ids", "row numbers", "dangling"])
def test_from_tables_reads_many_edges_with_the_same_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    edges = friends(since=2001)
    edges.loc[5, "target"] = "nobody" if case == "dangling" else edges["target"][5]
    options: dict[str, Any] = {**ROLES, "features": FEW, "dangling": "drop"}
    if case == "row numbers":
        edges = edges.assign(**{end: edges[end].str[1:].astype(int) for end in ("source", "target")})
        options |= {"id": None}
    tables = write(people(), tmp_path / "n.parquet"), write(edges, tmp_path / "e.parquet")
    expected = from_tables_arrays(*tables, **options)
    monkeypatch.setattr(edge_arrays, "MANY_EDGES", 1)
    assert_same(from_tables_arrays(*tables, **options), expected)
    if case == "dangling":
        with pytest.raises(DataError, match="names nodes that do not exist \\(1 ids, 1 edges, first in row 5\\)"):
            from_tables_arrays(*tables, **options | {"dangling": "error"})
    # That engine opens no other names.
    odd = [table.rename(tmp_path / os.fsdecode(table.name.encode() + b"\xff.parquet")) for table in tables]
    assert np.array_equal(from_tables_arrays(*odd, **options).edge_index, expected.edge_index)
