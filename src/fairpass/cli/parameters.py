"""Values on the command line: read as what a parameter's type says, or refused in plain words."""

import json
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

if TYPE_CHECKING:
    from fairpass.methods import NodeClassifier

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none"}


def parse_parameters(method: "type[NodeClassifier]", settings: Iterable[str]) -> dict[str, Any]:
    """Return a method's parameters from settings such as "lambda_f=0.5"."""
    hints = get_type_hints(method.__init__)
    known = [name for name in hints if name not in ("training", "return")]
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
        parameters[name] = read_value(name, text, hints[name])
    return parameters


def read_value(name: str, text: str, hint: Any) -> Any:
    """Return text as a value of a type; "none" is None where None is allowed."""
    choices = _alternatives(hint)
    # None first, because as text it would be taken for itself.
    for choice in sorted(choices, key=lambda choice: choice is not NoneType):
        try:
            return _read(text, choice)
        except ValueError:
            continue
    words = [word for choice in choices for word in _in_words(choice)]
    raise typer.BadParameter(f"{name!r} must be {' or '.join(words)} (got {text!r})")


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _read(text: str, hint: Any) -> Any:
    """Return text as a value of a type that is no union; raise ValueError if it is none."""
    if get_origin(hint) is Literal:
        return {str(choice): choice for choice in get_args(hint)}[_one_of(text, map(str, get_args(hint)))]
    if hint is NoneType:
        return {"none": None}[_one_of(text.lower(), ["none"])]
    if hint is bool:
        return _one_of(text.lower(), ["true", "false"]) == "true"
    if hint in (int, float, str):
        return hint(text)
    return json.loads(text)  # a list, for example


def _one_of(text: str, choices: Iterable[str]) -> str:
    if text not in (known := list(choices)):
        raise ValueError(f"must be one of {known}")
    return text


def _in_words(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [repr(choice) for choice in get_args(hint)]
    return [_WORDS.get(hint, "JSON")]
