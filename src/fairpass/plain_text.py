"""Make text from tables and options safe for terminals, spreadsheets and names of directories."""

import csv
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"  # all but tab and newline
# Other line ends, and characters that change the direction of text.
_REORDERING = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
# Invisible characters, with which two names can look the same. Joiners (U+200C, U+200D) are not among them, as they are
# part of words and of emoji.
_INVISIBLE = "\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_UNPRINTABLE = re.compile(f"[{_CONTROLS}{_REORDERING}{_INVISIBLE}]")
_LONGEST_NAME = 200  # bytes; file systems allow 255, and files in the directory have names of their own

# Spreadsheets evaluate a cell that begins with one of these; in some languages also with those of full width.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def printable(text: str) -> str:
    """Return text with a replacement character for every character that controls a terminal or is invisible."""
    return _UNPRINTABLE.sub("\ufffd", text)


def path_text(path: "str | os.PathLike[str]") -> str:
    """Return a path as text that can be stored: bytes of a name that are not UTF-8 are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def is_utf8(path: "str | os.PathLike[str]") -> bool:
    """Return whether a path is UTF-8, as some libraries and files need it."""
    return path_text(path) == os.fspath(path)


def escaped(text: str) -> str:
    r"""Return text with `\\U0000001b` for a character that `printable` would replace; TOML reads it back."""
    return _UNPRINTABLE.sub(lambda found: f"\\U{ord(found[0]):08x}", text)


def check_name(argument: str, name: str) -> str:
    """Return a name that is fit for a directory of its own, or raise `ValueError`."""
    if name.strip() in ("", ".", "..") or name != printable(name) or re.search(r"[/\\\t\n]", name):
        raise ValueError(f"'{argument}' must be a name for a directory, without separators (got {name!r})")
    if len(name.encode(errors="replace")) > _LONGEST_NAME:
        raise ValueError(f"'{argument}' must be a name of at most {_LONGEST_NAME} bytes (got {name[:20] + '...'!r})")
    return name


def check_path(argument: str, path: str) -> str:
    """Return a path, or any text, that a system can use, or raise `ValueError`."""
    if "\0" in path:
        raise ValueError(f"'{argument}' must not contain null characters (got {path!r})")
    return path


def as_name(text: str, otherwise: str) -> str:
    """Return text as a name that `check_name` accepts, `otherwise` if nothing of it is left."""
    kept = re.sub(r"[/\\\t\n]", "_", _UNPRINTABLE.sub("_", text))
    kept = kept.encode(errors="replace")[:_LONGEST_NAME].decode(errors="ignore").strip()
    return otherwise if kept in ("", ".", "..") else kept


def spreadsheet_cell(text: str) -> str:
    """Return text that a spreadsheet does not evaluate: possible formulas are prefixed with an apostrophe.

    Numbers stay as they are. `text_of_cell` is the inverse: a text that already has apostrophes gets one more.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def text_of_cell(cell: str) -> str:
    """Return the text that `spreadsheet_cell` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def to_csv(table: "pd.DataFrame") -> str:
    """Return a table as CSV without its index; texts are spreadsheet cells, also those of the header."""
    named = table.rename(columns=lambda name: spreadsheet_cell(name) if isinstance(name, str) else name)
    for number in range(named.shape[1]):
        column = named.iloc[:, number]
        if column.dtype.kind not in "biufcM":
            cells = [spreadsheet_cell(value) if isinstance(value, str) else value for value in column]
            named.isetitem(number, cells)
    text: str = named.to_csv(index=False, lineterminator="\n")
    if "\r" in text:  # Python before 3.13 does not quote it, and readers take it for the end of a line
        text = named.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return text
