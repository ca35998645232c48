"""Commands with the texts of `help.toml`, and groups of options that several commands share."""

import inspect
import json
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from functools import wraps
from importlib.resources import files
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin, get_type_hints

import typer
from rich.markup import escape

from fairpass.cli.output import print_json
from fairpass.errors import DataError, did_you_mean, respelled, suggestion
from fairpass.parameters import alternatives, choices
from fairpass.plain_text import check_path

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from fairpass.methods import NodeClassifier
    from fairpass.runs import Executor
    from fairpass.training import Training

# The types of the library, without importing torch; tests compare them.
Reference = Literal["fitted", "batch"]
UnknownGroup = Literal["none", "estimate", "error"]
Result = Iterator[Any]  # of a command with `--json`: it yields one document and prints after that
TEXTS: dict[str, Any] = tomllib.loads(files(__package__).joinpath("help.toml").read_text(encoding="utf-8"))
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "none"}


def examples(command: str) -> str:
    """Return the end of a command's help: examples with a comment each."""
    parts = [f"[dim]# {purpose}[/dim]\n{escape(line)}" for purpose, line in TEXTS[command]["examples"].items()]
    return "\n\n".join(["[bold]Examples[/bold]", *parts])


def command(function: Callable[..., Result | None]) -> Callable[..., None]:
    """Return a function as typer reads it: with the text of the command, and of each option, in `help.toml`.

    A parameter that is annotated with a group of options is replaced by these: the fields of a dataclass, or what a
    class returns from `parameters()`. The function gets an instance of the group. A generator gets the option `--json`:
    with it, the document that the function yields is printed, and the function ends there. A function that yields a
    document and a number ends the program with this exit code.
    """
    about = TEXTS.get(function.__name__, {})
    texts = about.get("options", {})
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
    if has_document := inspect.isgeneratorfunction(function):
        options.append(_option("as_json", bool, False, texts))

    @wraps(function)
    def expanded(**values: Any) -> None:
        _check_texts(values)
        for name, (group, of_group) in groups.items():
            values[name] = group(**{option.name: values.pop(option.name) for option in of_group})
        context = values.get("ctx")
        parent = context.parent.params if context is not None and context.parent is not None else {}
        as_json = has_document and (values.pop("as_json") or parent.get("as_json"))
        code = 0
        for result in function(**values) or ():
            document, code = result if isinstance(result, tuple) else (result, 0)
            if as_json:
                print_json(document)
                break
        if code:
            raise typer.Exit(code)

    # Typer reads these through `inspect`.
    expanded.__dict__["__signature__"] = inspect.Signature(options)
    expanded.__annotations__ = {option.name: option.annotation for option in options}
    expanded.__doc__ = function.__doc__ or about.get("help")
    return expanded


def _check_texts(values: Mapping[str, Any]) -> None:
    """Refuse null characters, which neither paths nor anything else here has."""
    for name, value in values.items():
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(each, str | Path):
                check_path(name, str(each))


def _fields(group: Any, texts: Mapping[str, Any]) -> list[inspect.Parameter]:
    hints, fields = get_type_hints(group, include_extras=True), inspect.signature(group).parameters
    return [_option(name, hints[name], each.default, texts) for name, each in fields.items()]


def _option(name: str, hint: Any, default: Any, texts: Mapping[str, Any]) -> inspect.Parameter:
    """Return a parameter with its text, unless its annotation has one or is not for typer's options."""
    about = texts.get(name) or TEXTS["options"].get(name)
    if get_origin(hint) is not Annotated and about is not None:
        settings = {key: value for key, value in about.items() if key not in ("argument", "flags", "panel", "more")}
        make = typer.Argument if about.get("argument") else typer.Option
        hint = Annotated[hint, make(*about.get("flags", ()), rich_help_panel=about.get("panel"), **settings)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def field_options(group: str, fields: "Mapping[str, FieldInfo]", types: Mapping[str, Any]) -> list[inspect.Parameter]:
    """Return the options of a group in `help.toml`, None by default, with the texts and types of pydantic fields.

    `types` has those that differ on the command line.
    """
    options = []
    for name, about in TEXTS[group]["options"].items():
        help = about.get("help") or f"{fields[name].description}{about.get('more', '')}"
        hint: Any = types.get(name) or fields[name].annotation
        options.append(_option(name, hint | None, None, {name: {**about, "help": help}}))
    return options


def spelled(message: str, flags: Mapping[str, str]) -> str:
    """Return a message of the library with its options as the command line spells them.

    Options of tables that the command line does not have are spelled as in a settings file.
    """

    def setting(name: str, value: Any) -> str | None:
        from fairpass.projects.config import toml_setting

        if name not in flags:
            return None if (line := toml_setting(name, value)) is None else f"{line} of a settings file"
        if isinstance(value, bool):
            return flags[name] if value else None
        return " ".join(
            f"{flags[name]} {shlex.quote(str(each))}" for each in (value if isinstance(value, list) else [value])
        )

    return respelled(message, flags.get, setting)


def names_in(option: str, text: str) -> list[str]:
    """Return the names in the value of an option, each once."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise DataError(f"{option} must be names separated by commas (got {text!r})")
    return list(dict.fromkeys(names))


def parse_parameters(method: "type[NodeClassifier]", settings: Iterable[str]) -> dict[str, Any]:
    """Return a method's parameters from settings such as "lambda_f=0.5"."""
    known = {name: each.hint for name, each in method.declared.items() if name != "training"}
    parameters: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set must look like name=value (got {setting!r})")
        if name not in known:
            has = did_you_mean(name, known) if known else "it has none"
            raise typer.BadParameter(f"{name!r} is not a parameter of {method.name}: {has}")
        if name in parameters:
            raise typer.BadParameter(f"{name!r} is set twice")
        parameters[name] = read_value(name, text, known[name])
    try:
        method(**parameters)
    except ValueError as error:
        # In the words of --set, because the command may have an option of the same name.
        own = respelled(
            str(error),
            lambda name: f"--set {name}" if name in parameters else None,
            lambda name, value: f"--set {name}={value}" if name in parameters else None,
        )
        raise ValueError(own) from None
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
    words = [word for kind in kinds for word in [*map(repr, choices(kind))] or [_WORDS.get(kind, "JSON")]]
    close = suggestion(text, [str(choice) for kind in kinds for choice in choices(kind)])
    raise typer.BadParameter(f"{name!r} must be {' or '.join(words)} (got {text!r}{close})")


def _read(text: str, kind: Any) -> Any:
    words: dict[str, Any] = {str(choice): choice for choice in choices(kind)}
    if kind in (NoneType, bool):
        words, text = {"none": None} if kind is NoneType else {"true": True, "false": False}, text.lower()
    if words:
        if text not in words:
            raise ValueError(f"must be one of {list(words)}")
        return words[text]
    return kind(text) if kind in (int, float, str) else json.loads(text)  # a list, for example


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
        hints = get_type_hints(type(training))
        changes = {name: value for name, value in asdict(self).items() if value is not None}
        if training.epochs == 1:  # a method without epochs
            changes.pop("epochs", None)
        texts = {name: value for name, value in changes.items() if name in ("threshold", "postprocess", "constraint")}
        return changes | {name: read_value(name, text, hints[name]) for name, text in texts.items()}

    def applied_to(self, training: "Training") -> "Training":
        return training.but(**self.given(training))


@dataclass(frozen=True)
class ExecutionOptions:
    """Where runs are computed: the arguments of `executor_for`."""

    jobs: int | None = None
    executor: str = "processes"

    @property
    def is_here(self) -> bool:
        return self.executor == "processes" and self.jobs in (None, 1)

    def open(self) -> "Executor":
        from fairpass.runs import executor_for

        return executor_for(self.jobs, self.executor)


HERE = ExecutionOptions()


@dataclass(frozen=True)
class PredictionOptions:
    """Arguments of `predict` with the same names; None keeps the default."""

    reference: Reference | None = None
    unknown_group: UnknownGroup | None = None

    def given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def missing_sensitive(self) -> Literal["error", "unknown"]:
        return "error" if self.unknown_group == "error" else "unknown"
