"""How a stored model treats people whom it has not been fitted to."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import typer

# The library's own types would do, but they come with torch: a test keeps these equal to them.
Reference = Literal["fitted", "batch"]
UnknownGroup = Literal["none", "estimate", "error"]


@dataclass(frozen=True)
class PredictionOptions:
    """The options, called like the arguments of `predict`; those not given are None, and the defaults are there."""

    reference: Annotated[
        Reference | None,
        typer.Option(
            help="Among whom each node is scored: the nodes of the fit, so that nobody else matters (`fitted`, the "
            "default wherever the model can), or the nodes given now (`batch`).",
            show_default=False,
        ),
    ] = None
    unknown_group: Annotated[
        UnknownGroup | None,
        typer.Option(
            help="Where a method needs a node's group, and it is unknown: correct nothing (`none`, the default), "
            "`estimate` the group from the features, or refuse the node (`error`).",
            show_default=False,
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the arguments that the user gave."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def missing_sensitive(self) -> Literal["error", "unknown"]:
        """Return whether a table may leave groups open."""
        return "error" if self.unknown_group == "error" else "unknown"
