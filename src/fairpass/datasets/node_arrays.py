"""The labels, the groups and the split of a table of nodes: what its features are fitted to."""

from dataclasses import dataclass
from itertools import chain

import numpy as np
import pandas as pd

from fairpass.datasets.encoding import Encoding, Labels
from fairpass.datasets.graph import MISSING, Ints, first_missing, listed
from fairpass.datasets.grouping import Grouping
from fairpass.datasets.options import TableOptions
from fairpass.datasets.splits import Split, check_split, split_by_column, stratified_split
from fairpass.datasets.table_files import Table
from fairpass.datasets.target_column import TrainingLabels
from fairpass.errors import DataError

# Columns that would be used as a feature by mistake.
_ID_NAMES = {"id", "node_id"}

NO_HEADER = "its first row looks like data ({}): give the table a row with the names of its columns"


@dataclass(frozen=True)
class NodeArrays:
    """What is known of each node but its features."""

    labels: Labels
    grouping: Grouping
    y: Ints
    sens: Ints
    split: Split

    @classmethod
    def of(cls, table: Table, options: TableOptions, known: Encoding | None = None) -> "NodeArrays":
        """Read a table after checking it; with a known encoding, the label and the groups may be absent."""
        check_nodes(table, options)
        # The split comes before the features: some are fitted to the labels of training nodes.
        labels = known.labels if known else Labels.fit(table[options.label], options)
        grouping = known.grouping if known else Grouping.fit(table, options)
        unknown = np.full(len(table), MISSING, dtype=np.int64)
        y = unknown if known and options.label not in table else labels.codes(table[options.label])
        grouped = all(column in table for column in options.sensitive_columns)
        sens = unknown.copy() if known and not grouped else grouping.codes(table)
        return cls(labels, grouping, y, sens, _split(table, y, sens, labels.names, grouping.names, options))

    def training(self, seed: int) -> TrainingLabels:
        """Return what features that depend on labels are fitted to."""
        return TrainingLabels(self.y, self.split.train, self.labels.names, seed)


def check_nodes(nodes: Table, options: TableOptions) -> None:
    """Refuse an empty table, roles of columns without single values, ids without a role, and missing groups."""
    if not len(nodes):
        raise DataError("'nodes' must have at least one row (got an empty table)")
    if any(column not in nodes for column in options.roles["label"]) and has_no_header(nodes):
        raise DataError(f"'nodes' has no column {options.label!r}: {NO_HEADER.format(listed(nodes.columns))}")
    for column in chain(*options.roles.values()):
        if column in nodes:
            nodes.check_values(column)
    mentioned = [*options.drop, *(options.features or ()), *chain(*options.roles.values())]
    for column in nodes.columns if options.id is None else ():
        if column.lower() in _ID_NAMES and column not in mentioned:
            raise DataError(
                f"'nodes' has a column {column!r}: give id={column!r} if that is what edges refer to, "
                f"or drop=[{column!r}] if they refer to row numbers"
            )
    for column in options.sensitive_columns if options.missing_sensitive == "error" else ():
        if nodes[column].isna().any():
            raise DataError(
                f"column {column!r} must have a value for each node ({first_missing(nodes[column])}): "
                f"fix the table, or choose missing_sensitive='unknown'"
            )


def has_no_header(table: Table) -> bool:
    """Return whether the names of the columns of a text file are data: numbers as in the columns they are above."""
    if table.typed:
        return False
    numbers = [name for name in table.columns if pd.api.types.is_numeric_dtype(table[name])]
    names = pd.to_numeric(pd.Series(numbers, dtype=object), errors="coerce").to_numpy(dtype=np.float64)
    spans = [(table[name].min(), table[name].max()) for name in numbers]
    fits = [2 * low - high <= number <= 2 * high - low for number, (low, high) in zip(names, spans, strict=True)]
    return len(fits) > 0 and all(fits)


def _split(nodes: Table, y: Ints, sens: Ints, labels: list[str], groups: list[str], options: TableOptions) -> Split:
    if options.split is not None:
        split = split_by_column(nodes[options.split], y)
    elif options.encoding is not None:
        split = Split(train=np.zeros(len(y), dtype=bool), val=np.zeros(len(y), dtype=bool), test=y != MISSING)
    else:
        split = stratified_split(y, sens, fractions=options.fractions, seed=options.seed)
    if options.encoding is None:
        check_split(split, y, "label", labels)
        check_split(split, sens, "group", groups)
    return split
