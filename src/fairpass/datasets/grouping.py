"""Which group a row is in: fitted to one table, applied to others."""

import logging
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from fairpass.datasets.column_encoding import codes_among, levels_of, text_of
from fairpass.datasets.column_kinds import recognise
from fairpass.datasets.column_reading import Reading, content_type
from fairpass.datasets.column_rules import DecimalMark, Frozen
from fairpass.datasets.encoded_columns import finite_numbers
from fairpass.datasets.graph import MISSING, Column, Floats, Ints, listed
from fairpass.datasets.options import Bins, SmallGroups, TableOptions
from fairpass.datasets.table_files import Table
from fairpass.errors import DataError

TIMES = " × "  # between the names of an intersection: "female × black"
OTHER = "other"  # the group that small groups are merged into
_DIGITS = 6  # significant digits of a quantile
# What can be cut, with an example; dates are cut at years.
_CUT_AT = {
    **dict.fromkeys(("number", "money", "percent"), "the number 25 by sens_bins=[25"),
    "date": "the first day of 1984 by sens_bins=[1984]",
}

logger = logging.getLogger(__name__)


class SensitiveColumn(Frozen):
    """One column: its values are groups, or its numbers are, cut at `edges`."""

    column: str
    names: list[str]
    edges: list[float] | None = None
    spellings: dict[str, str] | None = None
    reading: Reading | None = None

    @classmethod
    def fit(
        cls, column: Column, bins: Bins | None, options: TableOptions, usual: DecimalMark | None
    ) -> "SensitiveColumn":
        name, max_levels = str(column.name), options.max_levels
        if bins is not None:
            found = recognise(column, usual_decimal=usual)
            reading = Reading() if content_type(column) == "number" else found.reading
            if reading is None:
                raise DataError(
                    f"column {name!r} must contain numbers or dates, which 'sens_bins' cuts (got {found.kind})"
                )
            if found.note:
                logger.warning("column %r: %s", name, found.note)
            edges = _bin_edges(column, _numbers(column, reading), bins, whole=reading.kind == "date")
            texts = [text_of(edge) for edge in edges]
            between = [f"{low} ≤ {name} < {high}" for low, high in pairwise(texts)]
            names = [f"{name} < {texts[0]}", *between, f"{name} ≥ {texts[-1]}"]
            return cls(column=name, names=names, edges=edges, reading=reading)
        if column.nunique() > max_levels and (kind := recognise(column, usual_decimal=usual).kind) in _CUT_AT:
            raise DataError(
                f"column {name!r} has {column.nunique():,} distinct values, too many to be groups "
                f"('max_levels' = {max_levels}): cut it, into 3 groups of equal size by sens_bins=3, "
                f"or at {_CUT_AT[kind]}"
            )
        names, spellings = levels_of(column, merge=options.merge_spellings, max_levels=max_levels)
        return cls(column=name, names=names, spellings=spellings)

    def codes(self, column: Column) -> Ints:
        """Return the index of each row's name, -1 where the value is missing."""
        if self.edges is None:
            return codes_among(column, self.names, spellings=self.spellings)
        values = _numbers(column, self.reading or Reading())
        return np.where(np.isnan(values), MISSING, np.digitize(values, self.edges)).astype(np.int64)


def _numbers(column: Column, reading: Reading) -> Floats:
    """Return the numbers that are cut into groups; a date is its year and, as a fraction, the day in the year."""
    values = finite_numbers(column, reading)
    if reading.kind != "date":
        return values
    days = np.where(np.isnan(values), 0, values).astype("datetime64[D]")
    years = days.astype("datetime64[Y]")
    whole = years.astype(np.int64) + 1970
    return np.where(np.isnan(values), np.nan, whole + (days - years).astype(np.float64) / 366)


def _bin_edges(column: Column, values: Floats, bins: Bins, *, whole: bool) -> list[float]:
    """Return the numbers to cut a column at, in increasing order: those given, or its quantiles (equal ones once).

    Quantiles are rounded, to `whole` numbers for the years of dates.
    """
    values = values[~np.isnan(values)]
    if not len(values):
        raise DataError(f"column {column.name!r} has no value in any row: it cannot be cut into groups")
    lowest, highest = float(values.min()), float(values.max())
    if isinstance(bins, int):
        if not 2 <= bins <= 10:
            raise DataError(f"'sens_bins' must be between 2 and 10 bins, or the numbers to cut at (got {bins})")
        cuts = np.quantile(values, np.arange(1, bins) / bins, method="nearest")
        edges = sorted({float(round(cut)) if whole else float(f"{cut:.{_DIGITS}g}") for cut in cuts} - {lowest})
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


class Grouping(Frozen):
    """Which group a row is in: the value of one column, or the combination of several."""

    columns: list[SensitiveColumn]
    names: list[str]
    merged: list[str]  # combinations that are too small: they belong to "other" or, if there is none, to no group

    @classmethod
    def fit(cls, nodes: Table, options: TableOptions) -> "Grouping":
        """Find the groups of a table; labelled rows count for the size of a group."""
        sensitive, max_levels = options.sensitive_columns, options.max_levels
        bins = _bins_by_column(sensitive, options.sens_bins)
        columns = [SensitiveColumn.fit(nodes[name], bins.get(name), options, nodes.decimal) for name in sensitive]
        combination, names = cls(columns=columns, names=[], merged=[])._combinations(nodes)
        if len(names) > max_levels:
            raise DataError(
                f"the sensitive columns {listed(sensitive)} make {len(names)} groups ({listed(names.values())}), "
                f"more than 'max_levels' = {max_levels}"
            )
        labelled = combination[nodes[options.label].notna().to_numpy(dtype=bool)]
        sizes = {name: int((labelled == code).sum()) for code, name in names.items()}
        kept, merged = _without_small(sizes, options.min_group_size, options.small_groups)
        if len(kept) < 2:
            what = f"column {sensitive[0]!r}" if len(sensitive) == 1 else f"columns {listed(sensitive)}"
            raise DataError(f"{what} must have at least two groups (got {listed(kept) or 'none'})")
        return cls(columns=columns, names=kept, merged=merged)

    @property
    def title(self) -> str:
        """The name of the sensitive attribute: its column, or its columns."""
        return TIMES.join(column.column for column in self.columns)

    def codes(self, nodes: Table) -> Ints:
        """Return the index of each row's group, shape [N], -1 where a sensitive value is missing."""
        combination, names = self._combinations(nodes)
        index = {name: i for i, name in enumerate(self.names)}
        codes = np.full(len(combination), MISSING, dtype=np.int64)
        for code, name in names.items():
            group = index.get(name, index.get(OTHER))  # the fitted table may not have had this combination
            if group is None and name in self.merged:  # left out of all comparisons
                group = MISSING
            if group is None:
                raise DataError(f"'nodes' has a group that the fitted table does not have: {name!r} ({self.title})")
            codes[combination == code] = group
        return codes

    def _combinations(self, nodes: Table) -> tuple[Ints, dict[int, str]]:
        """Return a number per row for its sensitive values (-1 if one is missing), and the name of each number."""
        codes = np.array([column.codes(nodes[column.column]) for column in self.columns])
        shape = [len(column.names) for column in self.columns]
        missing = (codes == MISSING).any(axis=0)
        combination = np.full(len(missing), MISSING)
        combination[~missing] = np.ravel_multi_index(tuple(codes[:, ~missing]), shape)
        names = {}
        for code in np.unique(combination[~missing]).tolist():
            places = zip(self.columns, np.unravel_index(code, shape), strict=True)
            names[code] = TIMES.join(column.names[place] for column, place in places)
        return combination, names


def _without_small(sizes: Mapping[str, int], min_size: int, small: SmallGroups) -> tuple[list[str], list[str]]:
    """Return the groups that are kept, "other" last, and those that are merged into it or left out."""
    tiny = [name for name, size in sizes.items() if size < min_size and name != OTHER]
    if min_size == 1 or not tiny:  # a group without any labelled node is refused with the split
        return list(sizes), []
    shown = ", ".join(f"{name!r} ({sizes[name]})" for name in tiny)
    if small == "error":
        raise DataError(
            f"every group must have at least {min_size} labelled nodes ('min_group_size'), but these have fewer: "
            f"{shown}; merge them (small_groups='other'), leave them out (small_groups='unknown'), or define the "
            f"groups differently"
        )
    if small == "unknown":
        logger.warning("groups with fewer than %d labelled nodes are not compared with others: %s", min_size, shown)
        return [name for name in sizes if name not in tiny], tiny
    if sum(sizes[name] for name in tiny) + sizes.get(OTHER, 0) < min_size:
        raise DataError(
            f"even together the small groups have fewer than {min_size} labelled nodes ('min_group_size'): {shown}; "
            f"lower 'min_group_size', or leave them out of comparisons (small_groups='unknown')"
        )
    logger.warning("groups with fewer than %d labelled nodes become %r: %s", min_size, OTHER, shown)
    return [*(name for name in sizes if name not in {*tiny, OTHER}), OTHER], tiny
