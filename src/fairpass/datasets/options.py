"""The options of a user's own tables: name, type, default, constraint and help text, declared once.

The keyword arguments of `from_tables`, the command line, the settings file and `data.provenance["options"]` are all
made from `TableOptions`. This module imports neither pandas nor torch, so that `fairpass --help` stays fast.
"""

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from fairpass.datasets.column_rules import ColumnRule, DecimalMark, Frozen
from fairpass.errors import DataError, validation_message
from fairpass.parameters import LARGEST_SEED, MOST_NODES

FeatureScale = Literal["minmax", "standard", "none"]
Missing = Literal["error", "drop", "mean", "indicator"]
MissingSensitive = Literal["error", "unknown"]
SmallGroups = Literal["error", "other", "unknown"]
UnknownCategory = Literal["error", "zeros"]
Dangling = Literal["error", "drop"]

# A number of groups of equal size, or the numbers to cut at.
Bins = int | list[int | float]


def check_fractions(fractions: Sequence[float]) -> None:
    if len(fractions) not in (3, 4) or not (min(fractions) > 0 and abs(sum(fractions) - 1) <= 1e-6):
        raise DataError(f"'fractions' must be three or four positive numbers that sum to 1 (got {tuple(fractions)})")


def _option(section: str, default: Any = ..., *, key: str | None = None, **constraints: Any) -> Any:
    """Declare an option; in the settings file it is `key` (by default its own name) of a section."""
    return Field(default, json_schema_extra={"section": section, "key": key}, **constraints)


class TableOptions(Frozen):
    """How the columns of a table of nodes, and of a table of edges, are read."""

    model_config = ConfigDict(strict=True, use_attribute_docstrings=True)

    label: str = _option("data", min_length=1)
    """Column with the label; an empty cell is a node without a label."""
    sensitive: str | list[str] = _option("groups")
    """Column with the sensitive attribute, whose values are the groups; several columns are intersected."""
    id: str | None = _option("data", None)
    """Column with the ids that edges refer to; without it, edges refer to row numbers from 0."""
    source: str | None = _option("data", None)
    """Column of the edges with one end; by default the first."""
    target: str | None = _option("data", None)
    """Column of the edges with the other end; by default the second."""
    edge_weight: str | None = _option("data", None)
    """Column of the edges with their weights, positive numbers; they are divided by their mean. By default all edges
    count alike."""
    unweighted: bool = _option("data", False)
    """Whether all edges count alike although a column of the edges is named like a weight."""
    edges_header: bool | None = _option("data", None)
    """Whether the first row of a text file with edges has the names of the columns; by default it is looked at."""
    dangling: Dangling = _option("data", "error")
    """What to do with edges whose ends are not both nodes: refuse them, or drop them."""
    similarity: float | None = _option("data", None, gt=0, le=1)
    """Without a table of edges: connect nodes whose similarity is at least this fraction of the similarity to their
    nearest neighbour; a smaller value gives more edges."""
    positive: Any = _option("data", None)
    """The positive one of two labels; by default the larger."""
    separator: str | None = _option("data", None, min_length=1, max_length=1)
    """Separator of CSV and TSV files, one mark or 'tab'; by default it is recognised."""
    decimal: DecimalMark | None = _option("data", None)
    """Decimal mark of numbers that could have either, such as 1.234; by default it is recognised."""
    text_encoding: str | None = _option("data", None)
    """Encoding of text files, for example latin-1; by default it is recognised: UTF-8, UTF-16, or else Windows-1252."""
    merge_spellings: bool = _option("data", True)
    """Whether values that differ only in case and space, or that are known to mean the same (M and male), are one."""
    sens_bins: Bins | dict[str, Bins] | None = _option("groups", None, key="bins")
    """How to cut a sensitive column of numbers or dates into groups: a number of groups of equal size, or the numbers
    (of dates, the years) to cut at; by column if there are several."""
    min_group_size: int = _option("groups", 1, key="min_size", ge=1, le=MOST_NODES)
    """Smallest number of labelled nodes in a group."""
    small_groups: SmallGroups = _option("groups", "error", key="small")
    """What to do with smaller groups: refuse them, merge them into a group 'other', or leave them out of all
    comparisons, as if their group were unknown."""
    missing_sensitive: MissingSensitive = _option("groups", "error", key="missing")
    """What to do with missing sensitive values: refuse them, or treat their group as unknown."""
    keep_sensitive: bool = _option("groups", False, key="as_feature")
    """Whether the sensitive attribute is a feature, too: one column, the index of the group."""
    features: list[str] | None = _option("features", None, key="use")
    """Columns to use as features; by default all without another role."""
    drop: list[str] = _option("features", [])
    """Columns that are not used as features."""
    columns: dict[str, ColumnRule] = _option("features", {})
    """What columns contain, or how they are encoded: number, money, percent, date, flag, category, code, target, rare,
    text or drop; a column without a rule is recognised."""
    missing: Missing = _option("features", "error")
    """What to do with missing feature values: refuse them, drop such columns, fill in the mean (for a category, the
    frequencies of its values), or fill it in and add a column 'x is missing'."""
    scale: FeatureScale = _option("features", "standard")
    """How to scale numbers: to mean 0 and variance 1 (standard), to [-1, 1] (minmax), or not at all (none)."""
    max_levels: int = _option("features", 50, ge=2, le=MOST_NODES)
    """Largest number of distinct values of a label, a sensitive attribute or a category with a feature for each; a
    column with more is encoded by the share of each label (target) or left out (text)."""
    on_constant: Literal["drop", "error"] = _option("features", "drop")
    """What to do with a column that has one value only: drop it with a warning, or refuse it."""
    unknown_category: UnknownCategory = _option("features", "zeros")
    """What to do with a category that the fitted table does not have: encode it as zeros with a warning, or refuse
    it."""
    split: str | None = _option("split", None, key="column")
    """Column that says train, val (or valid, validation), test or safety; without it, the split is random, stratified
    by label and group."""
    fractions: list[float] = _option("split", [0.5, 0.25, 0.25])
    """Fractions of training, validation and test nodes of the random split; a fourth is that of the safety nodes. They
    take no part in any choice: a limit that was asked for, such as a largest difference, is checked on them."""
    seed: int = _option("split", 0, ge=0, le=LARGEST_SEED)
    """Seed of the random split."""
    encoding: dict[str, Any] | None = Field(None, exclude=True)
    """`data.provenance['encoding']` of an earlier graph: encode this table exactly as that one. The options from
    `sens_bins` to `on_constant` and `positive` then have no effect, the label may be missing, and without `split` all
    labelled nodes are test nodes."""

    @classmethod
    def parse(cls, options: dict[str, Any]) -> Self:
        """Return the options; raise a `DataError` that names the wrong one."""
        try:
            return cls(**options)
        except ValidationError as error:
            raise DataError(validation_message(error, cls.model_fields)) from None

    @property
    def sensitive_columns(self) -> list[str]:
        return [self.sensitive] if isinstance(self.sensitive, str) else self.sensitive

    @property
    def roles(self) -> dict[str, list[str]]:
        """The columns of the nodes that have a role, by role."""
        named = {role: [column] for role, column in (("id", self.id), ("split", self.split)) if column is not None}
        return {"label": [self.label], "sensitive": self.sensitive_columns, **named}

    @model_validator(mode="before")
    @classmethod
    def _plain_values(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Accept tuples as lists, numpy and pandas values as plain ones, and kinds of columns as rules."""
        plain = {
            name: list(value) if isinstance(value, tuple) else value.tolist() if hasattr(value, "tolist") else value
            for name, value in options.items()
        }
        plain |= {"separator": "\t"} if plain.get("separator") in ("tab", r"\t") else {}
        rules = plain.get("columns")
        if isinstance(rules, dict):
            plain["columns"] = {str(name): ColumnRule.parse(str(name), rule) for name, rule in rules.items()}
        return plain

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_fractions(self.fractions)
        if self.unweighted and self.edge_weight is not None:
            raise DataError(f"'unweighted' and 'edge_weight' cannot both be given (got {self.edge_weight!r})")
        if not self.sensitive_columns or not all(self.sensitive_columns):
            raise DataError(f"'sensitive' must name at least one column (got {self.sensitive!r})")
        role_of: dict[str, str] = {}
        for role, columns in self.roles.items():
            for column in columns:
                if role_of.get(column) == role:
                    raise DataError(f"'{role}' must not name a column twice (got {columns})")
                if column in role_of:
                    raise DataError(f"'{role_of[column]}' and '{role}' must be different columns (both are {column!r})")
                role_of[column] = role
        features = self.features or []
        for column in features:
            other = role_of.get(column)
            if other == "sensitive" and not self.keep_sensitive:
                raise DataError(f"'features' may contain the sensitive column {column!r} only with keep_sensitive=True")
            if other not in {None, "sensitive"}:
                raise DataError(f"'features' must not contain the column given as '{other}' ({column!r})")
        if len(set(features)) < len(features):
            raise DataError(f"'features' must not contain a column twice (got {features})")
        self._check_rules(role_of)
        return self

    def _check_rules(self, role_of: dict[str, str]) -> None:
        """Refuse what contradicts itself: features that are dropped, and rules for columns that are no features."""
        if both := [column for column in self.features or () if column in self.drop]:
            raise DataError(f"'features' and 'drop' must not name the same column (both have {both[0]!r})")
        for column, rule in self.columns.items():
            if column in role_of:
                raise DataError(
                    f"'columns' must not have a rule for the column given as '{role_of[column]}' ({column!r})"
                )
            if rule.kind == "drop":
                if column in (self.features or ()):
                    raise DataError(f"'features' must not name a column that 'columns' drops ({column!r})")
            elif column in self.drop:
                raise DataError(f"'columns' must not have a rule for a column that 'drop' names ({column!r})")
            elif self.features is not None and column not in self.features:
                raise DataError(f"'columns' must not have a rule for a column that is not in 'features' ({column!r})")


for _field in TableOptions.model_fields.values():
    _field.description = " ".join(str(_field.description).split())  # without the line breaks of the docstrings above
