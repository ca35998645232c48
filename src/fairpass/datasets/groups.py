"""Groups of people from one or several sensitive columns, by a rule that is stored and applied to the next table."""

import logging
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.column_encoding import Stored, codes_among, distinct_names, finite_numbers, listed, text_of
from fairpass.datasets.graph import MISSING
from fairpass.datasets.options import Bins, SmallGroups, TableOptions
from fairpass.datasets.table_files import Table
from fairpass.errors import DataError

# Between the names of an intersection: "female × black".
TIMES = " × "
# The name of the group that small groups are merged into.
OTHER = "other"

# Quantiles are rounded to this many significant digits.
_DIGITS = 6

logger = logging.getLogger(__name__)


class SensitiveColumn(Stored):
    """One column: its values are groups, or its numbers are, cut at `edges`."""

    column: str
    names: list[str]
    edges: list[float] | None = None

    @classmethod
    def fit(cls, column: "pd.Series[Any]", bins: Bins | None, max_levels: int) -> "SensitiveColumn":
        """Take the values, or the numbers to cut at, from a column."""
        name = str(column.name)
        if bins is not None:
            edges = _bin_edges(column, bins)
            return cls(column=name, names=_bin_names(name, edges), edges=edges)
        if pd.api.types.is_numeric_dtype(column) and column.nunique() > max_levels:
            raise DataError(
                f"column {name!r} has {column.nunique()} distinct values, too many to be groups "
                f"('max_levels' = {max_levels}): cut it, into 3 groups of equal size by sens_bins=3, "
                f"or at the number 25 by sens_bins=[25]"
            )
        return cls(column=name, names=distinct_names(column, max_levels))

    def codes(self, column: "pd.Series[Any]") -> NDArray[np.int64]:
        """Return the index of each row's name, -1 where the value is missing."""
        if self.edges is None:
            return codes_among(column, self.names)
        values = finite_numbers(column)
        return np.where(np.isnan(values), MISSING, np.digitize(values, self.edges)).astype(np.int64)


def _bin_edges(column: "pd.Series[Any]", bins: Bins) -> list[float]:
    """Return the numbers to cut a column at, in increasing order: those given, or its quantiles.

    A quantile is a value that occurs in the column, to six digits; equal quantiles count once.
    """
    values = finite_numbers(column)
    values = values[~np.isnan(values)]
    if not len(values):
        raise DataError(f"column {column.name!r} has no value in any row: it cannot be cut into groups")
    lowest, highest = float(values.min()), float(values.max())
    if isinstance(bins, int):
        if not 2 <= bins <= 10:
            raise DataError(f"'sens_bins' must be between 2 and 10 bins, or the numbers to cut at (got {bins})")
        cuts = np.quantile(values, np.arange(1, bins) / bins, method="nearest")
        edges = sorted({float(f"{cut:.{_DIGITS}g}") for cut in cuts} - {lowest})
        if not edges:
            raise DataError(
                f"column {column.name!r} cannot be cut at its quantiles: most rows have {text_of(lowest)}; "
                f"give the numbers to cut at, for example sens_bins=[{text_of(highest)}]"
            )
        return edges
    edges = [float(edge) for edge in bins]
    if not edges or not np.isfinite(edges).all() or sorted(set(edges)) != edges:
        raise DataError(f"'sens_bins' must be finite numbers in increasing order (got {list(bins)})")
    if not lowest < edges[0] or not edges[-1] <= highest:
        raise DataError(
            f"'sens_bins' must cut column {column.name!r} between its smallest and largest value, "
            f"{text_of(lowest)} and {text_of(highest)} (got {[text_of(edge) for edge in edges]})"
        )
    return edges


def _bin_names(name: str, edges: Sequence[float]) -> list[str]:
    """Return the names of the bins: "age < 25", "25 ≤ age < 60", "age ≥ 60"."""
    texts = [text_of(edge) for edge in edges]
    between = [f"{low} ≤ {name} < {high}" for low, high in pairwise(texts)]
    return [f"{name} < {texts[0]}", *between, f"{name} ≥ {texts[-1]}"]


def _bins_by_column(columns: Sequence[str], bins: Bins | dict[str, Bins] | None) -> dict[str, Bins]:
    if bins is None:
        return {}
    if not isinstance(bins, dict):
        if len(columns) > 1:
            raise DataError(
                f"'sens_bins' must say which column to cut, for example {{{columns[0]!r}: 3}} "
                f"(got {bins!r} for {', '.join(map(repr, columns))})"
            )
        bins = {columns[0]: bins}
    for name in bins:
        if name not in columns:
            raise DataError(f"'sens_bins' must name sensitive columns, {', '.join(map(repr, columns))} (got {name!r})")
    return bins


class Grouping(Stored):
    """Which group a row is in: the value of one column, or the combination of several.

    Combinations that are too small are listed in `merged` and belong to "other".
    """

    columns: list[SensitiveColumn]
    names: list[str]
    merged: list[str]

    @classmethod
    def fit(cls, nodes: Table, options: TableOptions) -> "Grouping":
        """Find the groups of a table; labelled rows count for the size of a group."""
        sensitive, max_levels = options.sensitive_columns, options.max_levels
        bins = _bins_by_column(sensitive, options.sens_bins)
        columns = [SensitiveColumn.fit(nodes[name], bins.get(name), max_levels) for name in sensitive]
        every = cls(columns=columns, names=[], merged=[])
        combination = every._combination(nodes)
        present = np.unique(combination[combination != MISSING])
        names = [every._name(int(code)) for code in present]
        if len(names) > max_levels:
            raise DataError(
                f"the sensitive columns {listed(sensitive)} make {len(names)} groups ({listed(names)}), "
                f"more than 'max_levels' = {max_levels}"
            )
        labelled = combination[nodes[options.label].notna().to_numpy(dtype=bool)]
        sizes = {name: int((labelled == code).sum()) for name, code in zip(names, present, strict=True)}
        kept, merged = _without_small(sizes, options.min_group_size, options.small_groups)
        if len(kept) < 2:
            what = f"column {sensitive[0]!r}" if len(sensitive) == 1 else f"columns {listed(sensitive)}"
            raise DataError(f"{what} must have at least two groups (got {listed(kept) or 'none'})")
        return cls(columns=columns, names=kept, merged=merged)

    @property
    def title(self) -> str:
        """The name of the sensitive attribute: its column, or its columns."""
        return TIMES.join(column.column for column in self.columns)

    def codes(self, nodes: Table) -> NDArray[np.int64]:
        """Return the index of each row's group, shape [N], -1 where a sensitive value is missing.

        A combination that the fitted table did not have is in "other", if there is such a group, else an error.
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
        """Return one number per row for the combination of its sensitive values, -1 if one is missing."""
        combined = np.zeros(len(nodes.frame), dtype=np.int64)
        missing = np.zeros(len(nodes.frame), dtype=bool)
        for column in self.columns:
            codes = column.codes(nodes[column.column])
            missing |= codes == MISSING
            combined = combined * len(column.names) + codes
        return np.where(missing, MISSING, combined)

    def _name(self, combination: int) -> str:
        codes = np.unravel_index(combination, [len(column.names) for column in self.columns])
        return TIMES.join(column.names[code] for column, code in zip(self.columns, codes, strict=True))


def _without_small(sizes: Mapping[str, int], min_size: int, small: SmallGroups) -> tuple[list[str], list[str]]:
    """Return the groups that are kept, "other" last, and those that are merged into it."""
    tiny = [name for name, size in sizes.items() if size < min_size and name != OTHER]
    if min_size == 1 or not tiny:  # a group without any labelled node is refused with the split
        return list(sizes), []
    shown = ", ".join(f"{name!r} ({sizes[name]})" for name in tiny)
    if small == "error":
        raise DataError(
            f"every group must have at least {min_size} labelled nodes ('min_group_size'), but these have fewer: "
            f"{shown}; merge them (small_groups='other'), or define the groups differently"
        )
    if sum(sizes[name] for name in tiny) + sizes.get(OTHER, 0) < min_size:
        raise DataError(
            f"even together the small groups have fewer than {min_size} labelled nodes ('min_group_size'): {shown}; "
            f"lower 'min_group_size', or leave out their sensitive value (missing_sensitive='unknown')"
        )
    logger.warning("groups with fewer than %d labelled nodes become %r: %s", min_size, OTHER, shown)
    return [*(name for name in sizes if name not in {*tiny, OTHER}), OTHER], tiny
