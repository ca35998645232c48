"""How a table of nodes becomes labels, groups and features: fitted to one table, applied to others."""

import logging
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ValidationError

from fairpass.datasets.column_encoding import EncodedColumn, Stored, codes_among, distinct_names, listed, text_of
from fairpass.datasets.graph import MISSING
from fairpass.datasets.groups import Grouping
from fairpass.datasets.options import TableOptions
from fairpass.datasets.table_files import Table
from fairpass.errors import DataError

logger = logging.getLogger(__name__)

# Increase it whenever an older encoding would be misread.
_VERSION: Literal[2] = 2


class Encoding(Stored):
    """The meaning of every number in a graph made from a table."""

    version: Literal[2] = _VERSION
    label: str
    label_names: list[str]
    grouping: Grouping
    columns: list[EncodedColumn]

    @classmethod
    def fit(cls, nodes: Table, options: TableOptions) -> "Encoding":
        """Fit the encoding of a table of nodes.

        Columns that are constant, and by option those with missing values, are left out. The sensitive attribute, if
        it is a feature, is not scaled.
        """
        label_names = _fit_labels(nodes[options.label], options)
        grouping = Grouping.fit(nodes, options)
        fitted = []
        for name in feature_columns(nodes, options, grouping.title):
            column = _feature_column(nodes, name, grouping)
            if options.missing == "drop" and column.isna().any():
                logger.warning("column %r has missing values and is left out", name)
                continue
            scale = "none" if name == grouping.title else options.scale
            encoded = EncodedColumn.fit(column, scale, options.missing, options.max_levels)
            if column.nunique() > 1:
                fitted.append(encoded)
            elif options.on_constant == "drop":
                logger.warning("column %r is constant and is left out", name)
            else:
                raise DataError(f"column {name!r} is constant (always {listed(column.dropna().head(1).tolist())})")
        encoding = cls(label=options.label, label_names=label_names, grouping=grouping, columns=fitted)
        names = encoding.feature_names
        if not names:
            raise DataError("'nodes' has no column that can be a feature")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"two columns give a feature called {twice!r}: rename one")
        return encoding

    @property
    def feature_names(self) -> list[str]:
        """The names of the features, in their order."""
        return [name for column in self.columns for name in column.names]

    @property
    def sens_column(self) -> int | None:
        """The index of the sensitive attribute among the features, None if it is not a feature."""
        title = self.grouping.title
        kept = any(column.column == title for column in self.columns)
        return self.feature_names.index(title) if kept else None

    def labels(self, nodes: Table) -> NDArray[np.int64]:
        """Return the index of each node's label, shape [N], -1 if it has none."""
        return codes_among(nodes[self.label], self.label_names)

    def features(self, nodes: Table, *, allow_unknown: bool = False) -> NDArray[np.float32]:
        """Return the features of each node, shape [N, d]; an unknown category is an error unless it is allowed."""
        blocks = []
        for encoded in self.columns:
            column = _feature_column(nodes, encoded.column, self.grouping)
            with np.errstate(over="ignore"):  # checked below
                block = encoded.encode(column, allow_unknown=allow_unknown).astype(np.float32)
            if not np.isfinite(block).all():
                raise DataError(f"column {encoded.column!r} has numbers too large for 32-bit features")
            blocks.append(block)
        return np.concatenate(blocks, axis=1)

    @classmethod
    def load(cls, stored: dict[str, Any]) -> "Encoding":
        """Return the encoding that `model_dump` stored."""
        if stored.get("version", _VERSION) != _VERSION:
            raise DataError(f"'encoding' must have version {_VERSION} (got {stored['version']!r})")
        try:
            return cls(**stored)
        except ValidationError as error:
            raise DataError("'encoding' must be data.provenance['encoding'] of a graph from 'from_tables'") from error


def feature_columns(nodes: Table, options: TableOptions, sensitive_title: str) -> list[str]:
    """Return the names of the features to encode: columns, and `sensitive_title` if the group is a feature, too."""
    taken = {column for columns in options.roles.values() for column in columns}
    candidates = nodes.columns if options.features is None else list(options.features)
    for column in [*candidates, *options.drop]:
        nodes[column]  # raises if it does not exist
    if options.keep_sensitive:
        taken.discard(sensitive_title)
        candidates += [sensitive_title] if sensitive_title not in candidates else []
    return [column for column in candidates if column not in taken.union(options.drop)]


def _fit_labels(column: "pd.Series[Any]", options: TableOptions) -> list[str]:
    """Return the names of the labels in their order; the positive one of two is the second."""
    names, positive = distinct_names(column, options.max_levels), options.positive
    if len(names) < 2:
        raise DataError(f"column {column.name!r} must have at least two labels (got {listed(names) or 'none'})")
    if positive is None:
        return names
    if len(names) > 2:
        raise DataError(f"'positive' needs two labels (column {column.name!r} has {len(names)}: {listed(names)})")
    if text_of(positive) not in names:
        raise DataError(f"'positive' must be a value of column {column.name!r}, {listed(names)} (got {positive!r})")
    return sorted(names, key=lambda name: name == text_of(positive))


def _feature_column(nodes: Table, name: str, grouping: Grouping) -> "pd.Series[Any]":
    """Return the column to encode: the sensitive attribute as the group's index, others as they are."""
    if name != grouping.title:
        return nodes[name]
    codes = grouping.codes(nodes)
    return pd.Series(np.where(codes == MISSING, np.nan, codes), name=name)
