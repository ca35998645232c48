"""Tables in text files: encoding, separator and the types of columns, recognised from the content."""

import codecs
import csv
import io
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from fairpass.datasets.graph import Column
from fairpass.errors import DataError

SEPARATORS = (",", ";", "\t", "|")
# pandas' list of what counts as missing in a file.
_MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
)
_SIGNATURES = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16"}
_SIGNATURES |= {codecs.BOM_UTF16_BE: "utf-16"}
_HEAD_ROWS, HEAD_CHARACTERS = 20, 1_000_000
_THOUSANDS = r"^[+-]?(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+|[0-9]+)$"
_DECIMAL_COMMA = r"^[^0-9]{0,4}[0-9][0-9.]*,[0-9]{1,2}(?:[^0-9]|$)"
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}

TextColumns = Mapping[str, type[str]] | type[str] | None

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TextFile:
    """The text of a file; `where` names the file in messages."""

    where: str
    text: str
    encoding: str

    @classmethod
    def decode(cls, where: str, content: bytes, encoding: str | None) -> "TextFile":
        """Decode a file; without an encoding, it is UTF-8 or UTF-16 with a signature, and otherwise Windows-1252."""
        guessed = encoding is None
        if encoding is None:
            encoding = signed_encoding(content) or "utf-8"
        name = codec_name(encoding)
        try:
            text = content.decode("utf-8-sig" if name == "utf-8" else encoding)
        except UnicodeError as error:
            if not guessed or name != "utf-8":
                advice = "give its encoding, for example text_encoding='latin-1'"
                raise DataError(f"{where} is not {encoding} text ({error}); {advice}") from error
            encoding, text = "cp1252", content.decode("cp1252", errors="replace")
            logger.warning("%s is not UTF-8: it is read as Windows-1252 ('text_encoding')", where)
        return cls(where, text, encoding).without_nulls()

    def without_nulls(self) -> "TextFile":
        if "\0" in self.text[:HEAD_CHARACTERS]:
            raise DataError(f"{self.where} is not a table of text (it has null characters; text_encoding='utf-16'?)")
        return self

    def rows(self, separator: str, characters: int | None = None) -> Iterator[tuple[int, list[str]]]:
        """Yield line number and fields of every row that is not blank, the header first."""
        reader = csv.reader(io.StringIO(self.text[:characters], newline=""), delimiter=separator)
        try:
            yield from ((reader.line_num, row) for row in reader if row)
        except csv.Error as error:
            raise DataError(f"{self.where} is not a table of text ({error})") from error

    def separator(self, usual: str) -> str:
        """Return the separator that gives the header and the first rows the same number of fields, at least two."""
        widths = {mark: self._widths(mark) for mark in (usual, *(mark for mark in SEPARATORS if mark != usual))}
        regular = {mark: width[0] for mark, width in widths.items() if len(set(width)) == 1 and width[0] > 1}
        headers = {mark: width[0] for mark, width in widths.items() if width}
        candidates = regular or headers
        return max(candidates, key=lambda mark: candidates[mark]) if candidates else usual

    def _widths(self, separator: str) -> list[int]:
        whole = len(self.text) <= HEAD_CHARACTERS
        rows = list(islice(self.rows(separator, HEAD_CHARACTERS), _HEAD_ROWS + 1))
        return [len(row) for _, row in (rows if whole or len(rows) < 2 else rows[:-1])][:_HEAD_ROWS]

    def check_lengths(self, separator: str) -> None:
        """Refuse a row that is not as long as the header (slow: only for files that may have one)."""
        rows = self.rows(separator)
        _, header = next(rows)
        for line, row in rows:
            if len(row) != len(header):
                raise DataError(f"line {line} of {self.where} has {len(row)} fields, its header {len(header)}")

    def header(self, separator: str) -> list[str]:
        """Return the names of the columns, after a look at the first row."""
        head = [row for _, row in islice(self.rows(separator, HEAD_CHARACTERS), 2)]
        if not head:
            raise DataError(f"{self.where} is empty")
        others = [mark for mark in SEPARATORS if mark != separator and mark in head[0][0]]
        if len(head[0]) == 1 and others:
            raise DataError(f"{self.where} seems to be separated by {others[0]!r}, not by {separator!r} ('separator')")
        if len(head[-1]) != len(head[0]):
            self.check_lengths(separator)
        return head[0]

    def with_header(self, names: Sequence[str], separator: str) -> "TextFile":
        """Return the file with names of columns above its first row."""
        return replace(self, text=f"{separator.join(names)}\n{self.text}")

    def columns_of_text(self, separator: str, header: list[str]) -> pd.DataFrame:
        """Return the table with all values as text; what pandas counts as missing is missing."""
        content = self.text.encode()
        if self.text.count('"') % 2 == 0:  # otherwise a quote does not end, which Arrow does not mind
            try:
                return _read_with_arrow(content, separator, header)
            except (ImportError, ValueError):  # pandas and the search below say better what is wrong
                pass
        try:
            frame = pd.read_csv(
                io.BytesIO(content), sep=separator, dtype=str, keep_default_na=False, na_values=list(_MISSING)
            )
        except pd.errors.ParserError as error:
            self.check_lengths(separator)
            raise DataError(f"{self.where} cannot be parsed ({error})") from error
        # pandas fills up a row that is too short; such a row lacks at least the last column.
        if frame.iloc[:, -1].isna().any():
            self.check_lengths(separator)
        return frame

    def json_rows(self) -> pd.DataFrame:
        """Return the table of a file with one JSON object per line."""
        rows = []
        for number, line in enumerate(self.text.splitlines(), 1):
            if line.strip():
                try:
                    rows.append(json.loads(line))
                except (ValueError, RecursionError) as error:
                    raise DataError(f"line {number} of {self.where} is not JSON ({error})") from error
                if not isinstance(rows[-1], dict):
                    raise DataError(f"line {number} of {self.where} must be an object with a value per column")
        if not rows:
            raise DataError(f"{self.where} is empty")
        try:
            return pd.DataFrame(rows)
        except UnicodeEncodeError as error:  # JSON can write half of a pair of surrogates
            raise DataError(f"{self.where} has text that is not Unicode ({error})") from None


def codec_name(encoding: str) -> str:
    """Return Python's own name of a text encoding, or raise `DataError`: its codecs also have hex, base64 and zip."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)  # unlike `codecs.lookup`, refuses what does not decode text
        return codecs.lookup(encoding).name
    except (LookupError, ValueError) as error:  # ValueError: null characters and surrogates
        raise DataError(f"'text_encoding' must be an encoding that Python knows (got {encoding!r})") from error


def signed_encoding(content: bytes) -> str | None:
    """Return the encoding that the first bytes of a file name, None if they name none."""
    return next((name for mark, name in _SIGNATURES.items() if content.startswith(mark)), None)


def _read_with_arrow(content: bytes, separator: str, header: list[str]) -> pd.DataFrame:
    """Read a table of text in a fraction of pandas' time; Arrow refuses rows that are not as long as the header."""
    import pyarrow as pa
    from pyarrow import csv

    parsing, options = arrow_options(separator, header, quoted=b'"' in content)
    frame: pd.DataFrame = csv.read_csv(pa.BufferReader(content), None, parsing, options).to_pandas()
    return frame


def arrow_options(separator: str, header: list[str], *, quoted: bool) -> tuple[Any, Any]:
    """Return how Arrow reads a table of text: all values as text, and what pandas counts as missing is missing."""
    import pyarrow as pa
    from pyarrow import csv

    options = csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=True, null_values=list(_MISSING)
    )
    return csv.ParseOptions(delimiter=separator, newlines_in_values=quoted), options


def with_types(frame: pd.DataFrame, text_columns: TextColumns, *, comma: bool) -> pd.DataFrame:
    """Return a table of text with numbers and true or false where all values of a column are.

    Digits that begin with 0 stay text, because 007 is not 7. So do, with `comma`, numbers such as 1.234, whose point
    may stand between thousands.
    """
    if text_columns is str:
        return frame
    kept = text_columns if isinstance(text_columns, Mapping) else {}
    typed = {name: frame[name] if name in kept else _typed(frame[name], comma=comma) for name in frame.columns}
    return pd.DataFrame(typed, index=frame.index)


def _typed(column: Column, *, comma: bool) -> Column:
    present = column.dropna()
    first = present.head(100)
    if first.empty:
        return column.astype("float64")
    if first.isin(list(_TRUTH)).all() and present.isin(list(_TRUTH)).all():
        truth = column.map(_TRUTH)
        return truth.astype(bool) if len(present) == len(column) else truth
    if pd.to_numeric(first, errors="coerce").isna().any() or column.str.contains(r"^ *[+-]?0[0-9xX]", na=False).any():
        return column
    if comma and present.str.contains(r"\.", regex=True).any() and present.str.contains(_THOUSANDS).all():
        return column
    numbers = _numbers(column)
    return column if numbers is None else pd.Series(numbers, index=column.index, name=column.name)


def _numbers(column: Column) -> Any:
    """Return a column of text as numbers, None if it has other values."""
    try:
        import pyarrow as pa
        from pyarrow import compute

        texts = pa.array(column, type=pa.string(), from_pandas=True)
        for kind in (pa.int64(), pa.float64()):
            try:
                return compute.cast(texts, kind).to_numpy(zero_copy_only=False)
            except pa.ArrowInvalid:
                continue
    except ImportError:
        pass
    try:
        return np.asarray(pd.to_numeric(column))
    except ValueError:
        return None


def has_decimal_commas(frame: pd.DataFrame) -> bool:
    """Return whether some column of text begins with numbers that have a decimal comma."""
    heads = (frame[name].dropna().head(100) for name in frame.columns)
    return any(len(head) and head.str.contains(_DECIMAL_COMMA).all() for head in heads)
