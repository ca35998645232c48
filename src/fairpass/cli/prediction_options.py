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
            help="Whose distribution a group is moved towards: that of the nodes of the fit (`fitted`, the default), "
            "or that of the nodes given now (`batch`)."
        ),
    ] = None
    unknown_group: Annotated[
        UnknownGroup | None,
        typer.Option(
            help="What to do with nodes whose group is unknown: treat them as of no group (`none`, the default), "
            "estimate it, or refuse them."
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the arguments that the user gave."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def missing_sensitive(self) -> Literal["error", "unknown"]:
        """Return whether a table may leave groups open."""
        return "error" if self.unknown_group == "error" else "unknown"
