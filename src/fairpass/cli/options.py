"""Groups of options that several commands share."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer
from pydantic.fields import FieldInfo

if TYPE_CHECKING:
    from fairpass.training import Training

# The types of the library, without importing torch; tests compare them.
Reference = Literal["fitted", "batch"]
UnknownGroup = Literal["none", "estimate", "error"]


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is annotated with a group of options by these options.

    A group is a dataclass whose fields are options, or a class with a method `parameters`. Typer sees the options;
    the command gets an instance of the group:

        @dataclass(frozen=True)
        class Size:
            width: Annotated[int, typer.Option("--width")] = 80

        @app.command()
        @with_option_groups
        def draw(size: Size) -> None: ...
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, tuple[type[Any], list[inspect.Parameter]]] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint) or hasattr(hint, "parameters"):
            of_group = hint.parameters() if hasattr(hint, "parameters") else _parameters(hint)
            groups[parameter.name] = hint, of_group
            options += of_group
        else:
            options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint))

    @wraps(command)
    def expanded(**values: Any) -> None:
        for name, (group, of_group) in groups.items():
            values[name] = group(**{option.name: values.pop(option.name) for option in of_group})
        command(**values)

    # Typer reads these through `inspect.signature` and `get_type_hints`.
    expanded.__dict__["__signature__"] = inspect.Signature(options)
    expanded.__annotations__ = {option.name: option.annotation for option in options}
    return expanded


def _parameters(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    empty = inspect.Parameter.empty
    return [
        parameter(each.name, hints[each.name], empty if each.default is MISSING else each.default)
        for each in fields(group)
    ]


def parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    """Return a parameter as typer reads it."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def field_option(
    name: str, field: FieldInfo, *flags: str, type: Any = None, more: str = "", **settings: Any
) -> inspect.Parameter:
    """Return the option for a field of a pydantic model; None if the user does not give it.

    Args:
        name: The name of the parameter.
        field: Its description is the help text.
        flags: Spellings other than that of the name.
        type: The type on the command line, by default that of the field.
        more: What to add to the help text.
        settings: Arguments of `typer.Option`.
    """
    option = typer.Option(*flags, help=f"{field.description}{more}", show_default=False, **settings)
    return parameter(name, Annotated[(type or field.annotation) | None, option])


def spelled(message: str, flags: Mapping[str, str]) -> str:
    """Return a message with the library's arguments as the command line spells them."""
    for argument, flag in flags.items():
        message = message.replace(f"'{argument}'", flag)
    return message


def _training(help: str, metavar: str = "NUMBER") -> Any:
    return typer.Option(help=help, metavar=metavar, rich_help_panel="Training")


@dataclass(frozen=True)
class TrainingOptions:
    """Changes to the training settings of a method, with the same names; None keeps what the method has."""

    epochs: Annotated[int | None, _training("Maximum number of epochs.")] = None
    learning_rate: Annotated[float | None, _training("Learning rate of Adam.")] = None
    weight_decay: Annotated[float | None, _training("Weight decay of Adam.")] = None
    patience: Annotated[int | None, _training("Stop when validation has not improved for this many epochs.")] = None
    threshold: Annotated[
        str | None,
        _training(
            "Scores above this are positive predictions; or the metric that validation maximizes to choose it: "
            "accuracy, f1, balanced_accuracy or selection.",
            "NUMBER|NAME",
        ),
    ] = None
    postprocess: Annotated[
        str | None,
        _training(
            "thresholds: one threshold per group, found on validation. It treats people of different groups by "
            "different standards, and predictions need the groups.",
            "NAME",
        ),
    ] = None
    constraint: Annotated[
        str | None,
        _training(
            "What --postprocess thresholds equalizes between groups: demographic_parity, true_positive_rate_parity or "
            "equalized_odds.",
            "NAME",
        ),
    ] = None
    device: Annotated[str | None, _training("Device to train on, for example cuda.", "NAME")] = None

    def given(self, training: "Training") -> dict[str, Any]:
        """Return the settings that the user gave, in the types of `training`."""
        from fairpass.cli.parameters import read_value

        hints = get_type_hints(type(training))
        texts = ("threshold", "postprocess", "constraint")
        changes = {name: value for name, value in asdict(self).items() if value is not None}
        if training.epochs == 1:  # a method without epochs
            changes.pop("epochs", None)
        return {
            name: read_value(name, value, hints[name]) if name in texts else value for name, value in changes.items()
        }

    def applied_to(self, training: "Training") -> "Training":
        """Return the settings with the changes."""
        return training.but(**self.given(training))


@dataclass(frozen=True)
class PredictionOptions:
    """Arguments of `predict` with the same names; None keeps the default."""

    reference: Annotated[
        Reference | None,
        typer.Option(
            help="Nodes that each node is scored with: those of the fit, so that scores do not depend on the other "
            "nodes in the table (`fitted`, the default if the model can), or those given now (`batch`).",
            show_default=False,
        ),
    ] = None
    unknown_group: Annotated[
        UnknownGroup | None,
        typer.Option(
            help="If a method needs the group of a node and it is unknown: do not correct the score (`none`, the "
            "default), `estimate` the group from the features, or refuse the node (`error`).",
            show_default=False,
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the arguments that the user gave."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def missing_sensitive(self) -> Literal["error", "unknown"]:
        """Whether tables may have unknown groups."""
        return "error" if self.unknown_group == "error" else "unknown"
