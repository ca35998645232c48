"""Files of any kind give the same table."""

import gzip
import logging
import os
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing import examples

from fairpass.datasets.table_files import Table, read_table
from fairpass.datasets.text_tables import TextFile
from fairpass.errors import DataError

FRAME = pd.DataFrame(
    {
        "name": ["Zoë", "Ben, the first", 'the "second"', None],
        "age": [31, 42, 53, 64],
        "score": [0.5, None, 2.25, -1e-3],
        "member": [True, False, True, True],
    }
)


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def read(path: Path, **options: str) -> Table:
    return read_table(path, "nodes", **options)  # type: ignore[arg-type] # any option


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "tsv.gz"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, separator: str, arrow: bool) -> None:
    path = written(tmp_path / f"nodes.{ending}", FRAME.to_csv(index=False, sep=separator))
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    table = read(path)
    pd.testing.assert_frame_equal(table.frame, FRAME.astype({"name": "str"}))
    assert (table.separator, table.text_encoding, table.typed) == (separator, "utf-8", False)
    assert table.origin["separator"] == separator


@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "jsonl.gz", "parquet"])
def test_typed_files(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"nodes.{ending}"
    if ending == "parquet":
        FRAME.to_parquet(path)
    else:
        written(path, FRAME.to_json(orient="records", lines=True))
    table = read(path)
    pd.testing.assert_frame_equal(table.frame, FRAME, check_dtype=False)
    assert table.typed
    assert table.separator is None


def test_texts_in_json_stay_texts(tmp_path: Path) -> None:
    path = written(tmp_path / "nodes.jsonl", '{"zip": "007", "n": 1}\n{"zip": "2020-01-01"}\n')
    frame = read(path).frame
    assert frame["zip"].tolist() == ["007", "2020-01-01"]
    assert frame["n"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("encoding", "found"),
    [("utf-8", "utf-8"), ("utf-8-sig", "utf-8"), ("utf-16", "utf-16"), ("utf-32", "utf-32"), ("latin-1", "cp1252")],
)
def test_encodings(tmp_path: Path, caplog: pytest.LogCaptureFixture, encoding: str, found: str) -> None:
    path = written(tmp_path / "nodes.csv", "naïve,b\ncafé,1\n", encoding)
    table = read(path)
    assert table.frame.columns.tolist() == ["naïve", "b"]
    assert table["naïve"].tolist() == ["café"]
    assert table.text_encoding == found
    assert ("is not UTF-8: it is read as Windows-1252" in caplog.text) == (found == "cp1252")
    assert read(path, text_encoding=encoding)["naïve"].tolist() == ["café"]


def test_windows_characters(tmp_path: Path) -> None:
    path = written(tmp_path / "nodes.csv", "price\n5 €\n", "cp1252")
    assert read(path)["price"].tolist() == ["5 €"]


def test_leading_zeros_stay(tmp_path: Path) -> None:
    path = written(tmp_path / "nodes.csv", "zip,n,signed,small,hex\n02134,7,-05,0.5,0x10\n10001,10,05,00.5,0x11\n")
    frame = read(path).frame
    assert frame["zip"].tolist() == ["02134", "10001"]
    assert frame["n"].tolist() == [7, 10]
    assert frame["signed"].tolist() == ["-05", "05"]
    assert frame["small"].tolist() == ["0.5", "00.5"]
    assert frame["hex"].tolist() == ["0x10", "0x11"]


@pytest.mark.parametrize("arrow", [True, False])
def test_numbers_in_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrow: bool) -> None:
    path = written(tmp_path / "nodes.csv", "a,b,c,d,e\n+5,1e3,,TRUE,1\n6,.5,NA,false,one\n")
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = read(path).frame
    assert frame["a"].tolist() == [5, 6]
    assert frame["b"].tolist() == [1000, 0.5]
    assert frame["c"].isna().all()
    assert frame["d"].tolist() == [True, False]
    assert frame["e"].tolist() == ["1", "one"]


def test_decimal_commas_of_a_semicolon_file(tmp_path: Path) -> None:
    text = "a;b;c\n1,5;1.234;x\n2,25;53.235;y\n"
    table = read(written(tmp_path / "nodes.csv", text))
    assert table.decimal == ","
    assert table["b"].tolist() == ["1.234", "53.235"]  # thousands, as it seems: left to the encoding
    table = read(written(tmp_path / "others.csv", text.replace(",", ".")))
    assert table.decimal is None
    assert table["a"].tolist() == [1.5, 2.25]
    assert table["b"].tolist() == [1.234, 53.235]
    assert read(tmp_path / "others.csv", decimal=",")["b"].tolist() == ["1.234", "53.235"]


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a;b\n1,5;2,5\n3;4\n", ";"),
        ("a,b\n1;2,3\n", ","),
        ("name,first;age\nx,y;5\n", ","),
        ("a|b|c\n1|2|3\n", "|"),
        ("a b\n1 2\n", ","),
        ("only\n1\n", ","),
        ("a,b\nx\n", ","),
        ('"a;x",b\n"1;2",3\n', ","),
    ],
)
def test_recognised_separator(text: str, separator: str) -> None:
    assert TextFile("file", text, "utf-8").separator(",") == separator


@examples(60)
@given(
    rows=st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8), min_size=2, max_size=2)
    ),
    separator=st.sampled_from([",", ";", "\t", "|"]),
)
def test_arrow_and_pandas_read_the_same(rows: list[list[str]], separator: str) -> None:
    text = pd.DataFrame(rows, columns=["a", "b"]).to_csv(index=False, sep=separator)
    file = TextFile("file", text, "utf-8")
    with_arrow = file.columns_of_text(separator, ["a", "b"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow.csv", None)
        without = file.columns_of_text(separator, ["a", "b"])
    assert with_arrow.fillna("<missing>").to_numpy().tolist() == without.fillna("<missing>").to_numpy().tolist()


def test_quiet_about_usual_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read(written(tmp_path / "nodes.csv", FRAME.to_csv(index=False)))
    assert not caplog.records


def test_separator_of_a_header_only(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is empty"):
        read(written(tmp_path / "nodes.csv", "\n\n"))
    assert read(written(tmp_path / "nodes.csv", "a;b\n")).columns == ["a", "b"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_the_name_of_a_file_need_not_be_unicode(tmp_path: Path) -> None:
    table = read(written(tmp_path / os.fsdecode(b"n\xff.csv"), FRAME.to_csv(index=False)))
    assert str(table.origin["source"]).endswith("n\ufffd.csv")
    path = tmp_path / os.fsdecode(b"n\xff.parquet")
    with path.open("wb") as file:
        FRAME.to_parquet(file)
    pd.testing.assert_frame_equal(read(path).frame, FRAME)
