"""Choose how a column is encoded, by its rule or by what it contains, and fit it."""

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairpass.datasets.column_encoding import codes_among, levels_of
from fairpass.datasets.column_kinds import recognise
from fairpass.datasets.column_reading import Reading, content_type
from fairpass.datasets.column_rules import ColumnRule, DecimalMark
from fairpass.datasets.encoded_columns import CategoryColumn, NumberColumn, check_complete, finite_numbers
from fairpass.datasets.graph import MISSING, Column, listed
from fairpass.datasets.options import FeatureScale, TableOptions
from fairpass.datasets.target_column import TargetColumn, TrainingLabels
from fairpass.errors import DataError

logger = logging.getLogger(__name__)

_LEAST_RANGE = 1e-150  # of a column that is no constant: the squares of smaller differences are zero

FittedColumn = NumberColumn | CategoryColumn | TargetColumn


@dataclass(frozen=True)
class ColumnFitter:
    """Fits the encodings of columns, all with the same options."""

    options: TableOptions
    usual_decimal: DecimalMark | None
    training: TrainingLabels

    def fit(self, column: Column, scale: FeatureScale) -> FittedColumn | None:
        """Return the encoding of a column, None if it is left out."""
        name = str(column.name)
        if column.isna().all():
            raise DataError(f"column {name!r} has no value in any row: leave it out ('drop')")
        rule = self.options.columns.get(name)
        if rule is not None:
            return self._by_rule(column, rule, scale)
        found = recognise(column, max_levels=self.options.max_levels, usual_decimal=self.usual_decimal)
        if found.kind == "mixed":
            content = pd.api.types.infer_dtype(column, skipna=True)
            message = f"must contain only numbers, true/false, dates or text (got {content} values)"
            raise DataError(f"column {name!r} {message}")
        if found.note:
            logger.warning("column %r: %s", name, found.note)
        if found.kind == "text":
            return None
        if found.reading is not None:
            return self._number(column, found.reading, scale)
        return self._target(column, scale) if found.kind == "target" else self._category(column)

    def _by_rule(self, column: Column, rule: ColumnRule, scale: FeatureScale) -> FittedColumn | None:
        if rule.kind in ("number", "money", "percent", "date", "flag"):
            reading = Reading.of_rule(rule, column, self.usual_decimal)
            return self._number(column, reading, scale, weekday=rule.weekday)
        if rule.kind == "rare":
            return self._category(column, min_count=rule.min_count)
        many = rule.kind == "code" and column.nunique() > self.options.max_levels
        return self._target(column, scale) if many or rule.kind == "target" else self._category(column)

    def _number(
        self, column: Column, reading: Reading, scale: FeatureScale, *, weekday: bool = False
    ) -> NumberColumn | None:
        values = finite_numbers(column, reading)
        missing = np.isnan(values)
        # Halves, because the difference of the largest numbers is infinite.
        constant = missing.all() or np.nanmax(values) / 2 - np.nanmin(values) / 2 < _LEAST_RANGE
        if self._left_out(column, missing, constant=constant):
            return None
        return NumberColumn.fit(column, values, reading, scale, weekday=weekday, **self._policy)

    def _category(self, column: Column, *, min_count: int | None = None) -> CategoryColumn | None:
        options = self.options
        limit = options.max_levels if min_count is None else None
        levels, spellings = levels_of(column, merge=options.merge_spellings, max_levels=limit)
        if self._left_out(column, column.isna().to_numpy(), constant=len(levels) < 2):
            return None
        codes = codes_among(column, levels, spellings=spellings)
        if min_count is not None:
            counts = np.bincount(codes[codes != MISSING], minlength=len(levels))
            levels = [level for level, count in zip(levels, counts, strict=True) if count >= min_count]
            codes = codes_among(column, levels, spellings=spellings, allow_unknown=True)
        common: dict[str, Any] = {"levels": levels, "spellings": spellings}
        common["of_numbers"] = content_type(column) == "number"
        encoded = CategoryColumn(
            kind="category" if min_count is None else "rare",
            column=str(column.name),
            fill=None,
            indicator=self._policy["indicator"] and bool((codes == MISSING).any()),
            **common,
        )
        if not self._policy["filled"]:
            return encoded
        return encoded.model_copy(update={"fill": encoded.shares(codes[codes != MISSING]).tolist()})

    def _target(self, column: Column, scale: FeatureScale) -> TargetColumn | None:
        levels = levels_of(column, merge=self.options.merge_spellings, max_levels=None)
        if self._left_out(column, column.isna().to_numpy(), constant=len(levels[0]) < 2):
            return None
        indicator = self._policy["indicator"] and bool(column.isna().any())
        common = {"filled": self._policy["filled"], "of_numbers": content_type(column) == "number"}
        return TargetColumn.fit(column, levels, self.training, scale, indicator=indicator, **common)

    @property
    def _policy(self) -> dict[str, Any]:
        """Whether missing values are filled in, and whether a feature says where."""
        missing = self.options.missing
        return {"filled": missing in ("mean", "indicator"), "indicator": missing == "indicator"}

    def _left_out(self, column: Column, missing: Any, *, constant: Any) -> bool:
        """Return whether a column is left out: by option, one with missing values or with a single value."""
        if self.options.missing == "drop" and missing.any():
            logger.warning("column %r has missing values and is left out", column.name)
            return True
        if self.options.missing == "error":
            check_complete(column, missing)
        if not constant:
            return False
        if self.options.on_constant == "error":
            raise DataError(f"column {column.name!r} is constant (always {listed(column.dropna().head(1).tolist())})")
        logger.warning("column %r is constant and is left out", column.name)
        return True
