"""DuckDB with a limit on memory, and with its errors translated to ours."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from fairpass.datasets.out_of_core.request import SPILL
from fairpass.errors import DataError
from fairpass.files import atomic_path

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# DuckDB may use this share of the memory, and needs at least this many bytes to work at all.
_SHARE, LEAST = 0.75, 256_000_000
_MOST = 10**18  # bytes; DuckDB cannot count much further
_VECTOR = 2048  # rows that DuckDB handles at once
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_SHOWN = 50  # characters of a wrong argument
_DISK_FULL = ("No space left on device", "max_temp_directory_size")


class TooLittleMemoryError(DataError):
    """The memory is too small; with more, the same work can continue."""


def bytes_of(memory: str) -> int:
    """Return an amount of memory such as "8GB" as a number of bytes."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", memory.lower())
    if found is None or found[2] not in _UNITS:
        raise DataError(f"'memory' must be a number with a unit, such as 500MB or 8GB (got {memory[:_SHOWN]!r})")
    amount = float(found[1]) * _UNITS[found[2]]
    if amount > _MOST:
        raise DataError(f"'memory' must be at most {_MOST // 10**12:,}TB (got {memory[:_SHOWN]!r})")
    return int(amount)


class Engine:
    """A connection that holds no data of its own: it reads and writes Parquet files."""

    def __init__(self, connection: "DuckDBPyConnection", folder: Path) -> None:
        self._connection, self._folder = connection, folder

    @classmethod
    @contextmanager
    def open(cls, folder: Path, memory: int, others: int = 0) -> Iterator["Engine"]:
        """Start DuckDB with the memory that `others` leave; what does not fit goes to a directory in `folder`."""
        import duckdb

        connection = duckdb.connect()
        try:
            connection.execute(f"SET memory_limit = '{int(min(memory * _SHARE, memory - others) / 1e6)}MB'")
            connection.execute(f"SET temp_directory = {text(folder / SPILL)}")
            connection.execute("SET preserve_insertion_order = false")
            yield cls(connection, folder)
        finally:
            connection.close()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a small result."""
        with self._own_words():
            return list(self._connection.execute(query).fetchall())

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a result."""
        (found,) = self.rows(query)
        return found

    def batches(self, query: str, rows: int = 4_000_000) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield a result of any size as columns, about `rows` rows at a time."""
        with self._own_words():
            self._connection.execute(query)
            while len(frame := self._connection.fetch_df_chunk(max(1, rows // _VECTOR))):
                yield {str(name): frame[name].to_numpy() for name in frame.columns}

    def write(self, query: str, path: Path) -> None:
        """Write the rows of a query to a Parquet file, in any order."""
        with atomic_path(path) as temporary, self._own_words():
            self._connection.execute(f"COPY ({query}) TO {text(temporary)} (FORMAT parquet, USE_TMP_FILE false)")

    @contextmanager
    def _own_words(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            message = str(error).splitlines()[0]
            if isinstance(error, duckdb.InterruptException):
                raise KeyboardInterrupt from error
            if any(sign in str(error) for sign in _DISK_FULL):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._folder)) from error
            if isinstance(error, duckdb.OutOfMemoryException):
                raise TooLittleMemoryError(f"'memory' must be larger for these tables ({message})") from error
            if isinstance(error, duckdb.IOException):
                raise OSError(message) from error
            raise DataError(f"the tables cannot be read ({message})") from error
        except RuntimeError as error:
            if "interrupted" in str(error):  # by Control-C: DuckDB has its own handler while a query runs
                raise KeyboardInterrupt from error
            raise


def text(value: object) -> str:
    """Return a value as a string literal of SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def name(column: str) -> str:
    """Return a column's name as an identifier of SQL."""
    return '"' + column.replace('"', '""') + '"'


def parquet(path: Path, *, numbered: bool = False) -> str:
    """Return the table in one Parquet file; `numbered` adds the column `file_row_number`."""
    literal = re.sub(r"([*?\[])", r"[\1]", str(path))  # escaped, as DuckDB reads patterns
    return f"read_parquet({text(literal)}, file_row_number = true)" if numbered else f"read_parquet({text(literal)})"
