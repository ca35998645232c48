"""How to train: the options of every command that does."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.models import OptionInfo

from fairpass.cli.parameters import read_value

if TYPE_CHECKING:
    from fairpass.training import Training


def _option(help: str, metavar: str = "NUMBER") -> OptionInfo:
    option: OptionInfo = typer.Option(help=help, metavar=metavar, rich_help_panel="Training")
    return option


@dataclass(frozen=True)
class TrainingOptions:
    """Changes to a method's training settings, and called like these; None leaves what the method says."""

    epochs: Annotated[int | None, _option("At most this many epochs.")] = None
    learning_rate: Annotated[float | None, _option("The learning rate of Adam.")] = None
    weight_decay: Annotated[float | None, _option("The weight decay of Adam.")] = None
    patience: Annotated[int | None, _option("Stop when validation has not improved for this many epochs.")] = None
    threshold: Annotated[
        str | None,
        _option(
            "A score above this is a positive prediction; or what validation chooses it for: accuracy, f1, "
            "balanced_accuracy or selection.",
            metavar="NUMBER|NAME",
        ),
    ] = None
    postprocess: Annotated[
        str | None,
        _option(
            "thresholds: decide by a threshold for each group, found on validation. People of different groups are "
            "then treated by different standards, and groups must be known to predict.",
            metavar="NAME",
        ),
    ] = None
    constraint: Annotated[
        str | None,
        _option(
            "What --postprocess thresholds makes equal between groups: demographic_parity, "
            "true_positive_rate_parity or equalized_odds.",
            metavar="NAME",
        ),
    ] = None
    device: Annotated[str | None, _option("Where to train, for example cuda.", metavar="NAME")] = None

    def applied_to(self, training: "Training") -> "Training":
        """Return the settings with the changes made."""
        changes: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        changes = {name: value for name, value in changes.items() if value is not None}
        hints = get_type_hints(type(training))
        for name in ("threshold", "postprocess", "constraint"):
            if name in changes:
                changes[name] = read_value(name, changes[name], hints[name])
        if training.epochs == 1:  # nothing is learnt epoch by epoch, so more of them would change nothing
            changes.pop("epochs", None)
        return training.but(**changes)
