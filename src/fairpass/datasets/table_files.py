"""A table from a file or a DataFrame, with clear messages about what is wrong with a file."""

import codecs
import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from fairpass.datasets.graph import Column
from fairpass.errors import DataError, did_you_mean
from fairpass.files import sha256

TableSource = str | os.PathLike[str] | pd.DataFrame

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")

# The first bytes of files that are sometimes given a table's name.
_PARQUET_MAGIC = b"PAR1"
_NOT_TEXT = {
    _PARQUET_MAGIC: "a Parquet file",
    b"PK\x03\x04": "a zip archive or spreadsheet",
    b"\x1f\x8b": "a gzip archive",
}


@dataclass(frozen=True)
class Table:
    """Rows and where they come from."""

    name: str  # in error messages
    frame: pd.DataFrame  # its columns have distinct names, all text; its rows are numbered from 0
    origin: dict[str, str | None]  # the path ("DataFrame" if there is no file) and the SHA-256 of the file
    typed: bool  # whether the values have types of their own, which a CSV file does not have

    @property
    def columns(self) -> list[str]:
        return [str(column) for column in self.frame.columns]

    def __contains__(self, column: str) -> bool:
        return column in self.frame.columns

    def __getitem__(self, column: str) -> Column:
        if column not in self:
            raise DataError(f"'{self.name}' has no column {column!r}: {did_you_mean(column, self.columns)}")
        return self.frame[column]


def read_table(
    source: TableSource,
    name: str,
    *,
    text_encoding: str = "utf-8",
    text_columns: Mapping[str, type[str]] | type[str] | None = None,
) -> Table:
    """Read a table from a file (.csv, .tsv, .parquet, .pq), or take a DataFrame, which is not changed.

    `text_columns` are the columns of a CSV or TSV file, or all, in which "007" must not become 7 (pandas' `dtype`).
    """
    if isinstance(source, pd.DataFrame):
        frame = _with_text_header(source.copy(deep=False), name, "the DataFrame")
        return Table(name, frame, {"source": "DataFrame", "sha256": None}, typed=True)
    if not isinstance(source, (str, os.PathLike)):
        raise DataError(f"'{name}' must be a path or a pandas DataFrame (got {type(source).__name__})")
    path = Path(source)
    ending = path.suffix.lower()
    if ending not in {*_SEPARATORS, *_PARQUET}:
        known = ", ".join([*_SEPARATORS, *_PARQUET])
        raise DataError(f"'{name}' must be a file that ends in one of {known} (got {str(path)!r})")
    if not path.is_file():
        raise DataError(f"'{name}': there is no file {str(path)!r}")
    if ending in _PARQUET:
        frame = _read_parquet(path, name)
    else:
        try:
            codecs.lookup(text_encoding)
        except LookupError as error:
            message = f"'text_encoding' must be an encoding that Python knows (got {text_encoding!r})"
            raise DataError(message) from error
        try:
            frame = _read_csv(path, name, text_encoding, text_columns)
        except UnicodeError as error:
            raise DataError(
                f"'{name}': {str(path)!r} is not {text_encoding} text ({error}); "
                f"give its encoding, for example text_encoding='latin-1'"
            ) from error
        except csv.Error as error:
            raise DataError(f"'{name}': {str(path)!r} is not a table of text ({error})") from error
    return Table(name, frame, {"source": str(path), "sha256": sha256(path)}, typed=ending in _PARQUET)


def _opening(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def _read_parquet(path: Path, name: str) -> pd.DataFrame:
    if _opening(path) != _PARQUET_MAGIC:
        raise DataError(f"'{name}': {str(path)!r} is not a Parquet file, despite its ending")
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise DataError(f"reading {str(path)!r} needs pyarrow: pip install fairpass[parquet]") from error
    except (ValueError, OSError) as error:
        raise DataError(f"'{name}': {str(path)!r} is a damaged Parquet file ({error})") from error
    return _with_text_header(frame, name, repr(str(path)))


def _with_text_header(frame: pd.DataFrame, name: str, where: str) -> pd.DataFrame:
    frame.columns = pd.Index([str(column) for column in frame.columns], dtype="str")
    _check_header(list(frame.columns), name, where)
    return frame.reset_index(drop=True)


def _check_header(columns: list[str], name: str, where: str) -> None:
    repeated = sorted({column for column in columns if columns.count(column) > 1})
    if repeated:
        raise DataError(f"'{name}': {where} has more than one column called {repeated[0]!r}")
    if any(not column.strip() for column in columns):
        raise DataError(f"'{name}': a column of {where} has no name (was the table written with its row numbers?)")


def _read_csv(path: Path, name: str, encoding: str, dtype: Any) -> pd.DataFrame:
    separator = _SEPARATORS[path.suffix.lower()]
    for magic, what in _NOT_TEXT.items():
        if _opening(path).startswith(magic):
            raise DataError(f"'{name}': {str(path)!r} is {what}, despite its ending")
    # pandas renames a repeated column, and takes the first field for an index if the first row is too long.
    head = [row for _, row in islice(_rows(path, separator, encoding), 2)]
    if not head:
        raise DataError(f"'{name}': {str(path)!r} is empty")
    header = head[0]
    _check_header(header, name, repr(str(path)))
    others = [mark for mark in ",;\t|" if mark != separator and mark in header[0]]
    if len(header) == 1 and others:
        raise DataError(
            f"'{name}': {str(path)!r} seems to be separated by {others[0]!r}, not by {separator!r}: "
            f"read it with pandas and give the DataFrame"
        )
    if len(head[-1]) != len(header):
        _check_lengths(path, name, separator, encoding)
    try:
        frame = pd.read_csv(path, sep=separator, encoding=encoding, dtype=dtype, low_memory=False)
    except pd.errors.ParserError as error:
        _check_lengths(path, name, separator, encoding)
        raise DataError(f"'{name}': {str(path)!r} cannot be parsed ({error})") from error
    # pandas fills up a row that is too short; such a row lacks at least the last column.
    if frame.iloc[:, -1].isna().any():
        _check_lengths(path, name, separator, encoding)
    return frame


def _rows(path: Path, separator: str, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and fields of every row that is not blank, the header first."""
    with_signature = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    with path.open(encoding=with_signature, newline="") as file:
        reader = csv.reader(file, delimiter=separator)
        yield from ((reader.line_num, row) for row in reader if row)


def _check_lengths(path: Path, name: str, separator: str, encoding: str) -> None:
    """Refuse a row that is not as long as the header (slow: only for files that may have one)."""
    rows = _rows(path, separator, encoding)
    _, header = next(rows)
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(f"'{name}': line {line} of {str(path)!r} has {len(row)} fields, its header {len(header)}")
