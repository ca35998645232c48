"""Make the columns of a table readable one at a time: text files are converted to Parquet."""

import codecs
import gzip
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd

from fairpass.datasets.options import TableOptions
from fairpass.datasets.out_of_core.stored_table import StoredTable
from fairpass.datasets.table_files import (
    JSON_LINES,
    PARQUET,
    SEPARATED,
    HeaderNames,
    check_header,
    check_is_text,
    read_parquet,
    table_file,
)
from fairpass.datasets.text_tables import (
    HEAD_CHARACTERS,
    TextFile,
    arrow_options,
    codec_name,
    has_decimal_commas,
    signed_encoding,
)
from fairpass.errors import DataError
from fairpass.files import atomic_path, sha256
from fairpass.plain_text import path_text

_BYTES = 16_000_000  # of a text file that are read at once

logger = logging.getLogger(__name__)


def import_table(
    source: Path, name: str, target: Path, options: TableOptions, names: HeaderNames | None = None
) -> dict[str, Any]:
    """Write a text file as text to the Parquet file `target`; return what `StoredTable.load` needs."""
    path, ending, zipped = table_file(source, name)
    if ending in JSON_LINES:
        raise DataError(f"'{name}' must be a CSV, TSV or Parquet file to be partitioned (got {str(path)!r})")
    origin: dict[str, str | None] = {"source": path_text(path), "sha256": sha256(path)}
    if ending in PARQUET:
        check_header(read_parquet(path, name, _header_of_parquet), name, repr(str(path)))
        return {"path": str(path), "origin": origin, "typed": True, "decimal": options.decimal}
    try:
        import pyarrow  # noqa: F401 # to see whether it is installed
    except ImportError as error:
        raise DataError(f"reading {str(path)!r} in parts needs pyarrow: pip install fairpass[parquet]") from error
    try:
        text = _TextOnDisk(path, options.text_encoding, zipped=zipped)
        separator = options.separator or text.head.separator(SEPARATED[ending])
        header = text.head.header(separator)
        own = None if names is None else names(header)
        check_header(own or header, name, text.head.where)
        text.write(target, separator, own or header, unnamed=own is not None)
    except DataError as error:
        raise DataError(str(error) if str(error).startswith("'text_encoding'") else f"'{name}': {error}") from error
    about = {"path": str(target), "typed": False, "separator": separator, "text_encoding": text.head.encoding}
    decimal = options.decimal
    if decimal is None and separator == ";":
        texts = StoredTable.load(name, {**about, "origin": origin}, str)
        decimal = "," if any(has_decimal_commas(pd.DataFrame({each: texts[each]})) for each in texts.columns) else None
    used = {"separator": separator, "text_encoding": text.head.encoding, "decimal": decimal}
    return {**about, **used, "origin": {**origin, **used}, "unnamed": own is not None}


def _header_of_parquet(path: Path) -> list[str]:
    from pyarrow import parquet

    return [str(column) for column in parquet.read_schema(path).empty_table().to_pandas().columns]


class _TextOnDisk:
    """A text file that is read twice: to inspect it, and to write it as Parquet."""

    def __init__(self, path: Path, encoding: str | None, *, zipped: bool) -> None:
        self.path, self.zipped, self.where = path, zipped, repr(str(path))
        with self._open() as file:
            opening = file.read(4)
        check_is_text(path, opening)
        guessed = encoding is None
        if encoding is None:
            encoding = signed_encoding(opening) or "utf-8"
        try:
            self.head, self.quotes = self._look(encoding)
        except UnicodeError as error:
            if not guessed or encoding != "utf-8":
                advice = "give its encoding, for example text_encoding='latin-1'"
                raise DataError(f"{self.where} is not {encoding} text ({error}); {advice}") from error
            self.head, self.quotes = self._look("cp1252")
            logger.warning("%s is not UTF-8: it is read as Windows-1252 ('text_encoding')", self.where)

    def _look(self, encoding: str) -> tuple[TextFile, int]:
        """Return the beginning of the file, and the number of quotes in all of it."""
        name = codec_name(encoding)
        errors = "replace" if name == "cp1252" else "strict"
        decoder = codecs.getincrementaldecoder("utf-8-sig" if name == "utf-8" else encoding)(errors)
        head, quotes = "", 0
        with self._open() as file:
            while content := file.read(_BYTES):
                text = decoder.decode(content)
                head += text[: max(0, HEAD_CHARACTERS + 1 - len(head))]
                quotes += text.count('"')
            decoder.decode(b"", final=True)
        return TextFile(self.where, head, encoding).without_nulls(), quotes

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        try:
            with gzip.open(self.path) if self.zipped else self.path.open("rb") as file:
                yield cast(IO[bytes], file)
        except (gzip.BadGzipFile, EOFError) as error:
            raise DataError(f"{self.where} is a damaged gzip archive ({error})") from error

    def write(self, target: Path, separator: str, header: list[str], *, unnamed: bool) -> None:
        """Write all rows as text to a Parquet file."""
        import pyarrow as pa
        from pyarrow import csv, parquet

        if self.quotes % 2:
            raise DataError(f"{self.where} has a quote that does not end")
        reading = csv.ReadOptions(
            column_names=header if unnamed else None, block_size=_BYTES, encoding=_for_arrow(self.head.encoding)
        )
        schema = pa.schema([(column, pa.string()) for column in header])
        try:
            with (
                atomic_path(target) as temporary,
                self._open() as file,
                csv.open_csv(file, reading, *arrow_options(separator, header, quoted=self.quotes > 0)) as batches,
                parquet.ParquetWriter(temporary, schema) as written,
            ):
                for batch in batches:
                    written.write_batch(batch)
        except (pa.ArrowInvalid, UnicodeError) as error:
            raise DataError(f"{self.where} cannot be parsed ({error})") from error


def _for_arrow(encoding: str) -> str:
    return "utf8" if codec_name(encoding) == "utf-8" else encoding
