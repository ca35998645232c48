"""Plain values, as TOML has them, read into dataclasses: an unknown key or a wrong type is an error with its name."""

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fairpass.errors import FairpassError

T = TypeVar("T")

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


class ConfigError(FairpassError, ValueError):
    """A configuration file is not what it has to be."""


def read_section(kind: type[T], values: Any, where: str) -> T:
    """Return a dataclass from the keys of a table; what has no key keeps its default.

    Args:
        kind: the dataclass.
        values: what the file says.
        where: what error messages call the table, for example "fairpass.toml: [groups]".
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where} must be a table with keys (got {values!r})")
    hints = get_type_hints(kind)
    check_keys(values, list(hints), where)
    for field in fields(kind):  # type: ignore[arg-type] # T is a dataclass
        if field.name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise ConfigError(f"{where} must have the key '{field.name}' ({_words(hints[field.name])})")
    read = {name: _read(value, hints[name], f"{where} {name}") for name, value in values.items()}
    try:
        return kind(**read)
    except ValueError as error:  # from its own checks
        raise ConfigError(f"{where} {error}") from None


def check_keys(values: Mapping[str, Any], known: list[str], where: str) -> None:
    """Refuse a key that means nothing here: most likely it is misspelt."""
    for key in values:
        if key not in known:
            alike = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean '{alike[0]}'?" if alike else f"it can have {', '.join(known)}"
            raise ConfigError(f"{where} has an unknown key '{key}': {hint}")


def _read(value: Any, hint: Any, where: str) -> Any:
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for choice in choices:
        if _fits(value, choice):
            return float(value) if choice is float else value
    raise ConfigError(f"{where} must be {_words(hint)} (got {value!r})")


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in inner
    if origin is list:
        return isinstance(value, list) and all(_fits_any(item, inner[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits_any(item, inner[1]) for item in value.values())
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _fits_any(value: Any, hint: Any) -> bool:
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return any(_fits(value, choice) for choice in choices)


def _words(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_words(choice) for choice in inner if choice is not NoneType)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, inner))
    if origin is list:
        return f"a list of {_plural(inner[0])}"
    if origin is dict:
        return "a table with keys"
    return _WORDS[hint]


def _plural(hint: Any) -> str:
    return {str: "texts", int: "whole numbers", float: "numbers"}.get(hint, "values")
