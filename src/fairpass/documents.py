"""JSON files with a checksum, which are read through a schema with bounds.

A schema is a pydantic model (`Stored`) or a dataclass. Any problem with a file is a `DataError` that names it: bytes
that are not text, text that is not JSON, a changed digit, a missing key, a wrong type, deep nesting.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from math import nan
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import LARGEST_WHOLE, PathLike, write_text

T = TypeVar("T")

CHECKSUM = "sha256"
WRITER = "fairpass"  # entry with the version that wrote a document, if no other entry has it
_SINCE = (0, 3)  # the first version whose files all have a checksum
_UNKNOWN = (0, 0)
_ROUNDING = 1e-3  # sums of probabilities in half precision may be a little above 1
_SHOWN = 200  # characters of a reason: a damaged file may have very long names

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
"""The `__pydantic_config__` of dataclasses that are schemas."""


def within_one(value: float) -> float:
    """Return a number if it is between -1 and 1, up to rounding, or nan; raise `ValueError` otherwise."""
    if abs(value) > 1 + _ROUNDING:
        raise ValueError(f"it must be between -1 and 1 (got {value:g})")
    return value


Count = Annotated[int, Field(ge=0, lt=LARGEST_WHOLE)]
Seconds = Annotated[float, Field(ge=0)]
Nan = Annotated[float, Field(allow_inf_nan=True), BeforeValidator(lambda value: nan if value is None else value)]
"""A number that may be undefined: nan in memory, and null in a file."""
Fraction = Annotated[Nan, AfterValidator(within_one)]
"""A rate, or a difference of rates, from -1 to 1; it may be undefined, as `Nan` may be."""
Values = dict[str, Any]


class Stored(BaseModel):
    """What is in a file: known entries of known types."""

    model_config = ConfigDict(frozen=True, **STRICT)


def write_document(path: PathLike, document: Mapping[str, Any]) -> Path:
    """Write a JSON file for people and programs to read; its entry `kind` should say what it is."""
    return write_text(path, json.dumps(signed(document), indent=2, allow_nan=False) + "\n")


def read_document(path: PathLike, kind: str | None, build: type[T] | Callable[[Values], T]) -> T:
    """Read a JSON file through a schema, or a function of its plain values; raise `DataError` if it is not valid.

    The file's entry `kind` must be the given one, unless that is None.
    """
    try:
        stored = parse(Path(path).read_bytes())
        if kind is not None and stored.get("kind") != kind:
            raise ValueError(f"its kind is {stored.get('kind')!r}")
        return validate(stored, build) if isinstance(build, type | GenericAlias) else build(stored)
    except (ValueError, KeyError, TypeError, AttributeError, IsADirectoryError) as error:
        reason = str(error)[:_SHOWN]
        raise DataError(f"'{path}' must be a {kind or 'JSON'} file (damaged or not one: {reason})") from None


def signed(document: Mapping[str, Any]) -> Values:
    """Return a document with a checksum of its content, and a version, by which readers know that it must have one."""
    plain = {name: value for name, value in document.items() if name != CHECKSUM}
    if _version(plain) == _UNKNOWN:
        plain[WRITER] = __version__
    return {**plain, CHECKSUM: _checksum(json.loads(json.dumps(plain, allow_nan=False)))}


def parse(content: bytes | str) -> Values:
    """Return the content of a signed document without its signature, or raise `ValueError` with the problem."""
    try:
        # Decoded here, because `json.loads` also accepts other encodings.
        text = content if isinstance(content, str) else content.decode("utf-8")
        stored = json.loads(text, parse_constant=_refuse, parse_int=_whole, object_pairs_hook=_object)
        if not isinstance(stored, dict):
            raise ValueError("it is not a JSON object")
        checksum = stored.pop(CHECKSUM, None)
        if checksum is not None and checksum != _checksum(stored):
            raise ValueError("its content is not what was written")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if checksum is None and _version(stored) >= _SINCE:
        raise ValueError("its checksum is missing")
    stored.pop(WRITER, None)
    return stored


def validate(stored: Values, schema: type[T]) -> T:
    """Return plain values as an instance of a schema, or raise `ValueError` with the first problem."""
    try:
        # As JSON, because only there does a strict schema accept lists for tuples and objects for dataclasses.
        of: Any = schema  # mypy knows no type that a cache takes
        made: T = _adapter(of).validate_json(json.dumps(stored), strict=True)
        return made
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    where = "'{}'".format(".".join(map(str, first["loc"]))) if first["loc"] else "it"
    words = first["ctx"]["error"] if first["type"] == "value_error" else first["msg"]
    reason = "is missing" if first["type"] == "missing" else f"is wrong: {words}"
    raise ValueError(f"{where} {reason}"[:_SHOWN])


@cache
def _adapter(schema: Any) -> TypeAdapter[Any]:
    return TypeAdapter(schema)


def _checksum(plain: Any) -> str:
    """Return a digest of plain values that does not depend on the order of keys or on whitespace."""
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _version(stored: Values) -> tuple[int, ...]:
    """Return the version of fairpass that wrote a document; `_UNKNOWN` if it does not say so."""
    environment = stored.get("environment")
    said = stored.get(WRITER, stored.get("version"))
    written = environment.get("fairpass") if isinstance(environment, dict) else said
    found = re.match(r"(\d{1,9})\.(\d{1,9})", written) if isinstance(written, str) else None
    return tuple(map(int, found.groups())) if found else _UNKNOWN


def _object(entries: list[tuple[str, Any]]) -> Values:
    found: Values = {}
    for name, value in entries:
        if name in found:
            raise ValueError(f"it has the key '{name}' twice"[:_SHOWN])
        found[name] = value
    return found


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not valid JSON")


def _whole(digits: str) -> int:
    number = int(digits)  # with thousands of digits, Python raises `ValueError` itself
    if not -LARGEST_WHOLE <= number < LARGEST_WHOLE:
        raise ValueError(f"a number is too large ({digits[:20]}...)")
    return number
