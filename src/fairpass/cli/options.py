"""Commands with the texts of `help.toml`, and groups of options that several commands share."""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from functools import cache, wraps
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin, get_type_hints

import typer
from pydantic.fields import FieldInfo
from rich.markup import escape

if TYPE_CHECKING:
    from fairpass.training import Training

# The types of the library, without importing torch; tests compare them.
Reference = Literal["fitted", "batch"]
UnknownGroup = Literal["none", "estimate", "error"]


@cache
def _texts() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("help.toml").read_text(encoding="utf-8"))


def examples(command: str) -> str:
    """Return the end of a command's help text: examples with a comment each."""
    lines = _texts()[command]["examples"].items()
    parts = [f"[dim]# {purpose}[/dim]\n{escape(line)}" for purpose, line in lines]
    return "\n\n".join(["[bold]Examples[/bold]", *parts])


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function as typer reads it: each parameter an option with its text in `help.toml`.

    A parameter that is annotated with a group of options is replaced by these: the fields of a dataclass, or what a
    class returns from `parameters()`. The function gets an instance of the group:

        @dataclass(frozen=True)
        class Size:
            width: int = 80

        @command
        def draw(size: Size, colour: str = "black") -> None: ...
    """
    texts = _texts().get(function.__name__, {}).get("options", {})
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, tuple[type[Any], list[inspect.Parameter]]] = {}
    options: list[inspect.Parameter] = []
    for each in inspect.signature(function).parameters.values():
        hint = hints[each.name]
        if is_dataclass(hint) or hasattr(hint, "parameters"):
            groups[each.name] = hint, hint.parameters() if hasattr(hint, "parameters") else _fields(hint, texts)
            options += groups[each.name][1]
        else:
            options.append(_option(each.name, hint, each.default, texts))

    @wraps(function)
    def expanded(**values: Any) -> None:
        for name, (group, of_group) in groups.items():
            values[name] = group(**{option.name: values.pop(option.name) for option in of_group})
        function(**values)

    # Typer reads these through `inspect.signature` and `get_type_hints`.
    expanded.__dict__["__signature__"] = inspect.Signature(options)
    expanded.__annotations__ = {option.name: option.annotation for option in options}
    return expanded


def _fields(group: type[Any], texts: Mapping[str, Any]) -> list[inspect.Parameter]:
    hints, empty = get_type_hints(group, include_extras=True), inspect.Parameter.empty
    return [
        _option(each.name, hints[each.name], empty if each.default is MISSING else each.default, texts)
        for each in fields(group)
    ]


def _option(name: str, hint: Any, default: Any, texts: Mapping[str, Any]) -> inspect.Parameter:
    """Return a parameter with its text, unless its annotation has one or is not for typer's options."""
    about = texts.get(name) or _texts()["options"].get(name)
    if get_origin(hint) is not Annotated and about is not None:
        settings = {key: value for key, value in about.items() if key not in ("argument", "flags", "panel")}
        make = typer.Argument if about.get("argument") else typer.Option
        hint = Annotated[hint, make(*about.get("flags", ()), rich_help_panel=about.get("panel"), **settings)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def field_options(
    group: str, fields: Mapping[str, FieldInfo], types: Mapping[str, Any] | None = None
) -> list[inspect.Parameter]:
    """Return the options of a group in `help.toml`, None by default; texts and types are those of pydantic fields.

    Args:
        group: The group.
        fields: The fields.
        types: Types that differ on the command line.
    """
    options = []
    for name, about in _texts()[group]["options"].items():
        help = about.get("help") or f"{fields[name].description}{about.get('more', '')}"
        hint: Any = (types or {}).get(name) or fields[name].annotation
        texts = {key: value for key, value in about.items() if key != "more"}
        options.append(_option(name, hint | None, None, {name: {**texts, "help": help}}))
    return options


def spelled(message: str, flags: Mapping[str, str]) -> str:
    """Return a message with the library's arguments as the command line spells them."""
    for argument, flag in flags.items():
        message = message.replace(f"'{argument}'", flag)
    return message


@dataclass(frozen=True)
class TrainingOptions:
    """Changes to the training settings of a method, with the same names; None keeps what the method has."""

    epochs: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    patience: int | None = None
    threshold: str | None = None
    postprocess: str | None = None
    constraint: str | None = None
    device: str | None = None

    def given(self, training: "Training") -> dict[str, Any]:
        """Return the settings that the user gave, in the types of `training`."""
        from fairpass.cli.parameters import read_value

        hints = get_type_hints(type(training))
        changes = {name: value for name, value in asdict(self).items() if value is not None}
        if training.epochs == 1:  # a method without epochs
            changes.pop("epochs", None)
        texts = {name: value for name, value in changes.items() if name in ("threshold", "postprocess", "constraint")}
        return changes | {name: read_value(name, text, hints[name]) for name, text in texts.items()}

    def applied_to(self, training: "Training") -> "Training":
        """Return the settings with the changes."""
        return training.but(**self.given(training))


@dataclass(frozen=True)
class PredictionOptions:
    """Arguments of `predict` with the same names; None keeps the default."""

    reference: Reference | None = None
    unknown_group: UnknownGroup | None = None

    def given(self) -> dict[str, Any]:
        """Return the arguments that the user gave."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def missing_sensitive(self) -> Literal["error", "unknown"]:
        """Whether tables may have unknown groups."""
        return "error" if self.unknown_group == "error" else "unknown"
