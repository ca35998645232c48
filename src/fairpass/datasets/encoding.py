"""How a table of nodes becomes labels, groups and features: fitted to one table, applied to others alike."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.columns import EncodedColumn, Missing, column_from_dict, column_to_dict, fit_column
from fairpass.datasets.reading import Table
from fairpass.datasets.scaling import FeatureScale
from fairpass.datasets.sensitive import Grouping
from fairpass.datasets.values import MISSING, codes_among, distinct_names, listed, text_of
from fairpass.errors import DataError

OnConstant = Literal["drop", "error"]

logger = logging.getLogger(__name__)

# Raise it whenever an older encoding would be misread.
_VERSION = 2


@dataclass(frozen=True)
class Encoding:
    """The meaning of every number in a graph made from a table."""

    label: str
    label_names: list[str]
    grouping: Grouping
    columns: list[EncodedColumn]

    @property
    def group_names(self) -> list[str]:
        """The names of the groups, in their order."""
        return self.grouping.names

    @property
    def feature_names(self) -> list[str]:
        """The names of the features, in their order."""
        return [name for column in self.columns for name in column.names]

    @property
    def sens_column(self) -> int | None:
        """Where the sensitive attribute is among the features, if it is."""
        title = self.grouping.title
        kept = any(column.column == title for column in self.columns)
        return self.feature_names.index(title) if kept else None

    def labels(self, nodes: Table) -> NDArray[np.int64]:
        """Return the index of each node's label, shape [N], -1 if it has none."""
        return codes_among(nodes[self.label], self.label_names)

    def groups(self, nodes: Table) -> NDArray[np.int64]:
        """Return the index of each node's group, shape [N], -1 if it has none."""
        return self.grouping.codes(nodes)

    def features(self, nodes: Table, *, allow_unknown: bool = False) -> NDArray[np.float32]:
        """Return the features of each node, shape [N, d].

        A category the encoding does not know is an error, or all zeros with `allow_unknown`.
        """
        blocks = []
        for encoded in self.columns:
            column = _feature_column(nodes, encoded.column, self.grouping)
            with np.errstate(over="ignore"):  # looked at below
                block = encoded.encode(column, allow_unknown=allow_unknown).astype(np.float32)
            if not np.isfinite(block).all():
                raise DataError(f"column {encoded.column!r} has numbers too large for 32-bit features")
            blocks.append(block)
        return np.concatenate(blocks, axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` needs, in JSON's types."""
        return {
            "version": _VERSION,
            "label": self.label,
            "label_names": list(self.label_names),
            "grouping": self.grouping.to_dict(),
            "columns": [column_to_dict(column) for column in self.columns],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Encoding":
        """Return the encoding that `to_dict` stored."""
        try:
            settings = dict(stored)
            version = settings.pop("version")
            if version == _VERSION:
                columns = [column_from_dict(column) for column in settings.pop("columns")]
                grouping = Grouping.from_dict(settings.pop("grouping"))
                return cls(columns=columns, grouping=grouping, **settings)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError("'encoding' must be data.provenance['encoding'] of a graph from 'from_tables'") from error
        raise DataError(f"'encoding' must have version {_VERSION} (got {version!r})")


def fit_labels(column: "pd.Series[Any]", positive: Any, max_levels: int) -> list[str]:
    """Return the names of the labels in a column, in their order: of two, the positive one is the second."""
    names = distinct_names(column, max_levels)
    if len(names) < 2:
        raise DataError(f"column {column.name!r} must have at least two labels (got {listed(names) or 'none'})")
    if positive is None:
        return names
    if len(names) > 2:
        raise DataError(f"'positive' needs two labels (column {column.name!r} has {len(names)}: {listed(names)})")
    if text_of(positive) not in names:
        raise DataError(f"'positive' must be a value of column {column.name!r}, {listed(names)} (got {positive!r})")
    return sorted(names, key=lambda name: name == text_of(positive))


def fit_encoding(
    nodes: Table,
    *,
    label: str,
    label_names: list[str],
    grouping: Grouping,
    features: Sequence[str],
    scale: FeatureScale,
    missing: Missing,
    on_constant: OnConstant,
    max_levels: int,
) -> Encoding:
    """Fit the encoding of a table of nodes whose labels and groups are known; the rest is as in `from_tables`.

    Columns that are constant, and by policy those with missing values, are left out. The sensitive attribute,
    if it is among the `features`, is not scaled.
    """
    fitted = []
    for name in features:
        column = _feature_column(nodes, name, grouping)
        if missing == "drop" and column.isna().any():
            logger.warning("column %r has missing values and is left out", name)
            continue
        its_scale = "none" if name == grouping.title else scale
        encoded = fit_column(column, scale=its_scale, missing=missing, max_levels=max_levels)
        if column.nunique() > 1:
            fitted.append(encoded)
        elif on_constant == "drop":
            logger.warning("column %r is constant and is left out", name)
        else:
            raise DataError(f"column {name!r} is constant (always {listed(column.dropna().head(1).tolist())})")
    encoding = Encoding(label, label_names, grouping, fitted)
    _check_feature_names(encoding.feature_names)
    return encoding


def _feature_column(nodes: Table, name: str, grouping: Grouping) -> "pd.Series[Any]":
    """Return the column to encode: the sensitive attribute as the group's index, others as they are."""
    if name != grouping.title:
        return nodes[name]
    codes = grouping.codes(nodes)
    return pd.Series(np.where(codes == MISSING, np.nan, codes), name=name)


def _check_feature_names(names: list[str]) -> None:
    if not names:
        raise DataError("'nodes' has no column that can be a feature")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"two columns give a feature called {twice!r}: rename one")
