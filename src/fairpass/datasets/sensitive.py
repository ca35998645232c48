"""Groups of people from one or several sensitive columns, by a rule that is remembered for the next table."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.bins import Bins, bin_edges, bin_names, bin_of, bins_for
from fairpass.datasets.reading import Table
from fairpass.datasets.values import MISSING, codes_among, distinct_names, listed
from fairpass.errors import DataError

SmallGroups = Literal["error", "other"]

# Between the names of an intersection: "female × black".
TIMES = " × "
# What small groups become together.
OTHER = "other"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SensitiveColumn:
    """One column: its values are groups, or its numbers are, cut at `edges`."""

    column: str
    names: list[str]
    edges: list[float] | None = None

    @classmethod
    def fit(cls, column: "pd.Series[Any]", bins: Bins | None, max_levels: int) -> "SensitiveColumn":
        """Take the values, or where to cut, from what is there."""
        name = str(column.name)
        if bins is not None:
            edges = bin_edges(column, bins)
            return cls(name, bin_names(name, edges), edges)
        if pd.api.types.is_numeric_dtype(column) and column.nunique() > max_levels:
            raise DataError(
                f"column {name!r} has {column.nunique()} distinct values, too many to be groups "
                f"('max_levels' = {max_levels}): cut it, into 3 groups of equal size by sens_bins=3, "
                f"or at the number 25 by sens_bins=[25]"
            )
        return cls(name, distinct_names(column, max_levels))

    def codes(self, column: "pd.Series[Any]") -> NDArray[np.int64]:
        """Return the index of each row's name, -1 where the value is missing."""
        return codes_among(column, self.names) if self.edges is None else bin_of(column, self.edges)


@dataclass(frozen=True)
class Grouping:
    """Which group a row is in: the value of one column, or the combination of several.

    A combination with less than the smallest size a group may have is among `merged` and belongs to "other".
    """

    columns: list[SensitiveColumn]
    names: list[str]
    merged: list[str] = field(default_factory=list)

    @classmethod
    def fit(
        cls,
        nodes: Table,
        sensitive: Sequence[str],
        *,
        counted: NDArray[np.bool_],
        bins: Bins | Mapping[str, Bins] | None,
        min_size: int,
        small: SmallGroups,
        max_levels: int,
    ) -> "Grouping":
        """Find the groups of a table.

        Args:
            nodes: the table.
            sensitive: its sensitive columns.
            counted: which rows count for the size of a group.
            bins: how to cut numbers into groups, of the one sensitive column or by column.
            min_size: the smallest size of a group.
            small: whether a smaller one is an error or becomes part of "other".
            max_levels: the largest number of values of a column, and of groups.
        """
        if min_size < 1:
            raise DataError(f"'min_group_size' must be at least 1 (got {min_size})")
        how = bins_for(sensitive, bins)
        columns = [SensitiveColumn.fit(nodes[name], how.get(name), max_levels) for name in sensitive]
        every = cls(columns, [])
        combination = every._combination(nodes)
        present = np.unique(combination[combination != MISSING])
        names = [every._name(int(code)) for code in present]
        if len(names) > max_levels:
            raise DataError(
                f"the sensitive columns {listed(sensitive)} make {len(names)} groups ({listed(names)}), "
                f"more than 'max_levels' = {max_levels}"
            )
        sizes = {name: int((counted & (combination == code)).sum()) for name, code in zip(names, present, strict=True)}
        kept, merged = _without_small(sizes, min_size, small)
        if len(kept) < 2:
            what = f"column {sensitive[0]!r}" if len(sensitive) == 1 else f"columns {listed(sensitive)}"
            raise DataError(f"{what} must have at least two groups (got {listed(kept) or 'none'})")
        return cls(columns, kept, merged)

    @property
    def title(self) -> str:
        """What the sensitive attribute is called: its column, or its columns."""
        return TIMES.join(self.column_names)

    @property
    def column_names(self) -> list[str]:
        """The names of the sensitive columns."""
        return [column.column for column in self.columns]

    def codes(self, nodes: Table) -> NDArray[np.int64]:
        """Return the index of each row's group, shape [N], -1 where a sensitive value is missing.

        A combination that no row of the fitted table had is in "other", if there is one, and otherwise an error.
        """
        combination = self._combination(nodes)
        index = {name: i for i, name in enumerate(self.names)}
        codes = np.full(len(combination), MISSING, dtype=np.int64)
        for code in np.unique(combination[combination != MISSING]):
            name = self._name(int(code))
            group = index.get(name, index.get(OTHER))
            if group is None:
                raise DataError(f"'nodes' has a group that the encoding does not know: {name!r} ({self.title})")
            codes[combination == code] = group
        return codes

    def _combination(self, nodes: Table) -> NDArray[np.int64]:
        """Return one number per row for what its sensitive columns are together, -1 if one is missing."""
        combined = np.zeros(len(nodes.frame), dtype=np.int64)
        missing = np.zeros(len(nodes.frame), dtype=bool)
        for column in self.columns:
            codes = column.codes(nodes[column.column])
            missing |= codes == MISSING
            combined = combined * len(column.names) + codes
        return np.where(missing, MISSING, combined)

    def _name(self, combination: int) -> str:
        parts = []
        for column in reversed(self.columns):
            combination, code = divmod(combination, len(column.names))
            parts.append(column.names[code])
        return TIMES.join(reversed(parts))

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` needs, in JSON's types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Grouping":
        """Return the grouping that `to_dict` stored."""
        columns = [SensitiveColumn(**column) for column in stored["columns"]]
        return cls(columns, list(stored["names"]), list(stored["merged"]))


def _without_small(sizes: Mapping[str, int], min_size: int, small: SmallGroups) -> tuple[list[str], list[str]]:
    """Return the groups that are kept, in their order, "other" last, and those that became part of it."""
    tiny = [name for name, size in sizes.items() if size < min_size and name != OTHER]
    if min_size == 1 or not tiny:  # a group without any labelled node is the split's business
        return list(sizes), []
    shown = ", ".join(f"{name!r} ({sizes[name]})" for name in tiny)
    if small == "error":
        raise DataError(
            f"every group must have at least {min_size} labelled nodes ('min_group_size'), but these have fewer: "
            f"{shown}; merge them (small_groups='other'), or cut the groups otherwise"
        )
    together = sum(sizes[name] for name in tiny) + sizes.get(OTHER, 0)
    if together < min_size:
        raise DataError(
            f"even together the small groups have fewer than {min_size} labelled nodes ('min_group_size'): {shown}; "
            f"lower 'min_group_size', or leave out their sensitive value (missing_sensitive='unknown')"
        )
    logger.warning("groups with fewer than %d labelled nodes become %r: %s", min_size, OTHER, shown)
    return [*(name for name in sizes if name not in {*tiny, OTHER}), OTHER], tiny
