"""Whatever can be wrong with a table has its own error, which says what and where."""

import logging
import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from torch_geometric.data import Data

from fairpass.datasets.tables import from_tables
from fairpass.errors import DataError

SIZE = 24


def nodes(**columns: Any) -> pd.DataFrame:
    table = {
        "name": [f"p{i}" for i in range(SIZE)],
        "age": np.linspace(20.0, 66.0, SIZE),
        "job": ["nurse", "clerk", "smith"] * 8,
        "sex": ["F"] * 12 + ["M"] * 12,
        "paid": ["no", "yes"] * 12,
    }
    return pd.DataFrame(table | columns)


def edges(*pairs: tuple[Any, Any]) -> pd.DataFrame:
    return pd.DataFrame(pairs or [("p0", "p1"), ("p1", "p2")], columns=["a", "b"])


def build(node_table: Any = None, edge_table: Any = None, **options: Any) -> Data:
    arguments = {"label": "paid", "sensitive": "sex", "id": "name"} | options
    return from_tables(
        nodes() if node_table is None else node_table, edges() if edge_table is None else edge_table, **arguments
    )


def changed(column: str, row: int, value: Any) -> pd.DataFrame:
    table = nodes().astype({column: object})
    table.loc[row, column] = value
    return table


# Columns


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "payed"}, "'nodes' has no column 'payed': did you mean 'paid'"),
        ({"sensitive": "gender"}, "'nodes' has no column 'gender': it has 'name', 'age', 'job', 'sex', 'paid'"),
        ({"id": "key"}, "'nodes' has no column 'key'"),
        ({"split": "part"}, "'nodes' has no column 'part'"),
        ({"features": ["age", "size"]}, "'nodes' has no column 'size'"),
        ({"drop": ["size"]}, "'nodes' has no column 'size'"),
        ({"source": "from"}, "'edges' has no column 'from'"),
        ({"target": "to"}, "'edges' has no column 'to'"),
    ],
)
def test_missing_column(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(**options)


def test_duplicate_column(tmp_path: Path) -> None:
    table = pd.concat([nodes(), nodes()[["age"]]], axis=1)
    with pytest.raises(DataError, match="'nodes': the DataFrame has more than one column called 'age'"):
        build(table)
    table.to_csv(tmp_path / "nodes.csv", index=False)
    with pytest.raises(DataError, match=r"^'nodes': '[^:]*nodes\.csv' has more than one column called 'age'"):
        build(tmp_path / "nodes.csv")
    with pytest.raises(DataError, match="'edges': the DataFrame has more than one column called 'a'"):
        build(edge_table=edges().set_axis(["a", "a"], axis=1))
    with pytest.raises(DataError, match="more than one column called '1'"):
        build(pd.concat([nodes(), pd.DataFrame({1: range(SIZE), "1": range(SIZE)})], axis=1))


def test_column_without_name(tmp_path: Path) -> None:
    nodes().to_csv(tmp_path / "nodes.csv")  # with the index
    with pytest.raises(DataError, match=r"has no name .was the table written with its row numbers"):
        build(tmp_path / "nodes.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "sex"}, "'label' and 'sensitive' must be different columns .both are 'sex'"),
        ({"id": "paid"}, "'label' and 'id' must be different columns"),
        ({"split": "sex"}, "'sensitive' and 'split' must be different columns"),
        ({"features": ["age", "paid"]}, "'features' must not contain the column given as 'label'"),
        ({"features": ["sex"]}, "'features' may contain the sensitive column 'sex' only with keep_sensitive=True"),
        ({"features": ["age", "age"]}, "'features' must not contain a column twice"),
        ({"features": "age"}, "'features' must be a list .got 'age'"),
        ({"drop": "age"}, "'drop' must be a list .got 'age'"),
        ({"source": "b"}, "'source' and 'target' must be different columns of 'edges' .both are 'b'"),
        ({"features": []}, "no column that can be a feature"),
        (
            {"features": ["age"], "drop": ["age"]},
            "'features' and 'drop' must not name the same column .both have 'age'",
        ),
        ({"columns": {"sex": "flag"}}, "'columns' must not have a rule for the column given as 'sensitive' .'sex'"),
        ({"columns": {"name": "text"}}, "'columns' must not have a rule for the column given as 'id' .'name'"),
        (
            {"columns": {"age": "number"}, "drop": ["age"]},
            "'columns' must not have a rule for a column that 'drop' names",
        ),
        ({"columns": {"age": "drop"}, "features": ["age"]}, "'features' must not name a column that 'columns' drops"),
        ({"columns": {"job": "rare"}, "features": ["age"]}, "a rule for a column that is not in 'features' .'job'"),
        ({"columns": {"jobs": "rare"}}, "'nodes' has no column 'jobs': did you mean 'job'"),
    ],
)
def test_roles_of_columns(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(**options)


@pytest.mark.parametrize("name", ["id", "node_id", "ID"])
def test_forgotten_id_column(name: str) -> None:
    with pytest.raises(DataError, match=f"'nodes' has a column '{name}': give id='{name}' .* or drop"):
        build(nodes().rename(columns={"name": name}), id=None)


def test_two_features_of_one_name() -> None:
    with pytest.raises(DataError, match="two columns give a feature called 'job=nurse'"):
        build(nodes(**{"job=nurse": [1, 2] * 12}))


@pytest.mark.parametrize("option", ["scale", "missing", "missing_sensitive", "on_constant", "unknown_category"])
def test_unknown_policy(option: str) -> None:
    with pytest.raises(DataError, match=f"'{option}' must be one of '.*' .got 'whatever'"):
        build(**{option: "whatever"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_levels": 1}, r"^'max_levels' must be at least 2 \(got 1\)$"),
        ({"seed": -1}, r"^'seed' must be at least 0 \(got -1\)$"),
        ({"seed": True}, r"^'seed' must be a whole number \(got True\)$"),
        ({"label": ""}, r"^'label' must be a text that is not empty \(got ''\)$"),
        ({"lable": "paid"}, r"^there is no option 'lable': did you mean 'label'\?$"),
        ({"keep_sensitive": "no"}, r"^'keep_sensitive' must be true or false \(got 'no'\)$"),
        ({"similarity": 0}, r"^'similarity' must be greater than 0 \(got 0\)$"),
    ],
)
def test_wrong_option(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(**options)


def test_required_option() -> None:
    with pytest.raises(DataError, match=r"^'sensitive' is missing$"):
        from_tables(nodes(), edges(), label="paid")


def test_values_of_numpy_and_tuples_are_plain_in_the_provenance() -> None:
    options = {"seed": np.int64(3), "drop": ("age",), "fractions": (0.4, 0.3, 0.3)}
    stored = build(**options).provenance["options"]
    assert (stored["seed"], stored["drop"], stored["fractions"]) == (3, ["age"], [0.4, 0.3, 0.3])


def test_fractions() -> None:
    with pytest.raises(DataError, match="'fractions' must be three or four positive numbers"):
        build(fractions=(0.5, 0.5, 0.5))


# Values


@pytest.mark.parametrize(("column", "value"), [("age", np.nan), ("age", None), ("job", None), ("job", pd.NA)])
def test_missing_value(column: str, value: Any) -> None:
    with pytest.raises(DataError, match=f"column '{column}' has missing values .1 missing, first in row 4"):
        build(changed(column, 4, value))


@pytest.mark.parametrize("missing", ["error", "mean", "indicator"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity(missing: str, value: float) -> None:
    with pytest.raises(DataError, match=r"column 'age' must be finite .got 1 infinite values, first in row 4"):
        build(changed("age", 4, value), missing=missing)


@pytest.mark.parametrize("column", ["sex", "paid"])
def test_infinite_label_or_group(column: str) -> None:
    table = nodes(**{column: [0.0, np.inf] * 12})
    with pytest.raises(DataError, match=f"column '{column}' must be finite"):
        build(table)


def test_number_too_large() -> None:
    with pytest.raises(DataError, match="column 'age' has numbers too large"):
        build(changed("age", 4, 1e39), scale="none")
    assert build(changed("age", 4, 1e39)).x.isfinite().all()
    with pytest.raises(
        DataError, match=r"column 'age' has numbers too large for 32-bit features \(got 1e\+300 in row 4"
    ):
        build(changed("age", 4, 1e300))


def test_missing_sensitive_value() -> None:
    with pytest.raises(DataError, match=r"column 'sex' must have a value for each node .1 missing, first in row 4"):
        build(changed("sex", 4, None))


def test_column_without_values() -> None:
    with pytest.raises(DataError, match="column 'age' has no value in any row"):
        build(nodes(age=np.nan), missing="mean")


def test_times_of_day() -> None:
    times = list(pd.date_range("2020-01-01", periods=SIZE, freq="min").time)
    with pytest.raises(DataError, match=r"column 'born' must contain only numbers, .* or text .got time values"):
        build(nodes(born=times))


@pytest.mark.parametrize("values", [[1, "one"], [1j, 2j]], ids=str)
def test_other_types(values: list[Any]) -> None:
    with pytest.raises(DataError, match="column 'odd' must contain only numbers, true/false, dates or text"):
        build(nodes(odd=pd.Series(values * 12)))


NO_SINGLE_VALUES: dict[str, Any] = {"a list": ["a", "b"], "an object with fields": {"a": 1}, "bytes": b"a", "set": {1}}


@pytest.mark.parametrize("got", NO_SINGLE_VALUES)
@pytest.mark.parametrize("column", ["name", "paid", "sex", "age", "part"])
def test_no_single_value(column: str, got: str) -> None:
    table = nodes(part=["train", "val", "test"] * 8).astype({column: object})
    table.at[3, column] = NO_SINGLE_VALUES[got]
    message = f"column '{column}' of 'nodes' must have single values such as numbers or text \\(got {got} in row 3\\)"
    with pytest.raises(DataError, match=message):
        build(table, split="part")


@pytest.mark.parametrize("column", ["a", "b", "weight"])
def test_edges_without_single_values(column: str) -> None:
    values: dict[str, Any] = {"weight": [1.0, 2.0], column: ["p0", ["p0"]]}
    table = edges().assign(**values)
    with pytest.raises(DataError, match=f"column '{column}' of 'edges' must have single values .*got a list in row 1"):
        build(edge_table=table, edge_weight="weight")


def test_columns_without_single_values_that_are_not_used() -> None:
    weights: Any = [[1], [2]]
    table, pairs = nodes(skills=[["a"]] * SIZE), edges().assign(weight=weights)
    left_out: tuple[dict[str, Any], ...] = (
        {"drop": ["skills"]},
        {"features": ["age"]},
        {"columns": {"skills": "drop"}},
        {"columns": {"skills": "text"}},
    )
    for options in left_out:
        assert "skills" not in build(table, pairs, **options).feature_names


HUGE = 10**400  # no float is as large


def test_whole_numbers_that_no_float_can_hold() -> None:
    with pytest.raises(DataError, match=r"column 'age' must be finite \(got 1 infinite values, first in row 4\)"):
        build(changed("age", 4, -HUGE))
    for column in ("paid", "sex"):
        with pytest.raises(DataError, match=f"column '{column}' must be finite .got inf"):
            build(nodes(**{column: [HUGE, 1] * 12}))
    for weight in ("w", "weight"):
        pairs = edges().assign(**{weight: pd.Series([HUGE, 1], dtype=object)})
        with pytest.raises(DataError, match=f"column '{weight}' of 'edges' must be finite .got inf in row 0"):
            build(edge_table=pairs, edge_weight=weight)
    with pytest.raises(DataError, match="column 'weight' of 'edges' seems to have weights"):
        build(edge_table=pairs)


def test_ids_that_no_float_can_hold() -> None:
    ids = [HUGE + i for i in range(SIZE)]
    data = build(nodes(name=pd.Series(ids, dtype=object)), pd.DataFrame({"a": ids[:2], "b": ids[1:3]}, dtype=object))
    assert (data.node_ids, data.num_edges) == (ids, 4)


def test_dates_far_in_the_future(caplog: pytest.LogCaptureFixture) -> None:
    days = pd.date_range("2020-01-01", periods=SIZE).date.tolist()
    days[5] = date(9999, 12, 31)
    for values in (days, [str(day) for day in days]):
        with pytest.raises(DataError, match=r"'age' has missing values .* first in row 5.*, such as '9999-12-31' in"):
            build(nodes(age=values))
        caplog.clear()
        assert build(nodes(age=values), missing="indicator").x[5, 1] == 1
        assert "column 'age': values that are not dates before 2200 count as missing: '9999-12-31'" in caplog.text


def test_number_and_its_text() -> None:
    with pytest.raises(DataError, match="column 'paid' contains '1' both as a number and as text"):
        build(nodes(paid=[1, "1", 0] * 8))


def test_too_many_levels() -> None:
    message = r"column 'note' has 24 distinct values \('t0', .*\), more than 'max_levels' = 20: .* 'target' or 'rare'"
    with pytest.raises(DataError, match=message):
        build(nodes(note=[f"t{i}" for i in range(SIZE)]), max_levels=20, columns={"note": "category"})
    with pytest.raises(DataError, match="column 'sex' has 24 distinct values"):
        build(nodes(sex=range(SIZE)), max_levels=20)
    with pytest.raises(DataError, match="column 'paid' has 24 distinct values"):
        build(nodes(paid=np.linspace(0, 1, SIZE)), max_levels=20)


def test_constant_feature() -> None:
    with pytest.raises(DataError, match=r"column 'country' is constant .always 'nl'"):
        build(nodes(country="nl"), on_constant="error")
    with pytest.raises(DataError, match="no column that can be a feature"):
        build(nodes(country="nl"), features=["country"])


@pytest.mark.parametrize(
    ("column", "value", "what"), [("sex", "F", "groups"), ("paid", "no", "labels"), ("paid", None, "labels")]
)
def test_one_group_or_label_only(column: str, value: Any, what: str) -> None:
    expected = "'" + str(value) + "'" if value else "none"
    with pytest.raises(DataError, match=f"column '{column}' must have at least two {what} .got {expected}"):
        build(nodes(**{column: [value] * SIZE}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positive": "maybe"}, "'positive' must be a value of column 'paid', 'no', 'yes' .got 'maybe'"),
        ({"positive": "nurse", "label": "job"}, "'positive' needs two labels .column 'job' has 3"),
    ],
)
def test_positive(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(**options)


# Splits


def test_label_absent_from_split() -> None:
    part = ["train", "train", "val", None, "test", "test"] * 4
    with pytest.raises(DataError, match="none of the 4 labelled nodes in the val split has label 'yes'"):
        build(nodes(part=part), split="part")


def test_group_absent_from_split() -> None:
    part = ["train"] * 6 + ["val"] * 6 + ["train", "train", "val", "val", *["test"] * 8]
    with pytest.raises(DataError, match="none of the 8 labelled nodes in the test split has group 'F'"):
        build(nodes(part=part), split="part")


def test_rare_group_in_a_random_split() -> None:
    with pytest.raises(DataError, match="split has group 'X'"):
        build(changed("sex", 0, "X"))


def test_group_without_labelled_nodes() -> None:
    with pytest.raises(DataError, match="in the train split has group 'M'"):
        build(nodes(paid=["no", "yes"] * 6 + [None] * 12))


def test_split_column_with_other_values() -> None:
    part = ["train", "val", "test", "tets", None, "Train "] * 4
    with pytest.raises(DataError, match=r"column 'part' must say for each node one of train, val, .* .got 'tets'\)"):
        build(nodes(part=part), split="part")
    with pytest.raises(DataError, match="none of the 0 labelled nodes in the train split"):
        build(nodes(part=pd.Series([None] * SIZE, dtype=object)), split="part")


# Ids and edges


def test_duplicate_ids() -> None:
    with pytest.raises(DataError, match=r"ids in column 'name' of 'nodes' must be unique \(2 .*: 'p1', 'p3'\)"):
        build(nodes(name=[f"p{i}" for i in range(SIZE - 3)] + ["p1", "p3", "p3"]))


def test_missing_id() -> None:
    with pytest.raises(DataError, match=r"column 'name' of 'nodes' must have an id .* .1 missing, first in row 4"):
        build(changed("name", 4, None))


def test_edge_to_unknown_id() -> None:
    strangers = [(f"q{i}", "p0") for i in range(7)]
    message = r"column 'a' of 'edges' names nodes that do not exist \(7 ids, 8 edges, .*\): 'q0', .*, 'q4', \.\.\.;"
    with pytest.raises(DataError, match=message):
        build(edge_table=edges(("p0", "p1"), *strangers, ("q0", "p1")))
    with pytest.raises(
        DataError,
        match=r"column 'b' .* do not exist .1 ids, 1 edges, first in row 0.: 'q'; the nodes have ids such as 'p0' "
        r"\(dangling='drop' leaves such edges out\)$",
    ):
        build(edge_table=edges(("p0", "q")))


def test_edge_to_id_of_another_type() -> None:
    with pytest.raises(DataError, match=r"the nodes have ids such as '0' \(str, not int\)"):
        build(nodes(name=[str(i) for i in range(SIZE)]), edges((0, 1)))


@pytest.mark.parametrize("pair", [(0, SIZE), (-1, 0), (0.5, 1.0), ("p0", "p1")])
def test_edge_to_unknown_row(pair: tuple[Any, Any]) -> None:
    with pytest.raises(DataError, match=f"an edge must name nodes by their row number, 0 to {SIZE - 1}"):
        build(edge_table=edges(pair), id=None, drop=["name"])


@pytest.mark.parametrize(("pair", "column"), [((None, "p1"), "a"), (("p1", np.nan), "b")])
def test_missing_edge_end(pair: tuple[Any, Any], column: str) -> None:
    with pytest.raises(DataError, match=f"column '{column}' of 'edges' must have an id .* .1 missing, first in row 1"):
        build(edge_table=edges(("p0", "p1"), pair))


# Empty tables


def test_empty_tables(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataError, match="'nodes' must have at least one row"):
        build(nodes().head(0))
    with pytest.raises(DataError, match=r"'edges' must have at least two columns .got 0"):
        build(edge_table=pd.DataFrame())
    empty = tmp_path / "nodes.csv"
    empty.touch()
    with pytest.raises(DataError, match=r"nodes\.csv' is empty"):
        build(empty)
    nodes().head(0).to_csv(empty, index=False)
    with pytest.raises(DataError, match="'nodes' must have at least one row"):
        build(empty)
    header = tmp_path / "edges.csv"
    header.write_text("a,b\n")
    with caplog.at_level(logging.WARNING, logger="fairpass"):
        assert build(edge_table=header).num_edges == 0
    assert "no edges" in caplog.text


# Files


def test_source_of_another_kind() -> None:
    with pytest.raises(DataError, match=r"'nodes' must be a path or a pandas DataFrame .got dict"):
        build({"a": [1]})


def test_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'nodes': there is no file '.*absent\.csv'"):
        build(tmp_path / "absent.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match="'edges': there is no file"):
        build(edge_table=str(tmp_path / "folder.csv"))


@pytest.mark.parametrize("name", ["nodes.xlsx", "nodes", "nodes.parquet.gz", "nodes.gz"])
def test_unknown_ending(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(
        DataError, match=r"'nodes' must be a file that ends in one of \.csv, \.tsv, \.jsonl, .*\.pq .got"
    ):
        build(tmp_path / name)


def test_csv_called_parquet(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    nodes().to_csv(path, index=False)
    with pytest.raises(DataError, match=r"nodes\.parquet' is not a Parquet file"):
        build(path)


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    nodes().to_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"nodes\.parquet' is a damaged Parquet file"):
        build(path)


@pytest.mark.parametrize(
    ("opening", "what"), [(b"PAR1", "a Parquet file"), (b"PK\x03\x04", "a zip"), (b"\x1f\x8b", "a gzip archive")]
)
def test_other_file_called_csv(tmp_path: Path, opening: bytes, what: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_bytes(opening + bytes(100))
    with pytest.raises(DataError, match=rf"nodes\.csv' is {what}"):
        build(path)


def test_parquet_called_csv(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    nodes().to_parquet(path)
    with pytest.raises(DataError, match=r"nodes\.csv' is a Parquet file, despite its ending"):
        build(path.rename(tmp_path / "nodes.csv"))


@pytest.mark.parametrize(("given", "separator"), [(",", ";"), ("\t", ","), (";", "|")])
def test_other_separator_than_given(tmp_path: Path, given: str, separator: str) -> None:
    path = tmp_path / "nodes.csv"
    nodes().to_csv(path, index=False, sep=separator)
    with pytest.raises(DataError, match=r"seems to be separated by .* .'separator'"):
        build(path, separator=given)
    with pytest.raises(DataError, match=r"'separator' must be"):
        build(path, separator="::")


def test_damaged_gzip(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv.gz"
    nodes().to_csv(path, index=False)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"nodes\.csv\.gz' is a damaged gzip archive"):
        build(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"nodes\.csv\.gz' is not a gzip archive"):
        build(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [('{"a": 1', "is not JSON"), ("[1, 2]", "must be an object"), ("[" * 100_000 + "]" * 100_000, "is not JSON")],
    ids=["cut", "list", "deep"],
)
def test_damaged_json_lines(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "nodes.jsonl"
    path.write_text(f'{{"a": 1}}\n\n{line}\n')
    with pytest.raises(DataError, match=rf"line 3 of '.*nodes\.jsonl' {message}"):
        build(path)
    path.write_text("\n")
    with pytest.raises(DataError, match=r"nodes\.jsonl' is empty"):
        build(path)


def test_half_a_pair_of_surrogates_in_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "nodes.jsonl"
    path.write_text('{"a": "\\ud800"}\n')
    with pytest.raises(DataError, match=r"nodes\.jsonl' has text that is not Unicode"):
        build(path)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "nodes.parquet"
    nodes().to_parquet(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"needs pyarrow: pip install fairpass\[parquet\]"):
        build(path)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
@pytest.mark.parametrize("row", [0, SIZE - 1])
def test_wrong_encoding(tmp_path: Path, encoding: str, row: int) -> None:
    path = tmp_path / "nodes.csv"
    path.write_bytes(changed("job", row, "café").to_csv(index=False).encode(encoding))
    with pytest.raises(DataError, match=r"nodes\.csv' is not utf-8 text .*text_encoding="):
        build(path, text_encoding="utf-8")


def test_wrong_encoding_far_from_the_header(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_bytes(b"a,b\n" + b"p0,p1\n" * 20_000 + b"caf\xe9,p1\n")
    with pytest.raises(DataError, match=r"edges\.csv' is not utf-8 text"):
        build(edge_table=path, text_encoding="utf-8")
    with pytest.raises(DataError, match=r"names nodes that do not exist .*'café'"):
        build(edge_table=path)


def test_null_characters(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_bytes(nodes().to_csv(index=False).encode("utf-16-le"))
    with pytest.raises(DataError, match=r"nodes\.csv' is not a table of text .* text_encoding='utf-16'"):
        build(path)


@pytest.mark.parametrize(
    "encoding", ["utf-9", "", "hex", "base64", "zip", "bz2", "uu", "quopri", "rot13", "a\0b", "a\udce9"]
)
def test_encoding_nobody_knows(tmp_path: Path, encoding: str) -> None:
    nodes().to_csv(tmp_path / "nodes.csv", index=False)
    message = f"'text_encoding' must be an encoding that Python knows (got {encoding!r})"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        build(tmp_path / "nodes.csv", text_encoding=encoding)


@pytest.mark.parametrize(
    ("rows", "line", "fields"),
    [
        ("p0,p1\np1\n", 3, 1),
        ("p0,p1\n\np1,p2,p3\n", 4, 3),
        ("p0,p1,p2\np1,p2,p3\n", 2, 3),
        ("p0,p1,\np1,p2,\n", 2, 3),
        ("p0\np1,p2\n", 2, 1),
    ],
)
def test_ragged_rows(tmp_path: Path, rows: str, line: int, fields: int) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("a,b\n" + rows)
    with pytest.raises(DataError, match=rf"line {line} of '.*edges\.csv' has {fields} fields, its header 2"):
        build(edge_table=path)


def test_quote_that_does_not_end(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text('a,b\np0,p1\np1,"p2\n')
    with pytest.raises(DataError, match=r"edges\.csv' cannot be parsed"):
        build(edge_table=path)


def test_field_too_long_for_a_header(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("x" * 200_000)
    with pytest.raises(DataError, match=r"nodes\.csv' is not a table of text"):
        build(path)


# A remembered encoding


def encoded(**options: Any) -> dict[str, Any]:
    encoding: dict[str, Any] = build(**options).provenance["encoding"]
    return encoding


def test_unknown_category() -> None:
    message = "column 'job' has values that the fitted table does not have: 'pilot' .it has 'clerk', 'nurse', 'smith'"
    with pytest.raises(DataError, match=message):
        build(changed("job", 4, "pilot"), encoding=encoded(), unknown_category="error")


@pytest.mark.parametrize("column", ["sex", "paid"])
def test_unknown_label_or_group(column: str) -> None:
    with pytest.raises(DataError, match=f"column '{column}' has values that the fitted table does not have: 'other'"):
        build(changed(column, 4, "other"), encoding=encoded(), unknown_category="zeros")


def test_new_table_with_gaps() -> None:
    with pytest.raises(DataError, match="column 'age' has missing values"):
        build(changed("age", 4, None), encoding=encoded())


@pytest.mark.parametrize(("column", "found"), [("age", "age"), ("job", "job"), ("sex", "sex")])
def test_new_table_without_a_column(column: str, found: str) -> None:
    with pytest.raises(DataError, match=f"'nodes' has no column '{found}'"):
        build(nodes().drop(columns=column), encoding=encoded())


def test_new_table_without_a_sensitive_feature() -> None:
    with pytest.raises(DataError, match="'nodes' has no column 'sex'"):
        build(nodes().drop(columns="sex"), encoding=encoded(keep_sensitive=True), missing_sensitive="unknown")


def test_new_table_with_other_types() -> None:
    with pytest.raises(DataError, match="column 'age' has a value that cannot be read as number: 'old' in row 0"):
        build(nodes(age="old"), encoding=encoded())
    with pytest.raises(DataError, match="column 'age' must be read as number, but contains dates"):
        build(nodes(age=pd.Timestamp("2020-01-01")), encoding=encoded())


@pytest.mark.parametrize("options", [{"label": "job"}, {"sensitive": "job"}])
def test_encoding_with_other_roles(options: dict[str, str]) -> None:
    with pytest.raises(DataError, match="'label' and 'sensitive' must be as in 'encoding', 'paid' and 'sex'"):
        build(encoding=encoded(), **options)


@pytest.mark.parametrize("broken", [{}, {"version": 2, "columns": [{}]}, {"version": 2, "columns": [], "more": 1}])
def test_broken_encoding(broken: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"'encoding' must be data.provenance"):
        build(encoding=broken)


def test_encoding_of_another_version() -> None:
    with pytest.raises(DataError, match=r"'encoding' must have version 3 or 2 .got 1"):
        build(encoding=encoded() | {"version": 1})
