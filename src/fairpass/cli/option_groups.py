"""Options that several commands share, written once: a dataclass whose fields are the options."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of each parameter that is annotated with a dataclass.

    Typer sees the fields in the place of the parameter; the command gets the dataclass, filled in:

        @dataclass(frozen=True)
        class Size:
            width: Annotated[int, typer.Option("--width")] = 80

        @app.command()
        @with_option_groups
        def draw(size: Size) -> None: ...
    """
    hints = get_type_hints(command, include_extras=True)
    parameters = list(inspect.signature(command).parameters.values())
    groups = {p.name: hints[p.name] for p in parameters if is_dataclass(hints[p.name])}

    @wraps(command)
    def expanded(**values: Any) -> None:
        for parameter, group in groups.items():
            values[parameter] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    options: list[inspect.Parameter] = []
    for parameter in parameters:
        if parameter.name in groups:
            options += _options(groups[parameter.name])
        else:
            options.append(parameter.replace(kind=_KEYWORD, annotation=hints[parameter.name]))
    # What typer looks at, through `inspect.signature` and `get_type_hints`.
    expanded.__dict__["__signature__"] = inspect.Signature(options)
    expanded.__annotations__ = {option.name: option.annotation for option in options}
    return expanded


def _options(group: type[Any]) -> list[inspect.Parameter]:
    """Return a parameter for each field of a dataclass."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            _KEYWORD,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
