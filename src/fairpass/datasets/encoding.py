"""How a table of nodes becomes labels, groups and features: fitted to one table, applied to others."""

import logging
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from fairpass.datasets.column_encoding import codes_among, levels_of, text_of
from fairpass.datasets.column_fitting import ColumnFitter
from fairpass.datasets.column_kinds import recognise
from fairpass.datasets.column_reading import Reading
from fairpass.datasets.column_rules import DecimalMark, Frozen
from fairpass.datasets.encoded_columns import CategoryColumn, Difference, NumberColumn, finite_numbers
from fairpass.datasets.graph import MISSING, Column, Floats, Ints, listed
from fairpass.datasets.options import Bins, SmallGroups, TableOptions
from fairpass.datasets.spellings import level_finder
from fairpass.datasets.table_files import Table
from fairpass.datasets.target_column import TargetColumn, TrainingLabels
from fairpass.errors import DataError

TIMES = " × "  # between the names of an intersection: "female × black"
OTHER = "other"  # the group that small groups are merged into
_DIGITS = 6  # significant digits of a quantile

logger = logging.getLogger(__name__)

_VERSION: Literal[3] = 3  # increase it whenever an older encoding would be misread

EncodedColumn = Annotated[NumberColumn | CategoryColumn | TargetColumn, Field(discriminator="kind")]


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
            reading = recognise(column, usual_decimal=usual).reading or Reading()
            edges = _bin_edges(column, finite_numbers(column, reading), bins)
            texts = [text_of(edge) for edge in edges]
            between = [f"{low} ≤ {name} < {high}" for low, high in pairwise(texts)]
            names = [f"{name} < {texts[0]}", *between, f"{name} ≥ {texts[-1]}"]
            return cls(column=name, names=names, edges=edges, reading=reading)
        if pd.api.types.is_numeric_dtype(column) and column.nunique() > max_levels:
            raise DataError(
                f"column {name!r} has {column.nunique()} distinct values, too many to be groups "
                f"('max_levels' = {max_levels}): cut it, into 3 groups of equal size by sens_bins=3, "
                f"or at the number 25 by sens_bins=[25]"
            )
        names, spellings = levels_of(column, merge=options.merge_spellings, max_levels=max_levels)
        return cls(column=name, names=names, spellings=spellings)

    def codes(self, column: Column) -> Ints:
        """Return the index of each row's name, -1 where the value is missing."""
        if self.edges is None:
            return codes_among(column, self.names, spellings=self.spellings)
        values = finite_numbers(column, self.reading)
        return np.where(np.isnan(values), MISSING, np.digitize(values, self.edges)).astype(np.int64)


def _bin_edges(column: Column, values: Floats, bins: Bins) -> list[float]:
    """Return the numbers to cut a column at, in increasing order: those given, or its quantiles (equal ones once)."""
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
    merged: list[str]  # combinations that are too small and belong to "other"

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
            if group is None:
                raise DataError(f"'nodes' has a group that the encoding does not know: {name!r} ({self.title})")
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


class Labels(NamedTuple):
    """The names of the labels in their order, and the spellings that are merged into one of them."""

    names: list[str]
    spellings: dict[str, str] | None

    @classmethod
    def fit(cls, column: Column, options: TableOptions) -> "Labels":
        """Find the labels of a column; the positive one of two is the second."""
        names, spellings = levels_of(column, merge=options.merge_spellings, max_levels=options.max_levels)
        if len(names) < 2:
            raise DataError(f"column {column.name!r} must have at least two labels (got {listed(names) or 'none'})")
        if options.positive is None:
            return cls(names, spellings)
        if len(names) > 2:
            raise DataError(f"'positive' needs two labels (column {column.name!r} has {len(names)}: {listed(names)})")
        place = level_finder(names, spellings)(text_of(options.positive))
        if place is None:
            expected = f"a value of column {column.name!r}, {listed(names)}"
            raise DataError(f"'positive' must be {expected} (got {options.positive!r})")
        return cls([names[1 - place], names[place]], spellings)

    def codes(self, column: Column) -> Ints:
        """Return the index of each row's label, shape [N], -1 where it is missing."""
        return codes_among(column, self.names, spellings=self.spellings)


class Encoding(Frozen):
    """The meaning of every number in a graph made from a table."""

    version: Literal[3] = _VERSION
    label: str
    label_names: list[str]
    label_spellings: dict[str, str] | None = None
    grouping: Grouping
    columns: list[EncodedColumn]
    mean_edge_weight: float | None = None  # what weights of edges are divided by; None if edges have none

    @classmethod
    def fit(
        cls, nodes: Table, options: TableOptions, labels: Labels, grouping: Grouping, training: TrainingLabels
    ) -> "Encoding":
        """Fit the encoding of the features; constant columns, and by option those with missing values, are left out."""
        fitter = ColumnFitter(options, nodes.decimal, training)
        fitted = []
        for name in feature_columns(nodes, options, grouping.title):
            column = _feature_column(nodes, name, grouping)
            encoded = fitter.fit(column, "none" if name == grouping.title else options.scale)
            if encoded is not None:
                fitted.append(encoded)
        encoding = cls(
            label=options.label,
            label_names=labels.names,
            label_spellings=labels.spellings,
            grouping=grouping,
            columns=fitted,
        )
        names = encoding.feature_names
        if not names:
            raise DataError("'nodes' has no column that can be a feature")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"two columns give a feature called {twice!r}: rename one")
        return encoding

    @property
    def labels(self) -> Labels:
        return Labels(self.label_names, self.label_spellings)

    @property
    def feature_names(self) -> list[str]:
        return [name for column in self.columns for name in column.names]

    @property
    def sens_column(self) -> int | None:
        """The index of the sensitive attribute among the features, None if it is not a feature."""
        title = self.grouping.title
        return self.feature_names.index(title) if any(each.column == title for each in self.columns) else None

    @property
    def text_columns(self) -> list[str]:
        """The columns of a CSV file that must not be read as numbers, because they would be others."""
        return [encoded.column for encoded in self.columns if encoded.stays_text]

    def features(
        self, nodes: Table, *, allow_unknown: bool = False, training: TrainingLabels | None = None
    ) -> tuple[NDArray[np.float32], list[Difference]]:
        """Return the features of each node, shape [N, d], and how the table differs from the fitted one.

        An unknown category is an error unless it is allowed. `training` are the nodes that the encoding is fitted to.
        """
        blocks, differences = [], []
        for encoded in self.columns:
            if encoded.column != self.grouping.title and encoded.column not in nodes:
                found = encoded.absent(len(nodes.frame))
            else:
                column = _feature_column(nodes, encoded.column, self.grouping)
                found = encoded.encode(column, allow_unknown=allow_unknown)
                if training is not None and isinstance(encoded, TargetColumn):
                    found.features[training.mask] = encoded.cross_fitted(column, training)
            with np.errstate(over="ignore"):  # checked below
                block = found.features.astype(np.float32)
            if not np.isfinite(block).all():
                raise DataError(f"column {encoded.column!r} has numbers too large for 32-bit features")
            blocks.append(block)
            differences += found.differences
        return np.concatenate(blocks, axis=1), differences

    @classmethod
    def load(cls, stored: dict[str, Any]) -> "Encoding":
        """Return the encoding that `model_dump` stored, now or in version 2."""
        version = stored.get("version", _VERSION)
        if version not in (2, _VERSION):
            raise DataError(f"'encoding' must have version {_VERSION} or 2 (got {version!r})")
        try:
            return cls(**stored if version == _VERSION else _of_version_2(stored))
        except (ValidationError, KeyError, TypeError) as error:
            raise DataError("'encoding' must be data.provenance['encoding'] of a graph from 'from_tables'") from error


def _of_version_2(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return an encoding of version 2, which had numbers and categories in one form, as one of today."""
    columns = []
    for column in stored["columns"]:
        unused = ("shift", "scale") if column["kind"] == "category" else ("levels",)
        kept = {name: value for name, value in column.items() if name not in unused}
        fill = column["fill"]
        columns.append(kept | {"fill": [fill] if isinstance(fill, float | int) else fill})
    return {**stored, "version": _VERSION, "columns": columns}


def feature_columns(nodes: Table, options: TableOptions, sensitive_title: str) -> list[str]:
    """Return the names of the features to encode: columns, and `sensitive_title` if the group is a feature, too."""
    taken = {column for columns in options.roles.values() for column in columns}
    candidates = nodes.columns if options.features is None else list(options.features)
    for column in [*candidates, *options.drop, *options.columns]:
        nodes[column]  # raises if it does not exist
    if options.keep_sensitive:
        taken.discard(sensitive_title)
        candidates += [sensitive_title] if sensitive_title not in candidates else []
    return [column for column in candidates if column not in taken.union(options.drop)]


def _feature_column(nodes: Table, name: str, grouping: Grouping) -> Column:
    """Return the column to encode: the sensitive attribute as the group's index, others as they are."""
    if name != grouping.title:
        return nodes[name]
    codes = grouping.codes(nodes)
    return pd.Series(np.where(codes == MISSING, np.nan, codes), name=name)
