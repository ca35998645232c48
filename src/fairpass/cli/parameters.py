"""Values on the command line, read as the type of a parameter says."""

import json
from collections.abc import Callable, Iterable
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import typer

from fairpass.parameters import alternatives

if TYPE_CHECKING:
    from fairpass.methods import NodeClassifier

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none"}


def parse_parameters(method: "type[NodeClassifier]", settings: Iterable[str]) -> dict[str, Any]:
    """Return a method's parameters from settings such as "lambda_f=0.5"."""
    known = {name: each.hint for name, each in method.declared.items() if name != "training"}
    parameters: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set must look like name=value (got {setting!r})")
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise typer.BadParameter(f"{name!r} is not a parameter of {method.name}: {has}")
        if name in parameters:
            raise typer.BadParameter(f"{name!r} is set twice")
        parameters[name] = read_value(name, text, known[name])
    return parameters


def read_value(name: str, text: str, hint: Any) -> Any:
    """Return text as a value of a type; "none" is None where None is allowed."""
    kinds = [kind for kind in alternatives(hint) if get_origin(kind) is not Callable]
    # None first, because it would also be read as text.
    for kind in sorted(kinds, key=lambda kind: kind is not NoneType):
        try:
            return _read(text, kind)
        except ValueError:
            continue
    words = [word for kind in kinds for word in [*map(repr, _choices(kind))] or [_WORDS.get(kind, "JSON")]]
    raise typer.BadParameter(f"{name!r} must be {' or '.join(words)} (got {text!r})")


def _choices(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


def _read(text: str, kind: Any) -> Any:
    """Return text as a value of a type that is not a union; raise `ValueError` if it is none."""
    words: dict[str, Any] = {str(choice): choice for choice in _choices(kind)}
    if kind in (NoneType, bool):
        words, text = {"none": None} if kind is NoneType else {"true": True, "false": False}, text.lower()
    if words:
        if text not in words:
            raise ValueError(f"must be one of {list(words)}")
        return words[text]
    return kind(text) if kind in (int, float, str) else json.loads(text)  # a list, for example
