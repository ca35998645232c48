"""How a table of nodes becomes labels, groups and features: fitted to one table, applied to others."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from fairpass.datasets.column_encoding import codes_among, levels_of, text_of
from fairpass.datasets.column_fitting import ColumnFitter, FittedColumn
from fairpass.datasets.column_rules import Frozen
from fairpass.datasets.encoded_columns import CategoryColumn, Difference, NumberColumn
from fairpass.datasets.graph import MISSING, Column, Floats, Ints, listed
from fairpass.datasets.grouping import Grouping
from fairpass.datasets.options import TableOptions
from fairpass.datasets.spellings import level_finder
from fairpass.datasets.table_files import Table
from fairpass.datasets.target_column import TargetColumn, TrainingLabels
from fairpass.errors import DataError

_VERSION: Literal[3] = 3  # increase it whenever an older encoding would be misread

EncodedColumn = Annotated[NumberColumn | CategoryColumn | TargetColumn, Field(discriminator="kind")]


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
        names = feature_columns(nodes, options, grouping.title)
        fitted = [fit_feature(fitter, nodes, name, grouping) for name in names]
        return cls.of_columns(options.label, labels, grouping, fitted)

    @classmethod
    def of_columns(
        cls, label: str, labels: Labels, grouping: Grouping, fitted: Iterable[FittedColumn | None]
    ) -> "Encoding":
        """Put the columns of a table together; None is a column that is left out."""
        encoding = cls(
            label=label,
            label_names=labels.names,
            label_spellings=labels.spellings,
            grouping=grouping,
            columns=[encoded for encoded in fitted if encoded is not None],
        )
        names = encoding.feature_names
        if not names:
            raise DataError("'nodes' has no column that can be a feature")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"two columns give a feature called {twice!r}: rename one")
        return encoding

    def with_mean_weight(self, mean: float | None) -> "Encoding":
        """Return the encoding with what weights of edges are divided by, unless it has one already."""
        if self.mean_edge_weight is not None or mean is None:
            return self
        return self.model_copy(update={"mean_edge_weight": mean})

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
                found = encoded.absent(len(nodes))
            else:
                column = feature_column(nodes, encoded.column, self.grouping)
                found = encoded.encode(column, allow_unknown=allow_unknown)
                if training is not None and isinstance(encoded, TargetColumn):
                    found.features[training.mask] = encoded.cross_fitted(column, training)
            blocks.append(single_precision(encoded.column, found.features))
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
        nodes.check(column)
    if options.keep_sensitive:
        taken.discard(sensitive_title)
        candidates += [sensitive_title] if sensitive_title not in candidates else []
    chosen = [column for column in candidates if column not in taken.union(options.drop)]
    for column in chosen:
        if column in nodes and not _left_out_by_rule(column, options):
            nodes.check_values(column)  # before any is encoded
    return chosen


def fit_feature(fitter: ColumnFitter, nodes: Table, name: str, grouping: Grouping) -> FittedColumn | None:
    """Return the encoding of a feature, None if it is left out; the index of a group is not scaled."""
    if _left_out_by_rule(name, fitter.options):
        return None
    scale = "none" if name == grouping.title else fitter.options.scale
    return fitter.fit(feature_column(nodes, name, grouping), scale)


def _left_out_by_rule(column: str, options: TableOptions) -> bool:
    return column in options.columns and options.columns[column].leaves_out


def single_precision(name: str, features: Floats) -> NDArray[np.float32]:
    """Return the features of a column as they are stored."""
    with np.errstate(over="ignore"):  # checked below
        block = features.astype(np.float32)
    if not np.isfinite(block).all():
        raise DataError(f"column {name!r} has numbers too large for 32-bit features")
    return block


def feature_column(nodes: Table, name: str, grouping: Grouping) -> Column:
    """Return the column to encode: the sensitive attribute as the group's index, others as they are."""
    if name != grouping.title:
        return nodes[name]
    codes = grouping.codes(nodes)
    return pd.Series(np.where(codes == MISSING, np.nan, codes), name=name)
