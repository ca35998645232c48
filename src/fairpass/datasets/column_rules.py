"""What a user may say about a column: the key `columns` of the settings file, and the option of `from_tables`.

This module imports neither pandas nor torch, so that `fairpass --help` stays fast.
"""

from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fairpass.errors import DataError, did_you_mean, validation_message
from fairpass.parameters import MOST_NODES

DecimalMark = Literal[".", ","]
RuleKind = Literal[
    "number", "money", "percent", "date", "flag", "category", "code", "target", "rare", "text", "drop"
]  # fmt: skip
KINDS: tuple[RuleKind, ...] = get_args(RuleKind)

# Which kinds have a setting.
_OF_KIND: dict[str, tuple[RuleKind, ...]] = {
    "decimal": ("number", "money", "percent"),
    "format": ("date",),
    "weekday": ("date",),
    "min_count": ("rare",),
}


class Frozen(BaseModel):
    """A model whose fields are known and do not change."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ColumnRule(Frozen):
    """How to read one column, and which features it becomes."""

    model_config = ConfigDict(strict=True, use_attribute_docstrings=True)

    kind: RuleKind
    """What the column contains, or how its values are encoded."""
    decimal: DecimalMark | None = None
    """The decimal mark of numbers; by default it is recognised from the values."""
    format: str | None = None
    """The format of dates, such as "%d/%m/%Y"; by default it is recognised from the values."""
    weekday: bool = False
    """Whether the day of the week is a feature, too."""
    min_count: int = Field(10, ge=2, le=MOST_NODES)
    """Values in fewer rows than this become "other levels"."""

    @property
    def leaves_out(self) -> bool:
        """Whether the column is no feature, whatever it contains."""
        return self.kind in ("text", "drop")

    @model_validator(mode="after")
    def _settings_of_the_kind(self) -> Self:
        for setting, kinds in _OF_KIND.items():
            if getattr(self, setting) != type(self).model_fields[setting].default and self.kind not in kinds:
                raise DataError(f"{setting!r} is only for {' or '.join(map(repr, kinds))} (got kind {self.kind!r})")
        return self

    @classmethod
    def parse(cls, column: str, given: Any) -> "ColumnRule":
        """Return a rule that is given as the name of a kind, or as a table with its settings."""
        where = f"'columns': the rule of {column!r}"
        if isinstance(given, cls):
            return given
        settings = {"kind": given} if isinstance(given, str) else given
        if not isinstance(settings, dict):
            raise DataError(f"{where} must be the name of a kind, or a table with one (got {given!r})")
        if "kind" not in settings:
            raise DataError(f"{where} must have a 'kind', one of {', '.join(map(repr, KINDS))} (got {given!r})")
        if settings["kind"] not in KINDS:
            raise DataError(f"{where}: there is no kind {settings['kind']!r}: {did_you_mean(settings['kind'], KINDS)}")
        try:
            return cls(**settings)
        except ValidationError as error:
            raise DataError(f"{where}: {validation_message(error, cls.model_fields, 'setting')}") from None
