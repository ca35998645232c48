"""A table from a file of any kind, or a DataFrame, with clear messages about what is wrong with a file."""

import gzip
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import pandas as pd

from fairpass.datasets.column_rules import DecimalMark
from fairpass.datasets.graph import Column
from fairpass.datasets.single_values import odd_value
from fairpass.datasets.text_tables import TextColumns, TextFile, has_decimal_commas, with_types
from fairpass.errors import DataError, did_you_mean
from fairpass.files import sha256
from fairpass.plain_text import path_text

TableSource = str | os.PathLike[str] | pd.DataFrame
T = TypeVar("T")
HeaderNames = Callable[[Sequence[str]], list[str] | None]

SEPARATED = {".csv": ",", ".tsv": "\t"}  # their usual separator
JSON_LINES = (".jsonl", ".ndjson")
PARQUET = (".parquet", ".pq")
_ENDINGS = f"{', '.join([*SEPARATED, *JSON_LINES])} (also .gz), {', '.join(PARQUET)}"

# The first bytes of files that are sometimes given a table's name.
_PARQUET_MAGIC, _GZIP_MAGIC = b"PAR1", b"\x1f\x8b"
_NOT_TEXT = {
    _PARQUET_MAGIC: "a Parquet file",
    b"PK\x03\x04": "a zip archive or spreadsheet",
    _GZIP_MAGIC: "a gzip archive",
}


@dataclass(frozen=True)
class Table:
    """Rows and where they come from."""

    name: str  # in error messages
    frame: pd.DataFrame  # its columns have distinct names, all text; its rows are numbered from 0
    origin: dict[str, str | None]  # the path ("DataFrame" if there is no file) and the SHA-256 of the file
    typed: bool  # whether the values have types of their own, which a CSV file does not have
    separator: str | None = None  # of a CSV or TSV file
    text_encoding: str | None = None  # of a text file
    decimal: DecimalMark | None = None  # of numbers that could have either mark, such as 1.234; None: not known
    unnamed: bool = False  # whether a text file had no header

    @property
    def columns(self) -> list[str]:
        return [str(column) for column in self.frame.columns]

    def __len__(self) -> int:
        return len(self.frame)

    def __contains__(self, column: str) -> bool:
        return column in self.frame.columns

    def __getitem__(self, column: str) -> Column:
        self.check_values(column)
        return self.frame[column]

    def check(self, column: str) -> None:
        """Refuse a column that does not exist."""
        if column not in self:
            raise DataError(f"'{self.name}' has no column {column!r}: {did_you_mean(column, self.columns)}")

    def check_values(self, column: str) -> None:
        """Refuse a column that does not exist, or has lists and the like in place of single values."""
        self.check(column)
        if odd := self.odd_value(column):
            expected = "must have single values such as numbers or text"
            raise DataError(f"column {column!r} of '{self.name}' {expected} (got {odd})")

    def odd_value(self, column: str) -> str:
        return odd_value(self.frame[column])

    @property
    def usable(self) -> Self:
        """This table without the columns that `check_values` refuses."""
        return replace(self, frame=self.frame[[column for column in self.columns if not self.odd_value(column)]])


def read_table(
    source: TableSource,
    name: str,
    *,
    text_encoding: str | None = None,
    separator: str | None = None,
    decimal: DecimalMark | None = None,
    text_columns: TextColumns = None,
    names: HeaderNames | None = None,
) -> Table:
    """Read a table from a file, or take a DataFrame, which is not changed.

    A file ends in .csv, .tsv, .jsonl or .ndjson, each also with .gz, or in .parquet or .pq. Encoding, separator and
    decimal mark are recognised where they are not given. `text_columns` are the columns of a CSV or TSV file, or all,
    that stay text (pandas' `dtype`). `names` gets the first row of a CSV or TSV file, and returns the names of the
    columns if that row is not a header.
    """
    if isinstance(source, pd.DataFrame):
        frame = _with_text_header(source.copy(deep=False), name, "the DataFrame")
        return Table(name, frame, {"source": "DataFrame", "sha256": None}, typed=True, decimal=decimal)
    if not isinstance(source, (str, os.PathLike)):
        raise DataError(f"'{name}' must be a path or a pandas DataFrame (got {type(source).__name__})")
    path, ending, zipped = table_file(source, name)
    origin: dict[str, str | None] = {"source": path_text(path), "sha256": sha256(path)}
    if ending in PARQUET:
        frame = _with_text_header(read_parquet(path, name, _frame_of_parquet), name, repr(str(path)))
        return Table(name, frame, origin, typed=True, decimal=decimal)
    try:
        file = TextFile.decode(repr(str(path)), _content(path, zipped=zipped), text_encoding)
        if ending in JSON_LINES:
            frame = _with_text_header(file.json_rows(), name, file.where)
            return Table(name, frame, origin, typed=True, text_encoding=file.encoding, decimal=decimal)
        separator = separator or file.separator(SEPARATED[ending])
        header = file.header(separator)
        own = None if names is None else names(header)
        if own is not None:
            file, header = file.with_header(own, separator), own
        check_header(header, name, file.where)
        texts = file.columns_of_text(separator, header)
    except DataError as error:
        known = str(error).startswith(("'text_encoding'", f"'{name}'"))
        raise DataError(str(error) if known else f"'{name}': {error}") from error
    if decimal is None and separator == ";" and has_decimal_commas(texts):
        decimal = ","
    frame = with_types(texts, text_columns, comma=decimal == ",")
    used: dict[str, Any] = {"separator": separator, "text_encoding": file.encoding, "decimal": decimal}
    unnamed = own is not None
    return Table(name, frame, {**origin, **used}, typed=False, **used, unnamed=unnamed)


def table_file(source: str | os.PathLike[str], name: str) -> tuple[Path, str, bool]:
    """Return the path of a table that exists, its ending without .gz, and whether it has that."""
    path = Path(source)
    zipped = path.suffix.lower() == ".gz"
    ending = (path.with_suffix("") if zipped else path).suffix.lower()
    if ending not in {*SEPARATED, *JSON_LINES, *(() if zipped else PARQUET)}:
        raise DataError(f"'{name}' must be a file that ends in one of {_ENDINGS} (got {str(path)!r})")
    if not path.is_file():
        raise DataError(f"'{name}': there is no file {str(path)!r}")
    return path, ending, zipped


def _content(path: Path, *, zipped: bool) -> bytes:
    """Return the bytes of a text file, without compression."""
    content = path.read_bytes()
    if zipped and content.startswith(_GZIP_MAGIC):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{str(path)!r} is a damaged gzip archive ({error})") from error
    elif zipped:
        raise DataError(f"{str(path)!r} is not a gzip archive, despite its ending")
    check_is_text(path, content)
    return content


def check_is_text(path: Path, opening: bytes) -> None:
    """Refuse a file of another kind that has the name of a text file."""
    for magic, what in _NOT_TEXT.items():
        if opening.startswith(magic):
            raise DataError(f"{str(path)!r} is {what}, despite its ending")


def read_parquet(path: Path, name: str, read: Callable[[Path], T]) -> T:
    """Return what `read` finds in a Parquet file, with clear messages."""
    with path.open("rb") as file:
        opening = file.read(len(_PARQUET_MAGIC))
    if opening != _PARQUET_MAGIC:
        raise DataError(f"'{name}': {str(path)!r} is not a Parquet file, despite its ending")
    try:
        return read(path)
    except ImportError as error:
        raise DataError(f"reading {str(path)!r} needs pyarrow: pip install fairpass[parquet]") from error
    except TypeError as error:  # pandas writes lists of pyarrow's own types, but cannot read them
        raise DataError(f"'{name}': {str(path)!r} has a column that pandas cannot read ({error})") from error
    except (ValueError, OSError) as error:
        raise DataError(f"'{name}': {str(path)!r} is a damaged Parquet file ({error})") from error


def _frame_of_parquet(path: Path) -> pd.DataFrame:
    with path.open("rb") as file:  # pyarrow opens no path that is not UTF-8
        return pd.read_parquet(file, engine="pyarrow")


def _with_text_header(frame: pd.DataFrame, name: str, where: str) -> pd.DataFrame:
    frame.columns = pd.Index([str(column) for column in frame.columns], dtype="str")
    check_header(list(frame.columns), name, where)
    return frame.reset_index(drop=True)


def check_header(columns: list[str], name: str, where: str) -> None:
    repeated = sorted({column for column in columns if columns.count(column) > 1})
    if repeated:
        raise DataError(f"'{name}': {where} has more than one column called {repeated[0]!r}")
    if any(not column.strip() for column in columns):
        raise DataError(f"'{name}': a column of {where} has no name (was the table written with its row numbers?)")
